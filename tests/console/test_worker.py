"""The processes that queries run in: they end with the server, whatever ends it and whatever they do."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from nestream.console.frames import frame, read_frame
from nestream.console.worker import GRACE
from tests.console.pipeline import wait
from tests.console.served import JobFolder, event
from tests.console.test_command import address, started
from tests.console.test_runs import ENDLESS

SETTINGS = {"files": {}, "time": "ts", "type": "type", "memory": 4 << 30}


def children(process: int) -> list[int]:
    """The processes that one has started."""
    shown = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True)
    return [int(word) for word in shown.stdout.split()]


def runs(process: int) -> bool:
    """Whether a process is there and has not ended."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True)
    return shown.stdout.strip()[:1] not in ("", "Z")


def busy(process: int) -> float:
    """The seconds of the processor that it has used."""
    ticks = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes as Linux tells of them")
def test_a_server_that_is_killed_during_a_long_run_leaves_no_worker(tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "job")
    job.events(*(event(10 + n, "Hall", id=n) for n in range(200)))
    server = started(str(job.path))
    workers: list[int] = []
    try:
        with httpx.Client(follow_redirects=True, timeout=60) as client:
            printed = address(server)
            base = printed.split("/?")[0]
            client.get(printed)
            wait(lambda: client.get(f"{base}/api/counters").json()["events"] == 200, 120)

            def run() -> None:
                with contextlib.suppress(httpx.HTTPError):
                    body = {"text": ENDLESS, "data": "live"}
                    client.post(f"{base}/api/run", json=body, headers={"origin": base})

            asking = threading.Thread(target=run)
            client.post(f"{base}/api/plan", json={"text": "SEQ(A a) WITHIN 5"}, headers={"origin": base})
            workers = children(server.pid)
            assert workers
            before = sum(map(busy, workers))
            asking.start()
            wait(lambda: sum(map(busy, workers)) > before + 1, 120)  # it runs
            server.kill()
            server.wait()
            asking.join(120)
        wait(lambda: not any(map(runs, workers)), 120)
    finally:
        server.kill()
        server.communicate()
        for worker in filter(runs, workers):
            os.kill(worker, signal.SIGKILL)


def worker(**settings: int) -> subprocess.Popen[bytes]:
    """A worker as the server starts it."""
    program = [sys.executable, "-m", "nestream.console.worker", json.dumps({**SETTINGS, **settings})]
    return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.slow
def test_a_run_that_nobody_ends_is_ended_by_the_system() -> None:
    with worker(parent=os.getpid()) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert read_frame(process.stdout) == {"ok": True}
        events = [event(10 + n, "Hall", id=n) for n in range(200)]
        columns = {"time": "ts", "type": "type"}
        for seconds in (120, 5):  # the first one may take long, as it loads what it needs
            check = {"operation": "check", "text": "SEQ(A a) WITHIN 5", "seconds": seconds - GRACE}
            process.stdin.write(frame(check))
            process.stdin.flush()
            assert read_frame(process.stdout)["ok"] is True
        time.sleep(5.5)  # its time is over, but it was done before
        assert process.poll() is None
        request = {"operation": "run", "text": ENDLESS, "events": events, "seconds": 1 - GRACE, **columns}
        process.stdin.write(frame(request))
        process.stdin.flush()
        assert process.wait(120) == -signal.SIGALRM


def test_a_worker_whose_server_has_ended_before_it_began_ends() -> None:
    with worker(parent=2**22 + 1) as process:
        assert process.wait(120) == 1
