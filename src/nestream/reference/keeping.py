"""Section "KEEP" of docs/reference/semantics.md: decides which matches are kept, in output order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from nestream.model.keep import Keep, Kept
from nestream.model.schema import Order
from nestream.model.time import Duration
from nestream.reference.events import Event
from nestream.reference.values import value


class Match(Protocol):
    """A match: the events that it keeps, by variable."""

    @property
    def events(self) -> Mapping[str, Event]:
        """Its events."""


M = TypeVar("M", bound=Match)


def kept_of(matches: Sequence[M], keep: Keep, order: Order, per_microsecond: int) -> list[M]:
    """The kept matches, in order."""
    groups: dict[tuple[Any, ...], list[M]] = {}
    for match in matches:
        groups.setdefault(_agreed(match.events, keep, per_microsecond), []).append(match)
    chosen = {id(match) for group in groups.values() for match in _of(group, keep, order, per_microsecond)}
    return [match for match in matches if id(match) in chosen]


def _agreed(binding: Mapping[str, Event], keep: Keep, per_microsecond: int) -> tuple[Any, ...]:
    """What the match must share with others to agree with them: events and values, or NULL."""
    return tuple(
        (binding[item].pos if item in binding else None)
        if isinstance(item, str)
        else value(item, binding, per_microsecond)
        for item in keep.per
    )


def _of(group: Sequence[M], keep: Keep, order: Order, per_microsecond: int) -> list[M]:
    """The matches kept among those that agree."""
    match keep.kind:
        case Kept.FIRST if keep.every is None:
            return [group[0]]
        case Kept.FIRST:
            every = keep.every
            length = every.microseconds * per_microsecond if isinstance(every, Duration) else every
            assert length is not None
            found: list[M] = []
            for each in group:
                if not found or _end(each) - _end(found[-1]) >= length:
                    found.append(each)
            return found
        case Kept.LAST:
            return [group[-1]]
        case Kept.LONGEST:
            return [max(group, key=_length)]  # the first of equals
        case Kept.SHORTEST:
            return [min(group, key=_length)]
        case Kept.DISJOINT:
            found = []
            for each in group:
                if not found or _follows(found[-1], each, order):
                    found.append(each)
            return found


def _end(match: Match) -> int:
    return max(event.ts for event in match.events.values())


def _length(match: Match) -> int:
    return _end(match) - min(event.ts for event in match.events.values())


def _follows(earlier: Match, later: Match, order: Order) -> bool:
    """Whether a match begins after another has ended."""
    if order is Order.ARRIVAL:
        last = max(event.pos for event in earlier.events.values())
        return last < min(event.pos for event in later.events.values())
    return _end(earlier) < min(event.ts for event in later.events.values())
