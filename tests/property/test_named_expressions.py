"""The variable of an expression has the events of the expression, and their first and last times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nestream
from tests.generators.choices import DrawnChoices
from tests.generators.histories import histories

BODIES = {
    "SEQ": "SEQ(B b, C c)",
    "SEQ with a negation at its end": "SEQ(B b, C c, !D d)",
    "AND": "AND(B b, C c)",
    "OR": "OR(B b, C c)",
    "OR of expressions": "OR(SEQ(B b, C c), AND(D d, E e))",
    "AND of ORs": "AND(OR(B b, C c), D d)",
    "nested": "SEQ(B b, AND(C c, SEQ(D d, E e)))",
    "nested with names": "SEQ(B b, AND(C c, D d) inner)",
}
CONDITIONS: dict[str, Callable[[int, int, int], bool]] = {
    "s.te - s.ts <= 2": lambda start, end, a: end - start <= 2,
    "s.ts - a.ts = 1": lambda start, end, a: start - a == 1,
    "NOT (s.te < 4 OR s.ts - a.te > 2)": lambda start, end, a: not (end < 4 or start - a > 2),
}


def times(value: dict[str, Any]) -> Iterator[int]:
    """The times of the events in the struct of an expression."""
    for part in value.values():
        if isinstance(part, dict):
            yield from [part["ts"]] if "type" in part else times(part)


class Exact(dict[str, Any]):
    """A match that equals another with the same text, so that NaN equals NaN."""

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)


def shown(table: pa.Table) -> list[Exact]:
    return list(map(Exact, table.to_pylist()))


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("condition", CONDITIONS)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories(types=("A", "B", "C", "D", "E")))
def test_a_condition_on_an_expression_is_one_on_its_first_and_last_time(
    body: str, condition: str, history: pa.Table
) -> None:
    text = "SEQ(A a, {} s{}) WITHIN 8"
    every = shown(nestream.query(text.format(BODIES[body], "")).match(history, strategy="reference"))
    for match in every:
        own = list(times(match["s"]))
        assert (match["s"]["ts"], match["s"]["te"]) == (min(own), max(own))
    holds = CONDITIONS[condition]
    expected = [m for m in every if holds(m["s"]["ts"], m["s"]["te"], m["a"]["ts"])]
    query = nestream.query(text.format(BODIES[body], f", {condition}"))
    assert shown(query.match(history)) == expected
    assert query.count(history) == len(expected)
    returned = nestream.query(
        text.format(BODIES[body], f", {condition}") + " RETURN a.ts AS a, s.ts AS start, s.te AS end"
    )
    assert [(row["a"], row["start"], row["end"]) for row in shown(returned.match(history))] == [
        (m["a"]["ts"], m["s"]["ts"], m["s"]["te"]) for m in expected
    ]


@pytest.mark.parametrize("body", BODIES)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories(types=("A", "B", "C", "D", "E")), data=st.data())
def test_a_condition_on_a_negated_expression_says_which_must_not_occur(
    body: str, history: pa.Table, data: st.DataObject
) -> None:
    limit = DrawnChoices(data.draw).integer(0, 4)
    inner = f"({BODIES[body]} s, s.te - s.ts <= {limit})"
    query = nestream.query(f"SEQ(A a, !{inner}, A z) WITHIN 9")
    assert shown(query.match(history)) == shown(query.match(history, strategy="reference"))
    pairs = shown(nestream.query("SEQ(A a, A z) WITHIN 9").match(history))
    between = shown(nestream.query(f"SEQ(A a, {inner}, A z) WITHIN 9").match(history))
    taken = {repr((m["a"], m["z"])) for m in between}
    expected = [m for m in pairs if repr((m["a"], m["z"])) not in taken]
    if "!" not in inner:
        assert shown(query.match(history)) == expected
