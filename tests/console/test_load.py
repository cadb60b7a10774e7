"""The console under load: 10,000 events a second into the demo, for ten minutes unless told otherwise.

Neither the page nor the server may grow with the events, the page must answer all the time, and every match
that the sink has committed must have come to the server and to the page. `NESTREAM_LOAD_SECONDS` sets another
time, `NESTREAM_LOAD_EVENTS` another number of events a second.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from nestream.hospital.job import Job, Settings
from nestream.hospital.score import found_matches
from tests.console.pipeline import COMMAND, wait

SECONDS = float(os.environ.get("NESTREAM_LOAD_SECONDS", "600"))
EVENTS = float(os.environ.get("NESTREAM_LOAD_EVENTS", "10000"))
LOOK = 5.0
MOST_NODES = 3_000
MOST_SERVER = 300 << 20
MOST_HEAP = 120 << 20
SLOWEST = 2.0
"""Seconds in which the page must paint when asked, while the machine also simulates and matches."""


@dataclass
class Look:
    """What was seen at one time."""

    events: int
    nodes: int
    heap: int
    server: int
    answer: float


@contextmanager
def command(*words: str, log: Path) -> Iterator[subprocess.Popen[str]]:
    """A command of nestream in a process of its own, ended at the end."""
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *words], stdout=file, stderr=subprocess.STDOUT, text=True
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def resident(process: subprocess.Popen[str]) -> int:
    """The bytes of memory that a process has."""
    shown = subprocess.run(["ps", "-o", "rss=", "-p", str(process.pid)], capture_output=True, text=True)
    return int(shown.stdout) * 1024


def painted(page: Page) -> float:
    """How long the page takes to paint once more."""
    begin = time.monotonic()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return time.monotonic() - begin


def look(page: Page, server: subprocess.Popen[str]) -> Look:
    answer = painted(page)
    seen: dict[str, Any] = page.evaluate(
        "({ events: nestream.totals.events || 0, heap: performance.memory.usedJSHeapSize,"
        " nodes: document.getElementsByTagName('*').length })"
    )
    return Look(server=resident(server), answer=answer, **seen)


@pytest.mark.slow
@pytest.mark.xdist_group("pages")
def test_under_load_all_stays_bounded_and_nothing_is_lost(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    rate = ["--events-per-second", f"{EVENTS:g}", "--duration", f"{SECONDS:g}"]
    with command(
        "demo", "hospital", "--no-console", "--folder", str(folder), *rate, log=tmp_path / "demo.log"
    ) as demo:
        wait(
            lambda: (folder / "matches" / "_checkpoint" / "nestream").is_dir(),
            180,
            lambda: _runs(demo, tmp_path),
        )
        said = tmp_path / "console.log"
        with command("console", str(folder), "--no-browser", log=said) as server:
            wait(lambda: "token=" in said.read_text(), 60)
            (address,) = re.findall(r"http://\S+", said.read_text())
            page = browser.new_context(viewport={"width": 1360, "height": 860}).new_page()
            page.goto(address)
            wait(lambda: bool(page.evaluate("window.nestream && nestream.totals.events > 0")), 60)
            looks: list[Look] = []
            end = time.monotonic() + SECONDS
            while time.monotonic() < end and demo.poll() is None:
                looks.append(look(page, server))
                time.sleep(LOOK)
            wait(lambda: demo.poll() is not None, SECONDS + 600)
            committed = found_matches(Job(folder, Settings())).total()
            wait(lambda: page.evaluate("nestream.received") >= committed, 60)
            counters = page.evaluate("fetch('/api/counters').then((answer) => answer.json())")
            missed, received = page.evaluate("[nestream.missed, nestream.received]")
            page.context.close()
    print(*(f"{one}" for one in looks[:: max(1, len(looks) // 20)]), f"{counters}", sep="\n")
    assert committed > 0
    assert counters["matches"] == received == committed
    assert missed == 0
    assert max(one.nodes for one in looks) < MOST_NODES
    assert max(one.server for one in looks) < MOST_SERVER
    assert max(one.heap for one in looks) < MOST_HEAP
    assert sorted(one.answer for one in looks)[int(0.95 * len(looks))] < SLOWEST
    half = len(looks) // 2  # after the buffers are full the server no longer grows
    assert max(one.server for one in looks[half:]) < 1.25 * max(one.server for one in looks[:half])


def _runs(demo: subprocess.Popen[str], folder: Path) -> None:
    assert demo.poll() is None, (folder / "demo.log").read_text()[-3000:]
