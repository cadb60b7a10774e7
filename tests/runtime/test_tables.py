"""A query over a finite table: whatever it comes as, in batches within a budget, counted, cut short."""

from __future__ import annotations

import tracemalloc
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import nestream
from nestream.model.schema import EventError
from nestream_papers.options import Options

FLAT = "SEQ(A a, B b, a.id = b.id) WITHIN 10"
ROWS = [
    {"ts": 1, "type": "A", "id": 1},
    {"ts": 2, "type": "A", "id": 2},
    {"ts": 3, "type": "B", "id": 1},
    {"ts": 4, "type": "B", "id": 1},
]


def both(text: str, events: Any, **options: Any) -> list[dict[str, Any]]:
    """The matches of the engine, which are those of the reference."""
    query = nestream.query(text)
    found: list[dict[str, Any]] = query.match(events, **options).to_pylist()
    assert repr(found) == repr(query.match(events, strategy="reference", **options).to_pylist())
    assert query.count(events, **options) == len(found)
    return found


# -- what events may come as -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "events",
    [
        ROWS,
        tuple(ROWS),
        pa.Table.from_pylist(ROWS),
        pa.RecordBatch.from_pylist(ROWS),
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS).astype({"type": "category"}),
        {"A": ROWS[:2], "B": pa.Table.from_pylist(ROWS[2:]).drop_columns(["type"])},
        list(reversed(ROWS)),
        pa.concat_tables([pa.Table.from_pylist([row]) for row in ROWS]),
    ],
    ids=["list", "tuple", "table", "batch", "pandas", "categories", "mapping", "backwards", "chunks"],
)
def test_events_may_come_as(events: Any) -> None:
    assert [(m["match_start"], m["match_end"]) for m in both(FLAT, events)] == [(1, 3), (1, 4)]


NONE = {"ts": pa.int64(), "type": pa.string(), "id": pa.int64()}


@pytest.mark.parametrize(
    "events",
    [
        pa.schema(NONE.items()).empty_table(),
        pa.table({name: pa.chunked_array([], datatype) for name, datatype in NONE.items()}),
        pa.Table.from_pylist(ROWS).slice(0, 0),
        pa.table({"ts": [1], "type": ["Z"], "id": [1]}),
    ],
    ids=["no rows", "no chunks", "an empty slice", "no event of the query"],
)
@pytest.mark.parametrize(
    "text", [FLAT, "AND(A a, !B b) WITHIN 3", "SEQ(A a, !B b) WITHIN 3 RETURN a.id AS x"]
)
def test_without_events_there_are_no_matches_but_their_columns(text: str, events: pa.Table) -> None:
    assert both(text, events) == []
    query = nestream.query(text)
    assert query.match(events).schema == query.match(pa.Table.from_pylist(ROWS)).schema


def test_an_empty_list_has_no_matches() -> None:
    assert both("SEQ(A a, B b) WITHIN 3", []) == []


def test_a_row_without_time_is_an_error_that_says_which() -> None:
    with pytest.raises(EventError, match="row 1 has no time"):
        nestream.query(FLAT).match([ROWS[0], {"type": "A", "id": 1}])


# -- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys",
    [
        [1, None, 1, None],
        ["u", None, "u", "v"],
        [0.5, float("nan"), 0.5, float("nan")],
        [0.0, 1.0, -0.0, 2.0],
        [True, False, True, None],
        [datetime(2026, 1, 1), None, datetime(2026, 1, 1), datetime(2026, 1, 2)],
        [Decimal("1.10"), Decimal("2.00"), Decimal("1.10"), None],
        [-(2**63), 2**63 - 1, -(2**63), 5],
        [None, None, None, None],
    ],
    ids=lambda keys: type(keys[0]).__name__ + repr(keys[1]),
)
def test_keys_of_every_kind_are_joined_and_null_equals_nothing(keys: list[Any]) -> None:
    rows = [{**row, "id": key} for row, key in zip(ROWS, keys, strict=True)]
    assert len(both(FLAT, rows)) == (0 if keys[0] is None else 1)
    both("SEQ(A a, !(B b, b.id = a.id), B c) WITHIN 10", rows)
    both("AND(A a, B b, a.id = b.id) WITHIN 10", rows)


@pytest.mark.parametrize("left", [2**63 - 1, -(2**63), 2**62, 3, -3, 0, None])
@pytest.mark.parametrize("right", [2**63 - 1, -(2**63), -1, 2, 0, None])
def test_integers_beyond_64_bits_are_null(left: int | None, right: int | None) -> None:
    rows = [{"ts": 1, "type": "A", "x": left}, {"ts": 2, "type": "B", "x": right}]
    table = pa.Table.from_pylist(
        rows, pa.schema([("ts", pa.int64()), ("type", pa.string()), ("x", pa.int64())])
    )
    (match,) = both(
        "SEQ(A a, B b) WITHIN 5 RETURN a.x + b.x AS plus, a.x - b.x AS minus, a.x * b.x AS times, "
        "a.x % b.x AS rest, a.x / b.x AS part, -a.x AS turned, abs(a.x) AS size",
        table,
    )
    if left is not None and right is not None:
        total = left + right
        assert match["plus"] == (total if -(2**63) <= total < 2**63 else None)
    both("SEQ(A a, B b, a.x * b.x > a.x - b.x) WITHIN 5", table)


