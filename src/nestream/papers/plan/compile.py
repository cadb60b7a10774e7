"""Compiles a logical plan to the engine's program.

Single-event predicates go into the leaves, equalities into keys, the rest is left to the joins. Each negation
becomes a bound where its condition holds: its predicates are local or equal on a key, and what its own
negations see does not depend on the outer interval. Elsewhere it is a lateral join, which is always right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise

from nestream.engine.program import EVENT, Decided, Edge, Equality, Interval, LeafSpec, Measure
from nestream.logical.nodes import Leaf, Plan, WinAnd, WinSeq, expressions, is_constraint
from nestream.logical.nodes import Negation as LogicalNegation
from nestream.logical.nodes import Witness as LogicalWitness
from nestream.model.event_types import overlap
from nestream.model.expression import (
    TIME_ATTRIBUTE,
    TYPE_ATTRIBUTE,
    Attribute,
    Comparison,
    Expression,
    attributes,
    conjuncts,
    transform,
    variables,
)
from nestream.model.schema import Kind, Schema
from nestream.model.time import WindowKind
from nestream.papers.engine.join import closure
from nestream.papers.engine.outlines import outline_of
from nestream.papers.engine.program import (
    Block,
    BlockProgram,
    Constraint,
    Negation,
    Shortcut,
    Views,
    Witness,
    WitnessStep,
)
from nestream.papers.options import Options
from nestream.papers.plan.bounds import stair_of
from nestream.papers.plan.groups import Choice, shared
from nestream.papers.plan.views import nested_parts
from nestream.physical.choices import Chosen, choices
from nestream.physical.equality import classes, key_of, linked_key, split_equalities

_MEASURES = {
    WindowKind.TIME: Measure.TIME,
    WindowKind.NUMBER: Measure.TIME,
    WindowKind.EVENTS: Measure.EVENTS,
    WindowKind.UNBOUNDED: Measure.NONE,
}


def compile_plan(
    plan: Plan,
    schema: Schema | None,
    options: Options | None = None,
    *,
    nested: bool = False,
    views: Views | None = None,
    groups: Sequence[Choice] | None = None,
    leaves: dict[LeafSpec, int] | None = None,
) -> BlockProgram:
    """The program of a plan that was typed for the schema; without one, to explain it.

    With `nested` the program is run by iterative nested execution, which with `views` answers inner queries
    from views. Blocks share their work in the `groups` that are given, where a number is that of a branch of
    the root OR. `leaves` are the leaves of other programs over the same events, with their numbers; those of
    this one are added.
    """
    compiling = _Compiling(plan, schema, options or Options(), nested)
    compiling.views = views
    compiling.leaves = {} if leaves is None else leaves
    program = compiling.run()
    return program if groups is None else shared(program, plan, groups)


@dataclass(frozen=True)
class _Outer:
    """What a negation sees around it: the bound variables, their order and their equalities."""

    types: Mapping[str, frozenset[str]] = field(default_factory=dict)
    order: frozenset[tuple[str, str]] = frozenset()
    facts: tuple[Equality, ...] = ()

    def inside(self, block: Block, chosen: Chosen) -> _Outer:
        """The same for what is nested in a block."""
        types = {leaf.variable: frozenset(leaf.types) for leaf in chosen.leaves}
        facts = (*block.equalities, *_key_equalities(block), *self.facts)
        return _Outer({**types, **self.types}, self.order | block.order, facts)


def _key_equalities(block: Block) -> Iterable[Equality]:
    """The equalities that the key of a block stands for."""
    if block.key is None:
        return
    for left, right in pairwise(block.key):
        for a, b in zip(block.key[left], block.key[right], strict=True):
            yield Equality((left, a), (right, b))


class _Compiling:
    def __init__(self, plan: Plan, schema: Schema | None, options: Options, nested: bool) -> None:
        self.plan = plan
        self.schema = schema
        self.by_arrival = schema is not None and schema.by_arrival
        self.options = options
        self.nested = nested
        self.views: Views | None = None
        self.leaves: dict[LeafSpec, int] = {}
        self.leaf_of: dict[str, int] = {}
        """The leaf of each variable compiled so far: outer ones come before inner ones."""

    def run(self) -> BlockProgram:
        plan = self.plan
        chosen = choices(plan.root)
        blocks = tuple(self.root_block(choice) for choice in chosen)
        measure = _MEASURES[plan.window.kind]
        timed = plan.window.kind is WindowKind.TIME
        scale = self.schema.per_microsecond if timed and self.schema is not None else 1
        shared = len(blocks) > 1 and len({frozenset(block.leaves) for block in blocks}) < len(blocks)
        return BlockProgram(
            leaves=tuple(self.leaves),
            blocks=blocks,
            outlines=tuple(outline_of(block, self.decided(block)) for block in blocks),
            measure=measure,
            window=min(plan.window.size * scale, 2**63 - 1),
            exclusive=plan.exclusive,
            by_arrival=self.by_arrival,
            attributes=self.read_attributes(),
            kept=plan.output.kept,
            distinct=plan.output.distinct or shared,
            looks_back=any(Edge.WINDOW_START in edges(block) for block in blocks),
            memory=self.options.memory,
            options=self.options,
            views=self.views,
        )

    def read_attributes(self) -> tuple[str, ...]:
        """The attributes that predicates and returned expressions read, without time and type."""
        read = [
            part.name
            for expression in expressions(self.plan)
            for part in attributes(expression)
            if part.name not in (TIME_ATTRIBUTE, TYPE_ATTRIBUTE)
        ]
        return tuple(dict.fromkeys(read))

    def decided(self, block: Block) -> Decided:
        found = edges(block)
        if Edge.WINDOW_END in found:
            return Decided.WINDOW
        if Edge.MATCH_END in found and not self.by_arrival:
            return Decided.CLOSED
        return Decided.LAST

    # -- blocks --------------------------------------------------------------------------------------------

    def root_block(self, chosen: Chosen) -> Block:
        right = Edge.MATCH_END if isinstance(chosen.node, WinAnd) else Edge.WINDOW_END
        return self.block(chosen, Interval(Edge.WINDOW_START, right), _Outer(), root=True)

    def block(self, chosen: Chosen, limits: Interval, outer: _Outer, *, root: bool = False) -> Block:
        names = [leaf.variable for leaf in chosen.leaves]
        formulas = [f for part in chosen.walk() for p in part.predicates for f in conjuncts(p)]
        early = (self.options.simple or not root) and self.options.push_in
        local = {name: [f for f in formulas if variables(f) == {name} and early] for name in names}
        joint = [f for f in formulas if f not in (g for own in local.values() for g in own)]
        equalities, predicates = split_equalities(joint, self.kind)
        equated = equalities
        if not self.options.push_in:
            equalities, predicates = [], joint
        around = [e for e in equalities if not {e.left[0], e.right[0]} & set(names)]
        if around:  # about the match alone: a lookup of the block's own events would not test them
            equalities = [e for e in equalities if e not in around]
            predicates += [_as_predicate(e) for e in around if not _known(e, outer.facts)]
        between = [e for e in equalities if not {e.left[0], e.right[0]} <= set(names)] if not root else []
        within = [e for e in equalities if e not in between]
        leaves = {leaf.variable: self.leaf(leaf, local[leaf.variable]) for leaf in chosen.leaves}
        self.leaf_of |= leaves
        order = frozenset(chosen.order) | (frozenset() if root else interval_order(limits, names))
        key, rest = (None, within)
        if root and self.options.partition:
            key, rest = key_of(within, names)
        block = Block(
            leaves=leaves,
            order=order,
            apart=self.apart(chosen, order, outer),
            equalities=(*rest, *between),
            predicates=tuple(predicates),
            negations=(),
            chain=None if self.nested else chosen.chain,
            key=key,
            levels=chosen.levels if self.nested else None,
            shortcuts=self.shortcuts(chosen, equated),
            nested=nested_parts(chosen) if self.views else (),
            viewed=self.views is not None,
        )
        inside = outer.inside(block, chosen)
        found = list(self.constraints(chosen, limits, inside))
        return replace(
            block,
            negations=tuple(part for part in found if isinstance(part, Negation)),
            witnesses=tuple(part for part in found if isinstance(part, Witness)),
        )

    def shortcuts(self, chosen: Chosen, equalities: Sequence[Equality]) -> tuple[Shortcut, ...]:
        """The equalities that nested execution can look at from outside, those that follow included."""
        if not self.nested or not self.options.shortcut:
            return ()
        levels = chosen.levels
        return tuple(
            Shortcut(outer, inner, self.leaf_of.get(outer[0], -1))
            for terms in classes(equalities)
            for outer in sorted(terms)
            for inner in sorted(terms)
            if inner[0] in levels and levels.get(outer[0], -1) < levels[inner[0]]
        )

    def kind(self, attribute: str) -> Kind:
        found = self.schema.kind(attribute) if self.schema is not None else None
        return found or Kind.UNKNOWN

    def leaf(self, leaf: Leaf, filters: list[Expression]) -> int:
        """The number of the leaf; equal leaves are one."""
        spec = LeafSpec(leaf.types, tuple(transform(f, _about_the_event) for f in filters))
        return self.leaves.setdefault(spec, len(self.leaves))

    def apart(
        self, chosen: Chosen, order: frozenset[tuple[str, str]], outer: _Outer
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

    # -- negations and witnesses ---------------------------------------------------------------------------

    def constraints(self, chosen: Chosen, limits: Interval, outer: _Outer) -> Iterator[Constraint]:
        """The constraints of a node and its positive parts, each alternative of each, with its interval."""
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
            if isinstance(component, LogicalNegation):
                for alternative in choices(component.body):
                    yield self.negation(alternative, interval, outer)
            elif isinstance(component, LogicalWitness):
                yield self.witness(component, interval, outer)
            else:
                yield from self.constraints(chosen.parts[place], interval, outer)
                place += 1

    def witness(self, witness: LogicalWitness, interval: Interval, outer: _Outer) -> Witness:
        absent = None if witness.absent is None else self.witness_step(witness.absent, interval, outer)
        chain = tuple(self.witness_step(leaf, interval, outer) for leaf in witness.chain)
        return Witness(interval, chain, absent)

    def witness_step(self, leaf: Leaf, interval: Interval, outer: _Outer) -> WitnessStep:
        name = leaf.variable
        formulas = [f for predicate in leaf.predicates for f in conjuncts(predicate)]
        local = [f for f in formulas if variables(f) == {name}]
        terms: list[tuple[str, tuple[str, str]]] = []
        predicates: list[Expression] = []
        for formula in formulas:
            if formula in local:
                continue
            equalities, rest = split_equalities([formula], self.kind)
            for equality in equalities:
                if equality.left[0] == name:
                    terms.append((equality.left[1], equality.right))
                elif equality.right[0] == name:
                    terms.append((equality.right[1], equality.left))
                else:  # about the match alone
                    rest = [formula]
            predicates += rest
        order = closure(outer.order | interval_order(interval, [name]))
        return WitnessStep(
            name,
            self.leaf(leaf, local),
            tuple(attribute for attribute, _ in terms),
            tuple(term for _, term in terms),
            tuple(predicates),
            tuple(
                other
                for other, types in outer.types.items()
                if overlap(types, leaf.types) and (other, name) not in order and (name, other) not in order
            ),
        )

    def negation(self, chosen: Chosen, interval: Interval, outer: _Outer) -> Negation:
        block = self.block(chosen, interval, outer)
        names = list(block.leaves)
        nearest = list(outer.types)
        keyed = linked_key(block.equalities, outer.facts, names, nearest)
        key, link = keyed or (None, None)
        stair, reason = None, ""
        if not self.options.bounds:
            reason = "bounds are switched off"
        elif not self.options.negation_index:
            reason = "the index of negative events is switched off"
        elif self.nested and (len(names) > 1 or block.negations):
            reason = "its results are kept" if self.views else "its results are built for each match"
        elif block.predicates:
            reason = "a predicate relates its events by more than key equality"
        elif keyed is None:
            reason = "its equalities do not form one key over all its events"
        elif block.apart:
            reason = "an event could play two of its variables, or one of the match's"
        else:
            stair, reason = stair_of(chosen, block, key, link)
        viewed = self.views is not None and stair is None
        return Negation(interval, block, stair, reason or "its condition holds", key, link, viewed)


def interval_order(limits: Interval, names: list[str]) -> frozenset[tuple[str, str]]:
    """The order that an interval puts on the variables inside it."""
    after = limits.after if isinstance(limits.after, tuple) else ()
    before = limits.before if isinstance(limits.before, tuple) else ()
    return frozenset({(outer, name) for outer in after for name in names}) | frozenset(
        {(name, outer) for outer in before for name in names}
    )


def edges(block: Block) -> set[Edge]:
    """The edges that the constraints of a block look up to, at any depth."""
    found: set[Edge] = set()
    for constraint in block.constraints:
        interval = constraint.interval
        found |= {edge for edge in (interval.after, interval.before) if isinstance(edge, Edge)}
        if isinstance(constraint, Negation):
            found |= edges(constraint.block)
    return found


def _known(equality: Equality, facts: Sequence[Equality]) -> bool:
    """Whether an equality follows from others."""
    return any({equality.left, equality.right} <= equal for equal in classes(facts))


def _as_predicate(equality: Equality) -> Expression:
    return Comparison("=", (Attribute(*equality.left), Attribute(*equality.right)))


def _about_the_event(part: Expression) -> Expression:
    return Attribute(EVENT, part.name) if isinstance(part, Attribute) else part
