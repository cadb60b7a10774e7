"""What jobs survive beside kills: full disks, damaged checkpoints, odd clocks, poisoned rules, new columns.

Each fault happens many times, to a real process where that is possible, and each test says how often.
"""

from __future__ import annotations

import json
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import nestream
from nestream.job import Checkpoint, Job
from nestream.job import job as job_module
from nestream.job import progress as progress_module
from nestream.job.progress import State, state_of
from nestream.sink import first_column, open_sink
from nestream.source import open_source
from tests.cli.commands import PROGRAM, environment
from tests.job.feed import LATENESS, QUERY, ending, expected, lines, random_events
from tests.job.test_kills import written_file

TIMES = 20
PATIENCE = 300


class Running:
    """`nestream stream --local` over a file that grows, in a process of its own."""

    def __init__(
        self, folder: Path, *options: str, query: str = QUERY, lateness: int | str = LATENESS
    ) -> None:
        self.folder = folder
        self.source, self.sink = folder / "in.jsonl", folder / "out.jsonl"
        self.aside, self.checkpoint = folder / "aside.jsonl", folder / "check"
        self.source.touch()
        self._command = [
            *(str(PROGRAM), "stream", query, "--local", "--watermark", str(lateness)),
            *("--from", str(self.source), "--to", str(self.sink), "--late", str(self.aside)),
            *("--checkpoint", str(self.checkpoint), *options),
        ]
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        self.process = subprocess.Popen(
            self._command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        return self.process

    def feed(self, text: bytes) -> None:
        with self.source.open("ab") as file:
            file.write(text)

    def progress(self) -> dict[str, Any]:
        """What the job tells of itself."""
        path = self.checkpoint / "progress.json"
        told: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
        return told

    def wait_for(self, reached: Callable[[], bool]) -> None:
        """Wait for a state; a job that ends by itself has failed."""
        assert self.process is not None
        end = time.monotonic() + PATIENCE
        while not reached():
            if self.process.poll() is not None:
                raise AssertionError(self.said())
            assert time.monotonic() < end, f"the job does not get there: {self.progress()}"
            time.sleep(0.01)

    def has_refused(self, rule: str) -> bool:
        return rule in self.progress()["refused"]

    def said(self) -> str:
        """What the job said until it ended."""
        assert self.process is not None
        return self.process.communicate(timeout=PATIENCE)[1]

    def stop(self) -> str:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        said = self.said()
        assert self.process.returncode == 0, said
        return said


@contextmanager
def running(job: Running) -> Iterator[Running]:
    """A job that does not outlive its test."""
    try:
        yield job
    finally:
        if job.process is not None and job.process.poll() is None:
            job.process.kill()
            job.process.wait()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a running process is Linux's")
def test_a_disk_that_is_full_stops_a_job_with_a_sentence_and_with_room_again_nothing_is_lost(
    tmp_path: Path,
) -> None:
    chance = random.Random(4)
    events = random_events(4, 1500 * (TIMES + 1))
    text = list(lines(events, 4))
    last = ending(events)
    share = len(text) // (TIMES + 1)
    said: list[str] = []
    with running(Running(tmp_path)) as job:
        for _ in range(TIMES):
            process = job.start()
            job.wait_for(lambda: job.progress().get("state") == "running")
            some, text = text[:share], text[share:]
            full = chance.randrange(20, 2000)  # bytes: the next that writes beyond them meets a full disk
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (full, resource.RLIM_INFINITY))
            job.feed(b"".join(some))
            said.append(job.said())
            assert process.returncode == 1, said[-1]
        job.start()
        job.feed(b"".join(text) + json.dumps(last).encode() + b"\n")
        wanted = expected([*events, last])
        job.wait_for(lambda: len(written_file(job.sink)) >= len(wanted))
        job.stop()
    sentence = re.compile("^error: cannot write .*: file too large", re.MULTILINE)
    assert not [one for one in said if not sentence.search(one)]
    assert not any("Traceback" in one for one in said)
    assert written_file(job.sink) == wanted
    print(f"the disk was full {len(said)} times; {len(wanted):,} matches, each once")


