"""What the negations and groups of a match examined, and the sentence about the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from nestream.model.counting import counted
from nestream.model.diagnostics import Span
from nestream.reference import Binding, Event, Interval
from nestream.why.obstacle import Obstacle
from nestream.why.partial import Lack

MOST_LOOKED = 40
"""How many events of a negation or members of a group are shown."""
T = TypeVar("T")


def spread(items: Sequence[T], most: int) -> Sequence[T]:
    """At most that many items: the first, the last and evenly spaced ones between."""
    if len(items) <= most:
        return items
    if most < 2:
        return items[:most]
    return [items[place * (len(items) - 1) // (most - 1)] for place in range(most)]


@dataclass(frozen=True)
class Way:
    """One way to match a negated expression (a branch for each OR), and how close the events come to it.

    `binding` is the longest part that the events form. It is the whole expression if a negation or group
    inside it rejects it: `stopped` says which.
    """

    binding: Binding
    lacks: tuple[Lack, ...] = ()
    stopped: Obstacle | None = None

    @property
    def named(self) -> Iterator[Event]:
        """The events that its sentence is about."""
        yield from self.binding.values()
        yield from (lack.event for lack in self.lacks if lack.event is not None)


@dataclass(frozen=True)
class Evidence:
    """What one negation or group of a match examined.

    `events` are those of its types and key in its interval, up to a number, and the others that `text` names;
    `more` is how many are left out. A group has `members`, a negation the `ways` in which it could have had a
    match. `found` is a match that a negation does have: then these are not the events that the match was
    found in.
    """

    kind: str
    text: str
    what: str
    interval: Interval
    place: Mapping[str, Any]
    """The interval as plain data."""
    events: tuple[Event, ...] = ()
    more: int = 0
    ways: tuple[Way, ...] = ()
    members: tuple[Binding, ...] = ()
    found: Binding | None = None
    variable: str | None = None
    types: tuple[str, ...] = ()
    span: Span | None = None

    @property
    def told(self) -> str:
        """The sentence, with the number of events that are left out."""
        return f"{self.text} (and {counted(self.more, 'more event')})" if self.more else self.text

    def json(self) -> dict[str, Any]:
        """The evidence as plain data; events are row numbers."""
        near = max(self.ways, key=lambda way: len(way.binding), default=Way({}))
        told: dict[str, Any] = {
            "kind": self.kind,
            "text": self.text,
            self.kind: self.what,
            "interval": dict(self.place),
            "events": [event.row for event in self.events],
            "more": self.more,
            "span": None if self.span is None else [self.span.start, self.span.end],
        }
        if self.kind == "group":
            return {**told, "variable": self.variable, "members": len(self.members)}
        return {
            **told,
            "nearest": {name: event.row for name, event in near.binding.items()},
            "missing": [lack.variable for lack in near.lacks],
            "stopped": None if near.stopped is None else near.stopped.json(),
        }
