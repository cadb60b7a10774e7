"""Durations as users write them in options: a duration of the language, a `timedelta`, or a number.

Each option says what its number counts: the unit of the time column, or seconds.
"""

from __future__ import annotations

import math
import operator
from datetime import timedelta
from typing import TypeAlias

from nestream.model.lazy import pa
from nestream.model.schema import Schema
from nestream.model.time import Duration, DurationError
from nestream.model.wording import cut

Length: TypeAlias = int | timedelta | str
"""What users may write for a duration."""
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


class LengthError(ValueError):
    """A duration where times are integers."""


def length_of_time(given: object, what: str) -> int | Duration:
    """A whole number in the unit of the times, or a duration; raises an error for anything else."""
    if isinstance(given, str | timedelta):
        return _duration(given, what)
    try:
        number = None if isinstance(given, bool) else operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:
        raise _wrong(given, what, "a whole number in the unit of the times")
    if number < 0:
        raise _negative(number, what)
    return number


def difference_of(given: object, what: str) -> int | timedelta:
    """The same as a number or a timedelta, which can be added to a time."""
    length = length_of_time(given, what)
    return timedelta(microseconds=length.microseconds) if isinstance(length, Duration) else length


def in_resolution(length: int | Duration, what: str, schema: Schema) -> int:
    """The duration in the resolution of the times: a number counts the unit of the time column."""
    datatype = schema.columns[schema.time]
    if isinstance(length, Duration):
        if not pa.types.is_temporal(datatype):
            raise LengthError(
                f"the {what} is a duration, but the time column holds {datatype}\n"
                f"  hint: write the {what} as a number in the unit of the column"
            )
        return length.microseconds * schema.per_microsecond
    if pa.types.is_timestamp(datatype):
        return length * _NANOSECONDS[datatype.unit] // _NANOSECONDS[schema.unit]
    if pa.types.is_date(datatype):
        return length * 86_400 * 10**9 // _NANOSECONDS[schema.unit]
    return length


def seconds_of(given: object, what: str) -> float:
    """The seconds of a duration, or of a number of seconds; raises an error for anything else."""
    if isinstance(given, str | timedelta):
        return _duration(given, what).microseconds / 10**6
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise _wrong(given, what, "a number of seconds")
    try:
        number = float(given)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _wrong(given, what, "a number of seconds")
    if number < 0:
        raise _negative(number, what)
    return number


def _duration(given: str | timedelta, what: str) -> Duration:
    if isinstance(given, timedelta):
        if given < timedelta():
            raise _negative(given, what)
        return Duration(given // timedelta(microseconds=1))
    try:
        return Duration.read(given)
    except DurationError as wrong:
        raise ValueError(f"the {what}: {wrong}") from None


def _wrong(given: object, what: str, number: str) -> TypeError:
    return TypeError(
        f"the {what} is {cut(repr(given))}, but it cannot be a {type(given).__name__}\n"
        f'  hint: write a duration such as "5 s", a timedelta, or {number}'
    )


def _negative(given: object, what: str) -> ValueError:
    return ValueError(f"the {what} is {given}, but it cannot be negative")
