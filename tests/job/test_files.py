"""Files as a source: what grows, what comes, what is replaced, and where a source goes on after a restart."""

from __future__ import annotations

import gzip
import json
import os
import random
import time as clock
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nestream.source import RewrittenWarning, Source, SourceError, as_beginning, open_source
from nestream.source.files import DAY, Files
from nestream.source.renamed import state_of
from nestream.source.text_file import TextFile


def line(n: int, **more: Any) -> str:
    return json.dumps({"ts": n, "type": "A", **more}) + "\n"


def read_all(source: Source) -> tuple[list[int], list[str]]:
    """The times of the events that are there, and the reasons of the dead letters."""
    times: list[int] = []
    dead: list[str] = []
    while (batch := source.read(0.0)) is not None:
        if batch.events.num_rows:
            times += batch.events.column("ts").to_pylist()
        dead += [letter.reason for letter in batch.dead]
    return times, dead


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def await_times(source: Source, wanted: list[int]) -> None:
    """Read until these events have come."""
    found: list[int] = []
    while len(found) < len(wanted):
        batch = source.read(5.0)
        assert batch is not None, f"only {found} came"
        found += batch.events.column("ts").to_pylist()
    assert found == wanted


def test_a_line_is_read_when_its_end_is_there(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line(1) + line(2)[:9])
    source = open_source(str(path))
    await_times(source, [1])
    assert read_all(source) == ([], [])
    append(path, line(2)[9:])
    await_times(source, [2])


def test_a_source_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line(1) + line(2))
    source = open_source(str(path), once=True)
    assert read_all(source) == ([1, 2], [])
    assert source.ended
    append(path, line(3) + "nonsense\n")
    later = open_source(str(path), once=True)
    later.seek(json.loads(json.dumps(source.position())))
    batch = later.read(0.0)
    assert batch is not None
    assert batch.events.column("ts").to_pylist() == [3]
    assert [letter.line for letter in batch.dead] == [4]


def test_the_dead_letters_of_a_csv_file_are_in_line_order(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type,id\n1,A,1\nx,A,2\n3,A\ny,A,2\n")
    batch = open_source(str(path), once=True).read(0.0)
    assert batch is not None
    assert [letter.line for letter in batch.dead] == [3, 4, 5]


@pytest.mark.parametrize("change", ["replaced", "cut", "removed"])
def test_a_file_that_is_not_the_one_of_the_checkpoint_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line(1) + line(2))
    source = open_source(str(path))
    await_times(source, [1, 2])
    place = source.position()
    path.write_text({"replaced": line(7) + line(8), "cut": line(1), "removed": line(9)}[change])
    later = open_source(str(path))
    if change == "removed":
        path.unlink()
    with pytest.raises(SourceError, match="not the file of the checkpoint"):
        later.seek(place)


