"""What all planners that build blocks share: leaves, order, equalities, and the intervals of negations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import Any, Protocol

from nestream.engine.block import closure
from nestream.engine.program import EVENT, Decided, Edge, Equality, Interval, LeafSpec, Measure
from nestream.logical.nodes import Component, Leaf, Plan, WinAnd, WinSeq, expressions, is_constraint
from nestream.model.event_types import overlap
from nestream.model.expression import (
    TIME_ATTRIBUTE,
    TYPE_ATTRIBUTE,
    Attribute,
    Comparison,
    Expression,
    attributes,
    transform,
)
from nestream.model.schema import Kind, Schema
from nestream.model.time import WindowKind
from nestream.physical.choices import OrAlternative
from nestream.physical.equality import classes

_MEASURES = {
    WindowKind.TIME: Measure.TIME,
    WindowKind.NUMBER: Measure.TIME,
    WindowKind.EVENTS: Measure.EVENTS,
    WindowKind.UNBOUNDED: Measure.NONE,
}


class Keyed(Protocol):
    """What the negations and groups nested in a block need to know of it."""

    @property
    def order(self) -> frozenset[tuple[str, str]]:
        """The pairs of variables that must follow each other."""

    @property
    def equalities(self) -> tuple[Equality, ...]:
        """The attributes that must be equal, besides the key."""

    @property
    def key(self) -> Mapping[str, tuple[str, ...]] | None:
        """The attributes of each variable that are equal in all of them."""


@dataclass(frozen=True)
class Outer:
    """What a negation sees around it: the bound variables, their order and their equalities."""

    types: Mapping[str, frozenset[str]] = field(default_factory=dict)
    order: frozenset[tuple[str, str]] = frozenset()
    facts: tuple[Equality, ...] = ()
    is_wide: bool = False
    """Whether it, or something around it, has an interval of up to two windows."""

    def within(self, interval: Interval) -> Outer:
        """What a negation with this interval sees around it."""
        return replace(self, is_wide=self.is_wide or interval.is_wide)

    def inside(self, block: Keyed, chosen: OrAlternative) -> Outer:
        """What a negation nested in a block sees around it."""
        types = {leaf.variable: frozenset(leaf.types) for leaf in chosen.leaves}
        facts = (*block.equalities, *_key_equalities(block), *self.facts)
        return replace(self, types={**types, **self.types}, order=self.order | block.order, facts=facts)


def _key_equalities(block: Keyed) -> Iterator[Equality]:
    """The equalities that the key of a block implies."""
    for left, right in pairwise(block.key or ()):
        assert block.key is not None
        for a, b in zip(block.key[left], block.key[right], strict=True):
            yield Equality((left, a), (right, b))


class BlockWriter:
    """Builds the parts of the blocks of one plan; all blocks share the leaves."""

    def __init__(self, schema: Schema | None, leaves: dict[LeafSpec, int]) -> None:
        self.schema = schema
        self.by_arrival = schema is not None and schema.by_arrival
        self.leaves = leaves

    def scope(self, plan: Plan) -> dict[str, Any]:
        """What a program takes from the plan, whatever its blocks are."""
        timed = plan.window.kind is WindowKind.TIME
        scale = self.schema.per_microsecond if timed and self.schema is not None else 1
        read = (part.name for expression in expressions(plan) for part in attributes(expression))
        names = dict.fromkeys(name for name in read if name not in (TIME_ATTRIBUTE, TYPE_ATTRIBUTE))
        return {
            "measure": _MEASURES[plan.window.kind],
            "window": min(plan.window.size * scale, 2**63 - 1),
            "exclusive": plan.exclusive,
            "by_arrival": self.by_arrival,
            "attributes": tuple(names),
            "kept": plan.output.kept,
        }

    def decided(self, edges: set[Edge]) -> Decided:
        """When the matches of a block are decided, given the edges that its negations depend on."""
        if Edge.WINDOW_END in edges:
            return Decided.WINDOW
        if Edge.MATCH_END in edges and not self.by_arrival:
            return Decided.CLOSED
        return Decided.LAST

    def kind(self, attribute: str) -> Kind:
        """The kind of an attribute's values."""
        found = self.schema.kind(attribute) if self.schema is not None else None
        return found or Kind.UNKNOWN

    def leaf(self, leaf: Leaf, filters: list[Expression]) -> int:
        """The number of the leaf; equal leaves share one."""
        spec = LeafSpec(leaf.types, tuple(transform(f, _about_the_event) for f in filters))
        return self.leaves.setdefault(spec, len(self.leaves))

    def apart(
        self, chosen: OrAlternative, order: frozenset[tuple[str, str]], outer: Outer
    ) -> frozenset[tuple[str, str]]:
        """The pairs that share an event type and are not separated by an order."""
        reach = closure(order | outer.order)
        own = [(leaf.variable, frozenset(leaf.types)) for leaf in chosen.leaves]
        pairs = [*combinations(own, 2), *((a, b) for a in own for b in outer.types.items())]
        return frozenset(
            (x, y)
            for (x, a), (y, b) in pairs
            if overlap(a, b) and (x, y) not in reach and (y, x) not in reach
        )


def root_limits(chosen: OrAlternative) -> Interval:
    """The limits within which the negations of a whole match apply."""
    return Interval(Edge.WINDOW_START, Edge.MATCH_END if isinstance(chosen.node, WinAnd) else Edge.WINDOW_END)


def constraints_of(chosen: OrAlternative, limits: Interval) -> Iterator[tuple[Component, Interval]]:
    """The negations, groups and witnesses of a node and its positive parts, each with its interval."""
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
            yield from constraints_of(chosen.parts[place], interval)
            place += 1
        else:
            yield component, interval


def interval_order(limits: Interval, names: Iterable[str]) -> frozenset[tuple[str, str]]:
    """The order that an interval imposes on the variables inside it."""
    after = limits.after if isinstance(limits.after, tuple) else ()
    before = limits.before if isinstance(limits.before, tuple) else ()
    return frozenset(
        pair for name in names for pair in (*((a, name) for a in after), *((name, b) for b in before))
    )


def about_the_match(
    equalities: list[Equality], names: Iterable[str], outer: Outer
) -> tuple[list[Equality], list[Expression]]:
    """The equalities about a block's own events; those about the outer match alone become predicates.

    A lookup of the block's events would not test the latter. Those known to hold are dropped.
    """
    own = set(names)
    around = [e for e in equalities if not {e.left[0], e.right[0]} & own]
    tests = [_as_predicate(e) for e in around if not _known(e, outer.facts)]
    return [e for e in equalities if e not in around], tests


def _known(equality: Equality, facts: Sequence[Equality]) -> bool:
    """Whether an equality follows from others."""
    return any({equality.left, equality.right} <= equal for equal in classes(facts))


def _as_predicate(equality: Equality) -> Expression:
    return Comparison("=", (Attribute(*equality.left), Attribute(*equality.right)))


def _about_the_event(part: Expression) -> Expression:
    return Attribute(EVENT, part.name) if isinstance(part, Attribute) else part
