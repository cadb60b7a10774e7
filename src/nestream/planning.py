"""The part of the composer that plans flat runs: rewriting, statistics, groups, and what these cost."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.engine.context import Round, Shared
from nestream.engine.matcher import Matcher
from nestream.engine.program import Program
from nestream.engine.sharing.runs import runs_of
from nestream.engine.values import Evaluator, Vector
from nestream.logical.nodes import Plan
from nestream.model.columns import computable, per_microsecond, resolution
from nestream.model.expression import Expression
from nestream.model.schema import Schema
from nestream.optimize.cost import Model
from nestream.optimize.describe import branches, shapes_of
from nestream.optimize.explain import Explained, Measured
from nestream.optimize.plan_finder import Search, find_plan
from nestream.optimize.sample import gathered
from nestream.optimize.shape import Shape
from nestream.optimize.statistics import Statistics
from nestream.rewrite.normalise import Normalised, normalise

SAMPLE = 20_000
"""How many events are looked at before a run."""
EFFORT = 0.1
"""The share of a run's estimated time that the search for its plan may take."""


@dataclass(frozen=True)
class Flat:
    """A plan in normal form, and the groups that its expressions are run in."""

    normal: Normalised
    shared: Explained


def flat_plan(
    plan: Plan, schema: Schema | None = None, events: pa.Table | None = None, *, whole: bool = False
) -> Flat:
    """Rewrite a plan and group its expressions, for events of which the first (or all) are looked at."""
    normal = normalise(plan)
    shapes = shapes_of(normal.plan, branches(normal.plan))
    known = Statistics()
    if len(shapes) > 1 or whole:
        known = _statistics(shapes, schema, events, whole=whole)
    model = Model(known)
    found = find_plan(shapes, model, Search(effort=EFFORT if not whole else None))
    return Flat(normal, Explained(shapes, found, model))


def _statistics(
    shapes: list[Shape], schema: Schema | None, events: pa.Table | None, *, whole: bool
) -> Statistics:
    if schema is None or events is None or not events.num_rows:
        return Statistics()
    unit = resolution(schema)
    evaluator = Evaluator(per_microsecond(unit))

    def evaluate(formula: Expression, tables: Mapping[str, pa.Table]) -> npt.NDArray[np.bool_]:
        def fetch(variable: str, attribute: str) -> Vector:
            return Vector.of(computable(tables[variable].column(schema.column(attribute)), unit))

        return evaluator.satisfied(formula, fetch, next(iter(tables.values())).num_rows)

    sample = events if whole else events.slice(0, SAMPLE)
    found = gathered(shapes, sample, schema, evaluate)
    return found if whole else found.scaled(events.num_rows / sample.num_rows)


def measured(program: Program, matcher: Matcher) -> dict[int, Measured]:
    """The matches and the seconds of each block that leads a group or runs alone, by its number.

    The events have all arrived. Matches are dropped as they are found, so no more is held than in a run.
    """
    matcher.events.seal()
    if not len(matcher.store):
        return {}
    round = Round(matcher.store, Shared(matcher.events, matcher.groups))
    length = int(matcher.store.pos[-1]) + 1
    found = {}
    for number, run in enumerate(runs_of(program, round, matcher.limit, {}, at_once=True)):
        begin = clock.perf_counter()
        matches = sum(bindings.count for bindings in run.matches(0, length, length))
        found[number] = Measured(matches, clock.perf_counter() - begin)
    return found


def analyzed(flat: Flat, blocks: Mapping[int, Measured]) -> Explained:
    """The groups of a plan with what was measured of them: the blocks of each, taken together."""
    groups = {}
    for number, group in enumerate(flat.shared.plan.groups):
        own = [blocks[member] for member in group.members if member in blocks]
        groups[number] = Measured(sum(m.matches for m in own), sum(m.seconds for m in own))
    return replace(flat.shared, measured=groups)
