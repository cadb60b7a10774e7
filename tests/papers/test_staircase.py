"""Negation as a bound: a staircase holds the latest start of the inner matches that ended so far."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nestream
from nestream_papers.engine.staircase import NONE
from tests.papers.tools import SCHEMA, evaluation_over, events, only_negation

INNER = {
    "an event": "B b",
    "a sequence": "SEQ(B b, C c)",
    "three steps": "SEQ(B b, C c, D d)",
    "a conjunction": "AND(B b, C c)",
    "a conjunction in a sequence": "SEQ(B b, AND(C c, D d))",
    "a sequence in a conjunction": "AND(SEQ(B b, C c), D d)",
    "a negation inside": "SEQ(B b, !D d, C c)",
    "two negations inside": "SEQ(B b, !D d, C c, !E e, F f)",
    "a sequence negated inside": "SEQ(B b, !SEQ(D d, E e), C c)",
    "a negation in a negation inside": "SEQ(B b, !SEQ(D d, !F f, E e), C c)",
}


@st.composite
def histories(draw: st.DrawFn) -> pa.Table:
    """Events of six types in the order of time, with ties."""
    kinds = draw(st.lists(st.sampled_from("BCDEF"), max_size=16))
    gaps = draw(st.lists(st.integers(0, 2), min_size=len(kinds), max_size=len(kinds)))
    rows: list[dict[str, Any]] = [
        {"ts": int(ts), "type": kind, "id": 1, "x": 0}
        for ts, kind in zip(np.cumsum([0, *gaps])[1:], kinds, strict=True)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.mark.parametrize("inner", INNER)
@settings(max_examples=60, deadline=None)
@given(histories())
def test_the_latest_start_is_the_greatest_start_of_a_match_that_ended_before(
    inner: str, table: pa.Table
) -> None:
    evaluation = evaluation_over(f"SEQ(A a, !{INNER[inner]}, Z z) WITHIN UNBOUNDED", table)
    negation = only_negation(evaluation.program)
    assert negation.stair is not None
    staircase = evaluation.staircases.of(negation)
    found = nestream.query(f"{INNER[inner]} WITHIN UNBOUNDED").match(table, strategy="reference").to_pylist()
    times = table.column("ts").to_numpy()
    moments = sorted({*times.tolist(), 1000})
    lows = np.searchsorted(times, moments, "left")  # before a moment is before the first event at it
    base = evaluation.store.base  # positions in the store count from its first event
    latest = staircase.latest_low(np.zeros(len(lows), np.int64), lows - base)
    for moment, place in zip(moments, latest, strict=True):
        starts = [match["match_start"] for match in found if match["match_end"] < moment]
        if not starts:
            assert place == NONE
        else:
            assert times[place + base] == max(starts)


@settings(max_examples=60, deadline=None)
@given(histories())
def test_the_starts_of_a_staircase_never_go_down(table: pa.Table) -> None:
    for inner in INNER.values():
        evaluation = evaluation_over(f"SEQ(A a, !{inner}, Z z) WITHIN UNBOUNDED", table)
        staircase = evaluation.staircases.of(only_negation(evaluation.program))
        assert (np.diff(staircase.starts) >= 0).all()
        assert (np.diff(staircase.ends.pos) >= 0).all()


def test_a_staircase_has_a_stretch_for_every_key() -> None:
    table = events("b1.1 b2.2 c3.2 c4.1 b5.1")
    text = "SEQ(A a, !SEQ(B b, C c, b.id = c.id = a.id), Z z, a.id = z.id) WITHIN UNBOUNDED"
    evaluation = evaluation_over(text, table)
    staircase = evaluation.staircases.of(only_negation(evaluation.program))
    numbers = evaluation.keys.numbers(("id",))
    for key, start in ((1, 0), (2, 1)):
        number = numbers[table.column("id").to_pylist().index(key)]
        stretch = np.array([number * evaluation.stride])
        assert staircase.latest_low(stretch, np.array([5]))[0] == start
        assert staircase.latest_low(stretch, np.array([2]))[0] == NONE


def test_a_key_that_the_outer_match_does_not_share_is_looked_up_over_all_keys() -> None:
    table = events("b1.1 b2.2 c3.2 c4.1")
    evaluation = evaluation_over("SEQ(A a, !SEQ(B b, C c, b.id = c.id), Z z) WITHIN UNBOUNDED", table)
    negation = only_negation(evaluation.program)
    assert negation.link is None
    assert negation.key is not None
    latest = evaluation.staircases.of(negation).latest_low(np.zeros(3, np.int64), np.array([2, 3, 4]))
    assert latest.tolist() == [NONE, 1, 1]


def test_a_staircase_is_built_once() -> None:
    evaluation = evaluation_over("SEQ(A a, !B b, Z z) WITHIN 5", events("b1"))
    negation = only_negation(evaluation.program)
    assert evaluation.staircases.of(negation) is evaluation.staircases.of(negation)
