"""Prefix caching: the rows of a common prefix are built once and kept; each block adds its own steps.

The PreCache holds them as positions in the input, so that they stay valid when events are forgotten. Each
batch adds the rows that end in it; a row is dropped once its first event is out of every future window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream_papers.engine.chain import Chain
from nestream_papers.engine.context import Bindings, Evaluation
from nestream_papers.engine.program import Block, Group
from nestream_papers.sharing.group import SharedRun
from nestream_papers.sharing.steps import CoreRows

_MOST = 8
"""How many times the number of partial matches processed at once may be kept."""


class PreCache:
    """The rows of a core, one column per step, in the order of their ends."""

    def __init__(self, core: Block) -> None:
        assert core.chain is not None
        self.core = core
        self.names = core.chain
        self.positions: list[Ints] = []
        self.since = self.until = 0
        """The range of positions in which the rows here start and end."""
        self._ready: tuple[Evaluation, CoreRows] | None = None
        self.forget()

    def __len__(self) -> int:
        return len(self.positions[0])

    def forget(self) -> None:
        """Drop all rows; they are rebuilt when they are needed."""
        self.positions = [np.empty(0, np.int64) for _ in self.names]
        self.since = self.until = 0
        self._ready = None

    def prepare(self, evaluation: Evaluation, first: int, end: int, limit: int) -> CoreRows | None:
        """The rows that can come before a trigger in a range of positions; None if there are too many."""
        store = evaluation.store
        row = int(np.searchsorted(store.pos, first))
        oldest = int(store.reach(np.array([row]))[0]) if row < len(store) else end
        if oldest + store.base < self.since:
            self.forget()
        self.expire(oldest + store.base)
        begin = max(self.until - store.base, oldest)
        if begin < end and not self._add(evaluation, begin, end, limit):
            self.forget()
            return None
        self.until = max(self.until, end + store.base)
        if self._ready is None or self._ready[0] is not evaluation:
            self._ready = evaluation, self._rows(evaluation)
        return self._ready[1]

    def expire(self, oldest: int) -> None:
        """Drop the rows that start before a position."""
        self.since = oldest
        kept = self.positions[0] >= oldest
        if not kept.all():
            self.positions = [column[kept] for column in self.positions]
            self._ready = None

    def _add(self, evaluation: Evaluation, begin: int, end: int, limit: int) -> bool:
        """Add the rows that end in a range of positions; return whether there is room for them."""
        store = evaluation.store
        chain = Chain(evaluation, self.core, limit, begin)
        parts: list[list[Ints]] = []
        total = len(self)
        for bindings in chain.matches(chain.triggers(begin, end)):
            kept = store.pos[bindings.rows[self.names[0]]] + store.base >= self.since
            parts.append([store.pos[bindings.rows[name][kept]] + store.base for name in self.names])
            total += len(parts[-1][0])
            if total > _MOST * limit:
                return False
        if parts:
            added = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
            order = np.argsort(added[-1], kind="stable")
            self.positions = [
                np.concatenate([held, column[order]])
                for held, column in zip(self.positions, added, strict=True)
            ]
            self._ready = None
        return True

    def _rows(self, evaluation: Evaluation) -> CoreRows:
        """The rows as rows of events, by the key and the position of their last event."""
        store = evaluation.store
        columns = [np.searchsorted(store.pos, column - store.base) for column in self.positions]
        coordinate = self.positions[-1] - store.base
        if self.core.key:
            numbers = evaluation.keys.numbers(self.core.key[self.names[-1]])[columns[-1]]
            coordinate = numbers * evaluation.stride + coordinate
            order = np.argsort(coordinate, kind="stable")
            columns, coordinate = [column[order] for column in columns], coordinate[order]
        return CoreRows(columns, coordinate)


class PrefixRun(SharedRun):
    """Blocks that begin with the same steps."""

    def __init__(
        self,
        evaluation: Evaluation,
        group: Group,
        blocks: Sequence[Block],
        limit: int,
        cache: PreCache,
        *,
        by_last: bool,
    ) -> None:
        super().__init__(evaluation, group, blocks, limit, by_last=by_last)
        self.cache = cache

    def run(self, first: int, end: int) -> Iterator[Bindings]:
        """The matches decided in a range of positions."""
        core = None
        if self.by_last or (first <= 0 and end >= self.length):
            core = self.cache.prepare(self.evaluation, first, end, self.limit)
        if core is None:
            yield from self.each_alone(first, end)
            return
        for chain in self.chains(first):
            yield from chain.through(core, first, end)
