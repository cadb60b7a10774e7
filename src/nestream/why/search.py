"""Searches events for the open variables of a shape: a backtracking search that fails early.

It finds what the reference would enumerate, in another order: the events of each variable are narrowed by
every order, window and predicate that is decided, and the variable with the fewest is bound next.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nestream.logical.nodes import Group, Negation, Node
from nestream.model.expression import Expression, variables
from nestream.model.time import WindowKind
from nestream.reference import Binding, Event, Interval, Meaning, Order, Part, holds, value
from nestream.why.reach import Reach, TooManyWaysError
from nestream.why.shapes import Shape, shapes

MOST_STEPS = 10_000_000
"""How many events are tried before a question counts as too large to answer."""
_EXACT = 2**53
"""Up to here, integers are exact as floats, so equality is transitive."""


@dataclass
class Search:
    """Finds bindings of shapes and matches of negated nodes, using the definitions of the reference."""

    meaning: Meaning
    most: int | None = None
    """How many events are tried, if fewer than `MOST_STEPS`."""
    steps: int = field(default=0, repr=False)

    def bindings(
        self, shape: Shape, reach: Reach, fixed: Binding, outer: Binding, windowed: bool
    ) -> Iterator[dict[str, Event]]:
        """Every complete binding of the shape that extends `fixed` and satisfies its positive part.

        `outer` are the events around a negation, which are in use; a window applies only to a whole match.
        """
        problem = _Problem(self, shape, {**outer, **fixed}, windowed)
        if fixed:
            problem.centre = sum(event.pos for event in fixed.values()) // len(fixed)
        taken = frozenset((*outer.values(), *fixed.values()))
        if not problem.consistent(fixed):
            return
        domains = {
            leaf.variable: [
                event
                for event in reach.of_types(leaf.types, problem.equal(leaf.variable))
                if event not in taken
            ]
            for leaf in shape.leaves
            if leaf.variable not in fixed
        }
        for name in fixed:
            domains = problem.narrowed(domains, name)
        domains = problem.sifted(domains)
        yield from problem.solutions(domains, dict(fixed))

    def occurrences(self, node: Node, interval: Interval, reach: Reach, binding: Binding) -> Iterator[Part]:
        """The matches of a negated node in an interval, as `occurs` of the reference searches them."""
        inside = reach.inside(interval, self.meaning)
        for part in self.candidates(node, inside, binding):
            if not self.stopped(part, interval, inside, {**binding, **part.binding}):
                yield part

    def candidates(self, node: Node, inside: Reach, binding: Binding) -> Iterator[Part]:
        """The ways to bind the positive part of a negated node, given the binding."""
        for shape in shapes(node):
            for found in self.bindings(shape, inside, {}, binding, windowed=False):
                yield shape.part(found)

    def stopped(self, part: Part, limits: Interval, reach: Reach, binding: Binding) -> bool:
        """Whether a negation in the part has a match, or one of its groups fails."""
        if any(
            next(self.occurrences(body, interval, reach, binding), None) is not None
            for body, interval in negations(self.meaning, part, limits)
        ):
            return True
        found: dict[str, Sequence[Binding]] = {}
        for group, interval in groups_of(self.meaning, part, limits):
            members = self.members(group, interval, reach, binding)
            if len(members) < group.least or (group.most is not None and len(members) > group.most):
                return True
            found[group.variable] = members
        return not self.meaning.judged(part, binding, found)

    def members(self, group: Group, interval: Interval, reach: Reach, binding: Binding) -> list[Binding]:
        """The members of a group in an interval."""
        found = [part.binding for part in self.occurrences(group.body, interval, reach, binding)]
        return self.meaning.in_order(group, found)

    def count(self, tried: int) -> None:
        """Count the events tried; raise if there are too many."""
        self.steps += tried
        if self.steps > (MOST_STEPS if self.most is None else self.most):
            raise TooManyWaysError


def negations(meaning: Meaning, part: Part, limits: Interval) -> Iterator[tuple[Node, Interval]]:
    """The negated nodes in the positive part of a match, each with its interval."""
    for component, interval in meaning.constraints(part, limits):
        if isinstance(component, Negation):
            yield component.body, interval


def groups_of(meaning: Meaning, part: Part, limits: Interval) -> Iterator[tuple[Group, Interval]]:
    """The groups in the positive part of a match, each with its interval."""
    for component, interval in meaning.constraints(part, limits):
        if isinstance(component, Group):
            yield component, interval


class _Problem:
    """One search: the variables of a shape, and what must hold between them."""

    def __init__(self, search: Search, shape: Shape, known: Binding, windowed: bool) -> None:
        self.search = search
        self.shape = shape
        self.meaning = search.meaning
        self.windowed = windowed
        self.known = dict(known)
        own = set(shape.variables)
        self.tests: list[tuple[Expression, frozenset[str]]] = [
            (test, variables(test) & own) for test in shape.tests
        ]
        self.before = set(shape.before)
        self.centre: int | None = None

    def consistent(self, fixed: Binding) -> bool:
        """Whether nothing fails that the fixed events alone decide."""
        names = list(fixed)
        return all(
            self.fits(left, fixed[left], right, fixed[right])
            for place, left in enumerate(names)
            for right in names[place + 1 :]
        ) and all(
            holds(test, self.known, self.meaning.per_microsecond)
            for test, needed in self.tests
            if needed <= set(fixed)
        )

    def fits(self, one: str, first: Event, other: str, second: Event) -> bool:
        """Whether the events of two variables are in the order and window of the shape."""
        if first == second:
            return False
        if (one, other) in self.before and not self.meaning.before(first, second):
            return False
        if (other, one) in self.before and not self.meaning.before(second, first):
            return False
        return not self.windowed or self.meaning.in_window({one: first, other: second})

    def equal(self, variable: str) -> tuple[str, Any] | None:
        """An attribute of an open variable that equalities make equal to a known value, and that value."""
        for terms in self.shape.equal:
            own = [term.name for term in terms if term.variable == variable]
            known = [term for term in terms if term.variable in self.known]
            if own and known:
                found = value(known[0], self.known, self.meaning.per_microsecond)
                if isinstance(found, str) or (isinstance(found, int | float) and abs(found) < _EXACT):
                    return own[0], found
        return None

    def narrowed(self, domains: Mapping[str, Sequence[Event]], name: str) -> dict[str, list[Event]]:
        """The events left for the open variables, given a bound one: a slice, because they are in order."""
        event = self.known[name]
        result = {}
        for variable, events in domains.items():
            low, high = 0, len(events)
            if (name, variable) in self.before:
                low = bisect_right(events, self._rank(event), key=self._rank)
            if (variable, name) in self.before:
                high = bisect_left(events, self._rank(event), key=self._rank)
            if self.windowed:
                first, last = self._around(events, event)
                low, high = max(low, first), min(high, last)
            left = list(events[low:high])
            place = bisect_left(left, event.pos, key=_position)
            if place < len(left) and left[place] == event:
                del left[place]
            self.search.count(1 + len(left) // 50)
            result[variable] = left
        return result

    def _rank(self, event: Event) -> int:
        """The measure that defines "before"."""
        return event.pos if self.meaning.order is Order.ARRIVAL else event.ts

    def _around(self, events: Sequence[Event], event: Event) -> tuple[int, int]:
        """The slice of the events that fits a window with one of them."""
        plan, size = self.meaning.plan, self.meaning.window
        match plan.window.kind:
            case WindowKind.UNBOUNDED:
                return 0, len(events)
            case WindowKind.EVENTS:
                return (
                    bisect_right(events, event.pos - size, key=_position),
                    bisect_left(events, event.pos + size, key=_position),
                )
            case _:
                if plan.exclusive:
                    return (
                        bisect_right(events, event.ts - size, key=_time),
                        bisect_left(events, event.ts + size, key=_time),
                    )
                return (
                    bisect_left(events, event.ts - size, key=_time),
                    bisect_right(events, event.ts + size, key=_time),
                )

    def sifted(
        self, domains: Mapping[str, Sequence[Event]], since: str | None = None
    ) -> dict[str, list[Event]]:
        """The events left where a predicate has only one open variable; `since` was bound last."""
        result = {name: list(events) for name, events in domains.items()}
        for test, needed in self.tests:
            if since is not None and since not in needed:
                continue
            open_ones = [name for name in needed if name in result]
            if len(open_ones) == 1:
                (name,) = open_ones
                self.search.count(len(result[name]))
                scale = self.meaning.per_microsecond
                result[name] = [e for e in result[name] if holds(test, {**self.known, name: e}, scale)]
        return result

    def solutions(
        self, domains: Mapping[str, Sequence[Event]], bound: dict[str, Event]
    ) -> Iterator[dict[str, Event]]:
        """The complete bindings, fewest choices first."""
        if not domains:
            yield dict(bound)
            return
        name = min(domains, key=lambda variable: len(domains[variable]))
        others = {variable: events for variable, events in domains.items() if variable != name}
        for event in self._nearest_first(domains[name]):
            self.known[name] = bound[name] = event
            left = self.sifted(self.narrowed(others, name), name)
            if all(left.values()):
                yield from self.solutions(left, bound)
            del self.known[name], bound[name]

    def _nearest_first(self, events: Sequence[Event]) -> Sequence[Event]:
        """Those near the fixed events first: the fewer events between, the likelier a match."""
        if self.centre is None:
            return events
        centre = self.centre
        return sorted(events, key=lambda event: abs(event.pos - centre))


def _position(event: Event) -> int:
    return event.pos


def _time(event: Event) -> int:
    return event.ts
