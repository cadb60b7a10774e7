"""Statistics: what they count, and what they say of few events."""

import math

import pyarrow as pa
import pytest

from nestream.model.schema import Schema
from nestream_papers.optimize.statistics import Share, Statistics


def events(times: list[int], kinds: str, **columns: list[object]) -> tuple[pa.Table, Schema]:
    table = pa.table({"ts": pa.array(times, pa.int64()), "type": list(kinds), **columns})
    return table, Schema.of(table.schema)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pa.array([5, 7, 5, None, 9, 7]), 3),
        (pa.chunked_array([["k1", "k2"], ["k2", "k3"]]), 3),
        (pa.array(["x", "y", "x"]).dictionary_encode(), 2),
        (pa.array([None, None], pa.int64()), 1),
        (pa.array([[1], [2]]), 1),
    ],
)
def test_the_values_of_a_column_are_counted_without_null(column: pa.Array, values: int) -> None:
    size = len(column)
    table = pa.table({"ts": pa.array(range(size), pa.int64()), "type": ["A"] * size, "x": column})
    assert Statistics.of(table, Schema.of(table.schema), ["x"]).domain("x") == values


def test_counts_and_rates_are_those_of_the_table() -> None:
    table, schema = events([0, 10, 20, 40], "AABA", id=[1, 1, 2, 3])
    found = Statistics.of(table, schema, ["id"])
    assert (found.counts, found.span, found.domain("id")) == ({"A": 3.0, "B": 1.0}, 40.0, 3.0)
    assert found.domain("price") is None


def test_times_in_nanoseconds_are_counted_in_microseconds_as_windows_are() -> None:
    times = pa.array([1_000, 3_500, 9_001], pa.timestamp("ns", "UTC"))
    table = pa.table({"ts": times, "type": ["A", "A", "B"], "when": times})
    found = Statistics.of(table, Schema.of(table.schema), ["when"])
    assert (found.span, found.domain("when")) == (8.0, 3.0)


def test_events_in_pieces_are_counted_together() -> None:
    pieces = [events([1, 2], "AB")[0], events([3, 4, 5], "CAA")[0]]
    table = pa.concat_tables([*pieces, pieces[0].slice(0, 0)])
    words = table.set_column(1, "type", table.column("type").dictionary_encode())
    for given in (table, words):
        assert Statistics.of(given, Schema.of(given.schema)).counts == {"A": 3.0, "B": 1.0, "C": 1.0}


def test_a_share_is_never_certain() -> None:
    assert 0 < Share(0, 100).ratio < 0.01 < 0.99 < Share(100, 100).ratio < 1


def test_no_events_have_no_statistics() -> None:
    table, schema = events([], "")
    assert Statistics.of(table, schema, ["id"]) == Statistics()
    assert math.isinf(Statistics().begin)
