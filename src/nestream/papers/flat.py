"""Plans flat runs: rewriting, statistics, groups, and what these cost."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from nestream.logical.nodes import Plan, branches
from nestream.model.schema import Schema
from nestream.papers.optimize.cost import Model
from nestream.papers.optimize.describe import shapes_of
from nestream.papers.optimize.explain import Explained
from nestream.papers.optimize.gathering import statistics_of
from nestream.papers.optimize.plan_finder import Search, find_plan
from nestream.papers.optimize.statistics import Statistics
from nestream.papers.rewrite.normalise import Normalised, normalise

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
        known = statistics_of(shapes, schema, events, whole=whole)
    model = Model(known)
    hurried = events is not None and not whole
    found = find_plan(shapes, model, Search(effort=EFFORT if hurried else None))
    return Flat(normal, Explained(shapes, found, model))
