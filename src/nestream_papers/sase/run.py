"""Runs a sequence by SASE's plan: scan and construction, then selection, window and negation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream_papers.engine.chain import Chain
from nestream_papers.engine.context import Bindings
from nestream_papers.engine.runs import BlockRun
from nestream_papers.sase.basic import BasicConstruction
from nestream_papers.sase.construction import Construction, equal
from nestream_papers.sase.plan import Equivalence, SequencePlan, sequence_plan
from nestream_papers.sase.scan import State, scanned

_SAMPLE = 64
"""How many accepting instances are sampled to estimate the number of matches."""


class SequenceRun(BlockRun):
    """A sequence block run by SASE's operators, if its matches are wanted by their last event.

    If they are wanted by their first one, as on a stream when they wait for the end of the window, the
    general join finds them.
    """

    @cached_property
    def plan(self) -> SequencePlan:
        """What each operator does; the test with the most values is the most selective."""
        return sequence_plan(self.block, self.evaluation.program.options, self._values)

    def _values(self, test: Equivalence) -> int:
        return max(self.evaluation.keys.size((attribute,)) for attribute in test.values())

    @cached_property
    def states(self) -> list[State]:
        """The states after the scan."""
        return scanned(self.evaluation, self.block, self.plan, self.limit)

    @cached_property
    def construction(self) -> Construction:
        """Finds the sequences that end with an event."""
        kind = Construction if self.plan.stacks else BasicConstruction
        return kind(self.evaluation, self.block, self.plan, self.states, self.limit)

    def chain(self, first: int, end: int) -> Chain | None:
        """None: it does not run as the engine's own chain."""
        return None

    def run(self, first: int, end: int) -> Iterator[Bindings]:
        """The matches decided in a range of positions."""
        if not self.by_last and (first > 0 or end < self.length):
            yield from super().run(first, end)
            return
        yield from self.ending_with(self.accepting(first, end))

    def ending_with(self, accepting: Ints) -> Iterator[Bindings]:
        """The matches of accepting instances, in pieces."""
        for sequences in self.construction.sequences(accepting):
            found = self.negation(self.window(self.selection(sequences)))
            if found.count:
                yield found

    def promising(self, first: int, end: int) -> int:
        """How many positions at a time are expected to stay within the budget, from a sample."""
        accepting = self.accepting(first, end)
        if not self.by_last or len(accepting) < 8 * _SAMPLE:
            return end - first
        sample = accepting[:: len(accepting) // _SAMPLE]
        found = sum(matches.count for matches in self.ending_with(sample))
        expected = found / len(sample) * len(accepting)
        return max(1, int((end - first) * min(1.0, 0.7 * self.limit / max(expected, 1.0))))

    def accepting(self, first: int, end: int) -> Ints:
        """The places of the accepting instances with positions in a range, in order."""
        stack = self.states[-1].stack
        positions = self.evaluation.store.pos[stack.rows]
        places = np.flatnonzero((positions >= first) & (positions < end))
        return places[np.argsort(positions[places], kind="stable")]

    def selection(self, sequences: Bindings) -> Bindings:
        """The sequences that satisfy the equalities and predicates left to it."""
        for test in self.plan.selection:
            sequences = sequences.only(equal(self.evaluation, test, sequences))
        for predicate in self.block.predicates:
            if sequences.count:
                sequences = sequences.only(self.evaluation.satisfied(predicate, sequences))
        return sequences

    def window(self, sequences: Bindings) -> Bindings:
        """The sequences within the window, if the construction did not ensure it."""
        if self.plan.window_construction or not sequences.count:
            return sequences
        names, store = self.construction.names, self.evaluation.store
        fits = store.pos[sequences.rows[names[0]]] >= store.reach(sequences.rows[names[-1]])
        return sequences.only(fits)

    def negation(self, sequences: Bindings) -> Bindings:
        """The sequences without those that a negation rejects or that lack a witness."""
        join = self.new_join()
        for constraint in self.block.constraints:
            if sequences.count:
                sequences = sequences.only(join.satisfies(constraint, sequences))
        return sequences
