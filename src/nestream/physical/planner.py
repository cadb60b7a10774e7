"""Plans a query: from the logical plan to blocks, and to the operator that runs each.

Single-event predicates go into the leaves, equalities into keys, the rest is left to the operators. A
negation is derived where its matches depend on the outer match by an interval and a key alone. Everything
else is a lateral join, which is always right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import Any

import pyarrow as pa

from nestream.engine.block import Block, Group, Negation
from nestream.engine.native import NativeProgram
from nestream.engine.operators.chain import Chain
from nestream.engine.operators.grouped import grouped
from nestream.engine.operators.lateral_join import LateralJoin, closure
from nestream.engine.operators.operator import PhysicalOperator
from nestream.engine.operators.product import Product
from nestream.engine.outlines import outline_of
from nestream.engine.program import EVENT, MEMORY, Decided, Edge, Equality, Interval, LeafSpec, Measure
from nestream.engine.shown_groups import ShownGroups
from nestream.logical.nodes import Component, Leaf, Plan, WinAnd, WinSeq, expressions, is_constraint
from nestream.logical.nodes import Group as LogicalGroup
from nestream.logical.nodes import Negation as LogicalNegation
from nestream.model.event_types import overlap
from nestream.model.expression import (
    TIME_ATTRIBUTE,
    TYPE_ATTRIBUTE,
    Attribute,
    Comparison,
    Expression,
    aggregates,
    attributes,
    conjuncts,
    transform,
    variables,
)
from nestream.model.output import ValueColumn
from nestream.model.schema import Kind, Schema
from nestream.model.time import WindowKind
from nestream.physical.choices import Chosen, choices
from nestream.physical.deriving import derive
from nestream.physical.equality import classes, key_of, split_equalities

_MEASURES = {
    WindowKind.TIME: Measure.TIME,
    WindowKind.NUMBER: Measure.TIME,
    WindowKind.EVENTS: Measure.EVENTS,
    WindowKind.UNBOUNDED: Measure.NONE,
}


def plan_native(
    plan: Plan,
    schema: Schema | None,
    *,
    options: Mapping[str, Any] | None = None,
    leaves: dict[LeafSpec, int] | None = None,
    events: pa.Table | None = None,
    whole: bool = False,
) -> NativeProgram:
    """The program of a plan that was typed for the schema; without a schema, to explain it.

    `leaves` are the leaves of other programs over the same events, with their numbers; those of this one are
    added.
    """
    planner = Planner(schema, {} if leaves is None else leaves)
    timed = plan.window.kind is WindowKind.TIME
    scale = schema.per_microsecond if timed and schema is not None else 1
    blocks = tuple(planner.root_block(chosen) for chosen in choices(plan.root))
    same = len({frozenset(block.leaves) for block in blocks}) < len(blocks)
    return NativeProgram(
        leaves=tuple(planner.leaves),
        outlines=tuple(outline_of(block, planner.decided(block)) for block in blocks),
        measure=_MEASURES[plan.window.kind],
        window=min(plan.window.size * scale, 2**63 - 1),
        exclusive=plan.exclusive,
        by_arrival=planner.by_arrival,
        attributes=_read_attributes(plan),
        distinct=plan.output.distinct or same,
        looks_back=any(Edge.WINDOW_START in edges(block) for block in blocks),
        kept=plan.output.kept,
        memory=(options or {}).get("memory", MEMORY),
        physical=tuple(map(operator_of, blocks)),
        shown=_shown_groups(plan, blocks),
    )


def _shown_groups(plan: Plan, blocks: Sequence[Block]) -> ShownGroups | None:
    """What the output shows of groups, None where it shows nothing."""
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
    """The operator that finds the matches of a block."""
    if block.chain is not None and not block.equalities:
        return grouped(Chain(block))
    ordered = any(set(pair) <= set(block.leaves) for pair in block.order)
    if not ordered and not block.equalities:
        return grouped(Product(block))
    return LateralJoin(block)


def _read_attributes(plan: Plan) -> tuple[str, ...]:
    """The attributes that predicates and returned expressions read, without time and type."""
    read = (part.name for expression in expressions(plan) for part in attributes(expression))
    return tuple(dict.fromkeys(name for name in read if name not in (TIME_ATTRIBUTE, TYPE_ATTRIBUTE)))


@dataclass(frozen=True)
class Outer:
    """What a negation sees around it: the bound variables, their order and their equalities."""

    types: Mapping[str, frozenset[str]] = field(default_factory=dict)
    order: frozenset[tuple[str, str]] = frozenset()
    facts: tuple[Equality, ...] = ()

    def inside(self, block: Block, chosen: Chosen) -> Outer:
        """The same for what is nested in a block."""
        types = {leaf.variable: frozenset(leaf.types) for leaf in chosen.leaves}
        facts = (*block.equalities, *_key_equalities(block), *self.facts)
        return Outer({**types, **self.types}, self.order | block.order, facts)


def _key_equalities(block: Block) -> Iterator[Equality]:
    """The equalities that the key of a block stands for."""
    for left, right in pairwise(block.key or ()):
        assert block.key is not None
        for a, b in zip(block.key[left], block.key[right], strict=True):
            yield Equality((left, a), (right, b))


class Planner:
    """Writes the blocks of one plan."""

    def __init__(self, schema: Schema | None, leaves: dict[LeafSpec, int]) -> None:
        self.schema = schema
        self.by_arrival = schema is not None and schema.by_arrival
        self.leaves = leaves

    def decided(self, block: Block) -> Decided:
        """When the matches of a block are known."""
        found = edges(block)
        if Edge.WINDOW_END in found:
            return Decided.WINDOW
        if Edge.MATCH_END in found and not self.by_arrival:
            return Decided.CLOSED
        return Decided.LAST

    # -- blocks --------------------------------------------------------------------------------------------

    def root_block(self, chosen: Chosen) -> Block:
        """The block of a whole match, or of an expression that depends on nothing around it."""
        right = Edge.MATCH_END if isinstance(chosen.node, WinAnd) else Edge.WINDOW_END
        return self.block(chosen, Interval(Edge.WINDOW_START, right), Outer(), root=True)

    def block(self, chosen: Chosen, limits: Interval, outer: Outer, *, root: bool = False) -> Block:
        """The block of a choice, within the limits that its surroundings leave."""
        names = [leaf.variable for leaf in chosen.leaves]
        written = [f for part in chosen.walk() for p in part.predicates for f in conjuncts(p)]
        judged = [f for f in written if any(aggregates(f))]
        formulas = [f for f in written if f not in judged]
        local = {name: [f for f in formulas if variables(f) == {name}] for name in names}
        joint = [f for f in formulas if f not in (g for own in local.values() for g in own)]
        equalities, predicates = split_equalities(joint, self.kind)
        around = [e for e in equalities if not {e.left[0], e.right[0]} & set(names)]
        if around:  # about the match alone: a lookup of the block's own events would not test them
            equalities = [e for e in equalities if e not in around]
            predicates += [_as_predicate(e) for e in around if not _known(e, outer.facts)]
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
            chain=chosen.chain,
            key=key,
        )
        inside = outer.inside(block, chosen)
        return replace(
            block,
            negations=tuple(self.negations(chosen, limits, inside)),
            groups=tuple(self.groups(chosen, limits, inside)),
            judged=tuple(judged),
        )

    def kind(self, attribute: str) -> Kind:
        """The kind of an attribute's values."""
        found = self.schema.kind(attribute) if self.schema is not None else None
        return found or Kind.UNKNOWN

    def leaf(self, leaf: Leaf, filters: list[Expression]) -> int:
        """The number of the leaf; equal leaves are one."""
        spec = LeafSpec(leaf.types, tuple(transform(f, _about_the_event) for f in filters))
        return self.leaves.setdefault(spec, len(self.leaves))

    def apart(
        self, chosen: Chosen, order: frozenset[tuple[str, str]], outer: Outer
    ) -> frozenset[tuple[str, str]]:
        """The pairs that share an event type and that no order keeps apart."""
        reach = closure(order | outer.order)
        own = [(leaf.variable, frozenset(leaf.types)) for leaf in chosen.leaves]
        pairs = [*combinations(own, 2), *((a, b) for a in own for b in outer.types.items())]
        return frozenset(
            (x, y)
            for (x, a), (y, b) in pairs
            if overlap(a, b) and (x, y) not in reach and (y, x) not in reach
        )

    # -- negations -----------------------------------------------------------------------------------------

    def negations(self, chosen: Chosen, limits: Interval, outer: Outer) -> Iterator[Negation]:
        """The negations of a node and its positive parts, each alternative of each, with its interval."""
        for component, interval in constraint_places(chosen, limits):
            if isinstance(component, LogicalNegation):
                for alternative in choices(component.body):
                    block = self.block(alternative, interval, outer)
                    yield derive(self, alternative, Negation(interval, block), outer)

    def groups(self, chosen: Chosen, limits: Interval, outer: Outer) -> Iterator[Group]:
        """The groups of a node and its positive parts, with their intervals."""
        for component, interval in constraint_places(chosen, limits):
            if isinstance(component, LogicalGroup):
                alternatives = tuple(
                    Negation(interval, self.block(alternative, interval, outer))
                    for alternative in choices(component.body)
                )
                yield Group(component.variable, interval, alternatives, component.least, component.most)


