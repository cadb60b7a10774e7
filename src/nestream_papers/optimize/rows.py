"""Estimates the rows of the parts of a plan from statistics of some events."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from nestream.logical.nodes import (
    Component,
    Leaf,
    Node,
    Plan,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    branches,
    expressions,
    leaf_alone,
    leaves,
    walk,
)
from nestream.model.expression import attributes
from nestream.model.schema import Schema
from nestream_papers.optimize.describe import shape_of
from nestream_papers.optimize.rates import Rates
from nestream_papers.optimize.statistics import Statistics


def estimated_rows(plan: Plan, table: pa.Table, schema: Schema) -> dict[int | None, float]:
    """The expected rows of each component of a plan, by its identity; None is the whole plan."""
    read = dict.fromkeys(part.name for formula in expressions(plan) for part in attributes(formula))
    known = Statistics.of(table, schema, read)
    if not known.counts:
        return {}
    rates = Rates(known, plan.window)
    found: dict[int | None, float] = {}
    for node in walk(plan.root):
        if isinstance(node, Leaf):
            found[id(node)] = rates.events(shape_of(plan, leaf_alone(node, plan), "").steps[0])
        elif isinstance(node, WinSeq | WinAnd) and _leaves_of(node):
            found[id(node)] = _rows(rates, plan, node)
    for branch in branches(plan):
        found[id(branch)] = _rows(rates, plan, branch)
    found[None] = sum(found[id(branch)] for branch in branches(plan))
    return {key: value for key, value in found.items() if value == value}


def _rows(rates: Rates, plan: Plan, node: Node) -> float:
    """The rows of an expression by itself, in the window, that pass its constraints."""
    shape = shape_of(plan, node, "")
    if not len(shape):
        return 0.0
    total = rates.rows(shape, 0, len(shape))
    for constraint in shape.constraints:
        total *= rates.satisfied(shape, constraint)
    return total


def _leaves_of(node: Node) -> list[Leaf]:
    """The leaves that a node binds."""
    return [leaf for leaf in leaves(node) if leaf in _bound(node)]


def _bound(node: Component) -> Iterator[Leaf]:
    match node:
        case Leaf():
            yield node
        case Proj(body=body):
            yield from _bound(body)
        case WinSeq(components=inner) | WinAnd(components=inner) | WinOr(components=inner):
            for part in inner:
                yield from _bound(part)
        case _:
            return
