"""What is read of a job's folder: everything that counts, once, in order."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nestream.console.tail import FileTail, FolderTail, SetTail
from nestream.hospital.job import Job as HospitalJob
from nestream.hospital.job import Settings
from nestream.hospital.score import found_matches
from tests.console.served import JobFolder, event, match


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path / "job")


def numbered(number: int) -> dict[str, Any]:
    return match("dirty", o=event(number, "Operating", id=number))


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return [one["events"][0]["event"]["event"] for one in found]


def test_event_files_are_read_once_and_in_the_order_of_their_names(folder: JobFolder) -> None:
    tail = FolderTail(folder.path / "events")
    folder.events(event(1, "A"), event(2, "A"))
    folder.events(event(3, "A"))
    assert [one["event"] for one in tail.new()] == [1, 2, 3]
    assert tail.new() == []
    folder.events(event(4, "A"))
    assert [one["event"] for one in tail.new()] == [4]


def test_a_file_that_comes_in_the_same_tick_of_the_clock_is_not_overlooked(folder: JobFolder) -> None:
    tail = FolderTail(folder.path / "events")
    folder.events(event(1, "A"))
    before = os.stat(folder.path / "events")
    assert len(tail.new()) == 1
    assert tail.new() == []
    folder.events(event(2, "A"))
    os.utime(folder.path / "events", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert len(tail.new()) == 1


def test_a_hidden_file_is_left_alone_until_it_is_renamed(folder: JobFolder) -> None:
    tail = FolderTail(folder.path / "events")
    (folder.path / "events" / ".part-00000000.jsonl").write_text('{"event": 1}\n')
    assert tail.new() == []


def test_of_many_files_that_were_there_before_only_the_last_are_read(folder: JobFolder) -> None:
    for number in range(10):
        folder.events(event(number, "A"))
    tail = FolderTail(folder.path / "events")
    assert tail.skip_to_last(3) == 7
    assert [one["event"] for one in tail.new()] == [7, 8, 9]


def test_a_line_that_is_no_object_is_counted_and_left_out(folder: JobFolder) -> None:
    (folder.path / "events" / "part-0.jsonl").write_text('{"event": 1}\n[]\n{"event"\n\n{"event": 2}\n')
    tail = FolderTail(folder.path / "events")
    assert [one["event"] for one in tail.new()] == [1, 2]
    assert tail.lines.unreadable == 2


def test_a_large_file_is_read_in_parts(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nestream.console.tail.MANY", 100)
    tails = FolderTail(folder.path / "events"), FolderTail(folder.path / "matches")
    folder.events(*(event(number, "A") for number in range(250)))
    folder.events(event(250, "A"))
    folder.matches(*(numbered(number) for number in range(251)))
    for tail in tails:
        parts = [tail.new() for _ in range(4)]
        assert [len(part) for part in parts] == [100, 100, 51, 0]
        assert not tail.has_more
    assert numbers(parts[0] + parts[1] + parts[2]) == list(range(251))


def test_a_line_without_end_is_left_out_and_not_held(folder: JobFolder) -> None:
    path = folder.path / "events" / "part-0.jsonl"
    path.write_bytes(b'{"event": 1}\n{"text": "' + b"x" * (5 << 20) + b'"}\n{"event": 2}\n')
    tail = FolderTail(folder.path / "events")
    assert [one["event"] for one in tail.new()] == [1, 2]
    assert tail.lines.unreadable == 1


def test_matches_count_when_their_micro_batch_is_committed(folder: JobFolder) -> None:
    tail = FolderTail(folder.path / "matches")
    assert tail.new() == []
    folder.uncommitted(numbered(99))
    assert tail.new() == []
    folder.matches(numbered(1), numbered(2))
    assert numbers(tail.new()) == [1, 2]
    assert tail.new() == []


def test_whenever_one_looks_every_match_is_given_once(tmp_path: Path) -> None:
    for seed in range(30):
        chance = random.Random(seed)
        folder = JobFolder(tmp_path / str(seed))
        tail = FolderTail(folder.path / "matches")
        found: list[int] = []
        written: list[int] = []
        for number in range(25):
            some = [numbered(10 * number + part) for part in range(chance.randrange(3))]
            folder.matches(*some)
            written += numbers(some)
            if chance.random() < 0.4:
                found += numbers(tail.new())
        found += numbers(tail.new())
        assert found == written


def test_the_console_and_the_summary_of_the_demo_read_the_same_matches(folder: JobFolder) -> None:
    job = HospitalJob(folder.path, Settings())
    tail = FolderTail(folder.path / "matches")
    read: Counter[int] = Counter()
    for number in range(25):
        folder.matches(*(numbered(10 * number + part) for part in range(number % 3)))
        folder.uncommitted(numbered(1000 + number))
        if number % 4 == 3:
            read.update(numbers(tail.new()))
    read.update(numbers(tail.new()))
    assert read.total() == 24
    assert found_matches(job) == Counter({("dirty", (one,)): many for one, many in read.items()})


def test_late_events_are_read_once_though_their_file_is_written_again(tmp_path: Path) -> None:
    tail = SetTail(tmp_path)
    name = "0a1b-2c3d-00000004-00000.jsonl"
    (tmp_path / name).write_text('{"event": 1, "reason": "before the watermark"}\n')
    assert len(tail.new()) == 1
    (tmp_path / name).write_text('{"event": 1, "reason": "before the watermark"}\n')
    assert tail.new() == []
    (tmp_path / "0a1b-2c3d-00000004-00001.jsonl").write_text('{"event": 2}\n')
    (tmp_path / "0a1b-2c3d-00000005-00000.jsonl").write_text('{"event": 3}\n')
    assert [one["event"] for one in tail.new()] == [2, 3]


def test_a_line_of_progress_counts_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    tail = FileTail(path)
    assert tail.new() == []
    path.write_text('{"batch": 0}\n{"bat')
    assert tail.new() == [{"batch": 0}]
    with path.open("a") as file:
        file.write('ch": 1}\n')
    assert tail.new() == [{"batch": 1}]
    path.write_text('{"batch": 0}\n')
    assert tail.new() == [{"batch": 0}]
