"""Finds what keeps events from being a match: each predicate, order, window or negation that fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from nestream.logical.nodes import WinSeq
from nestream.model.diagnostics import Span
from nestream.model.expression import variables
from nestream.model.text import print_name
from nestream.model.time import WindowKind
from nestream.reference import Binding, Event, Meaning, Order, holds
from nestream.why.constraints import Constraints
from nestream.why.evidence import Evidence
from nestream.why.obstacle import Obstacle
from nestream.why.places import Places
from nestream.why.reach import Reach
from nestream.why.search import Search
from nestream.why.shapes import Shape, pieces
from nestream.why.words import Words


@dataclass(frozen=True)
class Judge:
    """Finds what stops a binding of a shape, complete or not."""

    meaning: Meaning
    places: Places
    words: Words
    search: Search

    def among(self, shape: Shape, binding: Binding) -> list[Obstacle]:
        """What stops the bound events by themselves, whatever the others are: everything but negations."""
        return [*self.predicates(shape, binding), *self.order(shape, binding), *self.window(binding)]

    def predicates(self, shape: Shape, binding: Binding) -> Iterator[Obstacle]:
        """The predicates that fail for the bound events; one that needs others is skipped."""
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
        """The neighbours of a SEQ where the left one does not end before the right one begins."""
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

    def window(self, binding: Binding) -> Iterator[Obstacle]:
        """The window, if the bound events do not fit."""
        if not binding or self.meaning.in_window(binding):
            return
        first = min(binding, key=lambda name: binding[name].pos)
        last = max(binding, key=lambda name: binding[name].pos)
        start, end = binding[first], binding[last]
        plan = self.meaning.plan
        most = f"the window is {plan.window}"
        if plan.window.kind is WindowKind.EVENTS:  # in every dialect, all of them may be used
            length = f"{end.pos - start.pos + 1:,} events"
        else:
            length = self.words.length_text(end.ts - start.ts)
            most += ", and a match must be shorter" if plan.exclusive else ""
        told = (
            f"from {self.words.bound(first, start)} to {self.words.bound(last, end)} it is {length}; {most}"
        )
        yield Obstacle("window", told, (first, last), (start.row, end.row), self.places.window)

    # -- negations and groups ------------------------------------------------------------------------------

    @cached_property
    def constrained(self) -> Constraints:
        """Checks the negations and groups."""
        return Constraints(self.meaning, self.places, self.words, self.search)

    def constraints(self, shape: Shape, binding: Binding, reach: Reach) -> Iterator[Obstacle]:
        """The negations that have a match and the groups that fail."""
        return self.constrained.stopping(shape.part(binding), reach)

    def evidence(self, shape: Shape, binding: Binding, reach: Reach) -> tuple[Evidence, ...]:
        """What each negation and group of a match examined."""
        return tuple(self.constrained.evidence(shape.part(binding), reach))
