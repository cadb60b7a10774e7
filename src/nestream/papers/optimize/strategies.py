"""What each strategy is expected to cost for a query with negations that are no bounds, and which is chosen.

Where every negation is a bound there is nothing to choose. Elsewhere the strategies differ in how often they
look at an inner query: a lateral join for each outer result that differs in what the inner query depends on,
nested execution for each outer result, a view once for each result of its own and, after that, once for each
window's worth of events. docs/optimizer.md has the formulas in words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nestream.papers.optimize.cost import Cost, Model
from nestream.papers.optimize.shape import Shape

WORTH_A_CHANGE = 0.9
"""Another strategy than bounds is chosen if it is expected to take at most this share of the time."""
SLIDE = 2_048.0
"""The fewest events that a view slides on at a time."""


@dataclass(frozen=True)
class Inner:
    """A negated expression: its events with what relates them, and how it hangs on what is around it.

    `level` is the first of the outer steps that it needs; `links` are the attributes of its steps, by place,
    that equal an outer one; `tests` is the number of other predicates that mention outer events. `witness`
    says that it must be found, and is, by a search for each of its events. `number` is that of the negation.
    """

    shape: Shape
    bound: bool = False
    level: int = 0
    links: tuple[tuple[int, str], ...] = ()
    tests: int = 0
    inside: tuple[Inner, ...] = ()
    witness: bool = False
    number: int = -1

    @property
    def is_sought(self) -> bool:
        """Whether a search for each outer result answers it."""
        return self.bound or self.witness


@dataclass(frozen=True)
class Outline:
    """A block: its positive events, what it negates, and where what is nested and not negated stands."""

    shape: Shape
    inner: tuple[Inner, ...] = ()
    nested: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Work:
    """Nanoseconds of the work that the cost of shared operators does not know.

    `python -m tests.optimize.calibrate_strategies` measures them.
    """

    begin: float = 1_250_000.0
    """A run, whatever it finds."""
    give: float = 265.0
    """A match that is put in order and given."""
    call: float = 92_000.0
    """Each step of a join, whatever its rows."""
    column: float = 6.0
    """A column of a row of a join."""
    test: float = 12.5
    """A row for each predicate."""
    slide: float = 500_000.0
    """Each time that the views of a query slide on, and again for each view."""
    held: float = 29.0
    """An inner result that a view takes in."""
    built: float = 0.7
    """A row of an outer result, on the way from its last event."""
    look: float = 150.0
    """An outer result that a view is asked for."""
    apart: float = 50.0
    """A match that other expressions could give too."""
    few: float = 4.0
    """How many events of an inner query an outer result is tried with first."""


@dataclass(frozen=True)
class Alternative:
    """A strategy that was considered."""

    strategy: str
    cost: Cost


@dataclass(frozen=True)
class Strategies:
    """Costs of blocks by each strategy, over the events that the statistics of a model are about."""

    model: Model
    work: Work = field(default_factory=Work)

    # -- inner queries -------------------------------------------------------------------------------------

    def joined(self, inner: Inner, outer: float, columns: int, steps: int, *, once: bool) -> Cost:
        """An inner query by a lateral join for so many outer results of so many columns, `steps` in order.

        The gap between two of m + 1 steps in a window is distributed like the least of m even cuts, so k
        events in order fall into it (rate * W)^k * m! / (m + k)! times.
        """
        shape = inner.shape
        rates, events = self.model.rates(shape), self._in_window(inner)
        total, rows, bound, tried = Cost(), outer, set[int](), 1.0
        for count, place in enumerate(sorted(events, key=events.__getitem__), 1):
            bound.add(place)
            rows *= events[place] / (steps - 1 + count) * (1.0 if shape.ordered else count)
            tried = rows / outer if count == 1 and outer else tried
            tests, built = inner.tests if count == 1 else 0, rows
            for joint in shape.joints:
                if {joint.first, joint.last} <= bound and place in (joint.first, joint.last):
                    rows *= rates.joined(shape, joint)
                    tests += joint.equal is None
                    built = built if joint.equal is None else rows
            total += self._built(built, columns + count, tests)
        if once:
            total = self._stopped(total, tried, rows / outer if outer else 0.0)
        for nested in inner.inside:
            own = self.model.rows(shape, 0, len(shape)) if once else math.inf
            total += self.negated(nested, min(rows, own), columns + len(shape), len(shape), once=once)
        return total

    def _stopped(self, whole: Cost, tried: float, found: float) -> Cost:
        """A join that takes the first events a few at a time, and ends for an outer result with a match."""
        needed = max(self.work.few, 2.0 * tried / found) if found > 0.0 else tried
        share = min(1.0, needed / tried) if tried > 0.0 else 1.0
        return Cost(whole.rows * share, whole.nanoseconds * share)

    def negated(self, inner: Inner, outer: float, columns: int, steps: int, *, once: bool = True) -> Cost:
        """A negation that may be a bound."""
        if inner.is_sought:
            return Cost(0.0, outer * self.model.constants.bound * len(inner.shape))
        return self.joined(inner, outer, columns, steps, once=once)

    def _in_window(self, inner: Inner) -> Mapping[int, float]:
        """How many events of each step a window has, of those that its links leave."""
        rates = self.model.rates(inner.shape)
        found = {place: rates.in_window(step) for place, step in enumerate(inner.shape.steps)}
        for place, attribute in inner.links:
            found[place] /= max(rates.domain(attribute), 1.0)
        return found

    def _built(self, rows: float, columns: int, tests: int = 0) -> Cost:
        work = self.work
        return Cost(rows, rows * (columns * work.column + tests * work.test) + work.call)

    def begin(self) -> Cost:
        """What every run does."""
        return Cost(0.0, self.work.begin)

    def given(self, outline: Outline) -> Cost:
        """What every way does with the matches of a block."""
        matches = self.model.matches(outline.shape)
        for inner in outline.inner:
            if not inner.is_sought:
                matches *= self.passing(inner, len(outline.shape))
        return Cost(0.0, matches * self.work.give)

    def distinct(self, outlines: Sequence[Outline]) -> Cost:
        """What it takes to give matches once that several blocks may find."""
        matches = sum(self.model.matches(outline.shape) for outline in outlines)
        return Cost(0.0, matches * self.work.apart if len(outlines) > 1 else 0.0)

    def passing(self, inner: Inner, steps: int) -> float:
        """The share of outer results for which an inner query has no match."""
        found, shape = 1.0, inner.shape
        for count, events in enumerate(self._in_window(inner).values(), 1):
            found *= events / (steps - 1 + count) * (1.0 if shape.ordered else count)
        for joint in shape.joints:
            found *= self.model.rates(shape).joined(shape, joint)
        for nested in inner.inside:
            found *= 1.0 if nested.is_sought else self.passing(nested, len(shape))
        return 1.0 / (1.0 + found)

    # -- blocks --------------------------------------------------------------------------------------------

    def own(self, outline: Outline) -> Cost:
        """The engine's own way: negations that are no bounds are lateral joins, as early as they can be."""
        shape = outline.shape
        total = self.given(outline) + self.model.alone(shape) + self._dropped(shape, 0, len(shape))
        for inner in outline.inner:
            level = inner.level if shape.ordered else 0
            rows = self.model.rows(shape, level, len(shape)) * self.model.alive(shape, level)
            total += self.negated(inner, rows, len(shape) - level, len(shape) - level)
        return total

    def nested(self, outline: Outline) -> Cost:
        """Iterative nested execution: every negated expression for every outer result."""
        total = self.given(outline) + self._outer(outline.shape) + self._within(outline)
        whole = self.model.rows(outline.shape, 0, len(outline.shape), constrained=False)
        for inner in outline.inner:
            each = Inner(inner.shape, inner.bound and len(inner.shape) == 1, 0, inner.links, inner.tests)
            total += self.negated(each, whole, len(outline.shape), len(outline.shape), once=False)
            for nested in inner.inside:
                total += self.joined(nested, whole, len(outline.shape), len(outline.shape), once=False)
        return total

    def views(self, outline: Outline) -> Cost:
        """Nested execution that answers inner queries from views, which slide over the events."""
        return self.around_views(outline) + sum((self.viewed(i, outline) for i in outline.inner), Cost())

    def around_views(self, outline: Outline) -> Cost:
        """The same without what is negated, bounds apart."""
        total = self.given(outline) + Cost(0.0, self.slides(outline.shape) * self.work.slide)
        return total + (self._around(outline) if outline.nested else self._outer(outline.shape))

    def viewed(self, inner: Inner, outline: Outline) -> Cost:
        """An inner query that a view answers for every outer result."""
        outer = self.model.rows(outline.shape, 0, len(outline.shape))
        if inner.is_sought:
            return self.negated(inner, outer, len(outline.shape), len(outline.shape))
        return self._viewed(inner, outer, len(outline.shape))

    def unviewed(self, inner: Inner, outline: Outline) -> Cost:
        """The same by a lateral join, beside views of others."""
        outer = self.model.rows(outline.shape, 0, len(outline.shape))
        return self.negated(inner, outer, len(outline.shape), len(outline.shape))

    def _within(self, outline: Outline) -> Cost:
        """Nested expressions that are not negated, for each result of the steps around them."""
        total, around = Cost(), _around(outline)
        outer = self._results(around)
        for first, end in outline.nested:
            inner = Inner(_part(outline.shape, first, end))
            total += self.joined(inner, outer, len(around), max(len(around), 1), once=False)
        return total

    def _results(self, shape: Shape) -> float:
        """The rows of steps in order; where there are no steps, the one that binds nothing."""
        return self.model.rates(shape).rows(shape, 0, len(shape)) if len(shape) else 1.0

    def _outer(self, shape: Shape) -> Cost:
        """Outer results from their last events, be they part of a match or not."""
        total = Cost()
        for level in range(len(shape) - 1, -1, -1):
            rows = self.model.rows(shape, level, len(shape))
            total += Cost(rows, rows * self.work.built * (len(shape) - level) + self.work.call)
        return total

    def _dropped(self, shape: Shape, first: int, end: int) -> Cost:
        """The rows from some steps, taken from the last, that a predicate drops once they are built."""
        constants, total = self.model.constants, Cost()
        for level in range(end - 1, first - 1, -1):
            due = [j for j in shape.joints if j.equal is None and j.first == level and j.last < end]
            passing = math.prod(self.model.rates(shape).joined(shape, joint) for joint in due)
            rows = self.model.rows(shape, level, end) * (1.0 / max(passing, 1e-9) - 1.0)
            each = constants.row + constants.column * (end - level) + 2 * self.work.test * len(due)
            total += Cost(rows, rows * each)
        return total

    def _around(self, outline: Outline) -> Cost:
        """Nested expressions from views, each result found once, and the steps around them."""
        work, shape = self.work, outline.shape
        around = _around(outline)
        pairs = self._results(around)
        total = Cost(pairs, pairs * (work.look + work.built * len(around)))
        for first, end in outline.nested:
            results = self.model.rows(shape, first, end)
            total += self.model.core(shape, first, end) + self._dropped(shape, first, end)
            total += Cost(results, results * work.held + self.slides(shape) * work.slide)
        return total

    def _viewed(self, inner: Inner, outer: float, steps: int) -> Cost:
        work, shape = self.work, inner.shape
        if inner.tests:  # its results differ from one outer result to the next
            lateral = self.joined(inner, outer, steps, steps, once=False)
            return Cost(2 * lateral.rows, 2 * lateral.nanoseconds)
        results = self.model.rows(shape, 0, len(shape))
        total = Cost(results, self.slides(shape) * work.slide)
        total += Cost(0.0, results * work.held + outer * work.look)
        for nested in inner.inside:
            total += self._viewed(nested, results, len(shape))
        return total

    def slides(self, shape: Shape) -> float:
        """How many times a view slides on."""
        rates = self.model.rates(shape)
        events = max(self.model.statistics.events, 1.0)
        return events / max(events * rates.size / rates.span, SLIDE)


def _around(outline: Outline) -> Shape:
    """The steps around what is nested, without what relates them."""
    shape = outline.shape
    inside = {place for first, end in outline.nested for place in range(first, end)}
    steps = tuple(step for place, step in enumerate(shape.steps) if place not in inside)
    return Shape(shape.name, steps, window=shape.window)


def _part(shape: Shape, first: int, end: int) -> Shape:
    """Some steps of a shape in a row, with what relates them."""
    joints = tuple(
        replace(joint, first=joint.first - first, last=joint.last - first)
        for joint in shape.joints
        if first <= joint.first and joint.last < end
    )
    return Shape(shape.name, shape.steps[first:end], joints=joints, window=shape.window)


def cheapest(alternatives: Sequence[Alternative]) -> Alternative:
    """The first, unless another is clearly cheaper: estimates are not exact."""
    first = alternatives[0]
    best = min(alternatives, key=lambda one: one.cost.nanoseconds)
    return best if best.cost.nanoseconds <= WORTH_A_CHANGE * first.cost.nanoseconds else first
