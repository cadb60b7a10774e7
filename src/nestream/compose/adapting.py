"""The part of the composer that plans a stream anew: statistics batch by batch, and a choice when they drift.

Batches are counted when enough events have come together, so that events pushed one by one cost nothing more.
Predicates are sampled only while they were tested too rarely, or when older tests have faded.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from nestream.compose import choosing
from nestream.compose.choosing import Chosen
from nestream.compose.gathering import statistics_of
from nestream.compose.outlining import outlines_of, shapes_in
from nestream.logical.nodes import Plan
from nestream.model.schema import Schema
from nestream.model.time import WindowKind
from nestream.papers.engine.program import Program
from nestream.papers.optimize.drift import drifted
from nestream.papers.optimize.sample import equated
from nestream.papers.optimize.statistics import Statistics

ENOUGH = 1_024
"""How many events are counted together."""
TESTED = 500.0
"""How often a predicate was tested, older tests fading, before it is not tested again."""
HALF_LIVES = 4.0
"""A half-life in windows, or in the time that the first events cover where that is longer."""


class Adapting:
    """Watches a stream and chooses between the strategies that have the same blocks."""

    def __init__(
        self, plan: Plan, schema: Schema, own: Program, compiled: Callable[[Chosen], Program]
    ) -> None:
        self.plan, self.schema, self.own = plan, schema, own
        self.compiled = compiled
        self.known = Statistics()
        self.planned_for: Statistics | None = None
        self.chosen = Chosen(choosing.DEFAULT, "nothing is known of the events")
        self.shapes = [shape for one in outlines_of(own, plan) for shape in shapes_in(one)]
        self._waiting: list[pa.Table] = []
        self._half_life: float | None = None

    def observe(self, events: pa.Table) -> None:
        """Take note of a batch; it is counted with others when they are enough."""
        self._waiting.append(events)
        if sum(batch.num_rows for batch in self._waiting) >= ENOUGH:
            self.count()

    def count(self) -> None:
        """Merge the statistics of what has come since into those of before, which fade."""
        table = pa.concat_tables(self._waiting)
        self._waiting = []
        if self._half_life is None:
            self._half_life = self._fading(Statistics.of(table, self.schema))
        if self._wants_tests():
            found = statistics_of(self.shapes, self.schema, table, half_life=self._half_life, whole=True)
        else:
            found = Statistics.of(table, self.schema, equated(self.shapes), half_life=self._half_life)
        self.known = self.known.merged(found)

    def _fading(self, first: Statistics) -> float:
        window = self.plan.window
        timed = window is not None and window.kind in (WindowKind.TIME, WindowKind.NUMBER)
        return HALF_LIVES * max(first.span, float(window.size) if timed else 0.0, 1.0)

    def _wants_tests(self) -> bool:
        """Whether predicates should be tested: not yet, or so long ago that it has faded."""
        known = self.known.shares.values()
        return not known or min(share.tested for share in known) < TESTED

    def due(self) -> Program | None:
        """The program of another strategy, where statistics have drifted and it is now clearly cheaper."""
        if not self.known.counts or (
            self.planned_for is not None and not drifted(self.planned_for, self.known)
        ):
            return None
        self.planned_for = self.known
        before = self.chosen
        self.chosen = choosing.chosen_for(
            self.own, self.plan, None, lambda some: None, self.known, running=before.strategy
        )
        same = (self.chosen.strategy, self.chosen.ways) == (before.strategy, before.ways)
        return None if same else self.compiled(self.chosen)
