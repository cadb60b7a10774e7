"""Durations, and the window that a match must fit in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal, DecimalException, Inexact
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from nestream.model.wording import shortened

MICROSECONDS: dict[str, int] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "minutes": 60_000_000,
    "hours": 3_600_000_000,
    "days": 86_400_000_000,
    "weeks": 604_800_000_000,
}
"""The units of time as the printer writes them, in microseconds, smallest first."""

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


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST = 2**63 - 1
"""The longest duration, in microseconds."""

_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*([A-Za-z]+)\s*")


class DurationError(ValueError):
    """Text that is not a duration: a code, a message and a hint."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        self.code, self.message, self.hint = code, message, hint
        super().__init__(f"{message}\n  hint: {hint}")

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        return type(self), (self.code, self.message, self.hint)


def counted(number: int, unit: str) -> str:
    """The number with its unit, singular for one: `1 hour`, `-1 hour`, `2 hours`, `1 s`, `1 EVENT`."""
    plural = len(unit) > 2 and unit[-1] in "sS"
    return f"{number} {unit[:-1] if plural and abs(number) == 1 else unit}"


def wrong_unit(unit: str) -> DurationError:
    """Report a word after a number that is not a unit."""
    close = get_close_matches(unit.lower(), [*UNITS, "events"], n=1)
    known = "the units are us, ms, s, minutes, hours, days and weeks"
    if unit.lower() in {"row", "rows"}:
        close = ["events"]
    if unit.lower().removesuffix("s") in {"month", "quarter", "year"}:
        close, known = [], f"{unit.lower().removesuffix('s')}s differ in length: write days or weeks"
    hint = f"did you mean `{close[0]}`? {known}" if close else known
    return DurationError("unknown-unit", f"unknown unit `{shortened(unit)}`", hint)


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration, in whole microseconds."""

    microseconds: int

    @classmethod
    def of(cls, number: str, unit: str) -> Duration:
        """The duration of a number and a unit of the language; raises a `DurationError`."""
        size = UNITS.get(unit.lower())
        if size is None:
            raise wrong_unit(unit)
        too_long = DurationError(
            "duration-too-long",
            f"the duration {shortened(number)} {unit} is too long",
            "the longest duration is about 292,000 years",
        )
        if float(number) * size > 2 * LONGEST:
            raise too_long
        try:
            exact = Context(prec=60, traps=[Inexact]).multiply(Decimal(number), Decimal(size))
            if exact > LONGEST:
                raise too_long
            return cls(_whole(exact))
        except DurationError:
            raise
        except (DecimalException, ValueError):
            raise DurationError(
                "duration-too-fine",
                f"{shortened(number)} {unit} is not a whole number of microseconds",
                "the finest duration is `1 us`",
            ) from None

    @classmethod
    def read(cls, text: str) -> Duration:
        """The duration that a text writes in the language, such as `5 s`; raises a `DurationError`."""
        found = _DURATION.fullmatch(text)
        if found is None:
            raise DurationError(
                "not-a-duration",
                f"{shortened(repr(text))} is not a duration",
                'write a number and a unit, "5 s" or "1 hour"',
            )
        return cls.of(found[1], found[2])

    def __str__(self) -> str:
        for unit, size in reversed(MICROSECONDS.items()):
            if self.microseconds % size == 0 and (self.microseconds or unit == "s"):
                return counted(self.microseconds // size, unit)
        return f"{self.microseconds} us"


def _whole(number: Decimal) -> int:
    # A tiny number has an enormous exponent: it is rejected before any power of ten is computed.
    if number and number.adjusted() < 0:
        raise ValueError(number)
    whole = int(number)
    if whole != number:
        raise ValueError(number)
    return whole


def computed_constant(constant: Any, per_microsecond: int) -> Any:
    """A literal as it is computed with: durations and times are integers in the resolution of the times."""
    match constant:
        case Duration(microseconds=microseconds):
            return microseconds * per_microsecond
        case datetime():
            moment = constant if constant.tzinfo is not None else constant.replace(tzinfo=UTC)
            return (moment - _EPOCH) // timedelta(microseconds=1) * per_microsecond
    return constant


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