def test_windows_at_the_ends_of_time_do_not_wrap() -> None:
    rows = [{"ts": ts, "type": kind} for ts, kind in ((-(2**62), "A"), (0, "B"), (2**62, "B"))]
    assert both("SEQ(A a, B b) WITHIN 5", rows) == []
    assert len(both("SEQ(A a, B b) WITHIN UNBOUNDED", rows)) == 2


# -- batches, limits, counts -------------------------------------------------------------------------------


def crowd(count: int, kinds: str = "AB") -> pa.Table:
    types = np.array(list(kinds))[np.arange(count) % len(kinds)]
    return pa.table({"ts": np.arange(count), "type": types, "id": np.arange(count) % 3})


def test_batches_stay_within_the_memory_of_the_options() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN 400")
    table = crowd(2000)
    sizes = [part.num_rows for part in query.batches(table, options=Options(memory=100_000))]
    assert sizes[0] == 0
    assert sum(sizes) == query.count(table)
    assert max(sizes) <= 100_000 // 64
    assert len(sizes) > 100


def test_batches_come_in_the_order_of_the_output() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN 100")
    table = crowd(1000)
    parts = pa.concat_tables(query.batches(table, options=Options(memory=50_000)))
    assert parts.equals(query.match(table))


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, B b) WITHIN 100 LIMIT 7",
        "AND(A a, B b) WITHIN 100 LIMIT 7",
        "SEQ(A a, B b) WITHIN 100 RETURN a LIMIT 7",
    ],
)
def test_a_limit_gives_the_first_matches(text: str) -> None:
    table = crowd(300)
    limited = both(text, table)
    assert limited == both(text.replace(" LIMIT 7", ""), table)[:7]
    assert len(limited) == 7


def test_a_limit_stops_before_all_matches_are_built() -> None:
    table = crowd(40_000)
    text = "SEQ(A a, B b, A c, B d) WITHIN UNBOUNDED"  # some 10 to the 16 matches
    options = Options(memory=1_000_000)
    assert nestream.query(text + " LIMIT 5").match(table, options=options).num_rows == 5
    first = islice(nestream.query(text).batches(table, options=options), 3)
    assert sum(part.num_rows for part in first) > 0


def test_millions_of_matches_come_in_pieces() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN 4000 RETURN a.id AS a, b.id AS b")
    table = crowd(2600)
    total = query.count(table)
    assert total > 800_000
    tracemalloc.start()
    sizes = [part.num_rows for part in query.batches(table, options=Options(memory=8_000_000))]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(sizes) == total
    assert max(sizes) < total / 10
    assert most < 32_000_000


@pytest.mark.slow
def test_a_hundred_million_matches_are_counted_without_being_built() -> None:
    table = crowd(60_000)
    assert nestream.query("SEQ(A a, B b) WITHIN 8000").count(table) > 100_000_000


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, B b, A c) WITHIN 20",
        "SEQ(A a, !(B b, b.id = a.id), A c) WITHIN 20",
        "SEQ(A a, !B b) WITHIN 20",
        "AND(A a, B b, !C c) WITHIN 12",
        "OR(A a, SEQ(B b, C c)) WITHIN 5",
        "SEQ(A a, B b) WITHIN 20 RETURN a",
        "SEQ(A a, B b, a.id < b.id) WITHIN 20",
    ],
)
def test_the_count_is_the_number_of_matches(text: str) -> None:
    table = crowd(120, "ABCA")
    query = nestream.query(text)
    assert (
        query.count(table) == query.match(table).num_rows == query.match(table, strategy="reference").num_rows
    )
    assert query.count(table, strategy="reference") == query.count(table)


def test_unknown_strategies_and_orders_are_refused() -> None:
    with pytest.raises(ValueError, match="one of"):
        nestream.query(FLAT).match(ROWS, strategy="magic")
    with pytest.raises(ValueError, match="one of"):
        nestream.query(FLAT).match(ROWS, order="random")


def test_string_views_are_read_as_strings() -> None:
    views = pa.table(
        {
            "ts": [1, 2, 3],
            "type": pa.array(["A", "B", "B"]).cast(pa.string_view()),
            "name": pa.array(["x", "y", "x"]).cast(pa.string_view()),
        }
    )
    for events in (views, views.to_batches()[0], {"A": views.slice(0, 1), "B": views.slice(1)}):
        (match,) = nestream.query("SEQ(A a, B b, a.name = b.name) WITHIN 9").match(events).to_pylist()
        assert match["b"]["ts"] == 3
