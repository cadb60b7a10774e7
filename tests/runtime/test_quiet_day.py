"""No events are a quiet day without matches, whatever they come as; columns without values fit any use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nestream
from nestream.source import read_table
from tests.cli.commands import call

COLUMNS = ("ts", "type", "id", "x")
QUERIES = [
    "SEQ(A a, B b, a.id = b.id) WITHIN 5",
    "SEQ(A a, !(C c, c.id = a.id), B b, a.x > 3) WITHIN 5 minutes",
    "SEQ(A a, B b) WITHIN 5 hours RETURN b.ts - a.ts AS apart, a.id + 1 AS next",
    "EVENT SEQ(A a, B b) WHERE [id] AND a.x > 'k' WITHIN 5 minutes",
    "AND(A a, B b, lower(a.id) = 'x') WITHIN 3 EVENTS RETURN a.x AS kept",
    "SEQ(A a, B b, abs(a.x) > 3 AND a.id) WITHIN UNBOUNDED",
]
NOTHING: dict[str, Callable[[], Any]] = {
    "a list": list,
    "an iterator": lambda: iter([]),
    "a mapping": dict,
    "empty types": lambda: {"A": [], "B": []},
    "an empty pandas frame": pd.DataFrame,
    "a pandas frame of columns": lambda: pd.DataFrame({name: [] for name in COLUMNS}),
    "a pandas frame of numbers": lambda: pd.DataFrame({name: [] for name in COLUMNS}, dtype=float),
    "a polars frame": lambda: pl.DataFrame({name: [] for name in COLUMNS}),
    "an empty table": lambda: pa.table({}),
    "a table of columns": lambda: pa.table({name: pa.nulls(0) for name in COLUMNS}),
}
WAYS: dict[str, Callable[[nestream.Query, Any], int]] = {
    "match": lambda query, events: query.match(events).num_rows,
    "reference": lambda query, events: query.match(events, strategy="reference").num_rows,
    "flat": lambda query, events: query.match(events, strategy="flat").num_rows,
    "count": lambda query, events: query.count(events),
    "set": lambda query, events: nestream.queries([query.text]).match(events).num_rows,
    "each": lambda query, events: nestream.queries([query.text]).match_each(events)["q1"].num_rows,
    "stream": lambda query, events: query.stream().push_batch(events).num_rows,
    "show": lambda query, events: len(query.show(events)),
    "analyze": lambda query, events: query.explain(analyze=events, format="json").get("matches", 0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("nothing", NOTHING)
def test_no_events_have_no_matches(nothing: str, way: str) -> None:
    for text in QUERIES:
        assert WAYS[way](nestream.query(text), NOTHING[nothing]()) == 0


@pytest.mark.parametrize("nothing", NOTHING)
def test_why_says_that_there_are_no_events(nothing: str) -> None:
    with pytest.raises(nestream.EventError, match="there are no events at all"):
        nestream.query(QUERIES[1]).why(NOTHING[nothing](), [0])


FILES = {
    "header.csv": b"ts,type,id,x\n",
    "windows.csv": b"\xef\xbb\xbfts,type,id,x\r\n",
    "empty.jsonl": b"",
    "blank.jsonl": b"\n\n",
}


@pytest.fixture(params=[*FILES, "null.parquet"])
def quiet_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    if path.suffix == ".parquet":
        pq.write_table(pa.table({name: pa.nulls(0) for name in COLUMNS}), path)
    else:
        path.write_bytes(FILES[request.param])
    return path


def test_a_file_without_events_has_no_matches(quiet_file: Path, tmp_path: Path) -> None:
    for text in QUERIES:
        assert nestream.query(text).match(read_table(quiet_file)).num_rows == 0
        for format in ("table", "json", "csv"):
            result = call("run", text, quiet_file, "--format", format)
            assert (result.exit_code, "error" in result.stderr) == (0, False), result.stderr
        assert call("run", text, quiet_file, "--output", tmp_path / "matches.parquet").exit_code == 0
        assert pq.read_table(tmp_path / "matches.parquet").num_rows == 0
        assert call("check", text, "--events", quiet_file).exit_code == 0


def test_a_column_without_any_value_fits_any_use(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type,id,x\n1,A,,\n2,B,,\n")
    events = read_table(path)
    for condition in ("a.x > 3", "a.x = 'k'", "length(a.x) = 1", "a.x IN (1, 2)", "a.x", "a.x - b.x > 1"):
        assert nestream.query(f"SEQ(A a, B b, {condition}) WITHIN 5").match(events).num_rows == 0
    assert nestream.query("SEQ(A a, B b, NOT a.x = 1) WITHIN 5").match(events).num_rows == 1


def test_a_typed_column_still_has_its_type_without_events() -> None:
    typed = pa.table({"ts": pa.array([], pa.timestamp("us")), "type": pa.array([], pa.string())})
    with pytest.raises(nestream.QueryError, match="WITHIN 5 has no unit"):
        nestream.query("SEQ(A a, B b) WITHIN 5").match(typed)
    with pytest.raises(nestream.QueryError, match="have no attribute `id`"):
        nestream.query("SEQ(A a, B b, a.id = 1) WITHIN 5").match(typed.append_column("x", pa.nulls(0)))
