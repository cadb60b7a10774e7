"""The matches of one moment in the order of the output, however many there are, within a budget.

The positions of the kept events order the matches that end at one moment. So the events that the first kept
variable can have are halved until the matches that are left fit the budget, then those of the next variable.
Each part is joined anew, and is complete before the next one: parts come in order, and only one is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nestream.engine.context import Bindings, Ranges, Round
from nestream.engine.events import Ints
from nestream.engine.join import Join, ranges_of
from nestream.engine.program import Block
from nestream.engine.stack import Stack, places

Span = tuple[int, int]
"""Positions `[first, end)`."""


@dataclass
class RangeJoin(Join):
    """A join that looks a variable up only in its range, where it has one."""

    ranges: Ranges = field(default_factory=dict)

    def range(self, name: str, bindings: Bindings) -> tuple[Stack, Ints, Ints]:
        """For each partial match, the first place in the leaf's stack and how many events may follow."""
        stack, first, counts = super().range(name, bindings)
        if name not in self.ranges:
            return stack, first, counts
        start = self.lookup(name, bindings)[1] if stack.keyed else np.zeros(bindings.count, np.int64)
        since, until = self.ranges[name]
        end = np.minimum(first + counts, places(stack.pos, start + until, "left"))
        first = np.maximum(first, places(stack.pos, start + since, "left"))
        return stack, first, np.where(counts > 0, np.maximum(end - first, 0), 0)


@dataclass(frozen=True)
class Moment:
    """The matches of some blocks whose last events lie in `spans`, one of each block, all at one time."""

    round: Round
    blocks: Sequence[Block]
    spans: Sequence[Span]
    kept: Sequence[str]
    limit: int
    budget: int

    def parts(self) -> Iterator[list[Bindings]]:
        """The matches in parts of at most the budget; each part comes before the next in the output."""
        yield from self._by_variable(list(range(len(self.blocks))), {}, 0)

    def _by_variable(
        self, blocks: list[int], spans: Mapping[str, Span], place: int
    ) -> Iterator[list[Bindings]]:
        """The parts of the matches within `spans`, which differ in the kept variables from `place` on."""
        if place == len(self.kept):  # all of them show the same events
            yield from ([bindings] for bindings in self._matches(blocks, spans))
            return
        name = self.kept[place]
        without = [number for number in blocks if name not in self.blocks[number].leaves]
        if without:  # a match that leaves the variable unbound comes first
            yield from self._fitting(without, spans, place + 1)
        having = [number for number in blocks if name in self.blocks[number].leaves]
        if having:
            yield from self._halved(having, spans, place, self._positions(having, name))

    def _halved(
        self, blocks: list[int], spans: Mapping[str, Span], place: int, positions: Ints
    ) -> Iterator[list[Bindings]]:
        """The parts by the positions that the variable at `place` can have."""
        middle = max(len(positions) // 2, 1)
        for some in (positions[:middle], positions[middle:]):
            if not len(some):
                continue
            narrowed = {**spans, self.kept[place]: (int(some[0]), int(some[-1]) + 1)}
            found = self._held(blocks, narrowed)
            if found is not None:
                yield found
            elif len(some) > 1:
                yield from self._halved(blocks, spans, place, some)
            else:
                yield from self._by_variable(blocks, narrowed, place + 1)

    def _fitting(self, blocks: list[int], spans: Mapping[str, Span], place: int) -> Iterator[list[Bindings]]:
        found = self._held(blocks, spans)
        if found is None:
            yield from self._by_variable(blocks, spans, place)
        else:
            yield found

    def _held(self, blocks: list[int], spans: Mapping[str, Span]) -> list[Bindings] | None:
        """The matches within the spans, None where they are more than the budget."""
        held, total = [], 0
        for bindings in self._matches(blocks, spans):
            total += bindings.count
            if total > self.budget:
                return None
            held.append(bindings)
        return held

    def _matches(self, blocks: list[int], spans: Mapping[str, Span]) -> Iterator[Bindings]:
        length = int(self.round.store.pos[-1]) + 1
        for number in blocks:
            block, (first, end) = self.blocks[number], self.spans[number]
            own = {name: span for name, span in spans.items() if name in block.leaves}
            for ranges in ranges_of(block, first, end, by_last=True, length=length):
                narrowed = _narrowed(ranges, own)
                if all(since < until for since, until in narrowed.values()):
                    join = RangeJoin(self.round, block, block, None, self.limit, narrowed)
                    yield from join.from_start(narrowed)

    def _positions(self, blocks: list[int], name: str) -> Ints:
        """The positions that a variable can have in a match of the moment."""
        store = self.round.store
        first = int(np.searchsorted(store.pos, min(self.spans[number][0] for number in blocks)))
        end = max(self.spans[number][1] for number in blocks)
        since = int(store.reach(np.array([first]))[0])
        leaves = {self.blocks[number].leaves[name] for number in blocks}
        positions = np.unique(np.concatenate([store.pos[store.leaf_rows[leaf]] for leaf in leaves]))
        return positions[np.searchsorted(positions, since) : np.searchsorted(positions, end)]


def _narrowed(ranges: Ranges, spans: Mapping[str, Span]) -> Ranges:
    """The ranges cut to the spans."""
    both = dict(ranges)
    for name, (first, end) in spans.items():
        since, until = both.get(name, (first, end))
        both[name] = (max(since, first), min(until, end))
    return both
