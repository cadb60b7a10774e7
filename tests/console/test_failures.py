"""Looks that fail, and events that are made to make them fail: nothing is lost, nothing is told twice."""

from __future__ import annotations

import asyncio
import errno
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nestream.console import Job
from nestream.console.follow import Follower, match_row
from nestream.console.health import health_of
from nestream.console.moments import moment
from nestream.console.watch import Watch
from nestream.job import rule_topic
from nestream.source import files, text_file
from tests.console.pipeline import wait
from tests.console.served import JobFolder, event, match
from tests.loops import in_a_loop

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
    "x" * 10_000,
    None,
]


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are looked at again at once."""
    monkeypatch.setattr(files, "POLL", 0.0)
    monkeypatch.setattr(files, "_SHARE", 0)


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path / "job")


def numbered(number: int) -> dict[str, Any]:
    return match("dirty", o=event(number, "Operating", id=number))


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return [match_row(one, None)["events"][0]["event"]["event"] for one in found]


@pytest.mark.parametrize("value", HOSTILE_TIMES, ids=lambda value: repr(value)[:20])
def test_a_time_beyond_all_dates_is_no_time(value: Any) -> None:
    found = moment(value)
    assert found is None or abs(found) <= 8.64e15


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
    assert watch.problems == {}
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
        await _until(lambda: "no such number" in watch.problems.get("console", ""))
        folder.events(event(1, "A"))
        failing[0] = False
        await _until(lambda: watch.live.events_in == 1)
        assert watch.problems == {}
        running.cancel()

    in_a_loop(run())


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(0.05)


def test_what_is_wrong_with_one_part_of_a_job_keeps_no_other_from_being_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = JobFolder(tmp_path / "job", title="Ward", width=1, height=1, rooms=[])
    watch = Watch(Job.read(folder.path))
    folder.events(event(1, "A", wID=1, room="OR-1"))
    folder.matches(numbered(1))
    repair = unreadable(folder.matches(numbered(2)), monkeypatch)
    (folder.path / "late" / "part-00000001.json").write_text('{"event": 3, "reason": "late"}\n')
    folder.progress(batch=4)
    message, number, events = watch.look()
    assert [one["number"] for one in message["matches"]] == [1]
    assert [row[0] for row in message["moves"]] == ["1"]
    assert [one["event"] for one in message["late"]] == [3]
    assert message["progress"]["batch"] == 4
    assert (number, len(events)) == (0, 1)
    assert list(watch.problems) == ["matches"]
    repair()
    message, _, events = watch.look()
    assert [one["events"][0]["event"]["event"] for one in message["matches"]] == [2]
    assert (events, watch.problems) == ([], {})


def unreadable(path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make a file one that the disk does not give; what is given makes it readable again."""

    def refusing(place: Any, *words: Any, **settings: Any) -> Any:
        if str(place) == str(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return open(place, *words, **settings)

    monkeypatch.setattr(text_file, "open", refusing, raising=False)
    return lambda: monkeypatch.delattr(text_file, "open")


def test_while_the_rules_cannot_be_read_the_page_says_that_matches_are_held_back(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_topic, "PATIENCE", 0.1)
    monkeypatch.setattr("nestream.model.kafka.PATIENCE", 0.1)
    about = json.loads((folder.path / "job.json").read_text())
    (folder.path / "job.json").write_text(json.dumps({**about, "rules": "kafka://127.0.0.1:9/rules"}))
    folder.matches(numbered(1))
    watch = Watch(Job.read(folder.path))
    watch.look_aside()
    wait(lambda: "rules" in _problems(watch), 60)
    for _ in range(5):  # also while the next attempt is made
        assert "127.0.0.1:9" in _problems(watch)["rules"]
    message, _, _ = watch.look()
    health = watch.health()
    assert health is not None
    assert (message["matches"], health["held_back"]) == ([], True)
    watch.close()


def _problems(watch: Watch) -> dict[str, str]:
    watch.look_aside()
    return dict(watch.problems)


def test_a_problem_is_told_without_the_place_of_the_folder(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.events(event(1, "A"))
    unreadable(folder.path / "events" / "part-00000000.jsonl", monkeypatch)
    watch = Watch(Job.read(folder.path))
    watch.look()
    assert "part-00000000.jsonl" in watch.problems["events"]
    assert str(folder.path) not in watch.problems["events"]


def test_a_sink_that_is_no_place_of_matches_says_so(folder: JobFolder) -> None:
    about = json.loads((folder.path / "job.json").read_text())
    (folder.path / "matches.txt").write_text("x\n")
    (folder.path / "job.json").write_text(json.dumps({**about, "matches": "matches.txt"}))
    watch = Watch(Job.read(folder.path))
    watch.look()
    assert "cannot tell the format of" in watch.problems["matches"]


class Torn(io.FileIO):
    """A file of which the disk gives so many bytes, and then an error."""

    most = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Read a block, if the disk gives all of it."""
        if self.tell() + (size or 0) > self.most:
            raise OSError(errno.EIO, "Input/output error")
        return super().read(size)


def test_a_disk_error_in_the_middle_of_a_file_neither_loses_nor_repeats_a_line(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.events(*(event(number, "A") for number in range(100)))
    (path,) = (folder.path / "events").glob("part-*")
    size, whole = path.stat().st_size, open

    def torn(place: Any, *words: Any, **settings: Any) -> Any:
        return Torn(place) if str(place) == str(path) else whole(place, *words, **settings)

    monkeypatch.setattr(text_file, "open", torn, raising=False)
    monkeypatch.setattr(text_file, "BLOCK", 100)
    events = Follower(str(folder.path / "events"), "ts", "type")
    found: list[dict[str, Any]] = []
    failures = 0
    for most in (size // 3, size // 2, size // 2, size, 10 * size):
        monkeypatch.setattr(Torn, "most", most)
        while more := events.new():
            found += more
        failures += events.failed is not None
    assert [one["event"] for one in found] == list(range(100))
    assert failures == 4


def test_what_an_embedded_job_says_of_its_rules_reaches_the_browser(folder: JobFolder) -> None:
    folder.progress(batch=4, by_rule={"dirty": 2}, refused={"bad": "x" * 100_000})
    message, _, _ = Watch(Job.read(folder.path)).look()
    progress = message["progress"]
    assert (progress["state"], progress["by_rule"]) == ("running", {"dirty": 2})
    assert len(progress["refused"]["bad"]) < 10_000


@pytest.mark.parametrize(
    ("told", "state", "why"),
    [
        (None, "starting", "Spark is starting"),
        ({"state": "starting"}, "starting", "Spark is starting"),
        ({"state": "running", "batches": 3}, "running", ""),
        ({"state": "running"}, "running", "waiting for the first events"),
        ({"state": "running", "age": 60}, "stalled", "said nothing for 60 s"),
        ({"state": "stalled"}, "stalled", "A disk or a broker does not answer"),
        ({"state": "stalled", "age": 60}, "stalled", "said nothing for 60 s"),
        ({"state": "failed", "error": "no such column", "age": 600}, "failed", "no such column"),
        ({"state": "stopped", "age": 600}, "stopped", "10 min ago"),
        ({"state": "finished", "age": 3}, "finished", "All input was read"),
        ({"state": "asleep"}, "unknown", "not that of a job"),
    ],
)
def test_the_state_of_a_job_is_what_it_says_and_how_long_ago(
    told: dict[str, Any] | None, state: str, why: str
) -> None:
    now = datetime.now(UTC)
    if told is not None:
        told = {"written": (now - timedelta(seconds=told.pop("age", 1))).isoformat(), **told}
    found = health_of(told, expected=True, runtime="spark", now=now)
    assert found["state"] == state
    assert why in found["why"]


def test_a_job_that_writes_no_progress_is_in_no_known_state() -> None:
    assert health_of(None, expected=False, runtime=None)["state"] == "unknown"