@pytest.mark.slow
def test_a_checkpoint_that_is_damaged_anywhere_is_refused_with_its_name(tmp_path: Path) -> None:
    chance = random.Random(5)
    events = random_events(5, 3000)
    with running(Running(tmp_path, "--once")) as job:
        job.feed(b"".join(lines(events, 5)))
        job.start()
        assert "3,0" in job.said()
        path = job.checkpoint / "checkpoint"
        whole = path.read_bytes()
        for _ in range(TIMES):
            at = chance.randrange(len(whole))
            kind = chance.choice(["changed", "cut", "longer"])
            changed = whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1 :]
            path.write_bytes({"changed": changed, "cut": whole[:at], "longer": whole + b"\0"}[kind])
            process = job.start()
            said = " ".join(job.said().split())
            assert process.returncode == 1
            assert f"the checkpoint {path} is damaged" in said, said
            assert "Traceback" not in said
        path.write_bytes(whole)
        process = job.start()
        assert "3,0" in job.said()
        assert process.returncode == 0
    print(f"{TIMES} damaged checkpoints were refused; the whole one goes on")


@pytest.mark.parametrize("jumps", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_a_clock_that_jumps_loses_no_event_and_repeats_no_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jumps: int
) -> None:
    chance = random.Random(6)
    times = 0

    class AnyMoment(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, datetime)

    class Jumping(datetime, metaclass=AnyMoment):
        """A clock that is set to another time whenever somebody looks."""

        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]  # no type of its own is needed
            nonlocal times
            times += 1
            return datetime.now(tz) + timedelta(days=chance.uniform(-400, 400))

    for module in (job_module, progress_module):
        monkeypatch.setattr(module, "datetime", Jumping)
    monkeypatch.setattr(time, "time", lambda: chance.uniform(0, 2e9))
    events = random_events(6, 40 * jumps)
    events.append(ending(events))
    query = nestream.query(QUERY)
    source = tmp_path / "in.jsonl"
    for begin in range(0, len(events), 40):
        with source.open("a") as file:
            file.writelines(json.dumps(event) + "\n" for event in events[begin : begin + 40])
        job = Job(
            lambda **handlers: query.stream(lateness=LATENESS, **handlers),
            open_source(str(source), once=True),
            open_sink(str(tmp_path / "out.jsonl")),
            aside=open_sink(str(tmp_path / "aside.jsonl"), encode=first_column),
            checkpoint=Checkpoint(tmp_path / "checkpoint"),
            lateness=LATENESS,
        )
        progress = job.run(Event())
    assert written_file(tmp_path / "out.jsonl") == expected(events)
    assert (progress.events, progress.late, progress.state) == (len(events), 0, State.FINISHED)
    print(f"the clock jumped {times} times over {len(events):,} events")
    assert times > jumps


def test_a_dead_job_whose_clock_was_ahead_does_not_seem_to_run() -> None:
    now = datetime.now(UTC)
    told = {"state": "running", "written": (now + timedelta(days=1)).isoformat()}
    assert state_of(told, now) is State.STALLED


@pytest.mark.slow
def test_events_from_the_future_are_put_aside_and_make_no_other_event_late(tmp_path: Path) -> None:
    text = "SEQ(A a, B b, a.id = b.id) WITHIN 1 hour RETURN a.id AS id"
    now = datetime.now(UTC) - timedelta(hours=2)
    options = ["--once", "--future", "1 hour"]
    job = Running(tmp_path, *options, query=text, lateness="5 seconds")
    rows = []
    for n in range(TIMES):
        rows += [
            (now + timedelta(seconds=10 * n), "A", n),
            (now + timedelta(days=1 + 300 * n), "B", n),
            (now + timedelta(seconds=10 * n + 5), "B", n),
        ]
    with running(job):
        for ts, type, id in rows:
            job.feed(json.dumps({"ts": ts.isoformat(), "type": type, "id": id}).encode() + b"\n")
        job.start()
        said = job.said()
    found = [json.loads(line)["id"] for line in job.sink.read_text().splitlines()]
    aside = [json.loads(line) for line in job.aside.read_text().splitlines()]
    assert sorted(found) == list(range(TIMES - 1)), said
    assert [row["id"] for row in aside] == list(range(TIMES))
    assert all(row["reason"].startswith("in the future") for row in aside)
    told = job.progress()
    assert (told["future"], told["late"], told["pending"]) == (TIMES, 0, 1)
    print(f"{TIMES} events from the future were put aside; none of {2 * TIMES} others was late")


