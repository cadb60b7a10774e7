"""Durations, and the window that a match must fit in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MICROSECONDS: dict[str, int] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "minutes": 60_000_000,
    "hours": 3_600_000_000,
    "days": 86_400_000_000,
    "weeks": 604_800_000_000,
}
"""The units of time as the printer writes them, in microseconds, from the smallest."""

_SPELLINGS: dict[str, tuple[str, ...]] = {
    "us": ("us", "microsecond", "microseconds", "micros"),
    "ms": ("ms", "msec", "millisecond", "milliseconds", "millis"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "minutes": ("m", "min", "mins", "minute", "minutes"),
    "hours": ("h", "hr", "hrs", "hour", "hours"),
    "days": ("d", "day", "days"),
    "weeks": ("week", "weeks"),
}

UNITS: dict[str, int] = {
    spelling: MICROSECONDS[unit] for unit, spellings in _SPELLINGS.items() for spelling in spellings
}
"""Every spelling of a unit that a query may use (in any case), in microseconds."""


def counted(number: int, unit: str) -> str:
    """The number with its unit, singular for one: `1 hour`, `-1 hour`, `2 hours`, `1 s`, `1 EVENT`."""
    plural = len(unit) > 2 and unit[-1] in "sS"
    return f"{number} {unit[:-1] if plural and abs(number) == 1 else unit}"


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time, in whole microseconds."""

    microseconds: int

    def __str__(self) -> str:
        for unit, size in reversed(MICROSECONDS.items()):
            if self.microseconds % size == 0 and (self.microseconds or unit == "s"):
                return counted(self.microseconds // size, unit)
        return f"{self.microseconds} us"


class WindowKind(StrEnum):
    """How a window measures a match."""

    TIME = "time"
    """By a duration, over timestamps."""
    NUMBER = "number"
    """By a bare number, in the unit of an integer time column."""
    EVENTS = "events"
    """By a number of consecutive positions of the input."""
    UNBOUNDED = "unbounded"
    """Not at all."""


@dataclass(frozen=True, slots=True)
class Window:
    """`WITHIN`: a time window in microseconds, a bare number, a count of events, or no limit.

    `size` is 0 for an unbounded window.
    """

    kind: WindowKind
    size: int = 0

    def __str__(self) -> str:
        match self.kind:
            case WindowKind.TIME:
                return str(Duration(self.size))
            case WindowKind.NUMBER:
                return str(self.size)
            case WindowKind.EVENTS:
                return counted(self.size, "EVENTS")
            case WindowKind.UNBOUNDED:
                return "UNBOUNDED"


UNBOUNDED = Window(WindowKind.UNBOUNDED)
