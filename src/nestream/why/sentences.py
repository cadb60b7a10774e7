"""The sentences of evidence: why a negated expression has no match, and how many members a group has.

An event is written as its type, time and number; an event of the match itself has no number: "Sharpening at
10:50 (#8) came after Disinfection at 10:39 (#4), so no Sharpening, Disinfection with id 6 in that order
between Washing at 10:20 and Operating at 10:52".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from nestream.logical.nodes import Group, Leaf, Proj, WinAnd, WinOr, WinSeq
from nestream.model.counting import counted
from nestream.model.event_types import ANY_TYPE, said_types
from nestream.model.expression import Attribute
from nestream.model.text import print_name
from nestream.model.wording import listed
from nestream.reference import Binding, Event, Interval, Limit, Order
from nestream.why.partial import Lack, Nearness
from nestream.why.shapes import Shape
from nestream.why.words import Words, pattern

MOST_LACKS = 3
"""How many variables without an event a sentence mentions."""


class Sentences:
    """Writes about the events of one input; `own` are those of the match, named without their numbers."""

    def __init__(self, words: Words, own: Collection[Event]) -> None:
        self.words = words
        self.own = own

    # -- events and intervals ------------------------------------------------------------------------------

    def event(self, event: Event) -> str:
        """An event by type, time and number."""
        shown = f"{event.type} at {self.words.clock_text(event.ts)}"
        return shown if event in self.own else f"{shown} ({self.words.number(event.row)})"

    def events(self, binding: Binding) -> str:
        """Some events."""
        return listed([self.event(event) for event in binding.values()])

    def where(self, interval: Interval) -> str:
        """An interval: `between Washing at 10:20 and Operating at 10:52`."""
        left, right = interval.left, interval.right
        if isinstance(left.at, Event) and isinstance(right.at, Event) and not right.inclusive:
            return f"between {self.event(left.at)} and {self.event(right.at)}"
        ends = [self._end(left, "after", "from"), self._end(right, "before", "up to")]
        return " and ".join(end for end in ends if end) or "anywhere"

    def _end(self, limit: Limit, strictly: str, loosely: str) -> str:
        word = loosely if limit.inclusive else strictly
        if isinstance(limit.at, Event):
            return f"{word} {self.event(limit.at)}"
        if limit.at is None:
            return ""
        if limit.measure == "position":
            return f"{word} position {max(limit.at, 0)} in the order of time"
        return f"{word} {self.words.clock_text(limit.at)}"

    # -- negations -----------------------------------------------------------------------------------------

    def absent(self, near: Nearness, lacks: Sequence[Lack]) -> str:
        """Why a way to match a negated expression has no events, in one sentence."""
        keyed, where = self._keyed(near), self.where(near.interval)
        what = f"{sought(near.shape, keyed)} {where}"
        if near.outside is not None:
            return f"{self.words.failed(near.outside, near.outer)}, so no {what} counts"
        if near.unkeyed is not None:
            owner = near.outer[near.unkeyed.variable or ""]
            return (
                f"{self.event(owner)} has no {print_name(near.unkeyed.name)}, so no {what} can have the same"
            )
        if not near.longest and all(lack.event is None for lack in lacks):
            none = listed([_said(leaf) for leaf in near.shape.leaves], "or")
            return f"no {none}{keyed} {where}"
        told = list(dict.fromkeys(self._lack(near, lack) for lack in lacks))
        if len(told) > MOST_LACKS:
            told[MOST_LACKS:] = [f"{len(told) - MOST_LACKS} more are missing"]
        return f"{listed(told)}, so no {what}"

    def _keyed(self, near: Nearness) -> str:
        """The key that all the events must have: ` with id 6`."""
        keys = [near.keys[leaf.variable] for leaf in near.shape.leaves]
        shared = [
            f"{print_name(name)} {self._value(leaf.variable, name, known)}"
            for leaf in near.shape.leaves[:1]
            for name, known in keys[0].items()
            if all(name in other and other[name] == known for other in keys)
        ]
        return f" with {listed(shared)}" if shared else ""

    def _value(self, variable: str, name: str, known: Any) -> str:
        return self.words.written(Attribute(variable, name), known)

    def _lack(self, near: Nearness, lack: Lack) -> str:
        leaf = next(leaf for leaf in near.shape.leaves if leaf.variable == lack.variable)
        kind = _said(leaf)
        if lack.event is None:
            names = listed([print_name(name) for name in near.keys[lack.variable]]) if lack.candidates else ""
            return f"no {kind}{f' with that {names}' if names else ''}{self._gap(near, lack)}"
        event, known = self.event(lack.event), {**near.outer, **near.longest, lack.variable: lack.event}
        of_many = f", the nearest of {lack.candidates:,}," if lack.candidates > 1 else ""
        match lack.kind:
            case "key":
                return self._other_key(near, lack)
            case "predicate":
                return f"{event}{of_many} does not fit, {self.words.failed(lack.by, known)}"
            case "order":
                return f"{event}{of_many} {self._order(near, lack)}"
            case "taken":
                return f"no other {kind}{self._gap(near, lack)}"
            case _:
                return f"none of the {counted(lack.candidates, f'{kind} event')} fits"

    def _gap(self, near: Nearness, lack: Lack) -> str:
        """Where the event is missing, if that is less than the whole interval."""
        left, right = lack.gap.left.at, lack.gap.right.at
        after = isinstance(left, Event) and left in near.longest.values()
        before = isinstance(right, Event) and right in near.longest.values()
        if after and before:
            return f" {self.where(lack.gap)}"
        if after:
            assert isinstance(left, Event)
            return f" after {self.event(left)}"
        if before:
            assert isinstance(right, Event)
            return f" before {self.event(right)}"
        return ""

    def _other_key(self, near: Nearness, lack: Lack) -> str:
        name, event = str(lack.by), lack.event
        assert event is not None
        wanted, shown = near.keys[lack.variable][name], print_name(name)
        if event[name] is None:
            return f"{self.event(event)} has no {shown}"
        values = [self._value(lack.variable, name, known) for known in (event[name], wanted)]
        return f"{self.event(event)} has another {shown} ({values[0]}, not {values[1]})"

    def _order(self, near: Nearness, lack: Lack) -> str:
        assert lack.event is not None
        other = near.longest[lack.by]
        if lack.event.ts == other.ts:
            if near.meaning.order is not Order.ARRIVAL:
                return f"came at the same time as {self.event(other)}"
            return f"arrived {'after' if lack.event.pos > other.pos else 'before'} {self.event(other)}"
        return f"came {'after' if lack.event.ts > other.ts else 'before'} {self.event(other)}"

    def would_do(self, near: Nearness, candidate: Binding, why: str) -> str:
        """A match of a negated expression that its own constraints reject."""
        what = f"no {sought(near.shape, self._keyed(near))} {self.where(near.interval)}"
        return f"{what}: {self.events(candidate)} would do, but {why}"

    def there_is(self, witness: Binding, interval: Interval, inner: Iterable[str]) -> str:
        """What is in an interval, and why nothing rejects it."""
        told = f"{self.where(interval)} there is {self.events(witness)}"
        return "; ".join((told, *inner))

    # -- groups --------------------------------------------------------------------------------------------

    def members(self, group: Group, number: int, interval: Interval) -> str:
        """How many members a group has, and how many it needs."""
        needed = _needed(group)
        return f"{members_text(group, number)} {self.where(interval)}" + (f"; {needed}" if needed else "")

    def refused(self, group: Group, number: int, where: str) -> str:
        """A group with too few members or too many."""
        if number < group.least:
            if not number:
                return f"{members_text(group, 0)} {where}; {_needed(group)}"
            return f"only {number:,} of {members_text(group, group.least)} {where}"
        return f"{members_text(group, number)} {where}, and there may be at most {group.most:,}"


def sought(shape: Shape, keyed: str = "") -> str:
    """What a negated expression looks for, with its key; without variables if it is simple enough."""
    while isinstance(shape.node, WinOr | Proj):
        (shape,) = shape.inner
    node, names = shape.node, [_said(leaf) for leaf in shape.leaves]
    if isinstance(node, Leaf):
        return f"{names[0]}{keyed}"
    plain = all(isinstance(part, Leaf) for part in node.components)
    match node:
        case WinSeq() if plain:
            return f"{', '.join(names)}{keyed} in that order"
        case WinAnd() if plain:
            return f"{listed(names)}{keyed} together"
        case _:
            return f"{pattern(node)}{keyed}"


def _said(leaf: Leaf) -> str:
    return "event" if ANY_TYPE in leaf.types else said_types(leaf.types)


def members_text(group: Group, number: int) -> str:
    """A number of members: `4 Failure events`, `no Failure event`."""
    if isinstance(group.body, Leaf):
        one = f"{said_types(group.body.types)} event"
        return counted(number, one) if number else f"no {one}"
    one, many = (f"{word} of {pattern(group.body)}" for word in ("match", "matches"))
    return counted(number, one, many) if number else f"no {one}"


def _needed(group: Group) -> str:
    least, most = group.least, group.most
    if most is None:
        return f"it needs at least {least:,}" if least else ""
    if least == most:
        return f"it needs {least:,}"
    return f"it needs {least:,} to {most:,}" if least else f"it may have at most {most:,}"


def rows_of(bindings: Iterable[Mapping[str, Event]]) -> tuple[int, ...]:
    """The rows of the events of some bindings, each once, in order."""
    return tuple(dict.fromkeys(event.row for binding in bindings for event in binding.values()))
