"""Makes a failing case smaller: fewer events, then a simpler query, as long as it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa

from nestream.language.ast import Composite, Exists, Negation, Pattern, Primitive, Query, Repeated, Step
from nestream.language.parser import parse
from nestream.language.printer import print_query
from nestream.model.diagnostics import QueryError
from nestream.model.expression import And, Comparison, Expression, Not, Or
from nestream.model.time import Window
from nestream.query import query
from tests.property.cases import Case

Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails, most_tries: int = 3000) -> Case:
    """The smallest case that greedy steps lead to."""
    tries = 0
    again = True
    while again:
        again = False
        for smaller in _smaller(case):
            tries += 1
            if tries > most_tries:
                return case
            if fails(smaller):
                case, again = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for table in _fewer_events(case.table):
        yield replace(case, table=table)
    for text in simpler_queries(case.text):
        yield replace(case, text=text)
    if case.order != "time":
        yield replace(case, order="time")
    yield from (replace(case, table=table) for table in _plainer_events(case.table))


def _fewer_events(table: pa.Table) -> Iterator[pa.Table]:
    count = table.num_rows
    for size in (size for size in (8, 4, 2, 1) if size <= count):
        for start in range(0, count - size + 1, size):
            yield pa.concat_tables([table.slice(0, start), table.slice(start + size)])


def _plainer_events(table: pa.Table) -> Iterator[pa.Table]:
    """The table with one value at a time made plain."""
    if table.num_rows and table.column("ts").num_chunks > 1:
        yield table.combine_chunks()
    rows = table.to_pylist()
    yield from _earlier(rows, table.schema)
    plain = {"id": 1, "x": 0, "f": 0.0, "s": "u", "flag": False}
    for index, row in enumerate(rows):
        for name, value in plain.items():
            if row[name] != value:
                changed = [*rows[:index], {**row, name: value}, *rows[index + 1 :]]
                yield pa.Table.from_pylist(changed, table.schema)


def _earlier(rows: list[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.Table]:
    """The events with a gap in time closed: those from some time on come earlier."""
    times = sorted({row["ts"] for row in rows})
    for before, after in pairwise([0, *times]):
        for step in sorted({after - before - 1, int(after - before > 2)} - {0}):
            moved = [{**row, "ts": row["ts"] - step} if row["ts"] >= after else row for row in rows]
            yield pa.Table.from_pylist(moved, schema)


def simpler_queries(text: str) -> Iterator[str]:
    """Queries that bind and are one step simpler."""
    tree = parse(text)
    for smaller in _simpler(tree):
        printed = print_query(smaller)
        try:
            query(printed)
        except QueryError:
            continue
        yield printed


def _simpler(tree: Query) -> Iterator[Query]:
    if tree.limit is not None:
        yield replace(tree, limit=None)
    if tree.keep is not None:
        yield replace(tree, keep=None)
        if tree.keep.per:
            yield replace(tree, keep=replace(tree.keep, per=tree.keep.per[1:]))
    if tree.returns:
        yield replace(tree, returns=())
        if len(tree.returns) > 1:
            for at in range(len(tree.returns)):
                yield replace(tree, returns=(*tree.returns[:at], *tree.returns[at + 1 :]))
    if tree.where is not None:
        yield replace(tree, where=None)
        for formula in _simpler_formulas(tree.where):
            yield replace(tree, where=formula)
    for pattern in _simpler_patterns(tree.pattern):
        yield replace(tree, pattern=pattern)
    if isinstance(tree.window, Window) and tree.window.size > 1:
        yield replace(tree, window=replace(tree.window, size=tree.window.size - 1))
    if tree.sase and tree.where is None:
        yield replace(tree, sase=False)


def _simpler_patterns(pattern: Pattern) -> Iterator[Pattern]:
    match pattern:
        case Negation(body=body):
            for simpler in _simpler_patterns(body):
                yield simpler if isinstance(simpler, Negation) else replace(pattern, body=simpler)
        case Repeated(body=body, least=least, most=most):
            for simple in {(0, None), (1, None)} - {(least, most)}:
                yield replace(pattern, least=simple[0], most=simple[1])
            for simpler in _simpler_patterns(body):
                if not isinstance(simpler, Negation | Repeated):
                    yield replace(pattern, body=simpler)
        case Exists(body=body):
            yield body
            for simpler in _simpler_patterns(body):
                yield replace(pattern, body=simpler)
        case Primitive(types=types, predicates=predicates):
            if pattern.step:
                yield replace(pattern, step=Step.ANY)
            if len(types) > 1:
                for name in types:
                    yield replace(pattern, types=(name,))
            for fewer in _simpler_lists(predicates):
                yield replace(pattern, predicates=fewer)
        case Composite(components=components, predicates=predicates):
            yield from components
            for index, component in enumerate(components):
                before, after = components[:index], components[index + 1 :]
                if before or after:
                    yield replace(pattern, components=before + after)
                if isinstance(component, Composite) and component.operator is pattern.operator:
                    yield replace(
                        pattern,
                        components=before + component.components + after,
                        predicates=predicates + component.predicates,
                    )
            for fewer in _simpler_lists(predicates):
                yield replace(pattern, predicates=fewer)
            for index, component in enumerate(components):
                for simpler in _simpler_patterns(component):
                    yield replace(
                        pattern, components=(*components[:index], simpler, *components[index + 1 :])
                    )


def _simpler_lists(predicates: tuple[Expression, ...]) -> Iterator[tuple[Expression, ...]]:
    for index, predicate in enumerate(predicates):
        yield predicates[:index] + predicates[index + 1 :]
        for simpler in _simpler_formulas(predicate):
            yield (*predicates[:index], simpler, *predicates[index + 1 :])


def _simpler_formulas(formula: Expression) -> Iterator[Expression]:
    match formula:
        case And(operands=operands) | Or(operands=operands):
            yield from operands
            if len(operands) > 2:
                for index in range(len(operands)):
                    yield replace(formula, operands=operands[:index] + operands[index + 1 :])
        case Not(operand=operand):
            yield operand
        case Comparison(operands=operands) if len(operands) > 2:
            for index in range(len(operands)):
                yield replace(formula, operands=operands[:index] + operands[index + 1 :])
