"""Predicates on the time between neighbours of a chain are ranges, however they are written."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.engine.operators.chain import Chain
from nestream.physical.planner import plan_native

EVENTS = pa.table(
    {
        "ts": [n * 7 % 31 for n in range(60)],
        "type": ["ABC"[n * 5 % 3] for n in range(60)],
        "id": [n % 2 for n in range(60)],
        "x": [n % 4 for n in range(60)],
    }
)
GAPS = [
    "b.ts - a.ts <= 3",
    "b.ts - a.ts < 3",
    "b.ts - a.ts >= 3",
    "b.ts - a.ts > 3",
    "b.ts - a.ts = 3",
    "3 >= b.ts - a.ts",
    "a.ts - b.ts >= -3",
    "-(b.ts - a.ts) < -3",
    "b.ts <= a.ts + 3",
    "a.ts + 2 < b.ts - 1",
    "b.ts - a.ts BETWEEN 2 AND 4",
    "b.ts - a.ts <= -1",
    "b.ts - a.ts >= -1",
]


def chain_of(text: str) -> Chain:
    """The chain of a query."""
    (operator,) = plan_native(nestream.query(text).plan, None).physical
    assert isinstance(operator, Chain)
    return operator


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize(
    "pattern",
    [
        "SEQ(A a, B b, {gap}) WITHIN 12",
        "SEQ(A a, B b, C c, {gap}, c.ts - b.ts <= 5) WHERE [id] WITHIN 20",
        "SEQ(C c, A a, B b, {gap}, c.x < a.x) WITHIN 20",
        "SEQ(A a, B b, C c, {gap}, a.x < b.x) WITHIN UNBOUNDED",
        "SEQ(A a, !C d, B b, C c, {gap}) WITHIN 9 EVENTS",
    ],
)
def test_a_gap_is_a_range_and_gives_the_matches_of_the_reference(pattern: str, gap: str, order: str) -> None:
    text = pattern.format(gap=gap)
    assert len(chain_of(text).ranges) == 1 + ("c.ts - b.ts" in text)
    query = nestream.query(text)
    expected = query.match(EVENTS, order=order, strategy="reference")
    assert query.match(EVENTS, order=order).equals(expected)
    assert query.count(EVENTS, order=order) == expected.num_rows


@pytest.mark.parametrize(
    "condition",
    ["c.ts - a.ts <= 3", "b.ts - a.ts <= b.x", "b.ts - a.ts != 3", "b.ts - a.ts <= 2.5", "b.ts + a.ts <= 9"],
)
def test_other_conditions_on_times_stay_filters(condition: str) -> None:
    chain = chain_of(f"SEQ(A a, B b, C c, {condition}) WITHIN 20")
    assert not chain.ranges
    assert len(chain.filters) == 1


def test_durations_are_gaps_of_timestamps_in_any_resolution() -> None:
    for unit, size in (("us", 10**6), ("ns", 10**9)):
        times = pa.array([n * size for n in EVENTS.column("ts").to_pylist()], pa.timestamp(unit))
        table = EVENTS.set_column(0, "ts", times)
        query = nestream.query("SEQ(A a, (SEQ(B b, C c) WITHIN 3 s), b.ts - a.ts > 2 s) WITHIN 1 hour")
        expected = query.match(table, strategy="reference")
        assert query.match(table).equals(expected)
        assert expected.num_rows


def test_times_at_the_ends_of_64_bits_have_no_difference() -> None:
    times: list[Any] = [-(2**63), -5, 2**63 - 2]
    events = pa.table({"ts": pa.array(times, pa.int64()), "type": ["A", "A", "B"]})
    for gap in ("b.ts - a.ts >= 0", "b.ts - a.ts <= 9000000000000000000", "b.ts - a.ts > 1"):
        query = nestream.query(f"SEQ(A a, B b, {gap}) WITHIN UNBOUNDED")
        assert query.match(events).equals(query.match(events, strategy="reference"))


def test_explain_says_which_conditions_are_ranges() -> None:
    told = nestream.query("SEQ(A a, B b, b.ts - a.ts <= 3, a.x < b.x) WITHIN 20").explain()
    assert "Chain (a, b), where a.x < b.x, as ranges b.ts - a.ts <= 3" in told
