"""A run over a stream that may go on with another program between two batches, with the same matches.

The state of a run is the events it holds and how far was decided. Programs with the same blocks, decided by
the same events, hold and decide the same, so one can take over from another wherever all that could be
decided was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import pyarrow as pa

from nestream.engine.matcher import Matcher
from nestream.engine.program import Program
from nestream.model.output import Output
from nestream.model.schema import Kind, Schema
from nestream.runtime.local import LocalRun


class Planner(Protocol):
    """Watches the events of a stream, and says which program to run."""

    def observe(self, events: pa.Table) -> None:
        """Take note of a batch."""

    def due(self) -> Program | None:
        """Another program for what follows, where one is now better."""


class AdaptiveRun(LocalRun):
    """One query over events of one schema, by the program that a planner finds best for what comes."""

    def __init__(
        self,
        output: Output,
        program: Program,
        schema: Schema,
        kinds: Mapping[str, Kind],
        unit: str,
        planner: Planner,
    ) -> None:
        super().__init__(output, program, schema, kinds, unit)
        self.planner = planner

    def append(self, events: pa.Table | pa.RecordBatch) -> None:
        """Take events in the order of time and arrival, and note what they are like."""
        super().append(events)
        self.planner.observe(
            pa.Table.from_batches([events]) if isinstance(events, pa.RecordBatch) else events
        )

    def advance(self, watermark: int, *, in_order: bool = True) -> Iterator[pa.Table]:
        """The matches decided by a watermark; after them the program may be another."""
        yield from super().advance(watermark, in_order=in_order)
        program = self.planner.due()
        if program is not None:
            self.go_on_with(program)

    def go_on_with(self, program: Program) -> None:
        """Run another program from here on."""
        if not takes_over(program, self.program):
            raise ValueError("the program has other blocks: it cannot go on from this state")
        old, self.program = self.matcher, program
        self.matcher = Matcher(program, self.store)
        self.matcher.decided, self.matcher.watermark = old.decided, old.watermark
        if self.matcher.given is not None and old.given is not None:
            self.matcher.given = old.given


def takes_over(program: Program, running: Program) -> bool:
    """Whether a program holds and decides the same as one that is running."""
    alike = (program.leaves, program.decided, program.distinct, program.kept, program.looks_back)
    return alike == (running.leaves, running.decided, running.distinct, running.kept, running.looks_back)
