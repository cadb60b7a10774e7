"""How close events come to an expression that they do not match: its longest part, and what is lacking.

The longest part is a choice of events for as many variables as possible such that every order and predicate
between them holds. A variable outside it has a *lack*: no event at all, or the nearest one with the condition
that it fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nestream.logical.nodes import Leaf
from nestream.model.expression import Attribute, Expression, variables
from nestream.reference import Binding, Event, Interval, Limit, Meaning, holds, value
from nestream.why.reach import Reach
from nestream.why.shapes import Shape

MOST_TRIED = 20_000
"""How many choices are tried for the longest part; if there are more, the best so far is used."""
MOST_EACH = 200
"""How many events are tried for a variable."""


@dataclass(frozen=True)
class Lack:
    """Why a variable of an expression has no event that fits its longest part.

    `kind` is `absent` (no event of its types), `key` (another value of an attribute that must be equal),
    `predicate`, `order` or `taken` (the event is another variable). `event` is the nearest one; among several
    with another key there is none. `candidates` is their number, and an event in `gap` that satisfies the
    predicates would fit. `by` is what the event fails: the attribute, the predicate, or the variable that it
    must come before or after.
    """

    variable: str
    kind: str
    gap: Interval
    event: Event | None = None
    candidates: int = 0
    by: Any = None


@dataclass(frozen=True)
class Nearness:
    """Searches one shape among the events of an interval, given the events around it."""

    shape: Shape
    interval: Interval
    inside: Reach
    outer: Binding
    meaning: Meaning

    @cached_property
    def outside(self) -> Expression | None:
        """A predicate that the outer events fail by themselves."""
        own = set(self.shape.variables)
        for test in self.shape.tests:
            if not variables(test) & own and not self._holds(test, self.outer):
                return test
        return None

    @cached_property
    def unkeyed(self) -> Attribute | None:
        """An outer attribute that is NULL although the expression must equal it."""
        for terms in self.shape.equal:
            if any(term.variable in self.shape.variables for term in terms):
                for term in sorted(terms, key=repr):
                    owner = self.outer.get(term.variable or "")
                    if owner is not None and owner[term.name] is None:
                        return term
        return None

    @cached_property
    def keys(self) -> Mapping[str, Mapping[str, Any]]:
        """For each variable, the attributes that must equal a known value, and that value."""
        found: dict[str, dict[str, Any]] = {name: {} for name in self.shape.variables}
        for terms in self.shape.equal:
            known = [term for term in sorted(terms, key=repr) if term.variable in self.outer]
            wanted = value(known[0], self.outer, self.meaning.per_microsecond) if known else None
            if wanted is None:
                continue
            for term in terms:
                if term.variable in found:
                    found[term.variable][term.name] = wanted
        return found

    def of_leaf(self, leaf: Leaf) -> list[Event]:
        """The unused events of the interval that have a type of the leaf."""
        taken = set(self.outer.values())
        return [event for event in self.inside.of_types(leaf.types) if event not in taken]

    def of_key(self, leaf: Leaf) -> list[Event]:
        """Those of them with the key."""
        keys = self.keys[leaf.variable]
        return [
            event for event in self.of_leaf(leaf) if all(event[name] == known for name, known in keys.items())
        ]

    # -- the longest part ----------------------------------------------------------------------------------

    @cached_property
    def longest(self) -> dict[str, Event]:
        """The longest part, in text order; it leaves out at least one variable."""
        domains = [
            (leaf.variable, [event for event in self.of_key(leaf) if not self._fails_alone(leaf, event)])
            for leaf in self.shape.leaves
        ]
        best: dict[str, Event] = {}
        most = sum(1 for _, events in domains if events)
        most = min(most, len(domains) - 1)
        tried = 0

        def choose(at: int, bound: dict[str, Event]) -> None:
            nonlocal best, tried
            if len(bound) > len(best):
                best = dict(bound)
            left = sum(1 for _, events in domains[at:] if events)
            if len(best) >= most or len(bound) + left <= len(best):
                return
            name, events = domains[at]
            for event in events[:MOST_EACH]:
                tried += 1
                if tried > MOST_TRIED:
                    return
                if self._goes_with(name, event, bound):
                    bound[name] = event
                    choose(at + 1, bound)
                    del bound[name]
                if len(best) >= most:
                    return
            choose(at + 1, bound)

        choose(0, {})
        return best

    def _fails_alone(self, leaf: Leaf, event: Event) -> bool:
        return next(self._failed(leaf.variable, event, {}), None) is not None

    def _goes_with(self, name: str, event: Event, bound: Binding) -> bool:
        return (
            event not in bound.values()
            and all(self._in_order(name, event, other, found) for other, found in bound.items())
            and next(self._failed(name, event, bound), None) is None
        )

    def _in_order(self, name: str, event: Event, other: str, found: Event) -> bool:
        if (name, other) in self.shape.precedes:
            return self.meaning.before(event, found)
        return (other, name) not in self.shape.precedes or self.meaning.before(found, event)

    def _failed(self, name: str, event: Event, bound: Binding) -> Iterator[Expression]:
        """The predicates that an event fails as a variable, given the bound ones."""
        known = {**self.outer, **bound, name: event}
        for test, needed in self._tests:
            if name in needed and needed <= {*bound, name} and not self._holds(test, known):
                yield test

    @cached_property
    def _tests(self) -> Sequence[tuple[Expression, frozenset[str]]]:
        own = set(self.shape.variables)
        return [(test, variables(test) & own) for test in self.shape.implied]

    def _holds(self, test: Expression, binding: Binding) -> bool:
        return holds(test, binding, self.meaning.per_microsecond)

    # -- the rest ------------------------------------------------------------------------------------------

    def lacks(self) -> Iterator[Lack]:
        """Why each variable outside the longest part has no event."""
        for leaf in self.shape.leaves:
            if leaf.variable not in self.longest:
                yield self._lack(leaf)

    def _lack(self, leaf: Leaf) -> Lack:
        name, gap = leaf.variable, self._gap(leaf.variable)
        events = self.of_key(leaf) or self.of_leaf(leaf)
        if not events:
            return Lack(name, "absent", gap)

        def rank(event: Event) -> tuple[int, int, int]:
            return len(self._against(name, event)), _distance(gap, event), event.pos

        nearest = min(events[:MOST_EACH], key=rank)
        kind, by = next(iter(self._against(name, nearest)), ("unknown", None))
        if kind == "key" and len(events) > 1:  # none of them is closer to the match than another
            return Lack(name, kind, gap, None, len(events), by)
        return Lack(name, kind, gap, nearest, len(events), by)

    def _against(self, name: str, event: Event) -> list[tuple[str, Any]]:
        """What an event fails as a variable, given the longest part; each kind with what it is about."""
        for attribute, wanted in self.keys[name].items():
            if event[attribute] != wanted:
                return [("key", attribute)]
        owner = next((other for other, found in self.longest.items() if found == event), None)
        if owner is not None:
            return [("taken", owner)]
        found: list[tuple[str, Any]] = [
            ("predicate", test) for test in self._failed(name, event, self.longest)
        ]
        before, after = self._neighbours(name)
        if after is not None and not self.meaning.before(event, self.longest[after]):
            found.append(("order", after))
        if before is not None and not self.meaning.before(self.longest[before], event):
            found.append(("order", before))
        return found

    def _neighbours(self, name: str) -> tuple[str | None, str | None]:
        """The last variable of the longest part that must come before another one, and the first after it."""
        order, bound = self.shape.precedes, self.longest
        earlier = [other for other in bound if (other, name) in order]
        later = [other for other in bound if (name, other) in order]
        return (
            max(earlier, key=lambda other: bound[other].pos, default=None),
            min(later, key=lambda other: bound[other].pos, default=None),
        )

    def _gap(self, name: str) -> Interval:
        """Where an event of a variable would complete the longest part."""
        before, after = self._neighbours(name)
        left = self.interval.left if before is None else Limit("order", self.longest[before])
        right = self.interval.right if after is None else Limit("order", self.longest[after])
        return Interval(left, right)


def _distance(gap: Interval, event: Event) -> int:
    """How far an event is from a gap, in positions."""
    left = gap.left.at.pos - event.pos if isinstance(gap.left.at, Event) else 0
    right = event.pos - gap.right.at.pos if isinstance(gap.right.at, Event) else 0
    return max(left, right, 0)
