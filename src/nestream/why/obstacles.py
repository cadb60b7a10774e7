"""What keeps events from being a match: each predicate, order, window or negation that stops a binding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from nestream.logical.nodes import Component, Leaf, Node, WinAnd, WinSeq, leaves
from nestream.logical.text import expression_text
from nestream.model.diagnostics import Span
from nestream.model.event_types import said_types
from nestream.model.expression import aggregates, variables
from nestream.model.text import print_name
from nestream.model.time import WindowKind
from nestream.reference import Binding, Event, Interval, Meaning, Order, Part, holds
from nestream.why.places import Places
from nestream.why.reach import Reach
from nestream.why.search import Search, negations, root_groups, root_negations
from nestream.why.shapes import Shape, pieces
from nestream.why.words import Words, pattern


@dataclass(frozen=True)
class Obstacle:
    """One reason. `events` are the numbers of the events that it is about; `more` is for programs."""

    kind: str
    text: str
    variables: tuple[str, ...] = ()
    events: tuple[int, ...] = ()
    span: Span | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """The obstacle as plain data."""
        return {
            "kind": self.kind,
            "text": self.text,
            "variables": list(self.variables),
            "events": list(self.events),
            "span": None if self.span is None else [self.span.start, self.span.end],
            **self.more,
        }


@dataclass(frozen=True)
class Judge:
    """Tells what stops a binding of a shape, complete or not."""

    meaning: Meaning
    places: Places
    words: Words
    search: Search

    def among(self, shape: Shape, binding: Binding) -> list[Obstacle]:
        """What stops the bound events by themselves, whatever the others are: all but negations."""
        return [*self.predicates(shape, binding), *self.order(shape, binding), *self.window(shape, binding)]

    def predicates(self, shape: Shape, binding: Binding) -> Iterator[Obstacle]:
        """The predicates that do not hold of the bound events; one that needs others is not told."""
        own = set(shape.variables)
        for predicate in shape.predicates:
            needed = variables(predicate) & own
            if needed <= binding.keys():
                if not holds(predicate, binding, self.meaning.per_microsecond):
                    text = self.words.failed(predicate, binding)
                    yield self._predicate(text, predicate.span, needed, binding)
                continue
            for piece in pieces(predicate):
                part = variables(piece) & own
                if part <= binding.keys() and not holds(piece, binding, self.meaning.per_microsecond):
                    yield self._predicate(self.words.failed(piece, binding), piece.span, part, binding)

    def _predicate(
        self, text: str, span: Span, needed: frozenset[str] | set[str], binding: Binding
    ) -> Obstacle:
        names = tuple(name for name in binding if name in needed)
        place = span if span.end else self.places.variables(names)
        return Obstacle("predicate", text, names, tuple(binding[name].row for name in names), place)

    def order(self, shape: Shape, binding: Binding) -> Iterator[Obstacle]:
        """The neighbours of a SEQ of which the left one does not end before the right one begins."""
        for inner in shape.walk():
            if not isinstance(inner.node, WinSeq):
                continue
            known = [
                {name: binding[name] for name in part.variables if name in binding} for part in inner.inner
            ]
            for left, right in pairwise(part for part in known if part):
                early = max(left, key=lambda name: left[name].pos)
                late = min(right, key=lambda name: right[name].pos)
                if not self.meaning.before(left[early], right[late]):
                    yield self._order(early, left[early], late, right[late])

    def _order(self, early: str, first: Event, late: str, second: Event) -> Obstacle:
        names = f"{print_name(early)} must come before {print_name(late)}"
        if first.ts == second.ts and self.meaning.order is Order.ARRIVAL:
            told = f"{self.words.event(first)} arrives after {self.words.event(second)}"
        elif first.ts == second.ts:
            told = f"both are at {self.words.time_text(first.ts)}, and equal times do not follow each other"
        else:
            told = f"{self.words.event(first)} is after {self.words.event(second)}"
        span = self.places.variables((early, late))
        return Obstacle("order", f"{names}: {told}", (early, late), (first.row, second.row), span)

    def window(self, shape: Shape, binding: Binding) -> Iterator[Obstacle]:
        """The window, where the bound events do not fit it."""
        if not binding or self.meaning.in_window(binding):
            return
        first = min(binding, key=lambda name: binding[name].pos)
        last = max(binding, key=lambda name: binding[name].pos)
        start, end = binding[first], binding[last]
        plan = self.meaning.plan
        most = f"the window is {plan.window}"
        if plan.window.kind is WindowKind.EVENTS:  # in every spelling all of them may be used
            length = f"{end.pos - start.pos + 1:,} events"
        else:
            length = self.words.length_text(end.ts - start.ts)
            most += ", and a match must be shorter" if plan.exclusive else ""
        told = (
            f"from {self.words.bound(first, start)} to {self.words.bound(last, end)} it is {length}; {most}"
        )
        yield Obstacle("window", told, (first, last), (start.row, end.row), self.places.window)

    # -- negations -----------------------------------------------------------------------------------------

    def negations(self, shape: Shape, binding: Binding, reach: Reach) -> Iterator[Obstacle]:
        """The negations that have a match in their interval, each with that match."""
        part = shape.part(binding)
        for body, interval in root_negations(self.meaning, part):
            witness = next(self.search.occurrences(body, interval, reach, binding), None)
            if witness is not None:
                yield self._negation(body, interval, witness, binding, reach)

    # -- groups --------------------------------------------------------------------------------------------

    def groups(self, shape: Shape, binding: Binding, reach: Reach) -> Iterator[Obstacle]:
        """The groups that have too few members or too many, and the predicates over groups that fail."""
        found: dict[str, Sequence[Binding]] = {}
        for group, interval in root_groups(self.meaning, shape.part(binding)):
            members = self.search.members(group, interval, reach, binding)
            found[group.variable] = members
            too_few = len(members) < group.least
            too_many = group.most is not None and len(members) > group.most
            if not too_few and not too_many:
                continue
            where = self.words.interval_text(interval, _owners(binding))
            what = (
                f"{' or '.join(group.body.types)} events"
                if isinstance(group.body, Leaf)
                else f"matches of {pattern(group.body)}"
            )
            wanted = group.least if too_few else group.most
            text = (
                f"only {len(members)} of {wanted} {what} {where}"
                if too_few
                else f"{len(members)} {what} {where}, and there may be at most {wanted}"
            )
            rows = tuple(event.row for member in members for event in member.values())
            more = {
                "group": group.variable,
                "interval": self.words.interval(interval),
                "members": len(members),
                "least": group.least,
                "most": group.most,
            }
            yield Obstacle("group", text, (group.variable,), rows, self.places.negation(group.body), more)
        for predicate in shape.judged:
            if not holds(predicate, binding, self.meaning.per_microsecond, found):
                text = self.words.failed(predicate, binding, found)
                names = tuple(dict.fromkeys(one.group or "" for one in aggregates(predicate)))
                yield Obstacle("predicate", text, names, (), self.places.predicate(predicate, names))

    def constraints(self, shape: Shape, binding: Binding, reach: Reach) -> Iterator[Obstacle]:
        """The negations that have a match and the groups that do not pass."""
        yield from self.negations(shape, binding, reach)
        yield from self.groups(shape, binding, reach)

    def _negation(
        self, body: Node, interval: Interval, witness: Part, binding: Binding, reach: Reach
    ) -> Obstacle:
        names = tuple(witness.binding)
        found = ", ".join(self.words.bound(name, event) for name, event in witness.binding.items())
        where = self.words.interval_text(interval, _owners(binding))
        text = f"!{pattern(body)}, and {where} there is {found}"
        inner = self.unsaved(witness, interval, reach, binding)
        more = {
            "negation": f"!{expression_text(body)}",
            "interval": self.words.interval(interval),
            "witness": {name: event.row for name, event in witness.binding.items()},
            "inner": inner,
        }
        for told in inner:
            text += f"; {told['text']}"
        rows = tuple(event.row for event in witness.binding.values())
        return Obstacle("negation", text, names, rows, self.places.negation(body), more)

    def unsaved(
        self, witness: Part, limits: Interval, reach: Reach, binding: Binding
    ) -> list[dict[str, Any]]:
        """Why each negation inside a witness did not take it away: what it looked for is not there."""
        around = {**binding, **witness.binding}
        inside = reach.inside(limits, self.meaning)
        told = []
        for body, interval in negations(self.meaning, witness, limits):
            where = self.words.interval_text(interval, _owners(around))
            reason, deeper = self._absent(body, interval, inside, around)
            told.append(
                {
                    "negation": f"!{expression_text(body)}",
                    "interval": self.words.interval(interval),
                    "text": f"its own !{pattern(body)} does not take that away, for {where} {reason}",
                    "stopped": None if deeper is None else deeper.json(),
                }
            )
        return told

    def _absent(
        self, body: Node, interval: Interval, reach: Reach, binding: Binding
    ) -> tuple[str, Obstacle | None]:
        """Why a negated node has no match in an interval, and the negation in it that stopped one."""
        inside = reach.inside(interval, self.meaning)
        candidate = next(self.search.candidates(body, inside, binding), None)
        if candidate is not None:
            around = {**binding, **candidate.binding}
            for deeper, limits in negations(self.meaning, candidate, interval):
                stopping = next(self.search.occurrences(deeper, limits, inside, around), None)
                if stopping is not None:
                    obstacle = self._negation(deeper, limits, stopping, around, inside)
                    found = ", ".join(self.words.bound(n, e) for n, e in candidate.binding.items())
                    return f"{found} would do, but {obstacle.text}", obstacle
        return self._lacking(body, inside, binding), None

    def _lacking(self, body: Node, inside: Reach, binding: Binding) -> str:
        counts = {leaf: _free(leaf, inside, binding) for leaf in leaves(body) if _positive(body, leaf)}
        for leaf, events in counts.items():
            if not events:
                return f"there is no {said_types(leaf.types)}"
        if isinstance(body, Leaf):
            event = counts[body][0]
            tests = [piece for predicate in body.predicates for piece in pieces(predicate)]
            known = {**binding, body.variable: event}
            for test in tests:
                if not holds(test, known, self.meaning.per_microsecond):
                    return f"{self.words.event(event)} does not fit, {self.words.failed(test, known)}"
        number = sum(len(events) for events in counts.values())
        return f"none of the {number} events of its types make such a match"


def _owners(binding: Binding) -> dict[Event, str]:
    return {event: print_name(name) for name, event in binding.items()}


def _free(leaf: Leaf, inside: Reach, binding: Binding) -> Sequence[Event]:
    taken = set(binding.values())
    return [event for event in inside.of_types(leaf.types) if event not in taken]


def _positive(body: Component, leaf: Leaf) -> bool:
    """Whether a match of the node binds the leaf for certain: it is in no negation, and in no OR."""
    match body:
        case Leaf():
            return body is leaf
        case WinSeq(components=components) | WinAnd(components=components):
            return any(_positive(component, leaf) for component in components)
        case _:
            return False
