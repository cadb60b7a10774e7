"""Sequence construction without stacks, the paper's basic one: back through all events, one by one.

When an accepting state is reached, the cells of the runtime stack, one for each event of the stream whatever
its type, are checked for every state: did this event make a transition to it? So an accepting event costs the
length of its window times the number of states, however few sequences it ends.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream_papers.engine.context import Bindings, Evaluation, Mask
from nestream_papers.engine.join import _pieces
from nestream_papers.engine.program import Block
from nestream_papers.engine.stack import expand
from nestream_papers.sase.construction import Construction, Partial
from nestream_papers.sase.plan import SequencePlan
from nestream_papers.sase.scan import State


class BasicConstruction(Construction):
    """All sequences of accepting instances, found by searching the window of each."""

    def __init__(
        self, evaluation: Evaluation, block: Block, plan: SequencePlan, states: list[State], limit: int
    ) -> None:
        super().__init__(evaluation, block, plan, states, limit)
        positions = evaluation.store.pos
        length = int(positions[-1]) + 1 if len(positions) else 0
        self.row_at = np.full(length, -1, np.int64)
        self.row_at[positions] = np.arange(len(positions))
        self.transitions = [self._cells(state, length) for state in states]

    def _cells(self, state: State, length: int) -> Mask:
        """For every event that came, whether it made the transition to a state."""
        made = np.zeros(length, bool)
        made[self.evaluation.store.pos[state.stack.rows]] = True
        return made

    def sequences(self, accepting: Ints) -> Iterator[Bindings]:
        """The sequences of accepting instances: their windows are searched, as many at once as fit."""
        store, rows = self.evaluation.store, self.states[-1].stack.rows[accepting]
        pushed = self.plan.window_scan or self.plan.window_construction
        first = store.reach(rows) if pushed else np.zeros(len(rows), np.int64)
        counts = np.maximum(store.low[rows] - first, 0)
        for piece in _pieces(counts, self.limit):
            run, cell = expand(counts[piece], first[piece])
            found = _Found(self, run, cell)
            ends = rows[piece]
            number = np.arange(len(ends))
            yield from found.extended(Partial([ends], number, number), len(self.names) - 1)


class _Found(Construction):
    """Sequences from the results of a search: for each accepting instance, the instances in its window."""

    def __init__(self, search: BasicConstruction, run: Ints, cell: Ints) -> None:
        super().__init__(search.evaluation, search.block, search.plan, search.states, search.limit)
        self.instances: list[tuple[Ints, Ints]] = []
        for made in search.transitions[:-1]:
            hits = np.flatnonzero(made[cell])
            here = cell[hits]
            self.instances.append((run[hits] * self.evaluation.stride + here, search.row_at[here]))

    def range(self, partial: Partial, level: int) -> tuple[Ints, Ints]:
        """The places, among those found for the accepting instance, that come before each first event."""
        coordinates, _ = self.instances[level - 1]
        start = partial.accepting * self.evaluation.stride
        end = start + self.evaluation.store.low[partial.rows[0]]
        return np.searchsorted(coordinates, start), np.searchsorted(coordinates, end)

    def rows(self, level: int, place: Ints) -> Ints:
        """The rows that were found for a state."""
        return self.instances[level][1][place]
