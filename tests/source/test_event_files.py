"""Several files as one input: folders, patterns, compressed files, files of one type, columns that differ."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nestream.source import EventFiles, SourceError, event_files
from tests.cli.commands import call

PAIRS = "SEQ(A a, B b, a.id = b.id) WITHIN 10 RETURN a.id AS id"


def read(*places: Path | str, dead_letter: Path | None = None) -> EventFiles:
    kept = None if dead_letter is None else str(dead_letter)
    return EventFiles(event_files([str(place) for place in places]), "ts", "type", kept)


def test_a_folder_a_pattern_and_files_are_read_together_each_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,type,id\n1,A,7\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"ts,type,id\n2,A,8\n"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.jsonl").write_text('{"ts": 3, "type": "B", "id": 7}\n')
    (tmp_path / "_hidden.csv").write_text("nonsense")
    pq.write_table(pa.table({"ts": [4], "type": ["B"], "id": [8]}), tmp_path / "d.parquet")
    found = read(tmp_path, tmp_path / "*.csv", tmp_path / "a.csv").read_all()
    assert sorted(found.column("ts").to_pylist()) == [1, 2, 3, 4]
    said = call("run", PAIRS, tmp_path)
    assert [json.loads(text)["id"] for text in said.stdout.splitlines()] == [7, 8]


def test_files_of_one_type_need_no_column_for_it_and_tell_the_attributes_of_their_type(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.csv").write_text("ts,id\n1,7\n,8\n")
    (tmp_path / "b.jsonl").write_text('{"ts": 2, "id": 7}\n')
    pq.write_table(pa.table({"ts": [3], "x": [1.5]}), tmp_path / "c.parquet")
    places = [f"A={tmp_path / 'a.csv'}", f"B={tmp_path / 'b.jsonl'}", f"C={tmp_path / 'c.parquet'}"]
    files = read(*places)
    assert files.read_all().sort_by("ts").to_pylist() == [
        {"ts": 1, "id": 7, "x": None, "type": "A"},
        {"ts": 2, "id": 7, "x": None, "type": "B"},
        {"ts": 3, "id": None, "x": 1.5, "type": "C"},
    ]
    assert files.malformed == 1
    assert files.types == {"A": ["type", "ts", "id"], "B": ["type", "ts", "id"], "C": ["type", "ts", "x"]}
    assert json.loads(call("run", PAIRS, *places).stdout)["id"] == 7
    assert call("run", "EVENT SEQ(A a, ANY(B, C) b) WHERE [x] WITHIN 10", *places).stdout.count("\n") == 2


def test_a_file_with_a_column_for_the_type_cannot_be_of_one_type(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,type\n1,A\n")
    with pytest.raises(SourceError, match="has a column 'type'"):
        read(f"A={tmp_path / 'a.csv'}")


def test_a_path_with_an_equals_sign_is_a_path_where_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "a.csv").write_text("ts,type\n1,A\n")
    assert read(tmp_path / "day=1").read_all().num_rows == 1


def test_columns_widen_and_text_files_are_read_as_text_where_types_do_not_mix(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,type,n,x\n1,A,1,7\n")
    (tmp_path / "b.csv").write_text("ts,type,n,x\n2,A,2.5,x7\n")
    (tmp_path / "c.jsonl").write_text('{"ts": 3, "type": "A", "x": 8}\n')
    found = read(tmp_path).read_all().sort_by("ts")
    assert found.column("n").to_pylist() == [1.0, 2.5, None]
    assert found.column("x").to_pylist() == ["7", "x7", "8"]


def test_files_whose_times_do_not_mix_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,type\n1,A\n")
    (tmp_path / "b.csv").write_text("ts,type\n2026-01-05T08:00:00,A\n")
    with pytest.raises(SourceError, match=r"column 'ts' holds integers .*a\.csv and timestamps .*b\.csv"):
        read(tmp_path)


def test_dead_letters_of_all_files_are_in_one_file(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("ts,type\n1,A\nwrong,A\n")
    dead = tmp_path / "dead.jsonl"
    files = read(tmp_path / "a.csv", tmp_path / "b.csv", dead_letter=dead)
    assert files.malformed == 2
    letters = [json.loads(text) for text in dead.read_text().splitlines()]
    assert [(Path(letter["file"]).name, letter["line"]) for letter in letters] == [("a.csv", 3), ("b.csv", 3)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv", "dead.jsonl"]
    said = call("run", PAIRS, tmp_path / "a.csv", tmp_path / "b.csv").stderr
    assert "2 dead letters from 2 files" in said


def test_a_damaged_compressed_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(SourceError, match=r"a\.csv\.gz is not a gzip file, or is damaged"):
        read(tmp_path / "a.csv.gz")


def test_events_are_complete_up_to_a_time_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,type,id\n1,A,7\n5,A,8\n")
    missing = "SEQ(A a, !(B b, a.id = b.id)) WITHIN 10 RETURN a.id AS id"
    assert [json.loads(t)["id"] for t in call("run", missing, tmp_path / "a.csv").stdout.splitlines()] == [
        7,
        8,
    ]
    known = call("run", missing, tmp_path / "a.csv", "--as-of", "11")
    assert [json.loads(text)["id"] for text in known.stdout.splitlines()] == [7]
    refused = call("run", missing, tmp_path / "a.csv", "--as-of", "soon")
    assert refused.exit_code == 2
    assert "--as-of" in refused.stderr