def test_a_file_that_is_rotated_is_read_to_its_end_and_then_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line(1))
    source = open_source(str(path))
    await_times(source, [1])
    append(path, line(2))
    os.replace(path, tmp_path / "events.jsonl.1")
    append(tmp_path / "events.jsonl.1", line(3))
    path.write_text(line(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await_times(source, [2, 3, 4])


def test_a_new_file_with_the_lines_of_the_old_one_is_read_anew_with_a_warning(tmp_path: Path) -> None:
    path, new = tmp_path / "events.jsonl", tmp_path / "new.jsonl"
    path.write_text(line(1))
    source = open_source(str(path))
    await_times(source, [1])
    new.write_text(line(1) + line(2))
    os.replace(new, path)
    with pytest.warns(UserWarning, match="was written anew or cut back; it is read from its beginning"):
        await_times(source, [1, 2])


@pytest.mark.parametrize("last", [line(2), line(2).rstrip()])
def test_what_is_written_between_the_last_read_and_a_rotation_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line(1))
    source = open_source(str(path))
    await_times(source, [1])
    is_another = TextFile._is_another

    def rotated_before(file: TextFile) -> Any:
        monkeypatch.undo()
        append(path, last)
        os.replace(path, tmp_path / "events.jsonl.1")
        path.write_text(line(3))
        return is_another(file)

    monkeypatch.setattr(TextFile, "_is_another", rotated_before)
    os.utime(path)
    await_times(source, [2, 3])


@pytest.mark.parametrize("rest", ["", '{"ts": 3, "ty', line(7) + line(8), line(7, note="long" * 2000)])
def test_a_file_that_is_cut_back_is_read_on_where_it_was_cut(tmp_path: Path, rest: str) -> None:
    path = tmp_path / "events.jsonl"
    lines = [line(number, note="long" * 200) for number in range(6)]
    path.write_text("".join(lines))
    source = open_source(str(path))
    await_times(source, list(range(6)))
    path.write_text("".join(lines[:3]) + rest)
    with pytest.warns(UserWarning, match="was cut back; it is read on where it was cut"):
        assert read_on(source) == ([7, 8] if "8" in rest else [7] if "7" in rest else [])
    path.write_text("".join(lines[:3]) + rest * rest.endswith("\n") + line(9) + "nonsense\n")
    batch = source.read(1.0)
    assert batch is not None
    assert batch.events.column("ts").to_pylist() == [9]
    assert [letter.line for letter in batch.dead] == [5 + rest.count("\n")]
    later = open_source(str(path))
    later.seek(source.position())
    append(path, line(10))
    await_times(later, [10])


def read_on(source: Source) -> list[int]:
    batch = source.read(0.1)
    return [] if batch is None else batch.events.column("ts").to_pylist()


def read_from(source: Source, position: dict[str, Any] | None) -> list[int]:
    if position is not None:
        source.seek(position)
    return read_on(source)


def test_however_far_a_file_is_cut_back_no_line_is_lost_and_few_are_read_again(tmp_path: Path) -> None:
    chance = random.Random(7)
    path = tmp_path / "events.jsonl"
    for name in ("running", "stopped"):
        path.unlink(missing_ok=True)
        path.touch()
        source = open_source(str(path), forgiving=True)
        lines: list[str] = []
        number = 0
        for _ in range(40):
            more = [
                line(number + at, note="x" * chance.randrange(90)) for at in range(chance.randrange(1, 90))
            ]
            number += len(more)
            append(path, "".join(more))
            lines += more
            await_times(source, [json.loads(one)["ts"] for one in more])
            assert len(json.dumps(source.position())) < 10_000
            if chance.random() < 0.7:
                continue
            left = chance.randrange(len(lines))
            gone, lines = lines[left:], lines[:left]
            lines += (new := [line(number, note="new")])
            number += 1
            path.write_text("".join(lines))
            position = json.loads(json.dumps(source.position()))
            if name == "stopped":
                source = open_source(str(path), forgiving=True)
            with pytest.warns(UserWarning, match="it is read on"):
                again = read_from(source, position if name == "stopped" else None)
            assert again[-1:] == [json.loads(new[0])["ts"]]
            assert again == [json.loads(one)["ts"] for one in lines[-len(again) :]]
            size = sum(map(len, lines[-len(again) : -1]))
            assert size <= 1200 + sum(map(len, gone)) // 2


def test_a_file_that_is_emptied_and_written_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line(1) + line(2) + line(3))
    source = open_source(str(path))
    await_times(source, [1, 2, 3])
    path.write_text(line(4))
    with pytest.warns(UserWarning, match="read from its beginning"):
        await_times(source, [4])


@pytest.mark.parametrize("name", ["events.jsonl", "events"])
def test_a_forgiving_source_reads_a_file_that_was_replaced_since_its_position(
    tmp_path: Path, name: str
) -> None:
    place = tmp_path / name
    path = place if place.suffix else place / "part-0.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(line(number) for number in range(6)))
    source = open_source(str(place), forgiving=True)
    await_times(source, list(range(6)))
    position = source.position()
    path.write_text(line(8))
    later = open_source(str(place), forgiving=True)
    append(path, line(9))
    with pytest.warns(UserWarning, match="written anew"):
        assert read_from(later, position) == [8, 9]


