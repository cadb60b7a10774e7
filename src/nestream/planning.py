"""The part of the composer that plans flat runs: rewriting, statistics, groups, and what these cost."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.engine.context import Round, Shared
from nestream.engine.matcher import Matcher
from nestream.engine.program import Program
from nestream.engine.sharing.runs import runs_of
from nestream.engine.values import Evaluator, Vector
from nestream.engine.views.counters import Counters
from nestream.logical.nodes import Plan
from nestream.model.columns import computable, per_microsecond, resolution
from nestream.model.expression import Expression
from nestream.model.schema import Schema
from nestream.model.text import print_name
from nestream.optimize.cost import Model
from nestream.optimize.describe import branches, shapes_of
from nestream.optimize.explain import Explained, Measured
from nestream.optimize.plan_finder import Search, find_plan
from nestream.optimize.sample import gathered
from nestream.optimize.shape import Shape
from nestream.optimize.statistics import Statistics
from nestream.physical.choices import choices
from nestream.rewrite.normalise import Normalised, normalise

SAMPLE = 20_000
"""How many events are looked at before a run."""
EFFORT = 0.1
"""The share of a run's estimated time that the search for its plan may take."""
REMEMBERED = 256
"""How many plans are remembered in normal form."""
_KNOWN: dict[str, tuple[Normalised, list[Shape]]] = {}


@dataclass(frozen=True)
class Flat:
    """A plan in normal form, and the groups that its expressions are run in."""

    normal: Normalised
    shared: Explained


def flat_plan(
    plan: Plan, schema: Schema | None = None, events: pa.Table | None = None, *, whole: bool = False
) -> Flat:
    """Rewrite a plan and group its expressions, for events of which the first (or all) are looked at."""
    normal, shapes = _expressions(plan)
    known = Statistics()
    if len(shapes) > 1 or whole:
        known = statistics_of(shapes, schema, events, whole=whole)
    model = Model(known)
    hurried = events is not None and not whole
    found = find_plan(shapes, model, Search(effort=EFFORT if hurried else None))
    return Flat(normal, Explained(shapes, found, model))


def normal_form(plan: Plan) -> Normalised:
    """The normal form of a plan, which is remembered."""
    return _expressions(plan)[0]


def _expressions(plan: Plan) -> tuple[Normalised, list[Shape]]:
    """The normal form of a plan and the shapes of its expressions; those of the last plans are remembered."""
    text = repr(plan)  # equal plans may differ: 1 = 1.0 = TRUE
    if text not in _KNOWN:
        if len(_KNOWN) >= REMEMBERED:
            _KNOWN.clear()
        normal = normalise(plan)
        _KNOWN[text] = normal, shapes_of(normal.plan, branches(normal.plan))
    return _KNOWN[text]


def statistics_of(
    shapes: list[Shape],
    schema: Schema | None,
    events: pa.Table | None,
    *,
    whole: bool = False,
    half_life: float | None = None,
) -> Statistics:
    """What the cost model asks about some expressions, from the first events or from all."""
    if schema is None or events is None or not events.num_rows:
        return Statistics()
    unit = resolution(schema)
    evaluator = Evaluator(per_microsecond(unit))

    def evaluate(formula: Expression, tables: Mapping[str, pa.Table]) -> npt.NDArray[np.bool_]:
        def fetch(variable: str, attribute: str) -> Vector:
            return Vector.of(computable(tables[variable].column(schema.column(attribute)), unit))

        return evaluator.satisfied(formula, fetch, next(iter(tables.values())).num_rows)

    sample = events if whole else events.slice(0, SAMPLE)
    found = gathered(shapes, sample, schema, evaluate, half_life=half_life)
    return found if whole else found.scaled(events.num_rows / sample.num_rows)


@dataclass(frozen=True)
class Analysis:
    """What a run found: the matches and the time of each block, and of each group of a flat plan."""

    program: Program
    events: int
    blocks: Mapping[int, Measured]
    shared: Explained | None = None
    views: tuple[tuple[tuple[str, ...], Counters], ...] = ()
    """The variables of each inner query that has a view, and what the view did."""

    def text(self) -> str:
        """Indented text, after that of the groups where there are any."""
        lines = [self.shared.text()] if self.shared else []
        total = sum(block.matches for block in self.blocks.values())
        seconds = sum(block.seconds for block in self.blocks.values())
        lines.append(f"Measured over {self.events:,} events: {total:,} found in {seconds * 1e3:,.2f} ms")
        if self.shared is None:
            for number, block in self.blocks.items():
                names = ", ".join(map(print_name, self.program.blocks[number].leaves))
                lines.append(f"  ({names}): {block.matches:,} found in {block.seconds * 1e3:,.2f} ms")
        lines += [f"  view of ({', '.join(map(print_name, names))}): {did}" for names, did in self.views]
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """The same as plain data."""
        blocks = [
            {"block": number, "matches": block.matches, "nanoseconds": round(block.seconds * 1e9)}
            for number, block in self.blocks.items()
        ]
        shared = {"sharing": self.shared.json()} if self.shared else {}
        views = [{"variables": list(names), **did.numbers()} for names, did in self.views]
        kept = {"views": views} if views else {}
        return {**shared, "measured": {"events": self.events, "blocks": blocks, **kept}}


def measured(program: Program, matcher: Matcher, events: int, flat: Flat | None = None) -> Analysis:
    """Run the blocks of a program one after the other, when all the events have arrived.

    The matches are dropped as they are found, before they are put in order and made distinct.
    """
    matcher.events.seal()
    found: dict[int, Measured] = {}
    if len(matcher.store):
        round = Round(matcher.store, Shared(matcher.events, matcher.groups))
        length = int(matcher.store.pos[-1]) + 1
        runs = runs_of(program, round, matcher.limit, {}, at_once=True, shelves=matcher.shelves)
        for number, run in enumerate(runs):
            begin = clock.perf_counter()
            matches = sum(bindings.count for bindings in run.matches(0, length, length))
            found[number] = Measured(matches, clock.perf_counter() - begin)
    if flat is None:
        views = (view for shelf in matcher.shelves for view in shelf.views)
        return Analysis(program, events, found, views=tuple((v.inner.names, v.counters) for v in views))
    return Analysis(program, events, found, _grouped(flat, found))


def _grouped(flat: Flat, blocks: Mapping[int, Measured]) -> Explained:
    """The groups with what was measured of their blocks; of a group, the first block runs all."""
    groups = {}
    first = 0
    numbers = []  # of the blocks of each expression
    for branch in branches(flat.normal.plan):
        count = len(choices(branch))
        numbers.append(range(first, first + count))
        first += count
    for number, group in enumerate(flat.shared.plan.groups):
        own = [blocks[block] for member in group.members for block in numbers[member] if block in blocks]
        groups[number] = Measured(sum(m.matches for m in own), sum(m.seconds for m in own))
    return replace(flat.shared, measured=groups)
