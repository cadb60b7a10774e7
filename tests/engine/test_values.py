"""Expressions over whole columns have the values that the reference gives row by row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from nestream.engine.values import Evaluator
from nestream.model.columns import computable
from nestream.model.expression import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Negative,
    Not,
    Or,
)
from nestream.model.vector import Vector
from nestream.reference.events import history
from nestream.reference.values import holds, value

COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-4, 4)),
    "j": (pa.int64(), st.sampled_from([0, 1, -1, 2, 3, 2**31, 2**62, 2**63 - 1, -(2**63)])),
    "f": (
        pa.float64(),
        st.sampled_from([0.0, 0.5, -2.5, 1e308, -1e308, 1e-300, math.inf, -math.inf, math.nan, 2.0**53]),
    ),
    "s": (pa.string(), st.text("aAüß€", max_size=3)),
    "t": (pa.string(), st.text("aA", max_size=2)),
    "p": (pa.bool_(), st.booleans()),
}
many = settings(max_examples=120, deadline=None)

numbers = st.sampled_from("ijf").map(lambda name: Attribute("x", name))
literals = st.integers(-3, 3).map(Literal) | st.sampled_from([0.5, 2.0]).map(Literal)
strings = st.sampled_from("st").map(lambda name: Attribute("x", name)) | st.text("aA", max_size=2).map(
    Literal
)


def arithmetic(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return (
        st.builds(Arithmetic, st.sampled_from("+-*/%"), parts, parts)
        | st.builds(Negative, parts)
        | st.builds(lambda part: Call("abs", (part,)), parts)
    )


values = st.recursive(numbers | literals, arithmetic, max_leaves=5)
integers = st.recursive(
    st.sampled_from("ij").map(lambda name: Attribute("x", name)) | st.integers(-3, 3).map(Literal),
    lambda parts: st.builds(Arithmetic, st.sampled_from("+-*%"), parts, parts),
    max_leaves=4,
)
lengths = strings.map(lambda part: Call("length", (part,)))
texts = strings | st.builds(lambda f, part: Call(f, (part,)), st.sampled_from(["lower", "upper"]), strings)
operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


def pairs(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return (
        st.builds(lambda o, a, b: Comparison(o, (a, b)), operators, parts, parts)
        | st.builds(lambda a, b, c: Comparison("=", (a, b, c)), parts, parts, parts)
        | st.builds(In, parts, st.tuples(parts, parts), st.booleans())
        | st.builds(Between, parts, parts, parts, st.booleans())
    )


simple = (
    pairs(values)
    | pairs(texts)
    | pairs(integers | lengths)
    | st.builds(IsNull, values | texts, st.booleans())
    | st.just(Attribute("x", "p"))
    | st.booleans().map(Literal)
)
formulas = st.recursive(
    simple,
    lambda parts: (
        st.lists(parts, max_size=3).map(lambda found: And(tuple(found)))
        | st.lists(parts, max_size=3).map(lambda found: Or(tuple(found)))
        | parts.map(Not)
    ),
    max_leaves=4,
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(1, 6))
    columns = {
        name: pa.array(draw(st.lists(st.none() | kind, min_size=count, max_size=count)), datatype)
        for name, (datatype, kind) in COLUMNS.items()
    }
    return pa.table(columns)


def by_row(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as the reference sees them: NaN is NULL."""
    rows = [
        {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in row.items()}
        for row in table.to_pylist()
    ]
    return [{"x": event} for event in history([0] * len(rows), ["A"] * len(rows), rows)]


def fetch_from(table: pa.Table) -> Any:
    return lambda _, name: Vector.of(computable(table.column(name), "us", name))


@many
@given(tables(), formulas)
def test_a_formula_holds_of_the_rows_of_which_the_reference_says_so(
    table: pa.Table, formula: Expression
) -> None:
    found = Evaluator().satisfied(formula, fetch_from(table), table.num_rows)
    assert found.tolist() == [holds(formula, binding) for binding in by_row(table)]


@many
@given(tables(), values | integers | lengths)
def test_a_number_has_the_value_of_the_reference(table: pa.Table, expression: Expression) -> None:
    vector = Evaluator().value(expression, fetch_from(table))
    found = np.broadcast_to(vector.values, (table.num_rows,)).tolist()
    valid = np.broadcast_to(True if vector.valid is None else vector.valid, (table.num_rows,))
    expected = [value(expression, binding) for binding in by_row(table)]
    assert [v if known else None for v, known in zip(found, valid, strict=True)] == expected


@many
@given(tables(), texts)
def test_a_string_has_the_value_of_the_reference(table: pa.Table, expression: Expression) -> None:
    found = Evaluator().value(expression, fetch_from(table)).values
    expected = [value(expression, binding) for binding in by_row(table)]
    if isinstance(found, pa.Scalar):
        assert {found.as_py()} == set(expected)
    else:
        assert found.to_pylist() == expected


@many
@given(tables(), st.lists(st.sampled_from("ij"), min_size=1, max_size=3), st.integers(-2, 2))
def test_coalesce_gives_the_first_value_that_is_not_null(
    table: pa.Table, names: list[str], default: int
) -> None:
    call = Call("coalesce", (*(Attribute("x", name) for name in names), Literal(default)))
    vector = Evaluator().value(call, fetch_from(table))
    assert vector.values.tolist() == [value(call, binding) for binding in by_row(table)]
