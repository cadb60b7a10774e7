"""The console under load: 10,000 events a second into a payments job, for ten minutes unless told otherwise.

After a warm-up, in which buffers fill, neither the server nor the page may grow by more than a stated slack.
The page must answer all the time. Every event and every match that the job has committed must have arrived at
the server, and every match at the page. `NESTREAM_LOAD_SECONDS` sets another time, `NESTREAM_LOAD_EVENTS`
another number of events a second.
"""

from __future__ import annotations

import json
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

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, CDPSession, Page

from tests.console.feed import RULES
from tests.console.pipeline import COMMAND, wait

SECONDS = float(os.environ.get("NESTREAM_LOAD_SECONDS", "600"))
EVENTS = float(os.environ.get("NESTREAM_LOAD_EVENTS", "10000"))
LOOK = 5.0
WARM, STEADY = min(150.0, SECONDS / 4), min(240.0, SECONDS / 2)
"""What is held later is compared with the most that was held between these seconds.

The messages that the server keeps for browsers that were away are of two minutes.
"""
SERVER_SLACK, PAGE_SLACK, NODE_SLACK = 32 << 20, 8 << 20, 300
"""A server that falls behind for a moment reads 10,000 rows at once, which takes about 20 MB. The chart of
the page has a bar for each rule and five seconds, up to 15 minutes.
"""
MOST_SERVER, MOST_HEAP, MOST_NODES = 300 << 20, 60 << 20, 6_000
SLOWEST = 2.0
"""Seconds in which the page must paint when asked, while the machine also writes, matches and measures."""


@dataclass
class Look:
    """What was seen at one time."""

    at: float
    events: int
    matches: int
    nodes: int
    heap: int
    server: int
    answer: float

    def __str__(self) -> str:
        return (
            f"{self.at:4.0f} s  {self.events:9,} events  {self.matches:6,} matches  "
            f"server {self.server / 1e6:5.1f} MB  page {self.heap / 1e6:4.1f} MB, {self.nodes:5,} nodes, "
            f"painted in {self.answer:.2f} s"
        )


@contextmanager
def command(*words: str, log: Path) -> Iterator[subprocess.Popen[str]]:
    """A command in a process of its own, ended at the end."""
    with log.open("w") as file:
        process = subprocess.Popen([sys.executable, *words], stdout=file, stderr=subprocess.STDOUT, text=True)
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


def look(page: Page, tools: CDPSession, server: subprocess.Popen[str], at: float) -> Look:
    answer = painted(page)
    tools.send("HeapProfiler.collectGarbage")  # what is left is held
    found = {one["name"]: int(one["value"]) for one in tools.send("Performance.getMetrics")["metrics"]}
    events, matches = page.evaluate("[nestream.totals.events || 0, nestream.received]")
    return Look(at, events, matches, found["Nodes"], found["JSHeapUsedSize"], resident(server), answer)


def progress(folder: Path) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads((folder / "progress.json").read_text())
    except FileNotFoundError:
        return {}
    return told


def committed(folder: Path) -> int:
    """How many matches there are in the sink, not read by the console."""
    return sum(pq.read_metadata(path).num_rows for path in (folder / "matches").glob("part-*"))


@pytest.mark.slow
@pytest.mark.xdist_group("pages")
def test_under_load_all_stays_bounded_and_nothing_is_lost(browser: Browser, tmp_path: Path) -> None:
    folder, events, rules = tmp_path / "job", tmp_path / "events.jsonl", tmp_path / "rules"
    rules.mkdir()
    events.touch()
    for name, text in RULES.items():
        (rules / f"{name}.neel").write_text(text)
    places = ["--local", "--from", str(events), "--job", str(folder)]
    said, fed = tmp_path / "console.log", tmp_path / "feed.log"
    with command("-c", COMMAND, "stream", str(rules), *places, log=tmp_path / "stream.log") as job:

        def runs() -> None:
            assert job.poll() is None, (tmp_path / "stream.log").read_text()[-3000:]

        wait(lambda: progress(folder).get("state") == "running", 120, runs)
        with command("-c", COMMAND, "console", str(folder), "--no-browser", log=said) as server:
            wait(lambda: "token=" in said.read_text(), 60)
            (address,) = re.findall(r"http://\S+", said.read_text())
            page = browser.new_context(viewport={"width": 1360, "height": 860}).new_page()
            tools = page.context.new_cdp_session(page)
            tools.send("Performance.enable")
            page.goto(address)
            wait(lambda: bool(page.evaluate("window.nestream && nestream.ready")), 60)
            how = ["-m", "tests.console.feed", str(events), f"{EVENTS:g}", f"{SECONDS:g}"]
            looks: list[Look] = []
            begin = time.monotonic()
            with command(*how, log=fed) as feeding:
                while feeding.poll() is None:
                    runs()
                    looks.append(look(page, tools, server, time.monotonic() - begin))
                    print(looks[-1], flush=True)
                    time.sleep(LOOK)
            written = int(fed.read_text())
            wait(lambda: progress(folder).get("events") == written, SECONDS + 600, runs)
            counters: dict[str, Any] = {}

            def all_is_there() -> bool:
                counters.update(page.evaluate("fetch('/api/counters').then((answer) => answer.json())"))
                return bool(
                    counters["events"] == written
                    and counters["matches"] == progress(folder)["matches"] == committed(folder)
                    and counters["matches"] == page.evaluate("nestream.received")
                )

            wait(all_is_there, 120)
            missed = page.evaluate("nestream.missed")
            page.context.close()
    print(f"{written:,} events written; {counters}")
    assert counters["matches"] > 0
    assert missed == 0
    assert max(one.server for one in looks) < MOST_SERVER
    assert max(one.heap for one in looks) < MOST_HEAP
    assert max(one.nodes for one in looks) < MOST_NODES
    assert sorted(one.answer for one in looks)[int(0.95 * len(looks))] < SLOWEST
    steady = [one for one in looks if WARM <= one.at < STEADY]
    later = [one for one in looks if one.at >= STEADY]
    for what, slack in (("server", SERVER_SLACK), ("heap", PAGE_SLACK), ("nodes", NODE_SLACK)):
        before, after = (max(getattr(one, what) for one in some) for some in (steady, later))
        assert after - before < slack, f"{what}: {before:,} after the warm-up, {after:,} later"
