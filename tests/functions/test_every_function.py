"""Every function and operator on every kind of argument: the engine gives what the reference gives."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.model.functions import FUNCTIONS, Function, documented
from nestream.model.schema import Kind
from tests.functions.kinds import COLUMNS, LITERALS, alike, all_functions, calls, events

NAMES = [function.name for function in all_functions()]


def values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; times as numbers, for Python has no year 20,000."""
    moments = pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)
    return (column.cast(pa.int64()) if moments else column).to_pylist()  # type: ignore[no-any-return]


def check(expressions: list[str], table: pa.Table) -> int:
    """Compare engine and reference on all the expressions that the types allow; how many those are."""
    allowed: list[str] = []
    rejected: list[nestream.Diagnostic] = []
    for expression in expressions:
        try:
            query = nestream.query(f"(A a) RETURN {expression} AS v")
            query.typed(nestream.Schema.of(table.schema))
            allowed.append(expression)
        except nestream.QueryError as problem:
            rejected += problem.diagnostics
    assert all(problem.span.end > problem.span.start for problem in rejected)
    if not allowed:
        return 0
    returned = ", ".join(f"{expression} AS v{place}" for place, expression in enumerate(allowed))
    query = nestream.query(f"(A a) RETURN {returned}")
    engine, reference = query.match(table), query.match(table, strategy="reference")
    assert engine.schema == reference.schema
    for place, expression in enumerate(allowed):
        pairs = zip(values(engine.column(place)), values(reference.column(place)), strict=True)
        for row, (found, wanted) in enumerate(pairs):
            assert alike(found, wanted), (expression, table.slice(row, 1).to_pylist(), found, wanted)
    tests = [e for e in allowed if engine.schema.field(allowed.index(e)).type == pa.bool_()]
    for formula in tests:
        condition = nestream.query(f"(A a : {formula})")
        found = [
            condition.match(table, strategy=way)["match_end"].to_pylist() for way in ("auto", "reference")
        ]
        assert found[0] == found[1], formula
    return len(allowed)


@pytest.mark.parametrize("name", NAMES)
def test_a_function_gives_the_same_in_the_engine_and_in_the_reference(name: str) -> None:
    for seed in range(3):
        assert check(list(calls(FUNCTIONS[name], 40, seed)), events(seed))


@pytest.mark.parametrize("name", NAMES)
def test_a_function_of_columns_without_any_event_gives_no_rows(name: str) -> None:
    for expression in calls(FUNCTIONS[name], 5):
        try:
            query = nestream.query(f"(A a) RETURN {expression} AS v")
            assert query.match(events(0, 0)).num_rows == 0
        except nestream.QueryError:
            continue


OPERATORS = ("+", "-", "*", "/", "%", "=", "!=", "<", "<=", ">", ">=")


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_gives_the_same_in_the_engine_and_in_the_reference(operator: str) -> None:
    operands = [f"a.{name}" for name in COLUMNS] + [text for texts in LITERALS.values() for text in texts]
    assert check([f"{a} {operator} {b}" for a, b in product(operands, repeat=2)], events(1, 20)) > 20


def test_conditions_give_the_same_in_the_engine_and_in_the_reference() -> None:
    names = list(COLUMNS)
    formulas = [f"a.{a} IS NULL" for a in names] + [f"a.{a} IS NOT NULL" for a in names]
    formulas += [f"NOT a.{a}" for a in names] + [f"a.{a} AND a.b OR a.{a}" for a in names]
    formulas += [f"-a.{a}" for a in names]
    for a, b in product(names, repeat=2):
        formulas += [f"a.{a} IN (a.{b}, a.{a})", f"a.{a} NOT IN (a.{b})", f"a.{a} BETWEEN a.{b} AND a.{a}"]
        formulas += [f"a.{a} NOT BETWEEN a.{b} AND a.{b}", f"a.{a} = a.{b} = a.{a}"]
    assert check(formulas, events(2, 20)) > 100


def test_is_null_applies_to_lists_structs_maps_and_binary_values() -> None:
    table = events(3, 20)
    for name in "lrmwn":
        found = nestream.query(f"(A a : a.{name} IS NULL)").count(table)
        assert found == table.column(name).null_count


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_function_has_all_its_parts(name: str) -> None:
    function = FUNCTIONS[name]
    assert function.name == name == name.lower()
    assert function.parameters
    assert function.gives is None or isinstance(function.gives, Kind)
    assert callable(function.row)
    assert callable(function.kernel)
    assert function.text
    assert function.is_implicit or function.example


@pytest.mark.parametrize("function", all_functions(), ids=NAMES)
def test_the_example_of_a_function_is_true(function: Function) -> None:
    call, _, value = function.example.rpartition(" = ")
    query = nestream.query(f"(A a) RETURN {call} AS found, {value} AS wanted")
    for strategy in ("auto", "reference"):
        table = query.match([{"ts": 1, "type": "A"}], strategy=strategy)
        assert table.column("found").to_pylist() == table.column("wanted").to_pylist()
        assert table.schema.field("found").type == table.schema.field("wanted").type


def test_the_page_on_the_language_has_the_table_of_functions() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "language.md").read_text(
        encoding="utf-8"
    )
    table = page.partition("<!-- functions: python -m nestream.model.functions -->\n")[2].partition(
        "<!-- end -->"
    )
    assert table[0].strip() == documented()
    for function in all_functions():
        assert f"| `{function.signature}` |" in table[0]
