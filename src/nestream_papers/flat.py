"""Plans flat runs: rewriting, statistics, groups, and their costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from nestream.logical.nodes import Plan, branches
from nestream.model.schema import Schema
from nestream_papers.engine.program import BlockProgram
from nestream_papers.optimize.cost import Model, Objective
from nestream_papers.optimize.describe import shapes_of
from nestream_papers.optimize.explain import Explained
from nestream_papers.optimize.gathering import SAMPLE, statistics_of
from nestream_papers.optimize.plan_finder import Search, find_plan
from nestream_papers.optimize.statistics import Statistics
from nestream_papers.plan.groups import regrouped
from nestream_papers.rewrite.normalise import Normalised, normalise

FEWEST = 256
"""The minimum number of events for replanning a running program."""
DRIFT = 2.0
"""The factor by which the share of a type must change for that."""
RARE = 0.01
"""A type with a smaller share, before and after, does not count."""
EFFORT = 0.1
"""The maximum share of a run's estimated time for the search of its plan."""


@dataclass(frozen=True)
class Flat:
    """A plan in normal form, and the groups in which its expressions run."""

    normal: Normalised
    shared: Explained


def flat_plan(
    plan: Plan,
    schema: Schema | None = None,
    events: pa.Table | None = None,
    *,
    whole: bool = False,
    objective: Objective = Objective.TIME,
) -> Flat:
    """Rewrite a plan and group its expressions, based on the first events (or all)."""
    normal = normalise(plan)
    shapes = shapes_of(normal.plan, branches(normal.plan))
    known = Statistics()
    if len(shapes) > 1 or whole:
        known = statistics_of(shapes, schema, events, whole=whole)
    model = Model(known, objective=objective)
    hurried = events is not None and not whole
    found = find_plan(shapes, model, Search(effort=EFFORT if hurried else None))
    return Flat(normal, Explained(shapes, found, model))


def replanned(program: BlockProgram, events: pa.Table, schema: Schema) -> BlockProgram:
    """A flat program in the groups that suit some events, if they differ from those it was planned for.

    They differ if the share of some type has doubled or halved. Fewer events than `FEWEST` say too little.
    """
    shared = program.sharing
    if shared is None or events.num_rows < FEWEST:
        return program
    known = shared.model.statistics
    if known.counts and not drifted(known, Statistics.of(events.slice(0, SAMPLE), schema)):
        return program
    model = replace(shared.model, statistics=statistics_of(list(shared.shapes), schema, events))
    found = find_plan(shared.shapes, model, Search(effort=EFFORT))
    regrouped_program = regrouped(program, shared.blocks, found.groups)
    return replace(regrouped_program, sharing=replace(shared, plan=found, model=model))


def drifted(known: Statistics, now: Statistics) -> bool:
    """Whether the share of some type of events has doubled or halved."""
    for kind in known.counts.keys() | now.counts.keys():
        before, after = ((one.count([kind]) + 1) / (one.events + 1) for one in (known, now))
        if max(before, after) > DRIFT * min(before, after) and max(before, after) > RARE:
            return True
    return False