def constraint_places(chosen: Chosen, limits: Interval) -> Iterator[tuple[Component, Interval]]:
    """The negations and groups of a node and its positive parts, each with the interval it looks at."""
    node = chosen.node
    if isinstance(node, Leaf):
        return
    place = 0
    for component in node.components:
        binds = not is_constraint(component)
        interval = limits
        if isinstance(node, WinSeq):
            right = place + 1 if binds else place
            interval = Interval(
                chosen.parts[place - 1].last if place > 0 else limits.after,
                chosen.parts[right].first if right < len(chosen.parts) else limits.before,
            )
        if binds:
            yield from constraint_places(chosen.parts[place], interval)
            place += 1
        else:
            yield component, interval


def interval_order(limits: Interval, names: Iterable[str]) -> frozenset[tuple[str, str]]:
    """The order that an interval puts on the variables inside it."""
    after = limits.after if isinstance(limits.after, tuple) else ()
    before = limits.before if isinstance(limits.before, tuple) else ()
    return frozenset(
        pair for name in names for pair in (*((a, name) for a in after), *((name, b) for b in before))
    )


def edges(block: Block) -> set[Edge]:
    """The edges that the negations and groups of a block look up to, at any depth."""
    found: set[Edge] = set()
    looking = [*block.negations, *(one for group in block.groups for one in group.alternatives)]
    for negation in looking:
        interval = negation.interval
        found |= {edge for edge in (interval.after, interval.before) if isinstance(edge, Edge)}
        found |= edges(negation.block)
    return found


def _known(equality: Equality, facts: Sequence[Equality]) -> bool:
    """Whether an equality follows from others."""
    return any({equality.left, equality.right} <= equal for equal in classes(facts))


def _as_predicate(equality: Equality) -> Expression:
    return Comparison("=", (Attribute(*equality.left), Attribute(*equality.right)))


def _about_the_event(part: Expression) -> Expression:
    return Attribute(EVENT, part.name) if isinstance(part, Attribute) else part
