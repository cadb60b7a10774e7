"""Sequence construction from active instance stacks: from each accepting instance back, state by state.

Every instance records the most recent instance of the previous state; that one and those below it in its
partition are its predecessors. With windows in the construction, the search ends at the window of the
accepting event. Without, it continues to the bottom of the stack: to what the scan has left there, if windows
are in the scan. A stack is pruned when an event of the next state looks into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream.engine.program import Equality
from nestream_papers.engine.context import Bindings, Evaluation, Mask
from nestream_papers.engine.join import _pieces, _split
from nestream_papers.engine.program import Block
from nestream_papers.engine.stack import expand, places
from nestream_papers.sase.plan import SequencePlan, attributes_of
from nestream_papers.sase.scan import State


@dataclass
class Partial:
    """Partial sequences: the rows of their events from some state on, and the place of the first."""

    rows: list[Ints]
    place: Ints
    accepting: Ints

    def __len__(self) -> int:
        return len(self.place)

    def only(self, which: Ints | Mask | slice) -> Partial:
        """Some of them."""
        return Partial([column[which] for column in self.rows], self.place[which], self.accepting[which])


class Construction:
    """All sequences of accepting instances, built from the stacks."""

    def __init__(
        self, evaluation: Evaluation, block: Block, plan: SequencePlan, states: list[State], limit: int
    ) -> None:
        assert block.chain is not None
        self.evaluation = evaluation
        self.block = block
        self.plan = plan
        self.states = states
        self.names = block.chain
        self.limit = limit
        self._oldest: dict[int, Ints] = {}

    def sequences(self, accepting: Ints) -> Iterator[Bindings]:
        """The sequences of accepting instances, given by their places, in pieces."""
        if len(accepting):
            rows = self.states[-1].stack.rows[accepting]
            yield from self.extended(Partial([rows], accepting, accepting), len(self.names) - 1)

    def extended(self, partial: Partial, level: int) -> Iterator[Bindings]:
        """Extend partial sequences, which begin at a state, back to the first state."""
        if level == 0:
            yield Bindings(dict(zip(self.names, partial.rows, strict=True)), len(partial))
            return
        if not len(partial):
            return
        first, end = self.range(partial, level)
        counts = np.maximum(end - first, 0)
        if counts.max() > self.limit:
            which, first, counts = _split(first, counts, self.limit)
            partial = partial.only(which)
        for piece in _pieces(counts, self.limit):
            run, place = expand(counts[piece], first[piece])
            part = partial.only(piece).only(run)
            longer = Partial([self.rows(level - 1, place), *part.rows], place, part.accepting)
            yield from self.extended(self.filtered(longer, level - 1), level - 1)

    def range(self, partial: Partial, level: int) -> tuple[Ints, Ints]:
        """The places of the instances of the previous state that precede each first event."""
        return self.oldest(level - 1)[partial.accepting], self.states[level].recent[partial.place]

    def rows(self, level: int, place: Ints) -> Ints:
        """The rows of instances of a state."""
        return self.states[level].stack.rows[place]

    def oldest(self, level: int) -> Ints:
        """For each accepting instance, the first place of a state's stack that its construction visits."""
        if level not in self._oldest:
            stack, accepting = self.states[level].stack, self.states[-1].stack
            if self.plan.window_construction:
                since = accepting.reach
            elif self.plan.window_scan:
                since = self._pruned(level)
            else:
                since = accepting.start
            self._oldest[level] = places(stack.pos, since, "left")
        return self._oldest[level]

    def _pruned(self, level: int) -> Ints:
        """For each accepting instance, how far a stack was pruned when an event last looked into it."""
        name = self.names[level + 1]
        looking = self.evaluation.stack(self.block.leaves[name], attributes_of(self.plan.partition, name))
        last = places(looking.pos, self.states[-1].stack.pos, "right") - 1
        return looking.reach[last]

    def filtered(self, partial: Partial, level: int) -> Partial:
        """The partial sequences that pass the construction tests that are now decidable."""
        for left, right in self.due(level):
            mine = self._numbers(partial, level, left)
            partial = partial.only((mine == self._numbers(partial, level, right)) & (mine >= 0))
        return partial

    def due(self, level: int) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
        """The terms of the equalities whose last event found is that of a state."""
        known = self.names[level:]
        for test in self.plan.construction:
            names = (test.left[0], test.right[0])
            if self.names[level] in names and all(name in known for name in names):
                yield test.left, test.right

    def _numbers(self, partial: Partial, level: int, term: tuple[str, str]) -> Ints:
        rows = partial.rows[self.names.index(term[0]) - level]
        return self.evaluation.keys.numbers((term[1],))[rows]


def equal(evaluation: Evaluation, test: Equality, bindings: Bindings) -> Mask:
    """Which sequences satisfy an equality."""
    (left, one), (right, other) = test.left, test.right
    mine = evaluation.keys.numbers((one,))[bindings.rows[left]]
    found: Mask = (mine == evaluation.keys.numbers((other,))[bindings.rows[right]]) & (mine >= 0)
    return found
