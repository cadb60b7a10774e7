"""The part of the composer that chooses a strategy: what a program leaves to choose, and what that costs.

Where all negations of a query are bounds, nothing is looked at: no strategy is faster. Elsewhere the events
are counted by type, which is enough to see that a query is cheap anyway; only of what promises to take longer
the predicates are tested on a sample, and the strategies compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa

from nestream.engine.chain import is_chain
from nestream.engine.context import needed
from nestream.engine.program import Block, Negation, Options, Program, Witness
from nestream.logical.nodes import Plan
from nestream.model.expression import Attribute, Comparison, Expression, transform, variables
from nestream.model.schema import Schema
from nestream.optimize.cost import Constants, Model
from nestream.optimize.shape import Constraint, Joint, Shape, Step
from nestream.optimize.statistics import Statistics
from nestream.optimize.strategies import Alternative, Inner, Outline, Strategies, cheapest
from nestream.physical.compile import compile_plan
from nestream.planning import normal_form, statistics_of

DEFAULT = "bounds"
"""The strategy that is right for nearly all queries."""
CHEAP = 30e6
"""The nanoseconds up to which a query is not worth choosing for."""
COUNTED = 4_096
"""How many events are counted by type to see whether it is."""
MEASURED = {"bounds": Strategies.bounds, "nested": Strategies.nested, "views-balanced": Strategies.views}
"""The strategies that run the outlined blocks, and what tells their cost; flat has blocks of its own."""


@dataclass(frozen=True)
class Chosen:
    """The strategy to run, why, and what else was considered."""

    strategy: str
    reason: str
    alternatives: tuple[Alternative, ...] = ()

    def text(self) -> str:
        """Indented text."""
        lines = [f"Strategy {self.strategy}: {self.reason}"]
        for one in self.alternatives:
            cost = f"{one.cost.rows:,.0f} rows, {one.cost.nanoseconds / 1e6:,.2f} ms"
            lines.append(f"  {one.strategy}: {cost}{' (chosen)' if one.strategy == self.strategy else ''}")
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """The same as plain data."""
        alternatives = {
            one.strategy: {"rows": one.cost.rows, "nanoseconds": one.cost.nanoseconds}
            for one in self.alternatives
        }
        return {"strategy": self.strategy, "reason": self.reason, "alternatives": alternatives}

    @property
    def estimate(self) -> float | None:
        """The nanoseconds that the chosen strategy is expected to take, where that was estimated."""
        return next((a.cost.nanoseconds for a in self.alternatives if a.strategy == self.strategy), None)


def settled(program: Program, options: Options) -> Chosen | None:
    """The choice where there is none to make, from the program of the engine's own way alone."""
    off = [name for name in Options.names() if not getattr(options, name)]
    if off:
        return Chosen(DEFAULT, f"{', '.join(off)} off: switches are about the engine's own way")
    if not any(_joins(block) for block in program.blocks):
        return Chosen(DEFAULT, "every negation is a bound" if _negates(program) else "nothing is negated")
    return None


def chosen_for(
    program: Program,
    plan: Plan,
    schema: Schema | None,
    events: pa.Table | None,
    rewriting: Callable[[], Program | None],
    known: Statistics | None = None,
    running: str = DEFAULT,
) -> Chosen:
    """The strategy for a plan whose own program has negations that are no bounds.

    `known` are statistics of the events, which else are gathered from the table; `rewriting` gives the
    program of the rewritten plan, None where rewriting changes nothing. `running` is the strategy that it
    takes a clear gain to leave.
    """
    outlines = [outline(block, program, plan) for block in program.blocks]
    if known is None:
        if schema is None or events is None or not events.num_rows:
            return Chosen(DEFAULT, "nothing is known of the events")
        first = events.slice(0, COUNTED)
        counts = Statistics.of(first, schema).scaled(events.num_rows / first.num_rows)
        counted = Strategies(Model(counts))
        cost = counted.bounds(outlines)
        if cost.nanoseconds < CHEAP:
            return Chosen(DEFAULT, "it is cheap anyway", (Alternative(DEFAULT, cost),))
        shapes = [shape for one in outlines for shape in shapes_in(one)]
        known = statistics_of(shapes, schema, events)
    strategies = Strategies(Model(known, Constants(distinct=0.0)))
    found = [Alternative(name, cost(strategies, outlines)) for name, cost in MEASURED.items()]
    flat = rewriting()
    if flat is not None:
        own = [outline(block, flat, plan) for block in flat.blocks]
        found.insert(1, Alternative("flat", strategies.flat(own)))
    found.sort(key=lambda one: one.strategy != running)
    best = cheapest(found)
    if best.strategy == running:
        return Chosen(running, "no other is clearly cheaper", tuple(found))
    return Chosen(best.strategy, "it is clearly cheaper", tuple(found))


def assumed_choice(plan: Plan, own: Program, options: Options) -> Chosen:
    """What would be chosen for events of which a window holds eight of each type."""
    known = settled(own, options)
    if known is not None:
        return known
    found = chosen_for(own, plan, None, None, partial(flattened, plan, own), Statistics())
    return replace(found, reason=f"{found.reason}, for assumed events")


def flattened(plan: Plan, own: Program) -> Program | None:
    """The program of a plan's normal form beside its own; None where rewriting changes nothing of it."""
    program = compile_plan(normal_form(plan).plan, None, leaves={})
    changed = len(program.blocks) > len(own.blocks) or any(block.witnesses for block in program.blocks)
    return program if changed else None


def _joins(block: Block) -> bool:
    return any(negation.stair is None for negation in block.negations)


def _negates(program: Program) -> bool:
    return any(block.negations for block in program.blocks)


# -- from blocks to outlines -------------------------------------------------------------------------------


def outline(block: Block, program: Program, plan: Plan) -> Outline:
    """What the cost model sees of a block."""
    names = block.chain or tuple(block.leaves)
    shape = _shape(block, names, program, plan)
    inner = [_inner(negation, block, names, program, plan) for negation in block.negations]
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
    return Outline(steps, late)


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