def test_files_of_a_folder_that_are_gone_are_forgotten_on_request(tmp_path: Path) -> None:
    source = open_source(str(tmp_path), keeps=0.0)
    for number in range(30):
        (tmp_path / f"part-{number}.jsonl").write_text(line(number, note="long" * 400))
        if number >= 3:
            (tmp_path / f"part-{number - 3}.jsonl").unlink()
        await_times(source, [number])
    assert len(source.position()["files"]) <= 4
    assert isinstance(source, Files)
    assert len(source._known) <= 4


def test_a_folder_that_is_out_of_reach_for_a_moment_is_not_read_twice(tmp_path: Path) -> None:
    place, away = tmp_path / "events", tmp_path / "away"
    place.mkdir()
    (place / "part-0.jsonl").write_text(line(1))
    source = open_source(str(place))
    await_times(source, [1])
    place.rename(away)
    place.mkdir()
    assert source.read(0.1) is None
    place.rmdir()
    away.rename(place)
    (place / "part-1.jsonl").write_text(line(2))
    await_times(source, [2])


def test_files_that_are_away_for_a_moment_are_not_read_twice(tmp_path: Path) -> None:
    place, away = tmp_path / "events", tmp_path / "away"
    for number, name in enumerate("ab"):
        (place / name).mkdir(parents=True)
        (place / name / "part.jsonl").write_text(line(number))
    source = open_source(str(place))
    assert sorted(read_on(source) + read_on(source)) == [0, 1]
    (place / "b").rename(away)
    assert read_on(source) == []
    away.rename(place / "b")
    append(place / "b" / "part.jsonl", line(2))
    await_times(source, [2])
    assert read_on(source) == []


@pytest.mark.parametrize("name", ["part.jsonl", "part.csv", "part.parquet", "part.jsonl.gz"])
def test_a_file_that_is_away_at_a_restart_is_continued_when_it_comes_back(tmp_path: Path, name: str) -> None:
    place, away = tmp_path / "events", tmp_path / "away"
    place.mkdir()
    write_times(place / name, [1, 2])
    (place / "other.jsonl").write_text(line(3))
    source = open_source(str(place))
    assert sorted(read_all(source)[0]) == [1, 2, 3]
    position = json.loads(json.dumps(source.position()))
    (place / name).rename(away)
    for _ in range(2):
        later = open_source(str(place))
        later.seek(position)
        assert read_on(later) == []
        position = json.loads(json.dumps(later.position()))
    away.rename(place / name)
    assert read_on(later) == []
    if name == "part.jsonl":
        append(place / name, line(4))
        await_times(later, [4])


def test_the_position_in_a_file_that_is_gone_is_kept_for_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "part-0.jsonl", tmp_path / "part-1.jsonl"]
    for path in paths:
        path.write_text(line(1))
    source = open_source(str(tmp_path))
    assert read_all(source)[0] == [1, 1]
    paths[0].unlink()
    assert read_on(source) == []
    position = source.position()
    assert len(position["files"]) == 2
    begin = clock.time()
    for days, kept in ((0.9, 2), (1.1, 1)):
        monkeypatch.setattr(clock, "time", lambda days=days: begin + days * DAY)
        later = open_source(str(tmp_path))
        later.seek(position)
        assert read_on(later) == []
        assert len(later.position()["files"]) == kept


