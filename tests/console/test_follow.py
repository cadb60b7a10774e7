"""What is read of the places of a job: everything that counts, once, in order, whatever they are."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nestream
from nestream.console.follow import Follower, match_row
from nestream.hospital.job import Job as HospitalJob
from nestream.hospital.job import Settings
from nestream.hospital.score import found_matches
from nestream.sink import json_lines
from nestream.source import files
from tests.console.pipeline import wait
from tests.console.served import JobFolder, event, match

PAIR = "SEQ(A a, B b, a.id = b.id) WITHIN 10"


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are looked at again at once."""
    monkeypatch.setattr(files, "POLL", 0.0)
    monkeypatch.setattr(files, "_SHARE", 0)


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path / "job")


def of_events(folder: JobFolder, *, newest: bool = False) -> Follower:
    return Follower(str(folder.path / "events"), "ts", "type", newest=newest)


def of_matches(folder: JobFolder) -> Follower:
    return Follower(str(folder.path / "matches"), "match_end", None)


def numbered(number: int) -> dict[str, Any]:
    return match("dirty", o=event(number, "Operating", id=number))


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return [match_row(one, None)["events"][0]["event"]["event"] for one in found]


def test_event_files_are_read_once_and_in_the_order_of_their_arrival(folder: JobFolder) -> None:
    events = of_events(folder)
    folder.events(event(1, "A"), event(2, "A"))
    folder.events(event(3, "A"))
    assert [one["event"] for one in events.new()] == [1, 2, 3]
    assert events.new() == []
    folder.events(event(4, "A"))
    assert [one["event"] for one in events.new()] == [4]


def test_a_hidden_file_is_left_alone_until_it_is_renamed(folder: JobFolder) -> None:
    events = of_events(folder)
    (folder.path / "events" / ".part-00000000.jsonl").write_text(json.dumps(event(1, "A")) + "\n")
    assert events.new() == []


def test_of_a_long_past_only_the_newest_files_are_read(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        folder.events(event(number, "A"))
        os.utime(folder.path / "events" / f"part-{number:08}.jsonl", (number, number))
    size = (folder.path / "events" / "part-00000000.jsonl").stat().st_size
    monkeypatch.setattr(files, "NEWEST", 3 * size)
    events = of_events(folder, newest=True)
    assert [one["event"] for one in events.new()] == [7, 8, 9]
    folder.events(event(10, "A"))
    assert [one["event"] for one in events.new()] == [10]


@pytest.mark.parametrize("rest", [-1, 0, 1, 7])
def test_of_a_long_file_only_the_last_lines_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: int
) -> None:
    path = tmp_path / "events.jsonl"
    lines = [json.dumps(event(number, "A")) + "\n" for number in range(10, 20)]
    path.write_text("".join(lines))
    monkeypatch.setattr(files, "NEWEST", 3 * len(lines[0]) + rest)
    events = Follower(str(path), "ts", "type", newest=True)
    assert [one["event"] for one in events.new()] == ([18, 19] if rest < 0 else [17, 18, 19])
    with path.open("a") as file:
        file.write(json.dumps(event(20, "A")) + "\n")
    assert [one["event"] for one in events.new()] == [20]


def test_a_line_that_is_no_object_is_counted_and_left_out(folder: JobFolder) -> None:
    lines = [json.dumps(event(1, "A")), "[]", '{"event"', "", json.dumps(event(2, "A"))]
    (folder.path / "events" / "part-0.jsonl").write_text("\n".join(lines) + "\n")
    events = of_events(folder)
    assert [one["event"] for one in events.new()] == [1, 2]
    assert events.unreadable == 2


def test_an_event_that_does_not_fit_the_others_is_shown_as_it_is(folder: JobFolder) -> None:
    folder.events(event(1, "A", id=1), event(2, "A", id="one"), {"event": 3, "note": "no time and no type"})
    events = of_events(folder)
    assert {one["event"]: one.get("id") for one in events.new()} == {1: 1, 2: "one", 3: None}
    assert events.unreadable == 0