GOOD = "SEQ(A a, B b, a.id = b.id) WITHIN 10 RETURN a.n AS first, b.n AS last"
POISON = {
    "empty": "",
    "binary": "\0\1\2",
    "half": "SEQ(A a, B b",
    "deep": "SEQ(" * 3000 + "A a" + ")" * 3000 + " WITHIN 10",
    "negations": "SEQ(A a, " + "!(" * 2000 + "B b" + ")" * 2000 + ") WITHIN 10",
    "sum": f"SEQ(A a, B b, {' + '.join(['a.id'] * 5000)} = b.id) WITHIN 10",
    "brackets": f"SEQ(A a, B b, {'(' * 5000}a.id{')' * 5000} = b.id) WITHIN 10",
    "not": f"SEQ(A a, B b, {'NOT ' * 5000}a.id = b.id) WITHIN 10",
    "huge": f"SEQ(A a, B b, a.id = {'9' * 10_000}) WITHIN 10",
    "window": "SEQ(A a, B b) WITHIN 99999999999999999999",
    "years": "SEQ(A a, B b) WITHIN 999999999999 years",
    "function": "SEQ(A a, B b, explode(a.id) = b.id) WITHIN 10",
    "kinds": "SEQ(A a, B b, a.id = 'x') WITHIN 10",
    "never": "SEQ(A a, B b, c.id = b.id) WITHIN 10",
    "twice": "SEQ(A a, B a) WITHIN 10",
    "parameter": "SEQ(A a, B b, a.id = $x) WITHIN 10",
    "limit": "SEQ(A a, B b) WITHIN 10 LIMIT 1",
    "prose": "please find all A that come before B",
    "sql": "SELECT * FROM events WHERE id = 1",
    "quote": "SEQ(A a, B b, a.id = 'never closed) WITHIN 10",
}


@pytest.mark.slow
def test_twenty_poisoned_rules_are_refused_one_by_one_and_the_good_one_goes_on(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "good.neel").write_text(GOOD)
    events = random_events(7, 200 * (len(POISON) + 1))
    text = [json.dumps(event).encode() + b"\n" for event in events]
    last = ending(events)
    with running(Running(tmp_path, query=str(rules))) as job:
        job.start()
        job.wait_for(lambda: job.progress().get("state") == "running")
        for number, (name, poison) in enumerate(POISON.items(), 1):
            (rules / f"{name}.neel").write_text(poison)
            job.feed(b"".join(text[200 * number - 200 : 200 * number]))
            job.wait_for(partial(job.has_refused, name))
        job.feed(b"".join(text[200 * len(POISON) :]) + json.dumps(last).encode() + b"\n")
        job.wait_for(lambda: job.progress()["events"] == len(events) + 1)
        (rules / "binary.neel").write_bytes(b"\xff\xfe\x00")  # no text at all: the folder cannot be read
        job.wait_for(lambda: job.progress()["rules_problem"] is not None)
        assert "is not UTF-8 text" in job.progress()["rules_problem"]
        job.stop()
    told = job.progress()
    assert set(told["refused"]) == set(POISON)
    assert told["rules"] == {"good": 1}
    internal = {name: why for name, why in told["refused"].items() if "internal error" in why}
    assert not internal
    matches = [json.loads(line)["values"] for line in job.sink.read_text().splitlines()]
    wanted = nestream.query(GOOD).match([*events, last]).to_pylist()
    assert sorted((int(row["first"]), int(row["last"])) for row in matches) == sorted(
        (row["first"], row["last"]) for row in wanted
    )
    print(f"{len(told['refused'])} poisoned rules were refused; {len(matches):,} matches of the good one")


@pytest.mark.slow
def test_events_that_gain_a_column_again_and_again_do_not_stop_a_job(tmp_path: Path) -> None:
    text = "SEQ(A a, B b, a.id = b.id) WITHIN 1000"
    with running(Running(tmp_path, "--once", query=text, lateness=0)) as job:
        for n in range(TIMES):
            new = {f"column{m}": m for m in range(n)}
            for ts, type in ((2 * n, "A"), (2 * n + 1, "B")):
                job.feed(json.dumps({"ts": ts, "type": type, "id": n, **new}).encode() + b"\n")
            process = job.start()
            said = job.said()
            assert process.returncode == 0, said
    found = [json.loads(line) for line in job.sink.read_text().splitlines()]
    assert [row["a"]["id"] for row in found] == list(range(TIMES))
    assert found[-1]["b"][f"column{TIMES - 2}"] == TIMES - 2
    assert (job.progress()["malformed"], job.progress()["matches"]) == (0, TIMES)
    print(f"{TIMES - 1} columns were gained; {len(found)} matches")
