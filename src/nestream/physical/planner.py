"""Plans a query: from the logical plan to blocks, and to the operator that runs each.

Single-event predicates go into the leaves and equalities into keys; the rest is left to the operators. A
negation that depends on the outer match only through an interval and a key is derived. Everything else is a
lateral join, which always applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from nestream.engine.block import Block, Group, Negation
from nestream.engine.native import NativeProgram
from nestream.engine.operators.chain import Chain
from nestream.engine.operators.grouped import grouped
from nestream.engine.operators.lateral_join import LateralJoin
from nestream.engine.operators.operator import PhysicalOperator
from nestream.engine.operators.product import Product
from nestream.engine.outlines import outline_of
from nestream.engine.program import MEMORY, Edge, Interval, LeafSpec
from nestream.engine.shown_groups import ShownGroups
from nestream.logical.nodes import Group as LogicalGroup
from nestream.logical.nodes import Negation as LogicalNegation
from nestream.logical.nodes import Plan, targets_in_order
from nestream.model.expression import aggregates, conjuncts, variables
from nestream.model.output import ValueColumn
from nestream.model.schema import Schema
from nestream.physical.choices import OrAlternative, choices
from nestream.physical.deriving import derive
from nestream.physical.equality import key_of, split_equalities
from nestream.physical.writing import (
    BlockWriter,
    Outer,
    about_the_match,
    constraints_of,
    interval_order,
    root_limits,
)


def plan_native(
    plan: Plan,
    schema: Schema | None,
    *,
    options: Mapping[str, Any] | None = None,
    leaves: dict[LeafSpec, int] | None = None,
    events: pa.Table | None = None,
    whole: bool = False,
) -> NativeProgram:
    """Make the program of a plan typed for the schema; without a schema, a program to explain.

    `leaves` maps the leaves of other programs over the same events to their numbers; those of this program
    are added.
    """
    planner = Planner(schema, {} if leaves is None else leaves)
    blocks = tuple(planner.root_block(chosen) for chosen in choices(plan.root))
    same = len({frozenset(block.leaves) for block in blocks}) < len(blocks)
    return NativeProgram(
        leaves=tuple(planner.leaves),
        outlines=tuple(outline_of(block, planner.decided(edges(block))) for block in blocks),
        **planner.scope(plan),
        distinct=plan.output.distinct or same,
        looks_back=any(Edge.WINDOW_START in edges(block) for block in blocks),
        memory=(options or {}).get("memory", MEMORY),
        physical=tuple(map(operator_of, blocks)),
        shown=_shown_groups(plan, blocks),
    )


def _shown_groups(plan: Plan, blocks: Sequence[Block]) -> ShownGroups | None:
    """What the output shows of groups; None if it shows nothing."""
    columns = plan.output.columns
    returned = [column.expression for column in columns if isinstance(column, ValueColumn)]
    shown = ShownGroups(
        listed=frozenset(name for column in columns for name in column.groups),
        spanned=frozenset(
            group.variable
            for block in blocks
            for group in block.groups
            if group.reaches_out and group.variable in plan.output.groups
        ),
        aggregates=tuple(dict.fromkeys(one for expression in returned for one in aggregates(expression))),
    )
    return shown if shown.listed or shown.spanned or shown.aggregates else None


def operator_of(block: Block) -> PhysicalOperator:
    """Choose the operator that finds the matches of a block."""
    in_steps = len(block.steps) > 1 or len(block.leaves) == 1
    if in_steps and not (block.groups and (block.equalities or block.chain is None)):
        chain = Chain(block)
        if chain.is_right:
            return grouped(chain)
    ordered = any(set(pair) <= set(block.leaves) for pair in block.order)
    if not ordered and not block.equalities:
        return grouped(Product(block))
    return LateralJoin(block)


class Planner(BlockWriter):
    """Builds the blocks of one plan."""

    # -- blocks --------------------------------------------------------------------------------------------

    def root_block(self, chosen: OrAlternative) -> Block:
        """The block of a whole match, or of an expression that depends on nothing around it."""
        return self.block(chosen, root_limits(chosen), Outer(), root=True)

    def block(self, chosen: OrAlternative, limits: Interval, outer: Outer, *, root: bool = False) -> Block:
        """The block of a choice, within the limits set by its surroundings."""
        names = [leaf.variable for leaf in chosen.leaves]
        written = [f for part in chosen.walk() for p in part.predicates for f in conjuncts(p)]
        judged = [f for f in written if any(aggregates(f))]
        formulas = [f for f in written if f not in judged]
        read = [(formula, variables(formula)) for formula in formulas]
        local = {name: [f for f, own in read if own == {name}] for name in names}
        joint = [f for f, own in read if not any(own == {name} for name in names)]
        equalities, predicates = split_equalities(joint, self.kind)
        equalities, tests = about_the_match(equalities, names, outer)
        predicates += tests
        between = [e for e in equalities if not {e.left[0], e.right[0]} <= set(names)]
        within = [e for e in equalities if e not in between]
        order = frozenset(chosen.order) | (frozenset() if root else interval_order(limits, names))
        key, rest = key_of(within, names) if root else (None, within)
        block = Block(
            leaves={leaf.variable: self.leaf(leaf, local[leaf.variable]) for leaf in chosen.leaves},
            order=order,
            apart=self.apart(chosen, order, outer),
            equalities=(*rest, *between),
            predicates=tuple(predicates),
            steps=chosen.steps,
            key=key,
        )
        inside = outer.inside(block, chosen)
        return replace(
            block,
            negations=tuple(self.negations(chosen, limits, inside)),
            groups=tuple(self.groups(chosen, limits, inside)),
            judged=tuple(judged),
        )

    # -- negations -----------------------------------------------------------------------------------------

    def negations(self, chosen: OrAlternative, limits: Interval, outer: Outer) -> Iterator[Negation]:
        """The negations of a node and its positive parts: every alternative of each, with its interval."""
        for component, interval in constraints_of(chosen, limits):
            if isinstance(component, LogicalNegation):
                within = outer.within(interval)
                for alternative in choices(component.body):
                    block = self.block(alternative, interval, within)
                    yield derive(self, alternative, Negation(interval, block), within)

    def groups(self, chosen: OrAlternative, limits: Interval, outer: Outer) -> Iterator[Group]:
        """The groups of a node and its positive parts, with their intervals."""
        for component, interval in constraints_of(chosen, limits):
            if isinstance(component, LogicalGroup):
                within = outer.within(interval)
                alternatives = tuple(
                    Negation(interval, self.block(alternative, interval, within))
                    for alternative in choices(component.body)
                )
                names = targets_in_order(component.body)
                least, most = component.least, component.most
                yield Group(component.variable, names, interval, alternatives, least, most)


def edges(block: Block) -> set[Edge]:
    """The edges that the negations and groups of a block depend on, at any depth."""
    found: set[Edge] = set()
    looking = [*block.negations, *(one for group in block.groups for one in group.alternatives)]
    for negation in looking:
        interval = negation.interval
        found |= {edge for edge in (interval.after, interval.before) if isinstance(edge, Edge)}
        found |= edges(negation.block)
    return found
