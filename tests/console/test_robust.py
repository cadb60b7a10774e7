"""What a console stands: half-sent requests, pages that leave, runs that are stopped, checks beside runs."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nestream.console import Job, patience, pool
from nestream.console.operations import Operations
from nestream.console.watch import Watch
from tests.console.pipeline import wait
from tests.console.served import RULE, Console, JobFolder, event, match, serving
from tests.console.test_runs import ENDLESS
from tests.loops import in_a_loop

HALF_SENT = 400
ONE = "SEQ(Hall a, a.id = 7) WITHIN 5 seconds"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    folder = JobFolder(tmp_path_factory.mktemp("robust") / "job")
    folder.events(*(event(10 + n, "Hall", id=n) for n in range(200)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patience, "PATIENCE", 1.0)
        patch.setattr(pool, "STARTING", 600.0)
        patch.setattr(pool, "SECONDS", 300.0)
        with serving(folder.path) as running:
            with running.client() as client:
                wait(lambda: client.get("/api/counters").json()["events"] == 200, 120)
            yield running


def connected(console: Console) -> socket.socket:
    host, _, port = console.base.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)))


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        b"POST /api/check HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nOrigin: {origin}\r\n"
        b'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"text": ',
    ],
    ids=["nothing", "half of the head", "half of the body"],
)
def test_a_request_that_does_not_come_whole_is_given_up(console: Console, sent: bytes) -> None:
    port = console.base.rpartition(":")[2]
    own = {"host": f"127.0.0.1:{port}", "cookie": f"nestream-{port}={console.token}", "origin": console.base}
    for name, value in own.items():
        sent = sent.replace(b"{%s}" % name.encode(), value.encode())
    with connected(console) as half:
        half.sendall(sent)
        half.settimeout(60)
        with suppress(ConnectionResetError):
            assert half.recv(10_000) == b""


def test_hundreds_of_half_sent_requests_keep_nobody_out(console: Console) -> None:
    halves = [connected(console) for _ in range(HALF_SENT)]
    try:
        for half in halves:
            half.sendall(b"GET / HTTP/1.1\r\n")
        with console.client() as client:
            assert client.get("/api/counters").status_code == 200
            assert client.post("/api/check", json={"text": RULE}).json()["ok"] is True
    finally:
        for half in halves:
            half.close()


def running(console: Console, answers: list[dict[str, Any]], name: str) -> threading.Thread:
    """A run that does not end by itself, asked for in a thread."""

    def run() -> None:
        with console.client() as client:
            body = {"text": ENDLESS, "data": "live", "run": name}
            answers.append(client.post("/api/run", json=body).json())

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_run_that_is_stopped_answers_with_what_it_has_found(console: Console) -> None:
    answers: list[dict[str, Any]] = []
    thread = running(console, answers, "mine")
    with console.client() as client:

        def stop() -> bool:
            client.post("/api/run/stop", json={"run": "mine"})
            return not thread.is_alive()

        time.sleep(1)
        wait(stop, 120)
        assert "You stopped it" in (answers[0].get("stopped") or answers[0]["error"])
        again = client.post(
            "/api/run", json={"text": "SEQ(Hall a, a.id = 7) WITHIN 5 seconds", "data": "live"}
        )
        assert again.json()["total"] == 1


HALFWAY = """
import struct, sys, time
found = b'{"partial": {"ok": true, "rows": [1, 2]}}'
sys.stdout.buffer.write(struct.pack(">I", len(found)) + found)
sys.stdout.buffer.flush()
time.sleep(600)
"""


class Halfway(pool.Worker):
    """A worker whose process finds two rows, and then looks for more for long."""

    async def _started(self) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HALFWAY, stdin=pipe, stdout=pipe
        )
        return self.process


def test_a_run_that_is_stopped_or_takes_too_long_gives_the_rows_it_has() -> None:
    async def stopped() -> dict[str, Any]:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(3, stop.set)
        return await Halfway({}).ask({}, 600, stop)

    async def too_long() -> dict[str, Any]:
        return await Halfway({}).ask({}, 3)

    assert in_a_loop(stopped()) == {"ok": True, "rows": [1, 2], "stopped": "You stopped it."}
    found = in_a_loop(too_long())
    assert (found["rows"], "longer than 3 seconds" in found["stopped"]) == ([1, 2], True)


def test_a_run_says_now_and_then_what_it_has_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nestream.console.operations.PARTLY", 0.0)
    told: list[dict[str, Any]] = []
    operations = Operations({})
    operations.partly = told.append
    events = [event(10 + number, "Hall", id=number) for number in range(20)]
    request = {"operation": "run", "text": "SEQ(Hall h) WITHIN 5 seconds", "events": events}
    answer = operations.answer(request)
    assert told
    assert told[-1]["rows"] == answer["rows"][: len(told[-1]["rows"])]
    assert (told[-1]["more"], answer["more"]) == (True, False)


def test_checks_do_not_wait_for_runs(console: Console) -> None:
    answers: list[dict[str, Any]] = []
    threads = [running(console, answers, f"long-{number}") for number in range(pool.WORKERS + 1)]
    with console.client() as client:
        assert client.post("/api/check", json={"text": RULE}).json()["ok"] is True
        assert answers == []

        def stop() -> bool:
            for number in range(len(threads)):
                client.post("/api/run/stop", json={"run": f"long-{number}"})
            return not any(thread.is_alive() for thread in threads)

        wait(stop, 120)


def test_a_run_is_cancelled_when_its_page_leaves(console: Console) -> None:
    port = console.base.rpartition(":")[2]
    body = json.dumps({"text": ENDLESS, "data": "live"}).encode()
    head = (
        f"POST /api/run HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: nestream-{port}={console.token}\r\n"
        f"Origin: {console.base}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    for _ in range(pool.WORKERS):
        with connected(console) as page:
            page.sendall(head.encode() + body)
            time.sleep(0.3)
    with console.client() as client:  # no worker is taken by those who have left
        answer = client.post(
            "/api/run", json={"text": "SEQ(Hall a, a.id = 7) WITHIN 5 seconds", "data": "live"}
        )
        assert answer.json()["total"] == 1


def test_a_tab_that_joins_a_line_begins_with_the_number_of_its_last_message(console: Console) -> None:
    with console.client() as client:
        joined = client.get("/api/snapshot").json()
        assert joined["data"]["totals"]["events"] == 200
        last = {"last-event-id": f"{joined['run']}-{joined['number']}"}
        with client.stream("GET", "/api/stream", headers=last) as line:
            kinds = (text for text in line.iter_lines() if text.startswith("event: "))
            assert next(kinds) == "event: update"


def test_a_match_is_found_by_its_address_though_it_is_no_longer_held(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "job")
    rows = [match("dirty", o=event(number, "Operating", id=number)) for number in range(5)]
    folder.matches(*rows)
    watch = Watch(Job.read(folder.path))
    watch.look()
    (wanted,) = [one["id"] for one in watch.live.matches if one["number"] == 1]
    assert watch.find_match(wanted) == watch.live.matches[0]
    watch.live.matches.clear()
    found = watch.find_match(wanted)
    assert found is not None
    assert found["events"][0]["event"]["event"] == 0
    assert watch.find_match("nowhere") is None
