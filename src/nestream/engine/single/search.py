"""Finds the matches of a block that one event ends, or begins, by looking up events variable by variable.

The order in which variables are bound is fixed when the query is planned: starting with the given event,
first those that an equality leads to. The candidates of each variable are a stretch of its stack: within the
window, between the events that the pattern puts around it. A negation is searched in the same way, inside its
interval. This is the lateral join for a single event. It gives up when it would visit too many events.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nestream.engine.block import Block, Negation, closure
from nestream.engine.program import Edge, Equality, Measure
from nestream.engine.single.formulas import Binding, Formulas, Read, Row
from nestream.engine.single.stacks import Asked, Stack, position
from nestream.model.expression import variables

MOST = 2048
"""How many events a search visits: about as long as a round of the columnar engine takes."""

Key = tuple[int, ...]
"""Bounds rows as tuples sort: `(t,)` comes before every row of time t, `(t, p)` before the row at p."""


class TooManyError(Exception):
    """A search that would take longer than a round of the columnar engine."""


@dataclass(frozen=True)
class Span:
    """Rows from one key on and before another; for windows of events also by position."""

    low: Key = ()
    high: Key | None = None
    first: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Reach:
    """The window and the order of a query, as bounds of rows."""

    measure: Measure
    window: int
    exclusive: bool
    by_arrival: bool

    def after(self, row: Row) -> Key:
        """The bound of the rows that come after a row."""
        return (row[0], row[1] + 1) if self.by_arrival else (row[0] + 1,)

    def before(self, row: Row) -> Key:
        """The bound of the rows that come before a row."""
        return (row[0], row[1]) if self.by_arrival else (row[0],)

    def ending(self, last: Row) -> Span:
        """The rows in one window that ends with a row."""
        match self.measure:
            case Measure.TIME:
                return Span(low=(last[0] - self.window + self.exclusive,))
            case Measure.EVENTS:
                return Span(first=last[1] - self.window + 1)
        return Span()

    def beginning(self, first: Row) -> Span:
        """The rows in one window that begins with a row."""
        match self.measure:
            case Measure.TIME:
                return Span(high=(first[0] + self.window + (not self.exclusive),))
            case Measure.EVENTS:
                return Span(end=first[1] + self.window)
        return Span()


@dataclass
class Step:
    """One variable to bind: how its events are looked up, its neighbours, and the tests that follow."""

    name: str
    asked: Asked
    keys: list[tuple[str, Read]]
    after: list[str]
    before: list[str]
    apart: list[str] = field(default_factory=list)
    tests: list[Callable[[Binding], bool]] = field(default_factory=list)
    absent: list[Search] = field(default_factory=list)
    stack: Stack = field(default_factory=dict)


class Search:
    """Searches the matches of a block around what is already bound."""

    def __init__(
        self,
        block: Block,
        bound: Iterable[str],
        reach: Reach,
        formulas: Formulas,
        *,
        root: Block | None = None,
        negation: Negation | None = None,
        backward: bool = True,
    ) -> None:
        self.block = block
        self.root = root or block
        self.negation = negation
        self.reach = reach
        self.formulas = formulas
        self._order = closure(block.order)
        self.tests: list[Callable[[Binding], bool]] = []
        """The tests before anything is looked up."""
        self.absent: list[Search] = []
        self.steps = self._planned(set(bound), backward)
        self.left = MOST

    # -- planning ------------------------------------------------------------------------------------------

    def _planned(self, bound: set[str], backward: bool) -> list[Step]:
        names = [name for name in self.block.leaves if name not in bound]
        if backward:
            names.reverse()
        self._test(None, set(), bound)
        steps: list[Step] = []
        while names:
            name = next((name for name in names if self._lookup(name, bound)), names[0])
            names.remove(name)
            steps.append(self._step(name, bound))
            self._test(steps[-1], bound, bound | {name})
            bound = bound | {name}
        return steps

    def _lookup(self, name: str, bound: set[str]) -> dict[str, tuple[str, str]]:
        """The attributes of a variable that equal something bound, with what they equal."""
        found: dict[str, tuple[str, str]] = {}
        for mine, theirs in self._sides():
            if mine[0] == name and theirs[0] in bound:
                found.setdefault(mine[1], theirs)
        return found

    def _sides(self) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
        for equality in equalities(self.block):
            yield equality.left, equality.right
            yield equality.right, equality.left

    def _step(self, name: str, bound: set[str]) -> Step:
        lookup = self._lookup(name, bound)
        step = Step(
            name,
            (self.block.leaves[name], tuple(lookup)),
            [(variable, self.formulas.read(attribute)) for variable, attribute in lookup.values()],
            [x for x, y in self._order if y == name and x in bound],
            [y for x, y in self._order if x == name and y in bound],
        )
        for x, y in self.block.apart:
            if name in (x, y) and (other := y if x == name else x) in bound:
                step.apart.append(other)
        for mine, theirs in self._sides():  # a second equality on an attribute
            if mine[0] == name and theirs[0] in bound and lookup[mine[1]] != theirs:
                step.tests.append(self._equal(mine, theirs))
        return step

    def _equal(self, mine: tuple[str, str], theirs: tuple[str, str]) -> Callable[[Binding], bool]:
        (one, left), (other, right) = ((name, self.formulas.read(attr)) for name, attr in (mine, theirs))

        def equal(binding: Binding) -> bool:
            value = left(binding[one])
            return value is not None and value == right(binding[other])

        return equal

    def _test(self, step: Step | None, before: set[str], bound: set[str]) -> None:
        """Place predicates and negations at the first step where all their variables are bound."""
        tests, absent = (self.tests, self.absent) if step is None else (step.tests, step.absent)
        for predicate in self.block.predicates:
            names = variables(predicate)
            if names <= bound and (step is None or not names <= before):
                tests.append(self.formulas.test(predicate))
        for negation in self.block.negations:
            needed = negation.needs(self.root)
            if needed <= bound and (step is None or not needed <= before):
                absent.append(
                    Search(
                        negation.block, bound, self.reach, self.formulas, root=self.root, negation=negation
                    )
                )

    def walk(self) -> Iterator[Step]:
        """The steps of this search and of those for its negations."""
        for step in self.steps:
            yield step
            for inner in step.absent:
                yield from inner.walk()
        for inner in self.absent:
            yield from inner.walk()

    # -- searching -----------------------------------------------------------------------------------------

    def matches(self, name: str, row: Row, *, by_last: bool) -> list[Binding]:
        """The matches whose last (or first) event is a row, bound to a variable."""
        self.left = MOST
        if by_last:
            within = self.reach.ending(row)
            span = Span(within.low, (row[0], row[1]), within.first)
        else:
            within = self.reach.beginning(row)
            span = Span((row[0], row[1] + 1), within.high, None, within.end)
        binding = {name: row}
        if not self._possible(binding, span):
            return []
        found: list[Binding] = []
        if self._passes(self.tests, self.absent, binding, self):
            self._extend(0, binding, span, found, self)
        return found

    def _possible(self, binding: Binding, span: Span) -> bool:
        """Whether every variable that can be looked up at once has an event that may lie in the span."""
        for step in self.steps:
            if all(variable in binding for variable, _ in step.keys):
                rows = _rows(step, binding)
                if not rows or rows[-1] < span.low or (span.high is not None and rows[0] >= span.high):
                    return False
        return True

    def occurs(self, binding: Binding, counter: Search) -> bool:
        """Whether the negated block has a match in its interval, given what is bound."""
        if not self._passes(self.tests, self.absent, binding, counter):
            return False
        return self._extend(0, dict(binding), self._interval(binding), None, counter)

    def _interval(self, binding: Binding) -> Span:
        """The part of the interval that an edge sets; the order of the variables sets the rest."""
        assert self.negation is not None
        interval, low, high = self.negation.interval, Span(), Span()
        if interval.after is Edge.WINDOW_START:
            low = self.reach.ending(self._outermost(binding, last=True))
        if interval.before is Edge.WINDOW_END:
            high = self.reach.beginning(self._outermost(binding, last=False))
        elif interval.before is Edge.MATCH_END:
            high = Span(high=self.reach.after(self._outermost(binding, last=True)))
        return Span(low.low, high.high, low.first, high.end)

    def _outermost(self, binding: Binding, *, last: bool) -> Row:
        rows = [binding[name] for name in self.root.leaves]
        return max(rows, key=position) if last else min(rows, key=position)

    def _passes(
        self,
        tests: list[Callable[[Binding], bool]],
        absent: list[Search],
        binding: Binding,
        counter: Search,
    ) -> bool:
        for test in tests:
            if not test(binding):
                return False
        return not any(inner.occurs(binding, counter) for inner in absent)

    def _extend(
        self, place: int, binding: Binding, span: Span, found: list[Binding] | None, counter: Search
    ) -> bool:
        """Bind the variables from a step on in every way, and add the matches to `found`.

        Without `found`, returns whether there is a match, and stops at the first.
        """
        if place == len(self.steps):
            if found is not None:
                found.append(dict(binding))
            return found is None
        step = self.steps[place]
        rows = _rows(step, binding)
        if not rows:
            return False
        first, end = self._stretch(step, rows, binding, span)
        counter.left -= end - first
        if counter.left < 0:
            raise TooManyError
        name = step.name
        for place_in_stack in range(first, end):
            row = rows[place_in_stack]
            binding[name] = row
            if step.apart and any(binding[other][1] == row[1] for other in step.apart):
                continue
            if (step.tests or step.absent) and not self._passes(step.tests, step.absent, binding, counter):
                continue
            if self._extend(place + 1, binding, span, found, counter):
                return True
        return False

    def _stretch(self, step: Step, rows: list[Row], binding: Binding, span: Span) -> tuple[int, int]:
        low, high, reach = span.low, span.high, self.reach
        for name in step.after:
            low = max(low, reach.after(binding[name]))
        for name in step.before:
            bound = reach.before(binding[name])
            high = bound if high is None or bound < high else high
        first: Any = bisect_left(rows, low) if low else 0
        end: Any = len(rows) if high is None else bisect_left(rows, high, first)
        if span.first is not None:
            first = max(first, bisect_left(rows, span.first, key=position))
        if span.end is not None:
            end = min(end, bisect_left(rows, span.end, key=position))
        return first, max(first, end)


def _rows(step: Step, binding: Binding) -> list[Row] | None:
    """The events that a step looks up, given what is bound."""
    keys = step.keys
    if not keys:
        return step.stack.get(None)
    if len(keys) == 1:
        name, read = keys[0]
        return step.stack.get(read(binding[name]))
    return step.stack.get(tuple(read(binding[name]) for name, read in keys))


def equalities(block: Block) -> list[Equality]:
    """The equalities of a block, including those of its key."""
    found = list(block.equalities)
    keyed = list((block.key or {}).items())
    for place, (left, own) in enumerate(keyed):
        for right, other in keyed[place + 1 :]:
            found += [Equality((left, a), (right, b)) for a, b in zip(own, other, strict=True)]
    return found
