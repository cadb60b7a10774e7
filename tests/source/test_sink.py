"""Writers: matches as JSON lines, CSV and Parquet, and events that read back as they were."""

from __future__ import annotations

import datetime
import decimal
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nestream.data import GENERATORS, generate
from nestream.sink import SinkError, json_lines, write_events, write_matches
from nestream.source import read_table

NOON = datetime.datetime(2026, 1, 1, 12, 0, 0, 250_000)


def matches() -> pa.Table:
    event = pa.struct([("ts", pa.timestamp("us")), ("type", pa.string()), ("id", pa.int64())])
    return pa.table(
        {
            "r": pa.array(
                [{"ts": NOON, "type": "Recycle", "id": 7}, {"ts": NOON, "type": "x", "id": None}], event
            ),
            "o": pa.array([None, {"ts": NOON, "type": 'say "hi"\n', "id": 8}], event),
            "match_start": pa.array([NOON, NOON], pa.timestamp("us", "UTC")),
        }
    )


def test_a_match_is_one_json_object_with_an_object_for_each_variable(tmp_path: Path) -> None:
    path = tmp_path / "matches.jsonl"
    assert write_matches(matches(), path) == 2
    assert path.read_text().splitlines() == [
        '{"r":{"ts":"2026-01-01T12:00:00.25","type":"Recycle","id":7},"o":null,'
        '"match_start":"2026-01-01T12:00:00.25Z"}',
        '{"r":{"ts":"2026-01-01T12:00:00.25","type":"x","id":null},'
        '"o":{"ts":"2026-01-01T12:00:00.25","type":"say \\"hi\\"\\n","id":8},'
        '"match_start":"2026-01-01T12:00:00.25Z"}',
    ]


def test_csv_has_a_column_for_each_field_of_a_variable(tmp_path: Path) -> None:
    path = tmp_path / "matches.csv"
    write_matches(matches().select(["r", "o"]).slice(0, 1), path)
    assert path.read_text().splitlines() == [
        "r.ts,r.type,r.id,o.ts,o.type,o.id",
        "2026-01-01T12:00:00.25,Recycle,7,,,",
    ]


def test_parquet_keeps_the_structs(tmp_path: Path) -> None:
    path = tmp_path / "matches.parquet"
    write_matches(iter(matches().to_batches()), path)
    assert pq.read_table(path).equals(matches())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([1.0, 0.1, 1e300, -2.5e-7, None]), [1.0, 0.1, 1e300, -2.5e-7, None]),
        (pa.array([float("nan"), float("inf"), 2.0]), [None, None, 2.0]),
        (pa.array([decimal.Decimal("12.50"), decimal.Decimal("3.00")]), [12.5, 3]),
        (pa.array([b"\x00\xff"]), ["AP8="]),
        (pa.array([datetime.date(2026, 1, 2)]), ["2026-01-02"]),
        (pa.array([datetime.timedelta(minutes=1, milliseconds=500)]), [60.5]),
        (pa.array([True, None]), [True, None]),
        (pa.array([None, None]), [None, None]),
        (pa.array([[1, None], []]), [[1, None], []]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.array([1], pa.timestamp("s")), ["1970-01-01T00:00:01"]),
        (pa.array([1_500_000_000], pa.timestamp("ns", "Europe/Paris")), ["1970-01-01T00:00:01.5Z"]),
        (pa.array([{}, None], pa.struct([])), [{}, None]),
        (pa.array([{"a": {"b": 1}}, {"a": None}]), [{"a": {"b": 1}}, {"a": None}]),
    ],
)  # fmt: skip
def test_every_type_has_a_sensible_json_form(values: pa.Array, expected: list[Any]) -> None:
    lines = json_lines(pa.record_batch({"x": values})).splitlines()
    assert [json.loads(line)["x"] for line in lines] == expected


@given(
    st.lists(st.fixed_dictionaries({"s": st.text(), "f": st.floats(), "i": st.integers(-(2**63), 2**63 - 1)}))
)
def test_json_text_reads_back_as_the_same_values(rows: list[dict[str, Any]]) -> None:
    schema = pa.schema([("s", pa.string()), ("f", pa.float64()), ("i", pa.int64())])
    rows = [row for row in rows if not any("\ud800" <= c <= "\udfff" for c in row["s"])]
    lines = json_lines(pa.RecordBatch.from_pylist(rows, schema=schema)).split("\n")[:-1]
    for row, line in zip(rows, lines, strict=True):
        read = json.loads(line)
        assert (read["s"], read["i"]) == (row["s"], row["i"])
        assert read["f"] == row["f"] or read["f"] is None


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_generated_events_read_back_with_the_same_values(tmp_path: Path, name: str, suffix: str) -> None:
    table = generate(name, events=500, seed=4)
    path = tmp_path / f"events.{suffix}"
    assert write_events(table, path) == 500
    assert read_table(path).to_pylist() == table.to_pylist()


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_a_dash_is_standard_output(monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw))
    write_matches(matches(), "-", format)
    assert raw.getvalue()
    if format == "parquet":
        assert pq.read_table(io.BytesIO(raw.getvalue())).num_rows == 2


def test_no_matches_are_an_empty_file_with_its_columns(tmp_path: Path) -> None:
    for suffix in ("jsonl", "csv", "parquet"):
        path = tmp_path / f"none.{suffix}"
        assert write_matches(matches().slice(0, 0), path) == 0
        assert write_matches(iter(()), path, schema=matches().schema) == 0
    assert (tmp_path / "none.jsonl").read_text() == ""
    assert (tmp_path / "none.csv").read_text() == "r.ts,r.type,r.id,o.ts,o.type,o.id,match_start\n"
    assert pq.read_table(tmp_path / "none.parquet").schema == matches().schema


def test_what_cannot_be_written_is_an_error_that_helps(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=r"the suffix of .*matches\.xlsx is not known\. Use one of \.csv"):
        write_matches(matches(), tmp_path / "matches.xlsx")
    with pytest.raises(SinkError, match="no such file or directory"):
        write_matches(matches(), tmp_path / "nowhere" / "matches.csv")
    with pytest.raises(SinkError, match="unknown format 'xml'"):
        write_matches(matches(), "-", "xml")
    with pytest.raises(SinkError, match="Pass a schema"):
        write_matches(iter(()), tmp_path / "matches.csv")