def test_one_look_reads_so_much_and_the_next_one_goes_on(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nestream.console.follow.MANY", 100)
    matches = of_matches(folder)
    for first in range(0, 250, 50):
        folder.matches(*(numbered(number) for number in range(first, first + 50)))
    parts = []
    while part := matches.new():
        parts.append(part)
    assert [len(part) for part in parts] == [100, 100, 50]
    assert not matches.has_more
    assert numbers([one for part in parts for one in part]) == list(range(250))


def test_matches_count_when_their_micro_batch_is_committed(folder: JobFolder) -> None:
    matches = of_matches(folder)
    assert matches.new() == []
    folder.uncommitted(numbered(99))
    assert matches.new() == []
    folder.matches(numbered(1), numbered(2))
    assert numbers(matches.new()) == [1, 2]
    assert matches.new() == []


def test_matches_in_one_file_that_grows_are_all_read_and_from_a_position_on(tmp_path: Path) -> None:
    path = tmp_path / "matches.jsonl"
    matches = Follower(str(path), "match_end", None)
    found, position = [], None
    for number in range(6):
        with path.open("a") as file:
            flat = {"query": "dirty", "match_end": number, "number": number}
            file.write(json.dumps(flat if number % 2 else numbered(number)) + "\n")
        found += matches.new()
        assert matches.failed is None
        position = matches.position() if number == 2 else position
    assert len(found) == 6
    again = Follower(str(path), "match_end", None, position=position)
    rest = again.new()
    assert (again.failed, len(rest)) == (None, 3)


def test_whenever_one_looks_every_match_is_given_once(tmp_path: Path) -> None:
    for seed in range(10):
        chance = random.Random(seed)
        folder = JobFolder(tmp_path / str(seed))
        matches = of_matches(folder)
        found: list[int] = []
        written: list[int] = []
        for number in range(25):
            some = [numbered(10 * number + part) for part in range(chance.randrange(3))]
            folder.matches(*some)
            written += numbers(some)
            if chance.random() < 0.4:
                found += numbers(matches.new())
        found += numbers(matches.new())
        assert sorted(found) == written


def test_the_console_and_the_summary_of_the_demo_read_the_same_matches(folder: JobFolder) -> None:
    job = HospitalJob(folder.path, Settings())
    matches = of_matches(folder)
    read: Counter[int] = Counter()
    for number in range(25):
        folder.matches(*(numbered(10 * number + part) for part in range(number % 3)))
        folder.uncommitted(numbered(1000 + number))
        if number % 4 == 3:
            read.update(numbers(matches.new()))
    read.update(numbers(matches.new()))
    assert read.total() == 24
    assert found_matches(job) == Counter({("dirty", (one,)): many for one, many in read.items()})


SINKS = {"parquet": "part-0.parquet", "json": "part-0.json", "growing": "matches.jsonl"}


def written(rows: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(rows, path)
    else:
        path.write_text("".join(json_lines(batch) for batch in rows.to_batches()))


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("kind", ["a set", "one query"])
def test_the_matches_of_every_sink_are_read_alike(tmp_path: Path, sink: str, kind: str) -> None:
    events = [{"ts": 1, "type": "A", "id": 1, "who": "{u}"}, {"ts": 2, "type": "B", "id": 1, "who": None}]
    query = nestream.queries({"pair": PAIR}) if kind == "a set" else nestream.query(PAIR)
    path = tmp_path / SINKS[sink]
    written(query.match(events), path)
    place = path if sink == "growing" else tmp_path
    (row,) = Follower(str(place), "match_end", None).new()
    found = match_row(row, "pair")
    assert (found["query"], found["match_start"], found["match_end"]) == ("pair", 1, 2)
    shown = {
        part["variable"]: {name: value for name, value in part["event"].items() if value is not None}
        for part in found["events"]
    }
    assert shown == {
        "a": {"ts": 1, "type": "A", "id": 1, "who": "{u}"},
        "b": {"ts": 2, "type": "B", "id": 1},
    }


def test_a_place_that_cannot_be_read_again_says_so() -> None:
    matches = Follower("tcp://127.0.0.1:9", "match_end", None)
    assert matches.new() == []
    assert "cannot be read again" in str(matches.failed)


def test_a_topic_that_nobody_serves_holds_up_no_other_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nestream.model.kafka.PATIENCE", 0.5)
    matches = Follower("kafka://127.0.0.1:9/matches", "match_end", None)
    assert matches.new() == []
    wait(lambda: matches.new() == [] and matches.failed is not None, 60)
    assert "127.0.0.1:9" in str(matches.failed)


def test_late_events_and_dead_letters_are_read_with_their_reasons(tmp_path: Path) -> None:
    late = Follower(str(tmp_path), "ts", "type", newest=True)
    rows = [{**event(1, "A"), "reason": "late"}, {"raw": "garbled", "reason": "not JSON"}]
    (tmp_path / "part-00000000.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [one["reason"] for one in late.new()] == ["late", "not JSON"]
    assert late.new() == []
