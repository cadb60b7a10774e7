"""The matches of a query by the reference evaluator, as sets, and changes of plans for the laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from nestream.logical.nodes import (
    Component,
    Group,
    Leaf,
    Negation,
    Node,
    Plan,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    Witness,
    positive,
    target_variables,
)
from nestream.query import query
from nestream.reference import Event, Order, evaluate, history

Match: TypeAlias = frozenset[tuple[str, int]]
"""Which event, by its number `n`, plays which variable."""


def events_of(table: pa.Table) -> list[Event]:
    """The events of a history; NaN is NULL."""
    rows = [{name: _value(value) for name, value in row.items()} for row in table.to_pylist()]
    return history([row["ts"] for row in rows], [row["type"] for row in rows], rows)


def _value(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def complete(plan: Plan) -> Plan:
    """The plan with every variable in its output, and all its matches."""
    kept = tuple(name for name in plan.variables if name in target_variables(plan.root))
    output = replace(plan.output, kept=kept, distinct=False, columns=())
    return replace(plan, output=output, limit=None, keep=None)


def matches_of(plan: Plan, table: pa.Table, order: str = "time") -> set[Match]:
    """The matches of a plan."""
    found = evaluate(plan, events_of(table), Order(order))
    return {frozenset((name, event["n"]) for name, event in match.events.items()) for match in found}


def matches(
    text: str, table: pa.Table, order: str = "time", change: Callable[[Plan], Plan] = lambda plan: plan
) -> set[Match]:
    """The complete matches of a query, before any projection; `change` makes another plan of the query's."""
    return matches_of(complete(change(query(text).plan)), table, order)


def without_negations(plan: Plan) -> Plan:
    """The plan with all its negations taken out."""
    return replace(plan, root=_without(plan.root))


def _without(node: Node) -> Node:
    match node:
        case Leaf():
            return node
        case Proj(body=body):
            return replace(node, body=_without(body))
        case WinSeq() | WinAnd() | WinOr():
            return replace(node, components=tuple(map(_without, positive(node))))


def one_negation_less(node: Node) -> Iterator[Node]:
    """The node with one of its negations taken out, but none of those inside another negation."""
    match node:
        case Leaf() | Proj():
            return
        case WinSeq(components=components) | WinAnd(components=components) | WinOr(components=components):
            for index, part in enumerate(components):
                before, after = components[:index], components[index + 1 :]
                if isinstance(part, Negation):
                    yield replace(node, components=(*before, *after))
                elif not isinstance(part, Witness | Group):
                    for fewer in one_negation_less(part):
                        changed: tuple[Component, ...] = (*before, fewer, *after)
                        yield replace(node, components=changed)
