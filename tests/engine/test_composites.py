"""Composites: built where they are few, within the budget of memory, and otherwise done without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nestream
from nestream.engine.evaluation import Evaluation
from nestream.engine.operators import forward_pass
from nestream.engine.operators.chain import Composite
from nestream.engine.operators.forward_pass import ForwardPass, TooManyCompositesError
from nestream.engine.operators.lateral_join import LateralJoin

EVENTS = 3_000
SESSION = 300
BUDGET = 16 << 10
JOINED = "SEQ(A a, AND(B b, C c, b.session = c.session), D d)"
FILTERED = "SEQ(A a, B b, D d, b.x > a.x)"


def in_sessions() -> pa.Table:
    """Events that share an attribute with most of their neighbours and with no others."""
    types = np.random.default_rng(0).choice(list("ABCD"), EVENTS, p=[0.02, 0.48, 0.48, 0.02])
    at = np.arange(EVENTS)
    return pa.table({"ts": at, "type": types.tolist(), "session": at // SESSION, "x": at % 7})


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The number of composites of each step that was built; None where there were too many."""
    found: list[int | None] = []
    build = ForwardPass._composite

    def watched(self: ForwardPass, composite: Composite) -> Any:
        try:
            rows, begin = build(self, composite)
        except TooManyCompositesError:
            found.append(None)
            raise
        found.append(len(next(iter(rows.values()))))
        return rows, begin

    monkeypatch.setattr(ForwardPass, "_composite", watched)
    return found


def test_the_number_of_composites_is_estimated_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """An equality holds for most pairs in a window here, and for few of all pairs."""
    monkeypatch.setattr(forward_pass, "_CHEAP", 0)
    monkeypatch.setattr(forward_pass, "_DEAR", 1)
    estimated: list[float] = []
    sampled = LateralJoin.sampled

    def watched(self: LateralJoin, evaluation: Evaluation) -> float:
        estimated.append(sampled(self, evaluation))
        return estimated[-1]

    monkeypatch.setattr(LateralJoin, "sampled", watched)
    nestream.query(f"{JOINED} WITHIN {SESSION} LIMIT 1").match(in_sessions())
    pairs = nestream.query(f"AND(B b, C c, b.session = c.session) WITHIN {SESSION}").count(in_sessions())
    assert 0.5 < estimated[0] / pairs < 2


@pytest.mark.parametrize("text", [JOINED, FILTERED])
def test_composites_that_are_more_than_the_budget_holds_are_done_without(
    text: str, built: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    query, events = nestream.query(f"{text} WITHIN 40"), in_sessions()
    expected = query.match(events)
    built.clear()
    monkeypatch.setattr(Composite, "is_worth", lambda *_: True)
    assert query.match(events, options={"memory": BUDGET}).equals(expected)
    assert built
    assert set(built) == {None}


def test_composites_stay_within_the_budget(built: list[int | None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Composite, "is_worth", lambda *_: True)
    query = nestream.query(f"{JOINED} WITHIN 6")
    assert len(query.match(in_sessions(), options={"memory": 1 << 20}))
    assert built
    assert all(count is not None and count * forward_pass._BYTES <= 1 << 20 for count in built)


def test_a_budget_too_small_for_any_composite_is_no_error_where_there_are_none() -> None:
    query = nestream.query(f"{JOINED} WITHIN 5")
    events = pa.table({"ts": [1, 9, 17], "type": list("ABD"), "session": [1, 1, 1], "x": [0, 0, 0]})
    assert not len(query.match(events, options={"memory": 1}))
    events = pa.table({"ts": [1, 2, 17, 30], "type": list("ABCD"), "session": [1, 1, 1, 1], "x": [0] * 4})
    assert not len(query.match(events, options={"memory": 1}))
