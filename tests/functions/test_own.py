"""Functions that users add."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import nestream

EVENTS = [
    {"ts": 1, "type": "A", "x": 2, "s": "ab"},
    {"ts": 2, "type": "A", "x": None, "s": None},
    {"ts": 3, "type": "A", "x": 5, "s": "abc"},
]


def test_a_function_of_ones_own_is_called_in_predicates_and_in_return() -> None:
    nestream.function("Doubled", lambda x: pc.multiply(x, 2), returns="integer")
    nestream.function("both", lambda x, s: pc.and_kleene(pc.greater(x, 1), pc.is_valid(s)), returns="boolean")
    query = nestream.query("(A a : both(a.x, a.s)) RETURN doubled(a.x) + 1 AS v, doubled(3) AS c")
    for way in ("auto", "reference"):
        found = query.match(EVENTS, strategy=way).select(["v", "c"]).to_pylist()
        assert found == [{"v": 5, "c": 6}, {"v": 11, "c": 6}]


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (lambda x: pc.utf8_lower(x), "the function `own` failed: ArrowNotImplementedError"),
        (lambda x: pa.array([1, 2, 3, 4, 5]), "returned 5 values for"),
        (lambda x: pa.array(["a"] * len(x)), "the function `own` failed: ArrowInvalid"),
    ],
)
def test_a_function_that_fails_is_named(kernel: Any, said: str) -> None:
    nestream.function("own", kernel, returns="integer")
    with pytest.raises(nestream.EventError, match=said):
        nestream.query("(A a) RETURN own(a.x) AS v").match(EVENTS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lower", lambda x: x, "string"), "the language has a function `lower`"),
        (("a b", lambda x: x, "string"), "not the name of a function"),
        (("own", lambda x: x, "list"), "one of integer, number, string, boolean"),
        (("own", lambda: 1, "integer"), "must name the arrays"),
    ],
)
def test_a_function_that_cannot_be_added_is_rejected(arguments: tuple[Any, ...], said: str) -> None:
    name, kernel, returns = arguments
    with pytest.raises(ValueError, match=said):
        nestream.function(name, kernel, returns=returns)


def test_a_function_of_ones_own_takes_numbers_strings_and_booleans() -> None:
    nestream.function("own", lambda x: x, returns="integer")
    table = pa.table({"ts": pa.array([1], pa.timestamp("us")), "type": ["A"]})
    with pytest.raises(nestream.QueryError, match="is a timestamp, not a number, string or boolean"):
        nestream.query("(A a) RETURN own(a.ts) AS v").match(table)
    with pytest.raises(nestream.QueryError, match="takes one argument, not 2"):
        nestream.query("(A a) RETURN own(a.x, 1) AS v")
