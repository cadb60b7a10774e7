"""Sequence scan: the automaton's states as stacks of the events that made a transition to them.

An event makes the transition if the stack of the previous state, in its partition, has an instance that comes
before the event. With windows in the scan, that instance must also be in one window with the event. With
Multi-PAIS, there must be one in the stacks of all equivalence attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream_papers.engine.context import Evaluation, Mask
from nestream_papers.engine.join import _pieces
from nestream_papers.engine.program import Block
from nestream_papers.engine.stack import Stack, before, expand, places
from nestream_papers.sase.plan import Equivalence, SequencePlan, attributes_of


@dataclass
class State:
    """The active instances of a state, by partition and time.

    For each instance, `recent` is one past the most recent instance of the previous state (its RIP), and
    `bottom` is the first of its partition there.
    """

    stack: Stack
    recent: Ints
    bottom: Ints


def scanned(evaluation: Evaluation, block: Block, plan: SequencePlan, limit: int) -> list[State]:
    """The states of a sequence after all events."""
    assert block.chain is not None
    states: list[State] = []
    for place, name in enumerate(block.chain):
        stack = evaluation.stack(block.leaves[name], attributes_of(plan.partition, name))
        if place == 0:
            nothing = np.zeros(len(stack), np.int64)
            states.append(State(stack, nothing, nothing))
            continue
        earlier = states[-1].stack
        recent, bottom = before(earlier, stack.low), places(earlier.pos, stack.start, "left")
        oldest = places(earlier.pos, stack.reach, "left") if plan.window_scan else bottom
        makes = recent > oldest
        if plan.multiple:
            pair = (block.chain[place - 1], name)
            made = np.flatnonzero(makes)
            crossing = _Crossing(evaluation, plan, pair, earlier, stack.only(made), limit)
            makes[made] = crossing.found((oldest[made], recent[made]))
        kept = np.flatnonzero(makes)
        states.append(State(stack.only(kept), recent[kept], bottom[kept]))
    return states


class _Crossing:
    """Cross-attribute transition filtering between two states."""

    def __init__(
        self,
        evaluation: Evaluation,
        plan: SequencePlan,
        pair: tuple[str, str],
        earlier: Stack,
        stack: Stack,
        limit: int,
    ) -> None:
        self.evaluation = evaluation
        self.plan = plan
        self.pair = pair
        self.stack = stack
        self.limit = limit
        self.partitioned = [earlier]
        rows = np.sort(earlier.rows)
        for test in plan.multiple:  # every instance is kept once for each equivalence attribute
            numbers = evaluation.keys.numbers((test[pair[0]],))
            self.partitioned.append(Stack(evaluation.store, rows, numbers, evaluation.stride))

    def found(self, leading: tuple[Ints, Ints]) -> Mask:
        """Which events have an instance in the stacks of all attributes, given those of the first."""
        ranges = [leading, *map(self._range, self.partitioned[1:], self.plan.multiple)]
        sizes = np.array([np.maximum(end - first, 0) for first, end in ranges])
        smallest = sizes.argmin(axis=0)
        found = np.zeros(len(self.stack), bool)
        for number, (first, _) in enumerate(ranges):
            events = np.flatnonzero((smallest == number) & (sizes[number] > 0))
            counts = sizes[number][events]
            for piece in _pieces(counts, self.limit):
                run, place = expand(counts[piece], first[events[piece]])
                candidates = events[piece][run]
                instances = self.partitioned[number].rows[place]
                found[candidates[self._in_all(instances, self.stack.rows[candidates])]] = True
        return found

    def _range(self, partitioned: Stack, test: Equivalence) -> tuple[Ints, Ints]:
        """For each event, the places of the instances that have its value and come before it."""
        own, store = self.stack.rows, self.evaluation.store
        number = self.evaluation.keys.numbers((test[self.pair[1]],))[own]
        start = number * self.evaluation.stride
        since = store.reach(own) if self.plan.window_scan else np.zeros(len(own), np.int64)
        first = places(partitioned.pos, start + since, "left")
        end = before(partitioned, start + store.low[own])
        return first, np.where(number < 0, first, end)

    def _in_all(self, instances: Ints, events: Ints) -> Mask:
        """Whether each instance has the values of its event."""
        same = np.ones(len(instances), bool)
        for left, right in self._numbers():
            same &= (left[instances] == right[events]) & (left[instances] >= 0)
        return same

    def _numbers(self) -> Iterator[tuple[Ints, Ints]]:
        for test in (*self.plan.partition, *self.plan.multiple):
            yield tuple(self.evaluation.keys.numbers((test[name],)) for name in self.pair)  # type: ignore[misc]
