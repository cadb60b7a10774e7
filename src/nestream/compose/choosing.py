"""The part of the composer that chooses a strategy: what a program leaves to choose, and what that costs.

Where all negations of a query are bounds, nothing is looked at: no strategy is faster. Elsewhere the events
are counted by type, which is enough to see that a query is cheap anyway; only of what promises to take longer
the predicates are tested on a sample, and the strategies compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from nestream.compose.flat import normal_form
from nestream.compose.gathering import statistics_of
from nestream.compose.outlining import compared_inside, outlines_of, shapes_in
from nestream.engine.chain import is_chain
from nestream.engine.program import Block, Options, Program
from nestream.logical.nodes import Plan
from nestream.model.schema import Schema
from nestream.optimize.cost import Constants, Model
from nestream.optimize.drift import drifted
from nestream.optimize.statistics import Statistics
from nestream.optimize.strategies import Alternative, Strategies, cheapest
from nestream.physical.compile import compile_plan

DEFAULT = "bounds"
"""The strategy that is right for nearly all queries."""
CHEAP = 30e6
"""The nanoseconds up to which a query is not worth choosing for."""
COUNTED = 4_096
"""How many events are counted by type to see whether it is."""
REMEMBERED = 256
"""For how many queries the last choice is remembered, which holds while the counts have not drifted."""
_REMEMBERED: dict[str, tuple[Statistics, Chosen]] = {}
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
    if known is not None:
        return _compared(plan, program, known, rewriting, running)
    if schema is None or events is None or not events.num_rows:
        return Chosen(DEFAULT, "nothing is known of the events")
    first = events.slice(0, COUNTED)
    counts = Statistics.of(first, schema).scaled(events.num_rows / first.num_rows)
    text = repr((plan, sorted(schema.columns.items(), key=str)))
    if text in _REMEMBERED and not drifted(_REMEMBERED[text][0], counts):
        return _REMEMBERED[text][1]
    if len(_REMEMBERED) >= REMEMBERED:
        _REMEMBERED.clear()
    found = _looked_at(plan, program, counts, schema, events, rewriting)
    _REMEMBERED[text] = counts, found
    return found


def _looked_at(
    plan: Plan,
    program: Program,
    counts: Statistics,
    schema: Schema,
    events: pa.Table,
    rewriting: Callable[[], Program | None],
) -> Chosen:
    """The choice for a table, from the counts alone where they promise a cheap run."""
    outlines = outlines_of(program, plan)
    cost = Strategies(Model(counts)).bounds(outlines)
    if cost.nanoseconds < CHEAP:
        return Chosen(DEFAULT, "it is cheap anyway", (Alternative(DEFAULT, cost),))
    shapes = [shape for one in outlines for shape in shapes_in(one)]
    return _compared(plan, program, statistics_of(shapes, schema, events), rewriting, DEFAULT)


def _compared(
    plan: Plan, program: Program, known: Statistics, rewriting: Callable[[], Program | None], running: str
) -> Chosen:
    """The choice between all strategies."""
    outlines = outlines_of(program, plan)
    strategies = Strategies(Model(known, Constants(distinct=0.0)))
    found = [Alternative(name, cost(strategies, outlines)) for name, cost in MEASURED.items()]
    flat = rewriting()
    if flat is not None:
        own = outlines_of(flat, plan)
        found.insert(1, Alternative("flat", strategies.flat(own)))
    found.sort(key=lambda one: one.strategy != running)
    best = cheapest(found)
    if best.strategy == running:
        return Chosen(running, "no other is clearly cheaper", tuple(found))
    return Chosen(best.strategy, "it is clearly cheaper", tuple(found))


def assumed_choice(plan: Plan, own: Program, options: Options) -> Chosen:
    """What would be chosen for events of which a window holds eight of each type."""
    known = settled(own, options, plan)
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
