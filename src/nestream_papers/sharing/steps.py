"""A sequence that takes the rows of some of its steps from the core that a group of blocks shares.

The rows of the core are ordered by the coordinate of their last event. As in any chain, a partial match that
begins after the core has a range of the previous step; here this is a range of the core's rows. A row from
there must lie in the steps of this sequence and reach into the window; then it is extended to the left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream_papers.engine.chain import Chain
from nestream_papers.engine.context import Bindings, Evaluation
from nestream_papers.engine.join import _pieces, _split
from nestream_papers.engine.program import Block, Constraint
from nestream_papers.engine.stack import expand, places


@dataclass(frozen=True)
class CoreRows:
    """Rows of shared steps: for each step the rows of its events, by the coordinate of the last one."""

    columns: list[Ints]
    coordinate: Ints

    def __len__(self) -> int:
        return len(self.coordinate)


class SharingChain(Chain):
    """One block of a group; `start` and `length` locate the shared steps in it."""

    def __init__(
        self,
        evaluation: Evaluation,
        block: Block,
        limit: int,
        shared: tuple[int, int],
        own: Sequence[Constraint] = (),
        since: int = 0,
    ) -> None:
        """Prepare the steps; `own` are constraints between shared steps that the core does not have."""
        super().__init__(evaluation, block, limit, since)
        self.start, length = shared
        self.end = self.start + length
        self.core = CoreRows([], np.empty(0, np.int64))
        self.late += [part for part in own if all(part is not other for other in self.late)]
        self._place_of: dict[int, Ints] = {}

    def through(self, core: CoreRows, first: int, end: int) -> Iterator[Bindings]:
        """The matches with their last event in a range of positions, built through the rows of the core."""
        self.core = core
        if self.end < len(self.names):
            yield from self.matches(self.triggers(first, end))
            return
        position = self.evaluation.store.pos[core.columns[-1]]
        within = np.flatnonzero((position >= first) & (position < end))
        for piece in range(0, len(within), self.limit):
            chosen = within[piece : piece + self.limit]
            yield from self.from_core([column[chosen] for column in core.columns])

    def from_core(self, columns: list[Ints]) -> Iterator[Bindings]:
        """The matches that end with rows of the core."""
        yield from self._onwards([self._places(self.start + n, rows) for n, rows in enumerate(columns)])

    def _extend(self, places: list[Ints], level: int) -> Iterator[Bindings]:
        if level != self.end or not len(places[0]):
            yield from super()._extend(places, level)
            return
        first, counts = self._core_ranges(places, level)
        if len(counts) and counts.max() > self.limit:
            which, first, counts = _split(first, counts, self.limit)
            places = [column[which] for column in places]
        for piece in _pieces(counts, self.limit):
            run, row = expand(counts[piece], first[piece])
            taken = [self._places(self.start + n, column[row]) for n, column in enumerate(self.core.columns)]
            yield from self._onwards([*taken, *(column[piece][run] for column in places)])

    def _core_ranges(self, later: list[Ints], level: int) -> tuple[Ints, Ints]:
        """The range of the core's rows for each partial match that begins after it."""
        first, counts = self._ranges(later, level)
        coordinate = self.steps[level - 1].stack.pos
        if not len(coordinate) or not len(self.core):
            return first, np.zeros(len(first), np.int64)
        some = counts > 0
        begin = places(self.core.coordinate, coordinate[np.where(some, first, 0)], "left")
        end = places(self.core.coordinate, coordinate[np.where(some, first + counts - 1, 0)], "right")
        return begin, np.where(some, end - begin, 0)

    def _onwards(self, places: list[Ints]) -> Iterator[Bindings]:
        """Extend rows that begin with the core to the left, as far as possible."""
        step, last = self.steps[self.start], self.steps[-1].stack
        kept = np.flatnonzero(np.minimum.reduce(places) >= 0)
        places = [column[kept] for column in places]
        if not len(kept):
            return
        measure = step.start if self.evaluation.program.options.reach else step.stack.pos
        kept = np.flatnonzero(measure[places[0]] >= last.reach[places[-1]])
        places = [column[kept] for column in places]
        for level in range(self.end - 1, self.start - 1, -1):
            found = self._keep(places[level - self.start :], level)
            if found is not None:
                places = [column[found] for column in places]
        yield from super()._extend(places, self.start)

    def _places(self, level: int, rows: Ints) -> Ints:
        """The places of rows in the stack of a step; -1 for those that are not in it."""
        if level not in self._place_of:
            place_of = np.full(len(self.evaluation.store), -1, np.int64)
            stack = self.steps[level].stack
            place_of[stack.rows] = np.arange(len(stack))
            self._place_of[level] = place_of
        return self._place_of[level][rows]