def write_times(path: Path, times: list[int]) -> None:
    """Write a file of events of any format."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"ts": times, "type": ["A"] * len(times)}), path)
    elif path.suffix == ".csv":
        path.write_text("ts,type\n" + "".join(f"{time},A\n" for time in times))
    else:
        text = "".join(map(line, times)).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.mark.parametrize("name", ["part.jsonl", "part.csv"])
@pytest.mark.parametrize("times", [[7], [7, 8, 9], list(range(50, 250))])
def test_a_file_of_a_folder_that_is_written_anew_is_read_from_its_beginning(
    tmp_path: Path, name: str, times: list[int]
) -> None:
    write_times(tmp_path / name, [1, 2, 3])
    source = open_source(str(tmp_path))
    await_times(source, [1, 2, 3])
    assert read_on(source) == []
    write_times(tmp_path / name, times)
    with pytest.warns(UserWarning, match="was written anew or cut back; it is read from its beginning"):
        await_times(source, times)
    later = open_source(str(tmp_path))
    later.seek(source.position())
    assert read_on(later) == []


@pytest.mark.parametrize("name", ["part.jsonl", "part.csv", "part.parquet", "part.jsonl.gz"])
@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_new_file_under_an_old_name_is_read_whenever_it_is_written(
    tmp_path: Path, name: str, away: bool, restarted: bool
) -> None:
    (tmp_path / "other.jsonl").write_text(line(0))
    write_times(tmp_path / name, [1, 2, 3])
    source = open_source(str(tmp_path))
    assert sorted(read_all(source)[0]) == [0, 1, 2, 3]
    position = json.loads(json.dumps(source.position()))
    if away:
        (tmp_path / name).unlink()
        assert read_on(source) == []
        position = json.loads(json.dumps(source.position()))
    write_times(tmp_path / name, [7, 8])
    if restarted:
        source = open_source(str(tmp_path))
        source.seek(position)
    with pytest.warns(UserWarning, match="was written anew or cut back; it is read from its beginning"):
        await_times(source, [7, 8])
    os.utime(tmp_path / name)
    assert read_on(source) == []


@pytest.mark.parametrize("restarted", [False, True])
def test_a_compressed_file_that_grows_is_continued(tmp_path: Path, restarted: bool) -> None:
    path = tmp_path / "part.jsonl.gz"
    write_times(path, [1, 2])
    source = open_source(str(tmp_path))
    await_times(source, [1, 2])
    assert read_on(source) == []
    path.write_bytes(path.read_bytes() + gzip.compress(line(3).encode()))
    if restarted:
        position, source = source.position(), open_source(str(tmp_path))
        source.seek(position)
    await_times(source, [3])


def test_a_wide_file_that_is_written_anew_is_known_by_what_was_before_the_position(tmp_path: Path) -> None:
    path = tmp_path / "part.csv"
    header = "ts,type," + ",".join(f"a_long_name_of_a_column_{number}" for number in range(90))
    path.write_text(f"{header}\n1,A{',x' * 90}\n2,A{',x' * 90}\n")
    source = open_source(str(tmp_path))
    await_times(source, [1, 2])
    assert read_on(source) == []
    path.write_text(f"{header}\n" + "".join(f"{number},A{',y' * 90}\n" for number in (7, 8, 9)))
    with pytest.warns(UserWarning, match="was written anew"):
        await_times(source, [7, 8, 9])


def test_a_file_that_is_away_between_listing_and_reading_is_read_when_it_comes_back(tmp_path: Path) -> None:
    place, away = tmp_path / "events", tmp_path / "away"
    place.mkdir()
    names = ["a.jsonl", "b.jsonl", "c.jsonl.gz", "d.parquet"]
    for number, name in enumerate(names):
        write_times(place / name, [number])
        os.utime(place / name, (number, number))
    source = open_source(str(place), whole=True)
    await_times(source, [0])
    for name in names[1:]:
        (place / name).rename(away.with_name(name))
    batch = source.read(0.1)
    assert batch is None
    for name in names[1:]:
        away.with_name(name).rename(place / name)
    await_times(source, [1, 2, 3])


@pytest.mark.parametrize("name", ["part.parquet", "part.jsonl.gz"])
def test_a_damaged_file_of_a_folder_is_one_dead_letter_and_is_read_once_it_is_whole(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"no such format")
    os.utime(path, (0, 0))
    source = open_source(str(tmp_path))
    times, dead = read_all(source)
    assert (times, len(dead)) == ([], 1)
    for _ in range(2):
        position, source = json.loads(json.dumps(source.position())), open_source(str(tmp_path))
        source.seek(position)
        assert read_all(source) == ([], [])
    write_times(path, [1, 2])
    await_times(source, [1, 2])


@pytest.mark.parametrize("name", ["part.parquet", "part.jsonl.gz", "part.csv"])
def test_the_reason_of_a_damaged_file_does_not_repeat_its_path(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"no,such,format\n1,2,3\n")
    os.utime(path, (0, 0))
    batch = open_source(str(tmp_path)).read(1.0)
    assert batch is not None
    [letter] = batch.dead
    assert letter.file == str(path)
    assert str(tmp_path) not in letter.reason
    assert letter.reason.startswith("the file ")


def test_the_dead_letters_of_a_file_do_not_come_again_when_it_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    pq.write_table(pa.table({"ts": [1], "type": pa.array([None], pa.string())}), path)
    source = open_source(str(tmp_path))
    times, dead = read_all(source)
    assert (times, len(dead)) == ([], 1)
    os.utime(path, (9, 9))
    assert read_on(source) == []


def test_a_parquet_file_that_was_incomplete_is_read_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    path.write_bytes(b"PAR1 and no more")
    os.utime(path, (0, 0))
    source = open_source(str(tmp_path))
    times, dead = read_all(source)
    assert (times, len(dead)) == ([], 1)
    write_times(path, [1, 2])
    await_times(source, [1, 2])


def test_only_a_file_that_does_not_exist_counts_as_gone(tmp_path: Path) -> None:
    path = tmp_path / "part-0.jsonl"
    assert state_of(str(path)) is None
    path.write_text(line(1))
    with pytest.raises(SourceError, match="not a directory"):
        state_of(str(path / "below.jsonl"))


@pytest.mark.parametrize("how", ["replaced", "emptied"])
def test_a_csv_file_that_is_written_anew_has_its_own_header_and_line_numbers(
    tmp_path: Path, how: str
) -> None:
    path, new = tmp_path / "events.csv", tmp_path / "new.csv"
    path.write_text("ts,type,x\n1,A,1\n2,B,2\n")
    source = open_source(str(path))
    await_times(source, [1, 2])
    text = "x,ts,type\n10,3,A\n20,w,B\n"[: None if how == "replaced" else 21]
    if how == "replaced":
        new.write_text(text)
        os.replace(new, path)
    else:
        path.write_text(text.rpartition("\n")[0] + "\n")
    told = pytest.warns(UserWarning, match="read from its beginning")
    with told if how == "emptied" else nullcontext():
        batch = source.read(1.0)
    assert batch is not None
    assert batch.events.select(["x", "ts"]).to_pylist() == [{"x": 10, "ts": 3}]
    assert [letter.line for letter in batch.dead] == ([3] if how == "replaced" else [])
    append(path, "30,5,A\n")
    await_times(source, [5])


def test_the_dead_letters_of_a_file_that_was_replaced_have_its_line_numbers(tmp_path: Path) -> None:
    path, new = tmp_path / "events.jsonl", tmp_path / "new.jsonl"
    path.write_text("".join(line(number) for number in range(5)))
    source = open_source(str(path))
    await_times(source, list(range(5)))
    new.write_text(line(9) + "nonsense\n")
    os.replace(new, path)
    batch = source.read(1.0)
    assert batch is not None
    assert [letter.line for letter in batch.dead] == [2]


def test_a_compressed_file_ends_without_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(gzip.compress((line(1) + line(2)).encode()))
    source = open_source(str(path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_all(source) == ([1, 2], [])
        assert source.read(0.05) is None


def test_a_source_that_goes_on_from_a_position_does_not_go_back_to_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = [line(number, note="x" * 40) for number in range(100)]
    path.write_text("".join(lines))
    source = open_source(str(path))
    await_times(source, list(range(100)))
    later = open_source(str(path))
    later.seek(source.position())
    path.write_text("".join(lines[:98]))
    append(path, line(200))
    with pytest.warns(UserWarning, match="was cut back"):
        again = read_on(later)
    assert again[-1] == 200
    assert len(again) < 20


@pytest.mark.parametrize("left", [98, 60, 1])
def test_a_source_stays_behind_its_beginning_when_the_file_is_cut_back(tmp_path: Path, left: int) -> None:
    path = tmp_path / "events.jsonl"
    lines = [line(number, note="x" * 40) for number in range(100)]
    path.write_text("".join(lines))
    source = open_source(str(path), forgiving=True)
    await_times(source, list(range(100)))
    later = open_source(str(path), forgiving=True)
    later.seek(json.loads(json.dumps(as_beginning(source.position()))))
    os.truncate(path, len("".join(lines[:left])))
    with pytest.warns(UserWarning, match="was cut back"):
        assert read_on(later) == []
    append(path, line(200) + line(201))
    await_times(later, [200, 201])
    last = open_source(str(path), forgiving=True)
    os.truncate(path, len("".join([*lines[:left], line(200)])))
    with pytest.warns(UserWarning, match="was cut back"):
        last.seek(later.position())
    append(path, line(202))
    assert [time for time in read_on(last) if time != 200] == [202]


def test_the_files_of_a_folder_are_read_in_the_order_of_their_last_change_and_each_once(
    tmp_path: Path,
) -> None:
    for number, name in enumerate(("b.jsonl", "a.jsonl.gz", "c.csv", "d.parquet")):
        path = tmp_path / name
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(line(number).encode()))
        elif name.endswith(".csv"):
            path.write_text(f'type,ts,note\nA,{number},"two\nlines"\nA,wrong,x\n')
        elif name.endswith(".parquet"):
            pq.write_table(pa.table({"ts": [number, None], "type": ["A", "A"]}), path)
        else:
            path.write_text(line(number))
        os.utime(path, (1000 + number, 1000 + number))
    (tmp_path / "_hidden.jsonl").write_text(line(99))
    (tmp_path / "notes.txt").write_text("no events")
    source = open_source(str(tmp_path), once=True)
    times, dead = read_all(source)
    assert times == [0, 1, 2, 3]
    assert len(dead) == 2
    later = open_source(str(tmp_path))
    later.seek(source.position())
    assert read_all(later) == ([], [])
    append(tmp_path / "c.csv", "A,7,x\n")
    append(tmp_path / "e.jsonl", line(8))
    found: list[int] = []
    while len(found) < 2:
        batch = later.read(5.0)
        assert batch is not None
        found += batch.events.column("ts").to_pylist()
    assert sorted(found) == [7, 8]


def test_a_growing_csv_file_keeps_the_types_of_its_first_rows(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type,id\n1,A,7\n")
    source = open_source(str(path))
    await_times(source, [1])
    append(path, "2,A,seven\n3,A,8\n")
    batch = source.read(5.0)
    assert batch is not None
    assert batch.events.column("id").to_pylist() == [8]
    assert [(letter.line, letter.reason) for letter in batch.dead] == [(3, "id 'seven' is not of type int64")]


def test_a_pattern_names_files_that_are_there_and_that_come(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(line(1))
    (tmp_path / "b.csv").write_text("ts,type\n9,A\n")
    source = open_source(str(tmp_path / "*.jsonl"))
    await_times(source, [1])
    (tmp_path / "c.jsonl").write_text(line(2))
    await_times(source, [2])


def test_a_last_line_without_an_end_is_read_only_if_nobody_goes_on_writing_it(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line(1) + line(2).rstrip())
    with pytest.warns(UserWarning, match=r"events\.jsonl ends in an unfinished line"):
        assert read_all(open_source(str(path), once=True)) == ([1], [])
    assert read_all(open_source(str(path), once=True, whole=True)) == ([1, 2], [])


def test_a_place_that_cannot_be_read_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        open_source(str(tmp_path / "none.jsonl"))
    (tmp_path / "events.log").write_text(line(1))
    with pytest.raises(SourceError, match="name the format"):
        open_source(str(tmp_path / "events.log"))
    with pytest.raises(SourceError, match="tcp://HOST:PORT"):
        open_source("udp://somewhere")


def letters_of(source: Source) -> list[tuple[int, str]]:
    """The lines and the reasons of the dead letters that are there, and nothing else."""
    found: list[tuple[int, str]] = []
    while (batch := source.read(0.2)) is not None:
        assert batch.events.num_rows == 0
        found += [(letter.line, letter.reason) for letter in batch.dead]
    return found


ARRAY = '[{"ts": 1, "type": "A"},\n{"ts": 2, "type": "A"}]\n'


@pytest.mark.parametrize(
    "text", [ARRAY, "[INFO] started\n" + line(1), line(1).encode("utf-16").decode("latin-1")]
)
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("name", ["part.jsonl", "part.jsonl.gz"])
def test_a_file_whose_first_line_is_refused_is_a_dead_letter_and_is_read_once_it_is_repaired(
    tmp_path: Path, text: str, once: bool, name: str
) -> None:
    path, number = tmp_path / name, 0

    def write(text: str) -> None:
        data = text.encode("latin-1")
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    write(text)
    if name.endswith(".gz") and not once:
        os.utime(path, (0, 0))  # a new one may be incomplete
    source = open_source(str(tmp_path), once=once)
    [(number, reason)] = letters_of(source)
    assert (number, reason.startswith("the file is ")) == (0, True)
    source = goes_on(source, tmp_path, once)
    assert letters_of(source) == []
    write(line(1) + line(2))
    await_times(goes_on(source, tmp_path, once), [1, 2])


def goes_on(source: Source, place: Path, once: bool) -> Source:
    """The source after a restart."""
    position, source = json.loads(json.dumps(source.position())), open_source(str(place), once=once)
    source.seek(position)
    return source


def test_a_refused_file_that_grows_is_a_dead_letter_again_and_loses_no_line(tmp_path: Path) -> None:
    path = tmp_path / "part.jsonl"
    path.write_text(ARRAY)
    source = open_source(str(tmp_path))
    assert len(letters_of(source)) == 1
    append(path, line(3))
    assert len(letters_of(source)) == 1
    path.write_text(path.read_text().replace("[{", "{").replace("},", "}").replace("}]", "}"))
    await_times(source, [1, 2, 3])


def test_a_new_file_that_is_damaged_is_a_dead_letter_if_it_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "part.parquet").write_bytes(b"PAR1 and no more")
    assert len(letters_of(open_source(str(tmp_path), once=True))) == 1
    assert letters_of(open_source(str(tmp_path))) == []


def test_a_last_line_that_was_left_counts_if_a_later_run_is_the_last(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(line(1) + line(2).rstrip())
    source = open_source(str(tmp_path), once=True)
    await_times(source, [1])
    with pytest.warns(UserWarning, match="unfinished line"):
        assert read_all(source) == ([], [])
    last = open_source(str(tmp_path), once=True, whole=True)
    last.seek(json.loads(json.dumps(source.position())))
    assert read_all(last) == ([2], [])


def test_the_dead_letters_of_a_refused_csv_file_have_its_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text('\na,type\n1,A\n\n"2\n",A\n3,A\n')
    source = open_source(str(tmp_path))
    assert [number for number, _ in letters_of(source)] == [3, 5, 7]
    append(path, "\n4,A\n")
    assert [number for number, _ in letters_of(source)] == [9]


def test_a_file_that_is_written_anew_is_reported_each_time(tmp_path: Path) -> None:
    path = tmp_path / "part.jsonl"
    path.write_text(line(1))
    source = open_source(str(tmp_path))
    await_times(source, [1])
    for time in (7, 8):
        path.write_text(line(time) * 2)
        with pytest.warns(RewrittenWarning, match="lines may come again, and old ones not yet read are lost"):
            await_times(source, [time, time])
