"""The number of rows of the parts of a plan: what the cost model expects, and what is found in events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from nestream.logical.nodes import (
    Component,
    Plan,
    branches,
    leaf_alone,
    leaves,
)
from nestream.model.output import EventColumn, Output
from nestream.model.time import UNBOUNDED

Pair = tuple[float | None, int | None]


@dataclass(frozen=True)
class Rows:
    """The estimated and measured rows of the components of a plan; None is the whole plan."""

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
    table, schema = query.read(events, **read)
    plan, _ = query.typed(schema)
    settings = {**read, "types": schema.types or None}
    if rewritten:
        plan = query.rewritten(plan)
    measured: dict[int | None, int] = {None: _matches(query, table, settings)}
    measured.update(_branches(query, plan, table, settings, rewritten))
    measured.update(_leaves(query, plan, table, settings))
    return Rows(plan, query.estimated_rows(plan, table, schema), measured)


# -- measured ----------------------------------------------------------------------------------------------


def _matches(query: Any, table: pa.Table, read: Mapping[str, Any]) -> int:
    plan = query.plan
    return int(_asked(query, replace(plan, limit=None)).count(table, **read))


def _branches(
    query: Any, plan: Plan, table: pa.Table, read: Mapping[str, Any], rewritten: bool
) -> Iterator[tuple[int, int]]:
    """What each expression of the plan finds, as the engine reports it."""
    found = branches(plan)
    told = query.explain(format="json", analyze=table, strategy="flat" if rewritten else "native", **read)
    blocks = told["measured"]["blocks"]
    if len(blocks) == len(found):  # an OR deeper down makes more blocks than expressions
        for branch, block in zip(found, blocks, strict=True):
            yield id(branch), int(block["matches"])


def _leaves(query: Any, plan: Plan, table: pa.Table, read: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """How many events each leaf selects: those of its types that pass the predicates on them alone."""
    known: dict[str, int] = {}
    for leaf in leaves(query.plan.root):
        own = leaf_alone(leaf, query.plan)
        output = Output((leaf.variable,), False, (EventColumn(leaf.variable),))
        alone = replace(
            query.plan,
            root=own,
            window=UNBOUNDED,
            output=output,
            limit=None,
            keep=None,
            variables=(leaf.variable,),
        )
        known[leaf.variable] = int(_asked(query, alone).count(table, **read))
    for leaf in leaves(plan.root):
        if leaf.variable in known:
            yield id(leaf), known[leaf.variable]


def _asked(query: Any, plan: Plan) -> Any:
    """The query with another plan."""
    return replace(query, bound=replace(query.bound, plan=plan))
