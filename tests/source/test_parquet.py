"""Parquet: types are kept, rows without time or type are malformed."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nestream.data import sase
from nestream.source import EventReader, SourceError, read_events


def opened(tmp_path: Path, table: pa.Table | dict[str, Any], **options: Any) -> EventReader:
    path = tmp_path / "events.parquet"
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), path)
    return read_events(path, **options)


def test_a_table_reads_back_as_it_was_written(tmp_path: Path) -> None:
    table = sase(10_000)
    assert opened(tmp_path, table).read_all().equals(table)


def test_rows_without_time_or_type_are_malformed(tmp_path: Path) -> None:
    table = {"ts": [1, None, 3, 4], "type": ["A", "B", None, ""], "x": [1, 2, 3, 4]}
    reader = opened(tmp_path, table, dead_letter=True, batch_rows=3)
    assert reader.read_all().to_pylist() == [{"ts": 1, "type": "A", "x": 1}]
    found = [json.loads(line) for line in (tmp_path / "events.parquet.dead.jsonl").read_text().splitlines()]
    assert [(letter["line"], letter["reason"]) for letter in found] == [
        (2, "time is missing"),
        (3, "type is missing"),
        (4, "type is missing"),
    ]
    assert json.loads(found[0]["raw"]) == {"ts": None, "type": "B", "x": 2}


def test_times_written_as_text_are_read_as_times(tmp_path: Path) -> None:
    reader = opened(tmp_path, {"ts": ["2026-01-01", "soon", "2026-01-02"], "type": ["A", "B", "C"]})
    assert reader.read_all()["ts"].to_pylist() == [
        datetime.datetime(2026, 1, 1),
        datetime.datetime(2026, 1, 2),
    ]
    assert reader.reasons == {"time": 1}


def test_a_file_whose_times_are_all_nonsense_has_dead_letters_alone(tmp_path: Path) -> None:
    reader = opened(tmp_path, {"ts": ["soon", "later"], "type": ["A", "B"]})
    assert (reader.read_all().num_rows, reader.malformed) == (0, 2)


def test_dates_become_timestamps_and_small_integers_64_bits(tmp_path: Path) -> None:
    dates = pa.table({"ts": pa.array([datetime.date(2026, 1, 1)]), "type": ["A"]})
    assert opened(tmp_path, dates).schema.field("ts").type == pa.timestamp("us")
    small = pa.table({"ts": pa.array([1], pa.int16()), "type": ["A"]})
    assert opened(tmp_path, small).schema.field("ts").type == pa.int64()


def test_an_integer_type_becomes_text(tmp_path: Path) -> None:
    assert opened(tmp_path, {"ts": [1], "type": [7]}).read_all()["type"].to_pylist() == ["7"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"ts": [1.5], "type": ["A"]}, "the time column 'ts' is double"),
        ({"ts": [1], "type": [[1]]}, "the type column 'type' is list"),
        ({"timestamp": [1], "type": ["A"]}, "Did you mean 'timestamp'?"),
    ],
)
def test_columns_that_cannot_be_time_or_type_are_an_error(
    tmp_path: Path, table: dict[str, Any], message: str
) -> None:
    with pytest.raises(SourceError) as caught:
        opened(tmp_path, table)
    assert message in str(caught.value)


def test_a_declared_type_makes_a_value_that_does_not_fit_malformed(tmp_path: Path) -> None:
    reader = opened(tmp_path, {"ts": [1, 2], "type": ["A", "A"], "x": [1, 300]}, schema={"x": pa.int8()})
    assert reader.read_all()["x"].to_pylist() == [1]
    assert reader.reasons == {"value": 1}


def test_a_file_without_rows_has_no_events(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string())})
    assert opened(tmp_path, table).read_all().num_rows == 0


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(sase(50_000), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match="is not a Parquet file, or is damaged"):
        read_events(path)
    path.write_bytes(whole[:5_000] + b"\0" * 100_000 + whole[105_000:])
    with pytest.raises(SourceError, match="is damaged"):
        read_events(path).read_all()


def test_views_dictionaries_and_unsigned_times_are_read(tmp_path: Path) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, None, None]), pa.array(["x"]))
    table = pa.table(
        {
            "ts": pa.array([1, 2**64 - 1, 3], pa.uint64()),
            "type": pa.array(["A", "B", "B"], pa.string_view()),
            "word": words,
            "names": pa.array([["x"], None, []], pa.list_(pa.string_view())),
            "half": pa.array([1.5, None, 2.5], pa.float16()),
        }
    )
    path = tmp_path / "events.parquet"
    pq.write_table(table, path)
    reader = read_events(path)
    read = reader.read_all()
    assert read["type"].to_pylist() == ["A", "B"]
    assert read["word"].to_pylist() == ["x", None]
    assert read["names"].to_pylist() == [["x"], []]
    assert [letter.reason for letter in reader.examples] == ["time is beyond 64 bits"]
