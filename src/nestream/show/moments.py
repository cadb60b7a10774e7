"""Times of matches as numbers, to draw and compute with, and back; clock times are microseconds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any

import pyarrow as pa

from nestream.model.schema import Schema
from nestream.why.words import Words

_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Moments:
    """How the times of some events are read and written."""

    is_clock: bool
    zone: str | None = None
    """The zone of a clock; None if its times have none."""

    @classmethod
    def of(cls, values: Iterable[Any]) -> Moments:
        """The kind of time that the values are."""
        for value in values:
            if isinstance(value, str):
                value = parsed(value)
            if isinstance(value, datetime):
                return cls(True, None if value.tzinfo is None else getattr(value.tzinfo, "key", "UTC"))
            if isinstance(value, date):
                return cls(True)
            if isinstance(value, int):
                return cls(False)
        return cls(False)

    @classmethod
    def of_column(cls, kind: pa.DataType) -> Moments:
        """The kind of time that a column holds."""
        if pa.types.is_integer(kind):
            return cls(False)
        return cls(True, getattr(kind, "tz", None))

    @cached_property
    def words(self) -> Words:
        """Writes times and intervals of this kind."""
        kind = pa.timestamp("us", self.zone) if self.is_clock else pa.int64()
        return Words(Schema({"ts": kind, "type": pa.string()}))

    def number(self, value: Any) -> int | None:
        """A time as a number; None if it is not a time of this kind."""
        if isinstance(value, str):
            value = parsed(value)
        if isinstance(value, datetime):
            if not self.is_clock:
                return None
            plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return (plain - _EPOCH) // timedelta(microseconds=1)
        if isinstance(value, date):
            return (datetime(value.year, value.month, value.day) - _EPOCH) // timedelta(microseconds=1)
        if isinstance(value, bool) or not isinstance(value, int) or self.is_clock:
            return None
        return value


def parsed(text: str) -> datetime | None:
    """A time from ISO-8601 text; None for other text."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def ticks(low: int, high: int, moments: Moments, most: int = 6) -> list[int]:
    """Round times between two times, for an axis."""
    if high <= low:
        return [low]
    least = (high - low) / most
    for step in _steps(moments.is_clock):
        if step >= least:
            first = -(-low // step) * step
            return list(range(first, high + 1, step))
    return [low, high]


def _steps(clock: bool) -> Iterable[int]:
    second = 1_000_000
    if clock:
        for power in range(6):
            yield from (10**power, 2 * 10**power, 5 * 10**power)
        yield from (second * length for length in (1, 2, 5, 10, 15, 30))
        yield from (second * 60 * length for length in (1, 2, 5, 10, 15, 30))
        yield from (second * 3600 * length for length in (1, 2, 3, 6, 12))
        day = second * 86_400
        for power in range(7):
            yield from (day * 10**power, day * 2 * 10**power, day * 5 * 10**power)
    else:
        for power in range(19):
            yield from (10**power, 2 * 10**power, 5 * 10**power)


def tick_text(at: int, low: int, high: int, moments: Moments) -> str:
    """A time on an axis between two times; for a clock, only what differs."""
    if not moments.is_clock:
        return moments.words.time_text(at)
    (first, last), text = (_local(end, moments)[:10] for end in (low, high)), _local(at, moments)
    if first == last:
        text = text.partition(" ")[2] or text
    elif text.endswith(" 00:00:00"):
        text = text.partition(" ")[0]
    else:
        text = text[5:]
    return text[:-3] if text.count(":") == 2 and text.endswith(":00") else text


def _local(at: int, moments: Moments) -> str:
    """A clock time without its offset, which hardly changes along an axis."""
    return re.sub(r"(?:Z|[+-]\d\d:\d\d)$", "", moments.words.time_text(at))
