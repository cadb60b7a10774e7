"""The part of the composer that chooses a strategy: what a program leaves to choose, and what that costs.

Where all negations of a query are bounds, nothing is looked at: no strategy is faster. Elsewhere the events
are counted by type, which is enough to see that a query is cheap anyway; only of what promises to take longer
the predicates are tested on a sample, and the ways compared: for each branch of the query whether it is
rewritten, for each block how it is run, for each negation of a block what answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from nestream.compose.flat import normal_form
from nestream.compose.gathering import statistics_of
from nestream.compose.outlining import compared_inside, outlines_of, shapes_in
from nestream.logical.nodes import Plan, Proj
from nestream.model.schema import Schema
from nestream.papers.engine.chain import is_chain
from nestream.papers.engine.program import Block, Options, Program
from nestream.papers.optimize.cost import Constants, Cost, Model
from nestream.papers.optimize.describe import branches
from nestream.papers.optimize.drift import drifted
from nestream.papers.optimize.parts import NESTED, OWN, VIEWS, Part, part_of
from nestream.papers.optimize.statistics import Statistics
from nestream.papers.optimize.strategies import Alternative, Outline, Strategies, cheapest
from nestream.papers.plan.compile import compile_plan
from nestream.papers.plan.mixing import How, Way

DEFAULT = "bounds"
"""The strategy that is right for nearly all queries."""
CHEAP = 30e6
"""The nanoseconds up to which a query is not worth choosing for."""
COUNTED = 4_096
"""How many events are counted by type to see whether it is."""
REMEMBERED = 4_096
"""For how many queries the last choice is remembered, which holds while the counts have not drifted."""
_REMEMBERED: dict[str, tuple[Statistics, Chosen]] = {}
MIXED = "mixed"
"""What the choice is called where parts of a query are run in different ways."""
MOST_BRANCHES = 8
"""Up to so many branches of a query are rewritten one by one to see whether that pays."""
Rewriting = Callable[[frozenset[int]], tuple[Plan, Program] | None]
"""Rewrites some branches of a plan, by number: the plan and its program, None where that changes nothing."""


@dataclass(frozen=True)
class Chosen:
    """The strategy to run, why, and what else was considered."""

    strategy: str
    reason: str
    alternatives: tuple[Alternative, ...] = ()
    parts: tuple[Part, ...] = ()
    """Where there was something to choose, the blocks of the plan with the way of each."""
    plan: Plan | None = None
    """The plan with the branches rewritten that are, where not all of them are."""

    @property
    def ways(self) -> tuple[Way, ...]:
        """The way of each block."""
        return tuple(Way(How(part.way), part.joined) for part in self.parts)

    def text(self) -> str:
        """Indented text."""
        lines = [f"Strategy {self.strategy}: {self.reason}"]
        for one in self.alternatives:
            cost = f"{one.cost.rows:,.0f} rows, {one.cost.nanoseconds / 1e6:,.2f} ms"
            lines.append(f"  {one.strategy}: {cost}{' (chosen)' if one.strategy == self.strategy else ''}")
        lines += [f"  {line}" for part in self.parts for line in part.lines()]
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """The same as plain data."""
        alternatives = {
            one.strategy: {"rows": one.cost.rows, "nanoseconds": one.cost.nanoseconds}
            for one in self.alternatives
        }
        parts = [part.json() for part in self.parts]
        return {
            "strategy": self.strategy,
            "reason": self.reason,
            "alternatives": alternatives,
            "parts": parts,
        }

    @property
    def estimate(self) -> float | None:
        """The nanoseconds that the chosen strategy is expected to take, where that was estimated."""
        return next((a.cost.nanoseconds for a in self.alternatives if a.strategy == self.strategy), None)


def settled(program: Program, options: Options, plan: Plan) -> Chosen | None:
    """The choice where there is none to make, from the plan and the program of the engine's own way alone."""
    off = [name for name in Options.names() if not getattr(options, name)]
    if off:
        return Chosen(DEFAULT, f"{', '.join(off)} off: switches are about the engine's own way")
    if not any(map(_joins, program.blocks)) and not (
        any(compared_inside(plan)) and all(map(is_chain, program.blocks))
    ):
        return Chosen(DEFAULT, "every negation is a bound" if _negates(program) else "nothing is negated")
    return None


@dataclass(frozen=True)
class Seen:
    """Events to choose for, which are counted once, however many queries are planned for them."""

    schema: Schema
    events: pa.Table

    @cached_property
    def counts(self) -> Statistics:
        """The first events by type, as if all were like them."""
        first = self.events.slice(0, COUNTED)
        return Statistics.of(first, self.schema).scaled(self.events.num_rows / first.num_rows)


def chosen_for(
    program: Program,
    plan: Plan,
    seen: Seen | None,
    rewriting: Rewriting,
    known: Statistics | None = None,
    running: str = DEFAULT,
) -> Chosen:
    """The strategy for a plan whose own program has negations that are no bounds.

    `known` are statistics of the events, which else are gathered from the table. `running` is the strategy
    that it takes a clear gain to leave.
    """
    if known is not None:
        return _compared(plan, program, known, rewriting, running)
    if seen is None or not seen.events.num_rows:
        return Chosen(DEFAULT, "nothing is known of the events")
    text = repr((plan, sorted(seen.schema.columns.items(), key=str)))
    if text in _REMEMBERED and not drifted(_REMEMBERED[text][0], seen.counts):
        return _REMEMBERED[text][1]
    if len(_REMEMBERED) >= REMEMBERED:
        _REMEMBERED.clear()
    found = _looked_at(plan, program, seen, rewriting)
    _REMEMBERED[text] = seen.counts, found
    return found


