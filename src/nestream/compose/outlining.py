"""The part of the composer that shows the cost model what a program is: its blocks as outlines.

A block becomes the shape of its positive events; negations that are bounds become constraints of its gaps,
and others inner queries that hang on it. So the model knows how a query is run without knowing the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from nestream.logical.nodes import Plan, Proj, WinSeq, target_variables, walk
from nestream.model.expression import Attribute, Comparison, Expression, transform, variables
from nestream.papers.engine.chain import is_chain
from nestream.papers.engine.context import needed
from nestream.papers.engine.program import Block, Negation, Program, Witness
from nestream.papers.optimize.shape import Constraint, Joint, Shape, Step
from nestream.papers.optimize.strategies import Inner, Outline


def outlines_of(program: Program, plan: Plan) -> list[Outline]:
    """What the cost model sees of the blocks of a program."""
    return [outline(block, program, plan) for block in program.blocks]


def outline(block: Block, program: Program, plan: Plan) -> Outline:
    """What the cost model sees of a block."""
    names = block.chain or tuple(block.leaves)
    shape = _shape(block, names, program, plan)
    inner = [
        replace(_inner(negation, block, names, program, plan), number=number)
        for number, negation in enumerate(block.negations)
    ]
    inner += [_witnessed(witness, block, names, program, plan) for witness in block.witnesses]
    gaps = [
        _gap(constraint, names) if one.is_sought else None
        for constraint, one in zip(block.constraints, inner, strict=True)
    ]
    constraints = tuple(
        _constraint(constraint, gap, one)
        for constraint, gap, one in zip(block.constraints, gaps, inner, strict=True)
        if gap is not None
    )
    steps = Shape(
        shape.name, shape.steps, constraints, shape.joints, shape.names, plan.window, ordered=shape.ordered
    )
    late = tuple(one for gap, one in zip(gaps, inner, strict=True) if gap is None)
    return Outline(steps, late, tuple(_places(plan, names)) if shape.ordered else ())


def compared_inside(plan: Plan) -> Iterator[frozenset[str]]:
    """The variables of expressions that are nested, not negated, and compare their own events."""
    root = plan.root.body if isinstance(plan.root, Proj) else plan.root
    for part in root.components if isinstance(root, WinSeq) else ():
        if isinstance(part, WinSeq):
            own = frozenset(target_variables(part))
            formulas = [f for node in walk(part) if isinstance(node, WinSeq) for f in node.predicates]
            if any(len(variables(f) & own) > 1 and not _equates(f) for f in formulas):
                yield own


def _equates(formula: Expression) -> bool:
    return (
        isinstance(formula, Comparison)
        and formula.operator == "="
        and all(isinstance(operand, Attribute) for operand in formula.operands)
    )


def _places(plan: Plan, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where such expressions stand in a sequence."""
    for own in compared_inside(plan):
        places = [place for place, name in enumerate(names) if name in own]
        if len(places) == len(own):
            yield places[0], places[-1] + 1


def _constraint(constraint: Negation | Witness, gap: int, inner: Inner) -> Constraint:
    absent: tuple[Step, ...] = inner.shape.steps
    chain: tuple[Step, ...] = ()
    if isinstance(constraint, Witness):
        first = 0 if constraint.absent is None else 1
        absent, chain = inner.shape.steps[:first], inner.shape.steps[first:]
    return Constraint(gap, f"{gap}: {inner.shape.name}", absent, chain, gap - 1, gap, _key(inner))


def _key(inner: Inner) -> str | None:
    """The attribute by which it is joined with the match, where it is."""
    return inner.links[0][1] if inner.links else None


def _gap(constraint: Negation | Witness, names: Sequence[str]) -> int | None:
    """The step after the gap that a constraint stands in, where it stands between neighbours."""
    interval = constraint.interval
    for place, (left, right) in enumerate(pairwise(names), 1):
        if (interval.after, interval.before) == ((left,), (right,)):
            return place
    return None


def _inner(negation: Negation, root: Block, names: Sequence[str], program: Program, plan: Plan) -> Inner:
    block = negation.block
    own = block.chain or tuple(block.leaves)
    terms = [pair for e in block.equalities for pair in ((e.left, e.right), (e.right, e.left))]
    links = [(own.index(v), a) for (v, a), (other, _) in terms if v in own and other not in own]
    links += [(own.index(v), a) for v, key in (negation.key or {}).items() for a in key if negation.link]
    wanted = [names.index(name) for name in needed(negation, root) if name in names]
    return Inner(
        _shape(block, own, program, plan),
        bound=negation.stair is not None,
        level=min(wanted, default=0),
        links=tuple(dict.fromkeys(links)),
        tests=sum(bool(variables(p) - set(own)) for p in block.predicates),
        inside=tuple(_inner(n, root, own, program, plan) for n in block.negations),
    )


def _witnessed(witness: Witness, root: Block, names: Sequence[str], program: Program, plan: Plan) -> Inner:
    steps = tuple(Step(program.leaves[s.leaf].types, program.leaves[s.leaf].filters) for s in witness.steps)
    shape = Shape(", ".join(step.variable for step in witness.steps), steps, window=plan.window)
    links = tuple((place, a) for place, s in enumerate(witness.steps) for a in s.attributes)
    wanted = [names.index(name) for name in witness.needs(root) if name in names]
    tests = sum(len(step.predicates) for step in witness.steps)
    return Inner(shape, level=min(wanted, default=0), links=links, tests=tests, witness=not tests)


def _shape(block: Block, names: Sequence[str], program: Program, plan: Plan) -> Shape:
    """The events of a block in their order, where they have one, with what relates them."""
    leaves = [program.leaves[block.leaves[name]] for name in names]
    ordered = block.chain is not None and (is_chain(block) or block.key is None)
    return Shape(
        name=", ".join(names),
        steps=tuple(Step(leaf.types, leaf.filters) for leaf in leaves),
        joints=tuple(dict.fromkeys(_joints(block, names))),
        names=tuple(names),
        window=plan.window,
        ordered=ordered,
    )


def _joints(block: Block, names: Sequence[str]) -> Iterator[Joint]:
    for equality in block.equalities:
        yield from _joint(Comparison("=", (Attribute(*equality.left), Attribute(*equality.right))), names)
    for left, right in pairwise(names) if block.key else ():
        for a, b in zip((block.key or {})[left], (block.key or {})[right], strict=True):
            yield from _joint(Comparison("=", (Attribute(left, a), Attribute(right, b))), names)
    for predicate in block.predicates:
        yield from _joint(predicate, names)


def _joint(formula: Expression, names: Sequence[str]) -> Iterator[Joint]:
    mentioned = variables(formula)
    if len(mentioned) < 2 or not mentioned <= set(names):
        return
    places = [names.index(name) for name in mentioned]
    first, last = min(places), max(places)
    labels: Mapping[str | None, str] = {name: str(names.index(name) - first) for name in mentioned}

    def renamed(part: Expression) -> Expression:
        return Attribute(labels[part.variable], part.name) if isinstance(part, Attribute) else part

    yield Joint(first, last, transform(formula, renamed))


def shapes_in(one: Outline | Inner) -> Iterator[Shape]:
    """The shapes whose predicates the cost model asks about."""
    yield one.shape
    for inner in one.inner if isinstance(one, Outline) else one.inside:
        yield from shapes_in(inner)
