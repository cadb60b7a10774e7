"""Looks that fail, and events that are made to make them fail: nothing is lost, nothing is told twice."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nestream.console import Job
from nestream.console.moments import hour_of, moment
from nestream.console.tail import FolderTail, SetTail
from nestream.console.watch import Watch
from tests.console.served import JobFolder, event, in_a_loop, match

HOSTILE_TIMES: list[Any] = [
    10**309,
    -(10**400),
    8.65e15,
    float("nan"),
    float("inf"),
    1e308,
    True,
    [],
    {},
    "",
    "\ud800",
    "9" * 4000,
    "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+14:00",
    "x" * 100_000,
    None,
]


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path / "job")


def numbered(number: int) -> dict[str, Any]:
    return match("dirty", o=event(number, "Operating", id=number))


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return [one["events"][0]["event"]["event"] for one in found]


def broken(path: Path) -> Callable[[], None]:
    """Make a file one that cannot be read; what is given makes it whole again."""
    kept = path.with_name(f".kept-{path.name}")
    path.rename(kept)
    path.mkdir()

    def repair() -> None:
        path.rmdir()
        kept.rename(path)

    return repair


@pytest.mark.parametrize("value", HOSTILE_TIMES, ids=lambda value: repr(value)[:20])
def test_a_time_beyond_all_dates_is_no_time(value: Any) -> None:
    found = moment(value)
    assert found is None or abs(found) <= 8.64e15
    assert found is None or hour_of(found)


def test_the_console_goes_on_after_events_and_matches_with_hostile_times(folder: JobFolder) -> None:
    folder.events(*({**event(1, "A", wID=1, room="OR-1"), "ts": value} for value in HOSTILE_TIMES))
    folder.matches(
        *({**numbered(1), "match_start": value, "match_end": value} for value in HOSTILE_TIMES),
        {"query": ["x"], "events": 7, "values": []},
    )
    watch = Watch(Job.read(folder.path))

    async def run() -> None:
        running = asyncio.create_task(watch.run())
        await _until(lambda: watch.live.matches_in == len(HOSTILE_TIMES) + 1)
        folder.events(event(2, "A"))
        folder.matches(numbered(2))
        await _until(lambda: watch.live.matches_in == len(HOSTILE_TIMES) + 2)
        assert not running.done()
        running.cancel()

    in_a_loop(run())
    assert watch.problem is None
    assert watch.live.events_in == len(HOSTILE_TIMES) + 1


def test_a_look_that_fails_in_a_way_nobody_thought_of_is_told_and_the_next_one_comes(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(Job.read(folder.path))
    look, failing = watch.look, [True]

    def sometimes() -> Any:
        if failing[0]:
            raise ArithmeticError("no such number")
        return look()

    monkeypatch.setattr(watch, "look", sometimes)

    async def run() -> None:
        running = asyncio.create_task(watch.run())
        await _until(lambda: "no such number" in (watch.problem or ""))
        folder.events(event(1, "A"))
        failing[0] = False
        await _until(lambda: watch.live.events_in == 1)
        assert watch.problem is None
        running.cancel()

    in_a_loop(run())


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(0.05)


def test_what_is_wrong_with_one_part_of_a_job_keeps_no_other_from_being_told(folder: JobFolder) -> None:
    watch = Watch(Job.read(folder.path))
    folder.events(event(1, "A", wID=1, room="OR-1"))
    folder.matches(numbered(1))
    repair = broken(folder.matches(numbered(2)))
    (folder.path / "late" / "0a-00000001-00000.jsonl").write_text('{"event": 3, "reason": "late"}\n')
    (folder.path / "progress.jsonl").write_text('{"batch": 4}\n')
    message, number, events = watch.look()
    assert [one["number"] for one in message["matches"]] == [1]
    assert [row[0] for row in message["moves"]] == ["1"]
    assert [one["event"] for one in message["late"]] == [3]
    assert message["progress"]["batch"] == 4
    assert (number, len(events)) == (0, 1)
    assert "could not be read" in (watch.problem or "")
    repair()
    message, _, events = watch.look()
    assert numbers(message["matches"]) == [2]
    assert (events, watch.problem) == ([], None)


def test_a_problem_is_told_without_the_place_of_the_folder(folder: JobFolder) -> None:
    folder.events(event(1, "A"))
    broken(folder.path / "events" / "part-00000000.jsonl")
    watch = Watch(Job.read(folder.path))
    watch.look()
    assert "part-00000000.jsonl" in (watch.problem or "")
    assert str(folder.path) not in (watch.problem or "")


def test_events_of_files_after_one_that_cannot_be_read_come_once_it_can(folder: JobFolder) -> None:
    tail = FolderTail(folder.path / "events")
    for number in range(3):
        folder.events(event(number, "A"))
    repair = broken(folder.path / "events" / "part-00000001.jsonl")
    for expected in ([0], []):
        assert [one["event"] for one in tail.new()] == expected
        assert isinstance(tail.failed, IsADirectoryError)
    repair()
    assert [one["event"] for one in tail.new()] == [1, 2]
    assert tail.failed is None


def test_a_file_that_vanishes_before_it_is_read_does_not_hold_up_the_others(folder: JobFolder) -> None:
    for number in range(3):
        folder.events(event(number, "A"))
    tail = FolderTail(folder.path / "events")
    (folder.path / "events" / "part-00000001.jsonl").unlink()
    (folder.path / "events" / "part-00000001.jsonl").symlink_to("nowhere")  # listed, and not there
    assert [one["event"] for one in tail.new()] == [0]
    assert isinstance(tail.failed, FileNotFoundError)
    (folder.path / "events" / "part-00000001.jsonl").unlink()
    assert [one["event"] for one in tail.new()] == [2]


def test_late_events_of_a_file_that_cannot_be_read_come_once_it_can(tmp_path: Path) -> None:
    tail = SetTail(tmp_path)
    for batch in range(3):
        (tmp_path / f"0a-{batch:08}-00000.jsonl").write_text(f'{{"event": {batch}}}\n')
    repair = broken(tmp_path / "0a-00000001-00000.jsonl")
    assert [one["event"] for one in tail.new()] == [0]
    repair()
    assert [one["event"] for one in tail.new()] == [1, 2]
    assert tail.new() == []


class Torn(io.FileIO):
    """A file of which the disk gives so many bytes, and then an error."""

    most = 0

    def readinto(self, buffer: Any) -> int:
        """Read a few bytes."""
        if self.tell() >= self.most:
            raise OSError(errno.EIO, "Input/output error")
        return super().readinto(memoryview(buffer)[: min(100, self.most - self.tell())]) or 0


def test_a_disk_error_in_the_middle_of_a_file_neither_loses_nor_repeats_a_line(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.events(*(event(number, "A") for number in range(100)))
    (path,) = (folder.path / "events").glob("part-*")
    with path.open("a") as file:
        file.write("garbled\n")
    folder.events(event(100, "A"))
    size, whole = path.stat().st_size, Path.open

    def torn(self: Path, *words: Any, **settings: Any) -> Any:
        if self.suffix == ".jsonl" and self.stat().st_size == size:
            return io.BufferedReader(Torn(self), 100)
        return whole(self, *words, **settings)

    monkeypatch.setattr(Path, "open", torn)
    monkeypatch.setattr("nestream.console.tail.MANY", 30)
    tail = FolderTail(folder.path / "events")
    found: list[dict[str, Any]] = []
    failures = 0
    for most in (size // 3, size // 2, size // 2, size, 2 * size):
        monkeypatch.setattr(Torn, "most", most if most <= size else 10 * size)
        while more := tail.new():
            found += more
        failures += tail.failed is not None
    assert [one["event"] for one in found] == list(range(101))
    assert failures == 4
    assert tail.lines.unreadable == 1


def test_whatever_cannot_be_read_meanwhile_every_match_is_given_once(tmp_path: Path) -> None:
    failures = 0
    for seed in range(30):
        chance = random.Random(seed)
        folder = JobFolder(tmp_path / str(seed))
        tail = FolderTail(folder.path / "matches")
        found: list[int] = []
        written: list[int] = []
        for number in range(25):
            some = [numbered(10 * number + part) for part in range(1 + chance.randrange(3))]
            folder.matches(*some)
            written += numbers(some)
            if chance.random() < 0.3:
                repair = broken(chance.choice(sorted((folder.path / "matches").glob("part-*"))))
                found += numbers(tail.new())
                failures += tail.failed is not None
                repair()
            if chance.random() < 0.2:
                found += numbers(tail.new())
        found += numbers(tail.new())
        assert found == written
    assert failures > 20


def test_what_an_embedded_job_says_of_its_rules_reaches_the_browser(folder: JobFolder) -> None:
    line = {"batch": 4, "state": "running", "by_rule": {"dirty": 2}, "refused": {"bad": "x" * 100_000}}
    (folder.path / "progress.jsonl").write_text(json.dumps(line) + "\n")
    message, _, _ = Watch(Job.read(folder.path)).look()
    progress = message["progress"]
    assert (progress["state"], progress["by_rule"]) == ("running", {"dirty": 2})
    assert len(progress["refused"]["bad"]) < 10_000
