"""Runs a block with views: one window of triggers at a time, so that views slide with them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nestream.engine.program import Measure
from nestream_papers.engine.context import Bindings, Evaluation
from nestream_papers.engine.join import ranges_of
from nestream_papers.engine.program import Block
from nestream_papers.engine.runs import BlockRun
from nestream_papers.views.compute import computed
from nestream_papers.views.join import ViewJoin
from nestream_papers.views.view_set import ViewSet

FEWEST = 2048
"""The minimum number of positions processed at a time."""
_SAMPLE = 64


class ViewRun(BlockRun):
    """A block that runs by nested execution with views."""

    def __init__(
        self, evaluation: Evaluation, block: Block, limit: int, view_set: ViewSet, *, by_last: bool
    ) -> None:
        super().__init__(evaluation, block, limit, by_last=by_last)
        self.view_set = view_set

    def promising(self, first: int, end: int) -> int:
        """About as many positions as a window has."""
        store = self.evaluation.store
        if store.program.measure is Measure.NONE or end - first <= FEWEST:
            return end - first
        sample = np.arange(0, len(store), max(1, len(store) // _SAMPLE))
        width = int(np.median(store.pos[sample] - store.reach(sample)))
        return min(end - first, max(width, FEWEST))

    def run(self, first: int, end: int) -> Iterator[Bindings]:
        """The matches decided in a range of positions."""
        size = self.promising(first, end)
        for since in range(first, end, size):
            yield from self._slide(since, min(since + size, end))

    def _slide(self, first: int, end: int) -> Iterator[Bindings]:
        """The matches of some triggers, after purging what no later ones can request."""
        store = self.evaluation.store
        first_row, end_row = (int(row) for row in np.searchsorted(store.pos, (first, end)))
        if first_row == end_row:
            return
        reach = int(store.reach(np.array([first_row]))[0])
        oldest = int(np.searchsorted(store.pos, reach))
        self.view_set.attach(self.evaluation)
        self.view_set.purge(oldest)
        if not self.by_last:
            oldest = first_row
            last = int(store.pos[end_row - 1])
            end_row = int(np.searchsorted(self.view_set.reach(self.evaluation), last, "right"))
        for ranges in ranges_of(self.block, first, end, by_last=self.by_last, length=self.length):
            join = ViewJoin(
                self.evaluation,
                self.block,
                self.block,
                None,
                self.limit,
                self.view_set,
                computed,
                first_row=oldest,
                end_row=end_row,
            )
            yield from join.from_start(ranges)
