"""Finds which events decide matches, one at a time: as the last event, or when time or a window has passed.

Positions, the watermark and what is decided when are those of the columnar matcher, so that either can take
over from the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from nestream.engine.native import NativeProgram
from nestream.engine.program import Decided, LeafSpec, Measure
from nestream.engine.single.formulas import Binding, Formulas, Row
from nestream.engine.single.search import Reach, Search
from nestream.engine.single.stacks import Stacks


class Found(NamedTuple):
    """A match of one of the programs."""

    program: int
    binding: Binding


@dataclass
class Anchored:
    """One operator of a program: the searches that begin with an event of a leaf, and the waiting events."""

    program: int
    decided: Decided
    reach: Reach
    searches: dict[int, list[tuple[str, Search]]]
    waiting: deque[tuple[Row, int]]
    """Events of a leaf that may be the last, or first, of an undecided match."""

    def ready(self, watermark: int, seen: int) -> Iterator[tuple[Row, int]]:
        """Remove and return the waiting events whose matches a watermark decides."""
        while self.waiting and self._is_decided(self.waiting[0][0], watermark, seen):
            yield self.waiting.popleft()

    def _is_decided(self, row: Row, watermark: int, seen: int) -> bool:
        match self.decided:
            case Decided.LAST:
                return True
            case Decided.CLOSED:
                return row[0] < watermark
        match self.reach.measure:
            case Measure.TIME:
                return row[0] + self.reach.window < watermark + self.reach.exclusive
            case Measure.EVENTS:
                return row[1] + self.reach.window <= seen
        return False

    def matches(self, row: Row, leaf: int) -> Iterator[Found]:
        """The matches that an event of a leaf ends, or begins."""
        by_last = self.decided is not Decided.WINDOW
        for name, search in self.searches[leaf]:
            for binding in search.matches(name, row, by_last=by_last):
                yield Found(self.program, binding)


Ready: TypeAlias = tuple[Anchored, Row, int]
"""An event of a leaf that decides matches of an operator."""


class SingleMatcher:
    """Programs over the same events, which arrive one at a time by time and arrival."""

    def __init__(
        self, programs: Sequence[NativeProgram], leaves: Sequence[LeafSpec], formulas: Formulas
    ) -> None:
        self.programs = programs
        self.operators = [
            _anchored(number, place, program, formulas)
            for number, program in enumerate(programs)
            for place in range(len(program.outlines))
        ]
        steps = [
            step
            for operator in self.operators
            for found in operator.searches.values()
            for _, search in found
            for step in search.walk()
        ]
        self.stacks = Stacks(leaves, [step.asked for step in steps], formulas)
        for step in steps:
            step.stack = self.stacks.found[step.asked]
        self._by_leaf: dict[int, list[Anchored]] = {}
        for operator in self.operators:
            for leaf in operator.searches:
                self._by_leaf.setdefault(leaf, []).append(operator)
        self._busy: dict[int, Anchored] = {}
        """The operators with waiting events."""
        self.seen = 0

    def add(self, type: str, row: Row) -> None:
        """Take the next event."""
        self.seen = row[1] + 1
        for leaf in self.stacks.add(type, row):
            for operator in self._by_leaf.get(leaf, ()):
                operator.waiting.append((row, leaf))
                self._busy[id(operator)] = operator

    def pass_over(self, decided: Sequence[Sequence[int]]) -> None:
        """Drop the waiting events before some positions, for each operator of each program."""
        positions = [position for own in decided for position in own]
        for operator, position in zip(self.operators, positions, strict=True):
            while operator.waiting and operator.waiting[0][0][1] < position:
                operator.waiting.popleft()

    def ready(self, watermark: int) -> list[Ready]:
        """The events that decide something at a watermark, each once."""
        if not self._busy:
            return []
        found: list[Ready] = []
        for number, operator in list(self._busy.items()):
            found += [(operator, row, leaf) for row, leaf in operator.ready(watermark, self.seen)]
            if not operator.waiting:
                del self._busy[number]
        return found

    def expire(self, watermark: int) -> None:
        """Forget the events that cannot be part of an undecided match."""
        times: list[int] = []
        positions: list[int] = []
        for program in self.programs:
            if program.measure is Measure.NONE:
                return
            windows = 2 if Decided.WINDOW in program.decided and program.looks_back else 1
            if program.measure is Measure.TIME:
                times.append(watermark - windows * program.window)
            else:
                positions.append(self.seen - windows * program.window)
        for operator in self._busy.values():
            if operator.waiting and operator.reach.measure is Measure.EVENTS:
                positions.append(operator.waiting[0][0][1] - operator.reach.window)
        self.stacks.expire(min(times, default=None), min(positions, default=None))


def _anchored(number: int, place: int, program: NativeProgram, formulas: Formulas) -> Anchored:
    outline, block = program.outlines[place], program.physical[place].block
    reach = Reach(program.measure, program.window, program.exclusive, program.by_arrival)
    by_last = outline.decided is not Decided.WINDOW
    searches: dict[int, list[tuple[str, Search]]] = {}
    for name in outline.last if by_last else outline.first:
        search = Search(block, [name], reach, formulas, backward=by_last)
        searches.setdefault(outline.bound[name], []).append((name, search))
    return Anchored(number, outline.decided, reach, searches, deque())