def _looked_at(plan: Plan, program: Program, seen: Seen, rewriting: Rewriting) -> Chosen:
    """The choice for a table, from the counts alone where they promise a cheap run."""
    outlines = outlines_of(program, plan)
    cost = _whole(Strategies(Model(seen.counts)), Strategies.own, outlines)
    if cost.nanoseconds < CHEAP:
        return Chosen(DEFAULT, "it is cheap anyway", (Alternative(DEFAULT, cost),))
    shapes = [shape for one in outlines for shape in shapes_in(one)]
    known = statistics_of(shapes, seen.schema, seen.events)
    return _compared(plan, program, known, rewriting, DEFAULT)


def _compared(plan: Plan, program: Program, known: Statistics, rewriting: Rewriting, running: str) -> Chosen:
    """The choice between strategies for the whole query, and a way for each part of it."""
    strategies = Strategies(Model(known, Constants(distinct=0.0)))
    outlines = outlines_of(program, plan)
    found = [
        Alternative(name, _whole(strategies, cost, outlines))
        for name, cost in ((OWN, Strategies.own), (NESTED, Strategies.nested), (VIEWS, Strategies.views))
    ]
    count = len(branches(plan))
    flat = rewriting(frozenset(range(count)))
    if flat is not None:
        found.insert(1, Alternative("flat", _rewritten(strategies, outlines_of(flat[1], plan))))
    best, parts = _by_parts(strategies, plan, program, running)
    mixed = None
    if flat is not None and 1 < count <= MOST_BRANCHES:
        for branch in range(count):
            some = frozenset({branch}) if mixed is None else mixed[0] | {branch}
            one = rewriting(some)
            if one is not None:
                cost, own = _by_parts(strategies, *one, running)
                if cheapest((best, cost)) is cost:
                    best, parts, mixed = cost, own, (some, one[0])
    alike = {part.way for part in parts}
    if mixed is not None or len(alike) > 1 or any(part.joined for part in parts):
        found.append(best)
    found.sort(key=lambda one: one.strategy != running)
    chosen = cheapest(found)
    reason = "no other is clearly cheaper" if chosen.strategy == running else "it is clearly cheaper"
    if chosen is not best:
        shown = () if chosen.strategy == "flat" else _alike(strategies, outlines, chosen.strategy)
        return Chosen(chosen.strategy, reason, tuple(found), shown)
    return Chosen(MIXED, reason, tuple(found), parts, None if mixed is None else mixed[1])


def _whole(
    strategies: Strategies, cost: Callable[[Strategies, Outline], Cost], outlines: list[Outline]
) -> Cost:
    """All blocks in one way."""
    return strategies.begin() + sum((cost(strategies, one) for one in outlines), Cost())


def _rewritten(strategies: Strategies, outlines: list[Outline]) -> Cost:
    """Flat expressions: each by itself, and their matches made distinct."""
    return _whole(strategies, Strategies.own, outlines) + strategies.distinct(outlines)


def _by_parts(
    strategies: Strategies, plan: Plan, program: Program, running: str
) -> tuple[Alternative, tuple[Part, ...]]:
    """Each block in its best way; matches of more blocks than the plan itself has are made distinct."""
    outlines = outlines_of(program, plan)
    usual = running if running in (OWN, NESTED, VIEWS) else OWN
    parts = tuple(part_of(strategies, one, cheapest, usual) for one in outlines)
    total = strategies.begin() + sum((part.cost for part in parts), Cost())
    if any(isinstance(node, Proj) for node in branches(plan)):
        total += strategies.distinct(outlines)
    return Alternative(MIXED, total), parts


def _alike(strategies: Strategies, outlines: list[Outline], way: str) -> tuple[Part, ...]:
    """All blocks in one way, as parts."""

    def only(ways: Sequence[Alternative]) -> Alternative:
        return next((one for one in ways if one.strategy == way), ways[0])

    return tuple(part_of(strategies, one, only) for one in outlines)


def assumed_choice(plan: Plan, own: Program, options: Options) -> Chosen:
    """What would be chosen for events of which a window holds eight of each type."""
    known = settled(own, options, plan)
    if known is not None:
        return known
    found = chosen_for(own, plan, None, partial(rewritten, plan, own), Statistics())
    return replace(found, reason=f"{found.reason}, for assumed events")


def rewritten(plan: Plan, own: Program, some: frozenset[int]) -> tuple[Plan, Program] | None:
    """A plan with some branches in normal form, and its program beside its own; None if nothing changes."""
    kept = tuple(node for number, node in enumerate(branches(plan)) if number not in some)
    other = normal_form(plan, kept).plan
    program = compile_plan(other, None, leaves={})
    changed = len(program.blocks) > len(own.blocks) or any(block.witnesses for block in program.blocks)
    return (other, program) if changed else None


def _joins(block: Block) -> bool:
    return any(negation.stair is None for negation in block.negations)


def _negates(program: Program) -> bool:
    return any(block.negations for block in program.blocks)
