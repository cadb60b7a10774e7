"""Frames of Polars: columns of any type are joined or ride along."""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import pytest

import nestream
from tests.runtime.test_inputs import ANY, NAIVE, SHOWN, pairs

pl = pytest.importorskip("polars", reason="Polars comes with the extra `bench`")


def polars_columns() -> list[Any]:
    times = [NAIVE, NAIVE + timedelta(1), None]
    return [
        pl.Series(["x", "y", None], dtype=pl.Categorical),
        pl.Series(["x", "y", None], dtype=pl.Enum(["y", "x"])),
        pl.Series(["x", "y", None], dtype=pl.String),
        pl.Series([Decimal("1.10"), Decimal("2"), None], dtype=pl.Decimal(12, 2)),
        pl.Series([timedelta(1), timedelta(2), None], dtype=pl.Duration("ms")),
        pl.Series(times, dtype=pl.Datetime("ns")),
        pl.Series(times, dtype=pl.Datetime("us", "Europe/Berlin")),
        pl.Series([date(2026, 1, 1), date(2026, 1, 2), None]),
        pl.Series([1, 2, None], dtype=pl.UInt8),
        pl.Series([1.5, 2.5, None], dtype=pl.Float32),
        pl.Series([True, False, None]),
    ]


@pytest.mark.parametrize("values", polars_columns(), ids=lambda values: str(values.dtype))
def test_polars_columns_are_joined(values: Any) -> None:
    frame = pl.DataFrame({"ts": [1, 2, 3], "type": ["A", "B", "B"], "n": [0, 1, 2]})
    for order, expected in (([0, 1, 0], [(0, 2)]), ([0, 1, 2], []), ([2, 0, 2], [])):
        assert pairs(frame.with_columns(values.gather(order).alias("v"))) == expected


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([[1, 2], None, []], dtype=pl.List(pl.Int8)),
        pl.Series([["x"], None, []], dtype=pl.List(pl.Categorical)),
        pl.Series([[1, 2], None, [3, 4]], dtype=pl.Array(pl.Int8, 2)),
        pl.Series([{"a": "x", "b": 1}, None, {"a": None, "b": 2}]),
        pl.Series([b"x", None, b"\xff"]),
        pl.Series([time(1), None, time(2)]),
        pl.Series([None, None, None], dtype=pl.Null),
    ],
    ids=lambda values: str(values.dtype),
)
def test_polars_columns_ride_along(values: Any) -> None:
    frame = pl.DataFrame({"ts": [1, 2, 3], "type": ["A", "B", "B"], "n": [0, 1, 2], "v": values})
    expected = frame["v"].to_list()
    found = SHOWN.match(frame).to_pylist()
    assert [(row["one"], row["two"]) for row in found] == [(expected[0], v) for v in expected[1:]]


@pytest.mark.parametrize(
    ("events", "told"),
    [
        (pl.Series([1, 2]), "cannot read events from a Series"),
        (pl.LazyFrame({"ts": [1]}), "the events have no column `type` for their type"),
        (pl.LazyFrame({"ts": [1]}).select("nothing"), "cannot read events from a LazyFrame"),
    ],
    ids=["series", "lazy", "wrong"],
)
def test_what_is_no_frame_is_refused_with_a_sentence(events: Any, told: str) -> None:
    with pytest.raises(nestream.EventError) as refused:
        ANY.match(events)
    assert told in str(refused.value)
