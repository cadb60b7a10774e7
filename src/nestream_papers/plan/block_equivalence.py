"""Compares steps of blocks, ignoring variable names, and extracts steps as their own block.

Two runs of steps are equivalent if their leaves and keys are the same, and everything that concerns only
their events is the same once the variables are replaced by their places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from nestream.engine.program import Edge, Equality, Interval
from nestream.model.expression import Attribute, Expression, transform, variables
from nestream_papers.engine.chain import is_chain
from nestream_papers.engine.context import needed
from nestream_papers.engine.program import Block, Constraint, Negation, Stair, Witness, WitnessStep

Names = Mapping[str, str]


@dataclass(frozen=True)
class Steps:
    """Consecutive steps of a chain: `length` of them, starting at `start`."""

    block: Block
    start: int
    length: int

    @property
    def names(self) -> tuple[str, ...]:
        """Their variables."""
        assert self.block.chain is not None
        return self.block.chain[self.start : self.start + self.length]

    @property
    def skeleton(self) -> tuple[tuple[int, tuple[str, ...] | None], ...]:
        """The leaf and key of each step: what must be the same to share any of their rows."""
        block = self.block
        return tuple((block.leaves[name], block.key[name] if block.key else None) for name in self.names)

    @property
    def predicates(self) -> list[Expression]:
        """The predicates about these steps only."""
        return [p for p in self.block.predicates if variables(p) and variables(p) <= set(self.names)]

    @property
    def constraints(self) -> list[Constraint]:
        """The constraints between two of these steps, in their own terms if the key allows."""
        return [localised(constraint, self.block, self.names) for constraint in self.inner]

    @property
    def inner(self) -> list[Constraint]:
        """The constraints on a gap between two of these steps."""
        gaps = [((left,), (right,)) for left, right in pairwise(self.names)]
        return [c for c in self.block.constraints if (c.interval.after, c.interval.before) in gaps]

    def alone(self, constraint: Constraint) -> bool:
        """Whether a constraint depends only on these steps."""
        needs = (
            constraint.needs(self.block)
            if isinstance(constraint, Witness)
            else needed(constraint, self.block)
        )
        return needs <= set(self.names)

    def spelled(self, constraint: Constraint) -> Constraint:
        """A constraint with the places of the steps as names."""
        return renamed(constraint, self.by_place)

    def spelled_predicate(self, predicate: Expression) -> Expression:
        """A predicate with the places of the steps as names."""
        return _renamed_expression(predicate, self.by_place)

    @property
    def by_place(self) -> Names:
        """A name for each variable that tells only its place."""
        return {name: str(place) for place, name in enumerate(self.names)}

    def taken_out(self, predicates: Iterable[Expression], constraints: Iterable[Constraint]) -> Block:
        """The steps as a block with some of their predicates and constraints."""
        names, block = self.names, self.block
        found = list(constraints)
        return Block(
            leaves={name: block.leaves[name] for name in names},
            order=frozenset(pairwise(names)),
            apart=frozenset(),
            equalities=(),
            predicates=tuple(predicates),
            negations=tuple(part for part in found if isinstance(part, Negation)),
            chain=names,
            key={name: block.key[name] for name in names} if block.key else None,
            witnesses=tuple(part for part in found if isinstance(part, Witness)),
        )


@dataclass(frozen=True)
class Common:
    """What several runs of the same steps have in common: as a block, and by the places of the steps."""

    core: Block
    predicates: list[Expression]
    constraints: list[Constraint]

    @staticmethod
    def of(steps: Sequence[Steps]) -> Common:
        """What is common to the runs; the core has the variables of the first."""
        first = steps[0]
        required = [list(map(run.spelled, run.constraints)) for run in steps]
        tested = [list(map(run.spelled_predicate, run.predicates)) for run in steps]
        constraints = [
            c
            for c in first.constraints
            if first.alone(c) and all(first.spelled(c) in said for said in required)
        ]
        predicates = [
            p for p in first.predicates if all(first.spelled_predicate(p) in said for said in tested)
        ]
        return Common(
            first.taken_out(predicates, constraints),
            list(map(first.spelled_predicate, predicates)),
            list(map(first.spelled, constraints)),
        )

    def said(self, run: Steps) -> Iterator[Expression | Constraint]:
        """Which predicates and constraints of a run these are, as in its block."""
        yield from (p for p in run.predicates if run.spelled_predicate(p) in self.predicates)
        for own, local in zip(run.inner, run.constraints, strict=True):
            if run.spelled(local) in self.constraints:
                yield own


def is_sharable(block: Block) -> bool:
    """Whether steps of a block can be shared."""
    return is_chain(block) and block.levels is None


def alike(one: Steps, other: Steps) -> bool:
    """Whether two runs of steps have the same rows: the same leaves, keys, predicates and constraints."""
    if one.skeleton != other.skeleton:
        return False
    ours, theirs = (_said(steps) for steps in (one, other))
    return ours is not None and theirs is not None and _same(ours, theirs)


def _said(steps: Steps) -> list[object] | None:
    """Everything about the steps, by their places; None if it depends on more than them."""
    if not all(map(steps.alone, steps.constraints)):
        return None
    return [*map(steps.spelled_predicate, steps.predicates), *map(steps.spelled, steps.constraints)]


def _same(ours: list[object], theirs: list[object]) -> bool:
    return all(part in theirs for part in ours) and all(part in ours for part in theirs)


def localised(constraint: Constraint, block: Block, names: tuple[str, ...]) -> Constraint:
    """The constraint with the key of some steps in place of the same key of others."""
    if block.key is None:
        return constraint
    key = block.key
    if isinstance(constraint, Negation):
        link = constraint.link
        if link is None or link[0] in names or key.get(link[0]) != link[1]:
            return constraint
        return replace(constraint, link=(names[0], key[names[0]]))

    def local(term: tuple[str, str]) -> tuple[str, str]:
        variable, attribute = term
        if variable in names or attribute not in key.get(variable, ()):
            return term
        return names[0], key[names[0]][key[variable].index(attribute)]

    def step(found: WitnessStep) -> WitnessStep:
        return replace(found, equal_to=tuple(map(local, found.equal_to)))

    absent = constraint.absent and step(constraint.absent)
    return replace(constraint, chain=tuple(map(step, constraint.chain)), absent=absent)


# -- other names -------------------------------------------------------------------------------------------


def translated(constraint: Constraint, names: Names) -> Constraint:
    """The constraint, ready to run, with other names for the variables of the match."""
    if isinstance(constraint, Witness):
        return _renamed_witness(constraint, names, [step.variable for step in constraint.steps])
    return _translated_negation(constraint, names)


def _translated_negation(negation: Negation, names: Names) -> Negation:
    link = negation.link
    return replace(
        negation,
        interval=_renamed_interval(negation.interval, names),
        block=translated_block(negation.block, names),
        stair=negation.stair and _translated_stair(negation.stair, names),
        link=link and (names.get(link[0], link[0]), link[1]),
    )


def translated_block(block: Block, names: Names) -> Block:
    """A block with other names for some variables, its own or outer ones."""
    every = {**{name: name for name in block.leaves}, **names}
    bare = _renamed_block(replace(block, negations=(), witnesses=()), every, 1)
    return replace(
        block,
        leaves=bare.leaves,
        order=bare.order,
        apart=bare.apart,
        equalities=bare.equalities,
        predicates=bare.predicates,
        chain=bare.chain,
        key=bare.key,
        negations=tuple(_translated_negation(inner, names) for inner in block.negations),
        witnesses=tuple(
            _renamed_witness(inner, names, [step.variable for step in inner.steps])
            for inner in block.witnesses
        ),
    )


def _translated_stair(stair: Stair, names: Names) -> Stair:
    return replace(
        stair,
        items=tuple(_translated_stair(item, names) for item in stair.items),
        gaps=tuple(tuple(_translated_negation(n, names) for n in gap) for gap in stair.gaps),
    )


def renamed(constraint: Constraint, names: Names, depth: int = 1) -> Constraint:
    """The constraint with other names for the variables of the match, and places for its own."""
    if isinstance(constraint, Witness):
        return _renamed_witness(constraint, names, _places(constraint, depth))
    return _renamed_negation(constraint, names, depth)


def _renamed_negation(negation: Negation, names: Names, depth: int) -> Negation:
    block = negation.block
    inside = {**names, **{name: f"{depth}.{place}" for place, name in enumerate(block.leaves)}}
    link = negation.link
    return Negation(
        _renamed_interval(negation.interval, names),
        _renamed_block(block, inside, depth),
        None,  # follows from the rest
        negation.reason,
        _renamed_key(negation.key, inside),
        None if link is None else (names.get(link[0], link[0]), link[1]),
    )


def _renamed_witness(witness: Witness, names: Names, own: Iterable[str]) -> Witness:
    """The witness with other names for the variables of the match, and `own` for its steps."""
    steps = [_renamed_step(step, names, name) for step, name in zip(witness.steps, own, strict=True)]
    absent = steps.pop(0) if witness.absent is not None else None
    return Witness(_renamed_interval(witness.interval, names), tuple(steps), absent)


def _places(witness: Witness, depth: int) -> list[str]:
    return [f"{depth}.{place}" for place in range(len(witness.steps))]


def _renamed_block(block: Block, names: Names, depth: int) -> Block:
    def pairs(found: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        return frozenset((names.get(a, a), names.get(b, b)) for a, b in found)

    return Block(
        leaves={names[name]: leaf for name, leaf in block.leaves.items()},
        order=pairs(block.order),
        apart=pairs(block.apart),
        equalities=tuple(
            Equality(_renamed_term(e.left, names), _renamed_term(e.right, names)) for e in block.equalities
        ),
        predicates=tuple(_renamed_expression(p, names) for p in block.predicates),
        negations=tuple(_renamed_negation(inner, names, depth + 1) for inner in block.negations),
        chain=None if block.chain is None else tuple(names[name] for name in block.chain),
        key=_renamed_key(block.key, names),
        witnesses=tuple(
            _renamed_witness(inner, names, _places(inner, depth + 1)) for inner in block.witnesses
        ),
    )


def _renamed_step(step: WitnessStep, names: Names, own: str) -> WitnessStep:
    inside = {**names, step.variable: own}
    return WitnessStep(
        own,
        step.leaf,
        step.attributes,
        tuple(_renamed_term(term, names) for term in step.equal_to),
        tuple(_renamed_expression(p, inside) for p in step.predicates),
        tuple(names.get(name, name) for name in step.apart),
    )


def _renamed_interval(interval: Interval, names: Names) -> Interval:
    def limit(found: tuple[str, ...] | Edge) -> tuple[str, ...] | Edge:
        return found if isinstance(found, Edge) else tuple(names.get(name, name) for name in found)

    return Interval(limit(interval.after), limit(interval.before))


def _renamed_key(
    key: Mapping[str, tuple[str, ...]] | None, names: Names
) -> Mapping[str, tuple[str, ...]] | None:
    return None if key is None else {names.get(name, name): own for name, own in key.items()}


def _renamed_term(term: tuple[str, str], names: Names) -> tuple[str, str]:
    return names.get(term[0], term[0]), term[1]


def _renamed_expression(expression: Expression, names: Names) -> Expression:
    def rename(part: Expression) -> Expression:
        if isinstance(part, Attribute) and part.variable is not None and part.variable in names:
            return Attribute(names[part.variable], part.name)
        return part

    return transform(expression, rename)
