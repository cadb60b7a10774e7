"""How many rows the parts of a plan give: what the cost model expects, and what is found in some events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from nestream.logical.nodes import (
    Component,
    Leaf,
    Negation,
    Node,
    Plan,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    expressions,
    leaves,
    walk,
)
from nestream.model.columns import attributes_by_type, check_events, to_table
from nestream.model.expression import Expression, attributes, variables
from nestream.model.output import EventColumn, Output
from nestream.model.schema import Schema
from nestream.model.time import UNBOUNDED
from nestream.papers.optimize.describe import branches, shape_of
from nestream.papers.optimize.rates import Rates
from nestream.papers.optimize.statistics import Statistics
from nestream.papers.rewrite.normalise import normalise

Pair = tuple[float | None, int | None]


@dataclass(frozen=True)
class Rows:
    """The estimated and measured rows of the components of a plan, by the component; None is the whole."""

    plan: Plan | None = None
    estimated: Mapping[int | None, float] = field(default_factory=dict)
    measured: Mapping[int | None, int] = field(default_factory=dict)

    def of(self, component: Component | None) -> Pair:
        """What is known of a component."""
        key = None if component is None else id(component)
        return self.estimated.get(key), self.measured.get(key)


NO_ROWS = Rows()


def rows_over(query: Any, events: Any, rewritten: bool, read: Mapping[str, Any]) -> Rows:
    """The rows of a query's plan, or of its normal form, over some events."""
    table = to_table(events, read["type"])
    given = read["types"] or attributes_by_type(events)
    schema = Schema.of(table.schema, read["time"], read["type"], given)
    check_events(table, schema)
    plan, _ = query.typed(schema)
    settings = {**read, "types": given}
    if rewritten:
        plan = normalise(plan).plan
    measured: dict[int | None, int] = {None: _matches(query, table, settings)}
    measured.update(_branches(query, plan, table, settings, rewritten))
    measured.update(_leaves(query, plan, table, settings))
    return Rows(plan, _estimates(plan, table, schema), measured)


# -- estimates ---------------------------------------------------------------------------------------------


def _estimates(plan: Plan, table: pa.Table, schema: Schema) -> dict[int | None, float]:
    read = dict.fromkeys(part.name for formula in expressions(plan) for part in attributes(formula))
    known = Statistics.of(table, schema, read)
    if not known.counts:
        return {}
    rates = Rates(known, plan.window)
    found: dict[int | None, float] = {}
    for node in walk(plan.root):
        if isinstance(node, Leaf):
            found[id(node)] = rates.events(shape_of(plan, _alone(node, plan), "").steps[0])
        elif isinstance(node, WinSeq | WinAnd) and leaves_of(node):
            found[id(node)] = _rows(rates, plan, node)
    for branch in branches(plan):
        found[id(branch)] = _rows(rates, plan, branch)
    found[None] = sum(found[id(branch)] for branch in branches(plan))
    return {key: value for key, value in found.items() if value == value}


def _rows(rates: Rates, plan: Plan, node: Node) -> float:
    """The rows of an expression by itself, in the window, less those that its constraints let not pass."""
    shape = shape_of(plan, node, "")
    if not len(shape):
        return 0.0
    total = rates.rows(shape, 0, len(shape))
    for constraint in shape.constraints:
        total *= rates.satisfied(shape, constraint)
    return total


def leaves_of(node: Node) -> list[Leaf]:
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


# -- measured ----------------------------------------------------------------------------------------------


def _matches(query: Any, table: pa.Table, read: Mapping[str, Any]) -> int:
    plan = query.plan
    return int(_asked(query, replace(plan, limit=None)).count(table, **read))


def _branches(
    query: Any, plan: Plan, table: pa.Table, read: Mapping[str, Any], rewritten: bool
) -> Iterator[tuple[int, int]]:
    """What each expression of the plan finds, as the engine that runs it tells."""
    found = branches(plan)
    told = query.explain(format="json", analyze=table, strategy="flat" if rewritten else "bounds", **read)
    blocks = told["measured"]["blocks"]
    if len(blocks) == len(found):  # an OR deeper down makes more blocks than there are expressions
        for branch, block in zip(found, blocks, strict=True):
            yield id(branch), int(block["matches"])


def _leaves(query: Any, plan: Plan, table: pa.Table, read: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """How many events each leaf selects: those of its types for which what is said of them alone holds."""
    known: dict[str, int] = {}
    for leaf in leaves(query.plan.root):
        own = _alone(leaf, query.plan)
        output = Output((leaf.variable,), False, (EventColumn(leaf.variable),))
        alone = replace(
            query.plan, root=own, window=UNBOUNDED, output=output, limit=None, variables=(leaf.variable,)
        )
        known[leaf.variable] = int(_asked(query, alone).count(table, **read))
    for leaf in leaves(plan.root):
        if leaf.variable in known:
            yield id(leaf), known[leaf.variable]


def _alone(leaf: Leaf, plan: Plan) -> Leaf:
    """The leaf with all predicates that are about its event alone, wherever they stand."""
    own: dict[Expression, None] = {}
    for node in walk(plan.root):
        if not isinstance(node, Negation) and hasattr(node, "predicates"):
            own.update(dict.fromkeys(p for p in node.predicates if variables(p) == {leaf.variable}))
    return replace(leaf, predicates=tuple(own))


def _asked(query: Any, plan: Plan) -> Any:
    """The query with another plan."""
    return replace(query, bound=replace(query.bound, plan=plan))
