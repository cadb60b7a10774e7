"""Yields the matches of one moment in output order, however many there are, within a budget.

The positions of the kept events order the matches that end at one moment. So the events of the first kept
variable are halved until the remaining matches fit the budget, then those of the next variable. Each part is
found from scratch and is complete before the next: parts come in order, and only one is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream.engine.operator import Matches, Operator, Span
from nestream.engine.program import Program
from nestream.engine.windowed_events import WindowedEvents


@dataclass(frozen=True)
class Moment:
    """The matches of operators whose last events lie in `spans`, one span per operator, all at one time."""

    operators: Sequence[Operator]
    program: Program
    spans: Sequence[Span]
    store: WindowedEvents
    budget: int

    def parts(self) -> Iterator[list[Matches]]:
        """The matches in parts of at most the budget, in output order."""
        yield from self._by_variable(list(range(len(self.operators))), {}, 0)

    def _bound(self, number: int) -> Mapping[str, int]:
        return self.program.outlines[number].bound

    def _by_variable(
        self, numbers: list[int], within: Mapping[str, Span], place: int
    ) -> Iterator[list[Matches]]:
        """The parts of the matches within some spans, which differ in the kept variables from `place` on."""
        kept = self.program.kept
        if place == len(kept):  # all of them show the same events
            yield from ([found] for found in self._matches(numbers, within))
            return
        without = [number for number in numbers if kept[place] not in self._bound(number)]
        if without:  # a match with the variable unbound comes first
            found = self._held(without, within)
            if found is None:
                yield from self._by_variable(without, within, place + 1)
            else:
                yield found
        having = [number for number in numbers if kept[place] in self._bound(number)]
        if having:
            yield from self._halved(having, within, place, self._positions(having, kept[place]))

    def _halved(
        self, numbers: list[int], within: Mapping[str, Span], place: int, positions: Ints
    ) -> Iterator[list[Matches]]:
        """Split by the positions that the variable at `place` can have."""
        middle = max(len(positions) // 2, 1)
        for some in (positions[:middle], positions[middle:]):
            if not len(some):
                continue
            narrowed = {**within, self.program.kept[place]: (int(some[0]), int(some[-1]) + 1)}
            found = self._held(numbers, narrowed)
            if found is not None:
                yield found
            elif len(some) > 1:
                yield from self._halved(numbers, within, place, some)
            else:
                yield from self._by_variable(numbers, narrowed, place + 1)

    def _held(self, numbers: list[int], within: Mapping[str, Span]) -> list[Matches] | None:
        """The matches within the spans; None if they exceed the budget."""
        held, total = [], 0
        for found in self._matches(numbers, within):
            total += found.count
            if total > self.budget:
                return None
            held.append(found)
        return held

    def _matches(self, numbers: list[int], within: Mapping[str, Span]) -> Iterator[Matches]:
        for number in numbers:
            own = {name: span for name, span in within.items() if name in self._bound(number)}
            yield from self.operators[number].within(*self.spans[number], own)

    def _positions(self, numbers: list[int], name: str) -> Ints:
        """The positions that a variable can have in a match of the moment."""
        store = self.store
        first = int(np.searchsorted(store.pos, min(self.spans[number][0] for number in numbers)))
        end = max(self.spans[number][1] for number in numbers)
        since = int(store.reach(np.array([first]))[0])
        leaves = {self._bound(number)[name] for number in numbers}
        positions = np.unique(np.concatenate([store.pos[store.leaf_rows[leaf]] for leaf in leaves]))
        return positions[np.searchsorted(positions, since) : np.searchsorted(positions, end)]
