"""The cost of running an expression, alone or in a group: rows built, and nanoseconds.

The forward pass over a sequence touches the events of every step. The backward pass builds matches from its
last events, and touches the rows of every suffix that can still become a match. A shared operator does some
of that once for all its expressions. docs/papers/optimizer.md has the formulas in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from nestream.model.time import Window
from nestream_papers.optimize.rates import Rates
from nestream_papers.optimize.shape import Constraint, Shape
from nestream_papers.optimize.statistics import Statistics

A_ROW_LESS = 1e6
"""The nanoseconds that count as one row when rows decide: so many that time only breaks ties."""


@dataclass(frozen=True)
class Cost:
    """The partial matches that are built, and the expected nanoseconds of all work."""

    rows: float = 0.0
    nanoseconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.rows + other.rows, self.nanoseconds + other.nanoseconds)


@dataclass(frozen=True)
class Constants:
    """Nanoseconds per row for each kind of work; `python -m tests.optimize.calibrate` measures them."""

    step: float = 45.0
    """An event of a step in the forward pass: the search for its predecessors."""
    bound: float = 65.0
    """An event after a gap, for each constraint of the gap: the search in the staircase."""
    row: float = 0.1
    """A row that is built: its range is expanded."""
    column: float = 3.3
    """Each column of a built row: it is gathered."""
    mark: float = 6.5
    """A row, for each constraint that it is marked with."""
    test: float = 6.5
    """A row, for each predicate or late constraint that it is tested with."""
    take: float = 6.0
    """Each column of a row that is taken from shared rows: it is looked up among the own events."""
    keep: float = 185.0
    """A shared row that is sorted to be kept."""
    distinct: float = 1_650.0
    """A match that is compared with others, because other expressions could find it too."""
    call: float = 36_000.0
    """Each step of an operator, whatever its rows: the overhead of array operations."""


class Objective(StrEnum):
    """What a plan should minimise."""

    ROWS = "rows"
    """Partial matches, the cost in the paper. If two plans build equally many, time decides."""
    TIME = "time"
    """Nanoseconds on this engine."""


@dataclass(frozen=True)
class Model:
    """Costs of expressions and groups over the events that the statistics describe."""

    statistics: Statistics = field(default_factory=Statistics)
    constants: Constants = field(default_factory=Constants)
    objective: Objective = Objective.TIME

    def weight(self, cost: Cost) -> float:
        """The value to minimise."""
        if self.objective is Objective.TIME:
            return cost.nanoseconds
        return cost.rows + cost.nanoseconds / A_ROW_LESS

    def rates(self, shape: Shape) -> Rates:
        """Expected numbers for the window of a shape."""
        if shape.window not in self._by_window:
            self._by_window[shape.window] = Rates(self.statistics, shape.window)
        return self._by_window[shape.window]

    @cached_property
    def _by_window(self) -> dict[Window | None, Rates]:
        return {}

    @cached_property
    def _numbers(self) -> dict[tuple[str | int | Shape, ...], float]:
        """Cached numbers of a shape: groups ask for the same numbers again and again."""
        return {}

    # -- parts of a cost -----------------------------------------------------------------------------------

    def events(self, shape: Shape, first: int, end: int) -> float:
        """The events of the steps from `first` up to `end`."""
        return sum(self.rates(shape).events(step) for step in shape.steps[first:end])

    def passing(self, shape: Shape, constraints: Iterable[Constraint]) -> float:
        """The share of the rows that pass all of some constraints."""
        return math.prod(self.rates(shape).satisfied(shape, constraint) for constraint in constraints)

    def rows(self, shape: Shape, first: int, end: int, *, constrained: bool = True) -> float:
        """The rows of a part that pass its own constraints."""
        place = ("rows", first, end, constrained, shape)
        if place not in self._numbers:
            inside = [c for c in shape.between if first < c.gap < end] if constrained else []
            found = self.rates(shape).rows(shape, first, end)
            self._numbers[place] = found * self.passing(shape, inside)
        return self._numbers[place]

    def matches(self, shape: Shape) -> float:
        """The matches of an expression."""
        return self.rates(shape).rows(shape, 0, len(shape)) * self.passing(shape, shape.constraints)

    def alive(self, shape: Shape, first: int) -> float:
        """The share of the rows from a step on that extend to the first step in the window."""
        found, whole = self.rows(shape, first, len(shape)), self.rows(shape, 0, len(shape))
        return _extended(found, whole) if first else 1.0

    def forward(self, shape: Shape, first: int, end: int, constraints: Sequence[Constraint]) -> Cost:
        """The forward pass through some steps, with bounds on the gaps before them."""
        constants, rates = self.constants, self.rates(shape)
        events = self.events(shape, first, end)
        bounded = sum(rates.events(shape.steps[c.gap]) for c in constraints if first <= c.gap < end)
        calls = (end - first) * constants.call
        return Cost(0.0, events * constants.step + bounded * constants.bound + calls)

    def built(self, rows: float, columns: int) -> Cost:
        """Building rows of that many columns."""
        return Cost(rows, rows * (self.constants.row + columns * self.constants.column))

    def backward(self, shape: Shape, first: int, end: int) -> Cost:
        """The backward pass from `end` (exclusive) down to `first`, from the last events of matches."""
        total = Cost()
        for level in range(end - 1, first - 1, -1):
            rows = self.rows(shape, level, len(shape)) * self.alive(shape, level)
            total += self.built(rows, len(shape) - level)
            total += self.tested(rows, sum(not j.equal and j.first == level for j in shape.joints))
        return total

    def tested(self, rows: float, tests: int) -> Cost:
        """Rows that are tested that many times."""
        return Cost(0.0, rows * tests * self.constants.test)

    def late(self, shape: Shape) -> Cost:
        """The constraints that are not bounds: each match without them is tested."""
        late = len(shape.constraints) - len(shape.between)
        return self.tested(self.rows(shape, 0, len(shape)), late)

    def compared(self, matches: float, others: bool) -> Cost:
        """Matches that must be made distinct, if others could be the same."""
        return Cost(0.0, matches * self.constants.distinct) if others else Cost()

    # -- operators -----------------------------------------------------------------------------------------

    def alone(self, shape: Shape) -> Cost:
        """An expression by itself."""
        if not shape.ordered:
            return self.joined(shape)
        forward = self.forward(shape, 0, len(shape), shape.between)
        return forward + self.backward(shape, 0, len(shape)) + self.late(shape)

    def joined(self, shape: Shape) -> Cost:
        """An expression that is not a sequence, as a join in text order."""
        total = Cost(0.0, len(shape) * self.constants.call)
        for end in range(1, len(shape) + 1):
            rows = self.rows(shape, 0, end, constrained=False) * math.factorial(end - 1)
            total += self.built(rows, end)
        return total + self.late(shape)

    def marking(self, shapes: Sequence[Shape]) -> Cost:
        """Expressions with the same steps and different constraints: every row is built once, with marks.

        A row stays as long as some expression allows it; a constraint of all of them is a bound.
        """
        one, length = shapes[0], len(shapes[0])
        sets = [{(c.gap, c.text): c for c in shape.constraints} for shape in shapes]
        common = set(sets[0]).intersection(*sets[1:])
        known = {place: c for own in sets for place, c in own.items()}
        different = [c for place, c in known.items() if place not in common]
        bounds = [c for place, c in known.items() if place in common and one.is_between(c)]
        total = self.forward(one, 0, length, [*bounds, *(c for c in different if one.is_between(c))])
        whole = self.rows(one, 0, length, constrained=False) * self.some(shapes, 0)
        for level in range(length - 1, -1, -1):
            found = self.rows(one, level, length, constrained=False) * self.some(shapes, level)
            rows = found * (_extended(found, whole) if level else 1.0)
            total += self.built(rows, length - level)
            total += self.tested(rows, sum(not j.equal and j.first == level for j in one.joints))
            marks = rows * sum(one.is_between(c) and c.gap == level + 1 for c in different)
            total += Cost(0.0, marks * self.constants.mark)
        late = sum(not one.is_between(c) for c in known.values())
        total += self.tested(self.rows(one, 0, length, constrained=False) * self.some(shapes, 0), late)
        return total + Cost(0.0, len(different) * self.constants.call)

    def some(self, shapes: Sequence[Shape], level: int) -> float:
        """The share of the rows from a level on that pass the constraints of some expression."""
        none = 1.0
        for shape in shapes:
            place = ("passing", level, shape)
            if place not in self._numbers:
                later = (c for c in shape.between if c.gap > level)
                self._numbers[place] = self.passing(shape, later)
            none *= 1.0 - self._numbers[place]
        return 1.0 - none

    def core(self, shape: Shape, first: int, end: int) -> Cost:
        """Shared steps by themselves: the forward pass, and all their rows, in a match or not."""
        total = self.forward(shape, first, end, [c for c in shape.between if c.gap > first])
        for level in range(end - 1, first - 1, -1):
            total += self.built(self.rows(shape, level, end), end - level)
        return total

    def kept(self, shape: Shape, first: int, end: int) -> Cost:
        """Shared rows that are kept, because expressions reach them from their last events."""
        rows = self.rows(shape, first, end)
        return self.core(shape, first, end) + Cost(0.0, rows * self.constants.keep)

    def taken(self, steps: int, rows: float) -> Cost:
        """Rows of shared steps that an expression takes over, column by column."""
        return Cost(0.0, rows * steps * self.constants.take + self.constants.call)

    def around(self, shape: Shape, first: int, end: int) -> Cost:
        """What an expression needs besides kept rows of the steps from `first` up to `end`.

        Its own forward pass; its last steps backward; the shared rows before these; its first steps.
        """
        length = len(shape)
        total = self.forward(shape, 0, length, shape.between) + self.late(shape)
        total += self.backward(shape, end, length)
        joined = self.rows(shape, first, length)
        total += self.taken(end - first, joined) + Cost(joined if end < length else 0.0, 0.0)
        return total + self.backward(shape, 0, first)

    def before(self, shape: Shape, length: int) -> Cost:
        """What an expression needs besides the rows of a shared suffix: its forward pass and other steps."""
        first = len(shape) - length
        total = self.forward(shape, 0, len(shape), shape.between) + self.late(shape)
        total += self.taken(len(shape) - first, self.rows(shape, first, len(shape)))
        return total + self.backward(shape, 0, first)


def _extended(rows: float, matches: float) -> float:
    """The share of rows that some match is built from, if matches hit rows at random."""
    return -math.expm1(-matches / rows) if rows > 0 else 0.0
