"""Compiles a logical plan to the program of the papers' engine.

Single-event predicates go into the leaves and equalities into keys; the rest is left to the joins. A negation
becomes a bound if its condition holds: its predicates are local or equal on a key, and what its own negations
see does not depend on the outer interval. Otherwise it is a lateral join, which always applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from nestream.engine.block import closure
from nestream.engine.program import Edge, Equality, Interval, LeafSpec
from nestream.logical.nodes import Leaf, Plan
from nestream.logical.nodes import Negation as LogicalNegation
from nestream.logical.nodes import Witness as LogicalWitness
from nestream.model.event_types import overlap
from nestream.model.expression import (
    Expression,
    conjuncts,
    variables,
)
from nestream.model.schema import Schema
from nestream.physical.choices import OrAlternative, choices
from nestream.physical.equality import classes, key_of, linked_key, split_equalities
from nestream.physical.writing import (
    BlockWriter,
    Outer,
    about_the_match,
    constraints_of,
    interval_order,
    root_limits,
)
from nestream_papers.engine.outlines import outline_of
from nestream_papers.engine.program import (
    Block,
    BlockProgram,
    Constraint,
    Negation,
    Shortcut,
    Views,
    Witness,
    WitnessStep,
)
from nestream_papers.options import Options
from nestream_papers.plan.bounds import stair_of
from nestream_papers.plan.groups import Choice, shared
from nestream_papers.plan.views import nested_parts


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
    """Compile a plan typed for the schema; without a schema, a program to explain.

    With `nested`, the program runs by iterative nested execution, which with `views` answers inner queries
    from views. Blocks share their work in the given `groups`, where a number is that of a branch of the root
    OR. `leaves` maps the leaves of other programs over the same events to their numbers; those of this
    program are added.
    """
    known = {} if leaves is None else leaves
    program = _Compiling(schema, known, options or Options(), nested, views).run(plan)
    return program if groups is None else shared(program, plan, groups)


class _Compiling(BlockWriter):
    def __init__(
        self,
        schema: Schema | None,
        leaves: dict[LeafSpec, int],
        options: Options,
        nested: bool,
        views: Views | None,
    ) -> None:
        super().__init__(schema, leaves)
        self.options = options
        self.nested = nested
        self.views = views
        self.leaf_of: dict[str, int] = {}
        """The leaf of each variable compiled so far: outer ones come before inner ones."""

    def run(self, plan: Plan) -> BlockProgram:
        blocks = tuple(self.root_block(choice) for choice in choices(plan.root))
        shared = len({frozenset(block.leaves) for block in blocks}) < len(blocks)
        return BlockProgram(
            leaves=tuple(self.leaves),
            blocks=blocks,
            outlines=tuple(outline_of(block, self.decided(edges(block))) for block in blocks),
            **self.scope(plan),
            distinct=plan.output.distinct or shared,
            looks_back=any(Edge.WINDOW_START in edges(block) for block in blocks),
            memory=self.options.memory,
            options=self.options,
            views=self.views,
        )

    # -- blocks --------------------------------------------------------------------------------------------

    def root_block(self, chosen: OrAlternative) -> Block:
        return self.block(chosen, root_limits(chosen), Outer(), root=True)

    def block(self, chosen: OrAlternative, limits: Interval, outer: Outer, *, root: bool = False) -> Block:
        names = [leaf.variable for leaf in chosen.leaves]
        formulas = [f for part in chosen.walk() for p in part.predicates for f in conjuncts(p)]
        early = (self.options.simple or not root) and self.options.push_in
        local = {name: [f for f in formulas if variables(f) == {name} and early] for name in names}
        joint = [f for f in formulas if f not in (g for own in local.values() for g in own)]
        equalities, predicates = split_equalities(joint, self.kind)
        equated = equalities
        if not self.options.push_in:
            equalities, predicates = [], joint
        equalities, tests = about_the_match(equalities, names, outer)
        predicates += tests
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

    def shortcuts(self, chosen: OrAlternative, equalities: Sequence[Equality]) -> tuple[Shortcut, ...]:
        """The equalities that nested execution can check from outside, including implied ones."""
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

    # -- negations and witnesses ---------------------------------------------------------------------------

    def constraints(self, chosen: OrAlternative, limits: Interval, outer: Outer) -> Iterator[Constraint]:
        """The constraints of a node and its positive parts: every alternative of each, with its interval."""
        for component, interval in constraints_of(chosen, limits):
            if isinstance(component, LogicalWitness):
                yield self.witness(component, interval, outer)
                continue
            assert isinstance(component, LogicalNegation)
            for alternative in choices(component.body):
                yield self.negation(alternative, interval, outer)

    def witness(self, witness: LogicalWitness, interval: Interval, outer: Outer) -> Witness:
        absent = None if witness.absent is None else self.witness_step(witness.absent, interval, outer)
        chain = tuple(self.witness_step(leaf, interval, outer) for leaf in witness.chain)
        return Witness(interval, chain, absent)

    def witness_step(self, leaf: Leaf, interval: Interval, outer: Outer) -> WitnessStep:
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

    def negation(self, chosen: OrAlternative, interval: Interval, outer: Outer) -> Negation:
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


def edges(block: Block) -> set[Edge]:
    """The edges that the constraints of a block depend on, at any depth."""
    found: set[Edge] = set()
    for constraint in block.constraints:
        interval = constraint.interval
        found |= {edge for edge in (interval.after, interval.before) if isinstance(edge, Edge)}
        if isinstance(constraint, Negation):
            found |= edges(constraint.block)
    return found
