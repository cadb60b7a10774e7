"""Runs one block of a program: as a chain if it is one, otherwise by the general join."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from nestream.engine.operator import Operator, Span
from nestream_papers.engine.chain import Chain, is_chain
from nestream_papers.engine.context import Bindings, Evaluation
from nestream_papers.engine.join import Join, ranges_of
from nestream_papers.engine.program import Block

RARE = 64
"""If a leaf is this many times rarer than another, the join starts at its events."""
_SOME_TRIGGERS = 512
"""From this number of triggers on, estimating their matches before building them pays off."""
_MANY_TRIGGERS = 16384
"""From this number of triggers on, sampling many of them for that pays off."""


class BlockRun(Operator):
    """One block over the events: a chain if it is one, otherwise a general join."""

    def __init__(self, evaluation: Evaluation, block: Block, limit: int, *, by_last: bool) -> None:
        self.evaluation = evaluation
        self.block = block
        self.by_last = by_last
        self.limit = limit
        self.length = int(evaluation.store.pos[-1]) + 1 if len(evaluation.store) else 0
        """The position after the last event."""
        self.alone = block
        """The block that the operator represents, if it runs a group of them."""
        self._chain: Chain | None = None

    def within(self, first: int, end: int, spans: Mapping[str, Span]) -> Iterator[Bindings]:
        """The matches of this block alone whose variables have positions in some spans."""
        for ranges in ranges_of(self.alone, first, end, by_last=self.by_last, length=self.length):
            narrowed = dict(ranges)
            for name, (since, until) in spans.items():
                low, high = ranges.get(name, (since, until))
                narrowed[name] = max(since, low), min(until, high)
            join = Join(self.evaluation, self.alone, self.alone, None, self.limit)
            yield from join.from_start(narrowed)

    def chain(self, first: int, end: int) -> Chain | None:
        """The block as a chain, if it is one and its matches are wanted by their last event."""
        if not is_chain(self.block) or not (self.by_last or (first <= 0 and end >= self.length)):
            return None
        if self._chain is None and self._has_rare_leaf(first, end):
            return None
        if self._chain is None:
            self._chain = self.new_chain(first)
        return self._chain

    def new_chain(self, since: int) -> Chain:
        """The block as a chain, for the triggers from a position on."""
        return Chain(self.evaluation, self.block, self.limit, since)

    def new_join(self) -> Join:
        """The block as a general join."""
        return Join(self.evaluation, self.block, self.block, None, self.limit)

    def _has_rare_leaf(self, first: int, end: int) -> bool:
        """Whether so few events can be part of a match that scanning all others does not pay off."""
        if not self.evaluation.program.options.ordering:
            return False
        store = self.evaluation.store
        sizes = [len(store.leaf_rows[leaf]) for leaf in self.block.leaves.values()]
        assert self.block.chain is not None
        last = store.leaf_rows[self.block.leaves[self.block.chain[-1]]]
        from_, until = np.searchsorted(last, np.searchsorted(store.pos, (first, end)))
        return min(*sizes, int(until - from_)) * RARE < max(sizes)

    def promising(self, first: int, end: int) -> int:
        """How many positions at a time are expected to stay within the budget, from a sample."""
        chain = self.chain(first, end)
        if chain is None:
            return end - first
        triggers = chain.triggers(first, end)
        many = len(triggers) >= _MANY_TRIGGERS
        if not many and (len(triggers) < _SOME_TRIGGERS or chain.has_tests):
            return end - first
        counts = chain.counts if many else chain.most  # a sample is not worth the cost of a late negation
        size, parts = (1024, 32) if many else (64, 1)
        sample = triggers[:: max(1, len(triggers) // size)]
        total = looked_at = 0
        for part in np.array_split(sample, parts):
            for found in counts(part):  # a single trigger may have more than can ever be counted
                total += found
                if total > 8 * self.limit:
                    break
            looked_at += len(part)
            if total > 8 * self.limit:
                break
        expected = total / looked_at * len(triggers)
        return max(1, int((end - first) * min(1.0, 0.7 * self.limit / max(expected, 1.0))))

    def run(self, first: int, end: int) -> Iterator[Bindings]:
        """The matches decided in a range of positions."""
        chain = self.chain(first, end)
        if chain is not None:
            yield from chain.matches(chain.triggers(first, end))
            return
        for ranges in ranges_of(self.block, first, end, by_last=self.by_last, length=self.length):
            yield from self.new_join().from_start(ranges)


class OwnRun(BlockRun):
    """A block alone, as a chain or a join."""

    def counts(self, first: int, end: int) -> Iterator[int]:
        """Count the matches, in parts; those of a chain need not be built."""
        if not is_chain(self.block) or not self.by_last:
            return super().counts(first, end)
        chain = self.new_chain(first)
        return chain.counts(chain.triggers(first, end))
