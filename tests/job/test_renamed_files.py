"""Files of a folder or pattern that are renamed: each event is read once, across restarts too."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nestream.source import Source, files, open_source, renamed
from nestream.source.renamed import State, state_of
from nestream.source.text_file import TextFile
from tests.job.test_files import append, line, write_times

NAMES = ["part.jsonl", "part.csv", "part.parquet", "part.jsonl.gz"]


@pytest.fixture(params=["followed", "restarted"])
def going_on(request: pytest.FixtureRequest) -> Callable[[Source, Path], Source]:
    """The same source, or one that continues from its saved position."""

    def later(source: Source, place: Path) -> Source:
        return restarted(source, place) if request.param == "restarted" else source

    return later


def restarted(source: Source, place: Path) -> Source:
    later = open_source(str(place))
    later.seek(json.loads(json.dumps(source.position())))
    return later


def new_times(source: Source) -> list[int]:
    """The times of the events that have come, after a look at the files."""
    assert isinstance(source, files.Files)
    source._looked = -math.inf
    times: list[int] = []
    while (batch := source.read(0.0)) is not None:
        if batch.events.num_rows:
            times += batch.events.column("ts").to_pylist()
    return sorted(times)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_renamed_is_not_read_again(
    tmp_path: Path, name: str, going_on: Callable[[Source, Path], Source]
) -> None:
    write_times(tmp_path / name, [1, 2])
    source = open_source(str(tmp_path))
    assert new_times(source) == [1, 2]
    (tmp_path / name).rename(tmp_path / f"z-{name}")
    source = going_on(source, tmp_path)
    assert new_times(source) == []
    if name == "part.jsonl":
        append(tmp_path / "z-part.jsonl", line(3) + "nonsense\n")
        batch = source.read(5.0)
        assert batch is not None
        assert batch.events.column("ts").to_pylist() == [3]
        assert [(Path(letter.file).name, letter.line) for letter in batch.dead] == [("z-part.jsonl", 4)]
    if name == "part.csv":
        append(tmp_path / "z-part.csv", "3,A\n")
        assert new_times(source) == [3]


@pytest.mark.parametrize("place", [".", "*.jsonl"])
def test_a_log_that_is_rotated_within_the_folder_is_read_once_and_without_a_warning(
    tmp_path: Path, place: str, going_on: Callable[[Source, Path], Source]
) -> None:
    path = tmp_path / "a.jsonl"
    source = open_source(str(tmp_path / place))
    for number in range(8):
        append(path, line(10 * number))
        if number % 3:
            assert read_and_warned(source) == ([10 * number], [])
        append(path, line(10 * number + 1))
        for older in range(4, 0, -1):
            if (before := tmp_path / f"a.{older - 1}.jsonl").exists():
                before.replace(tmp_path / f"a.{older}.jsonl")
        path.rename(tmp_path / "a.0.jsonl")
        append(path, line(10 * number + 2))
        source = going_on(source, tmp_path / place)
        wanted = [10 * number + at for at in range(bool(number % 3), 3)]
        assert read_and_warned(source) == (wanted, [])


def read_and_warned(source: Source) -> tuple[list[int], list[str]]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        return new_times(source), [str(one.message) for one in told]


def test_a_file_comes_back_under_another_name_after_a_new_one_took_its_name(
    tmp_path: Path, going_on: Callable[[Source, Path], Source]
) -> None:
    place, away = tmp_path / "events", tmp_path / "away"
    place.mkdir()
    append(place / "a.jsonl", line(1))
    source = open_source(str(place))
    assert new_times(source) == [1]
    (place / "a.jsonl").rename(away)
    append(place / "a.jsonl", line(2))
    with pytest.warns(UserWarning, match="was written anew or cut back; it is read from its beginning"):
        assert new_times(source) == [2]
    source = going_on(source, place)
    append(away, line(3))
    away.rename(place / "z.jsonl")
    assert new_times(source) == [3]
    source = going_on(source, place)
    assert new_times(source) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_new_file_with_the_inode_of_a_removed_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:

    def with_one_inode(path: str) -> State | None:
        found = state_of(path)
        return found and found._replace(inode=0 if "other" in path else 7)

    monkeypatch.setattr(files, "state_of", with_one_inode)
    monkeypatch.setattr("nestream.source.text_file.check_inode", lambda *_: None)
    monkeypatch.setattr("nestream.source.parts.check_inode", lambda *_: None)
    write_times(tmp_path / "other.jsonl", [0])
    write_times(tmp_path / name, [1, 2])
    source = open_source(str(tmp_path))
    assert new_times(source) == [0, 1, 2]
    (tmp_path / name).unlink()
    write_times(tmp_path / f"new-{name}", [3, 4, 5])
    assert new_times(source) == [3, 4, 5]


def test_a_file_that_is_renamed_while_the_names_are_listed_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, old = tmp_path / "a.jsonl", tmp_path / "a.0.jsonl"
    append(path, line(1))
    source = open_source(str(tmp_path))
    assert new_times(source) == [1]

    def rotated_before(path: str) -> State | None:
        monkeypatch.undo()
        append(Path(path), line(2))
        os.rename(path, old)
        append(Path(path), line(3))
        return state_of(path)

    monkeypatch.setattr(files, "state_of", rotated_before)
    assert read_and_warned(source) == ([2, 3], [])


def test_a_file_that_is_renamed_between_listing_and_reading_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, old = tmp_path / "a.jsonl", tmp_path / "a.0.jsonl"
    append(path, line(1))
    source = open_source(str(tmp_path))
    assert new_times(source) == [1]
    append(path, line(2))
    part = source._known[str(path)].part  # type: ignore[attr-defined]
    changed = type(part).changed

    def rotated_before(part: Any) -> None:
        monkeypatch.undo()
        path.rename(old)
        append(path, line(3))
        changed(part)

    monkeypatch.setattr(type(part), "changed", rotated_before)
    found, told = read_and_warned(source)
    more, warned = read_and_warned(source)
    assert (sorted(found + more), told + warned) == ([2, 3], [])


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_file_with_two_names_is_read_once(tmp_path: Path, link: Callable[[Path, Path], None]) -> None:
    append(tmp_path / "a.jsonl", line(1))
    source = open_source(str(tmp_path))
    assert new_times(source) == [1]
    link(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    append(tmp_path / "a.jsonl", line(2))
    assert new_times(source) == [2]
    assert new_times(restarted(source, tmp_path)) == []


def test_a_file_that_an_editor_has_saved_anew_is_continued(
    tmp_path: Path, going_on: Callable[[Source, Path], Source]
) -> None:
    path, new = tmp_path / "a.jsonl", tmp_path / ".a.new"
    append(path, line(1))
    source = open_source(str(tmp_path))
    assert new_times(source) == [1]
    new.write_text(line(1) + line(2))
    new.replace(path)
    source = going_on(source, tmp_path)
    assert read_and_warned(source) == ([2], [])


def test_a_position_of_an_earlier_version_is_continued(tmp_path: Path) -> None:
    append(tmp_path / "a.jsonl", line(1))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(line(2).encode()))
    source = open_source(str(tmp_path))
    assert new_times(source) == [1, 2]
    position = json.loads(json.dumps(source.position()))
    del position["away"]
    for place in position["files"].values():
        del place["inode"]
    later = open_source(str(tmp_path))
    later.seek(position)
    append(tmp_path / "a.jsonl", line(3))
    assert new_times(later) == [3]
    for name in ("a.jsonl", "b.jsonl.gz"):
        (tmp_path / name).rename(tmp_path / f"z-{name}")
    assert new_times(later) == []


@pytest.mark.filterwarnings("ignore:.*was written anew")
@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_renamed_and_whenever_the_source_stops_each_event_is_read_once(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    place, away = tmp_path / "events", tmp_path / "away"
    place.mkdir()
    away.mkdir()
    (place / "always.jsonl").touch()
    source = open_source(str(place))
    saved = json.loads(json.dumps(source.position()))
    counted = number = 0
    found: list[int] = []
    for step in range(150):
        here, there = sorted(place.glob("?.jsonl")), sorted(away.iterdir())
        free = [path for name in "abcdef" if not (path := place / f"{name}.jsonl").exists()]
        match chance.randrange(7):
            case 0 | 1:
                path = place / f"{chance.choice('abcdef')}.jsonl"
                append(path, line(number))
                number += 1
            case 2 if here and free:
                chance.choice(here).rename(chance.choice(free))
            case 3 if here:
                chance.choice(here).rename(away / f"{step}.jsonl")
            case 4 if there and free:
                chance.choice(there).rename(chance.choice(free))
            case 5:
                found += new_times(source)
            case 6:
                if chance.random() < 0.5:
                    saved, counted = json.loads(json.dumps(source.position())), len(found)
                else:
                    source, found = open_source(str(place)), found[:counted]
                    source.seek(saved)
                    counted = len(found)
    for path in away.iterdir():
        path.rename(place / f"back-{path.name}")
    found += new_times(source)
    assert sorted(found) == list(range(number))


def test_a_file_that_is_written_anew_through_an_empty_file_of_the_folder_is_continued(
    tmp_path: Path, going_on: Callable[[Source, Path], Source]
) -> None:
    path, new = tmp_path / "a.jsonl", tmp_path / "a.new.jsonl"
    append(path, line(1))
    new.touch()
    source = open_source(str(tmp_path))
    assert new_times(source) == [1]
    new.write_text(line(1) + line(2))
    new.rename(path)
    assert read_and_warned(going_on(source, tmp_path)) == ([2], [])


def test_files_whose_inodes_have_changed_places_with_an_empty_one_are_continued(tmp_path: Path) -> None:
    (tmp_path / "0.jsonl").touch()
    append(tmp_path / "a.jsonl", line(1))
    source = open_source(str(tmp_path))
    assert new_times(source) == [1]
    position = json.loads(json.dumps(source.position()))
    empty, full = (position["files"][str(tmp_path / name)] for name in ("0.jsonl", "a.jsonl"))
    empty["inode"], full["inode"] = full["inode"], empty["inode"]
    later = open_source(str(tmp_path))
    later.seek(position)
    assert new_times(later) == []


@pytest.mark.parametrize("name", ["part.jsonl", "part.csv"])
def test_an_error_that_passes_while_a_file_is_recognised_reads_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write_times(tmp_path / name, [1, 2])
    source = open_source(str(tmp_path))
    assert new_times(source) == [1, 2]
    (tmp_path / name).rename(tmp_path / f"z-{name}")
    append(tmp_path / f"z-{name}", "3,A\n" if name == "part.csv" else line(3))

    def fails(text: TextFile) -> bool:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(TextFile, "continues", fails)
        assert read_and_warned(source) == ([], [])
    assert read_and_warned(source) == ([3], [])


def test_a_new_file_with_the_inode_and_the_bytes_of_a_removed_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, going_on: Callable[[Source, Path], Source]
) -> None:
    def with_one_inode(path: str) -> State | None:
        found = state_of(path)
        return found and found._replace(inode=0 if "other" in path else 7)

    monkeypatch.setattr(files, "state_of", with_one_inode)
    monkeypatch.setattr("nestream.source.text_file.check_inode", lambda *_: None)
    append(tmp_path / "other.jsonl", line(0))
    append(tmp_path / "a.jsonl", line(1))
    os.utime(tmp_path / "a.jsonl", (1, 1))
    source = open_source(str(tmp_path))
    assert new_times(source) == [0, 1]
    (tmp_path / "a.jsonl").unlink()
    append(tmp_path / "b.jsonl", line(1))
    assert new_times(going_on(source, tmp_path)) == [1]


@pytest.mark.filterwarnings("ignore:.*was written anew")
def test_a_file_that_is_replaced_again_and_again_does_not_fill_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renamed, "MOST_AWAY", 3)
    path, new = tmp_path / "a.jsonl", tmp_path / ".a.new"
    source = open_source(str(tmp_path))
    for number in range(8):
        new.write_text(line(number))
        new.rename(path)
        assert new_times(source) == [number]
    assert len(source.position()["away"]) == 3
