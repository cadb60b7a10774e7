"""Functions of timestamps. They use the calendar and the clock of UTC.

A timestamp is an integer in the resolution of times; `scale` units make a microsecond.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from nestream.model.functions.define import Function, moment, word
from nestream.model.lazy import np, pa
from nestream.model.schema import Kind
from nestream.model.time import MICROSECONDS

_DAY = MICROSECONDS["days"]
PARTS = ("year", "quarter", "month", "week", "day", "dow", "doy", "hour", "minute", "second")
"""The parts of `date_part`: week is that of ISO 8601, dow is 1 for Monday to 7 for Sunday."""
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
"""The units of `date_trunc`."""
_LENGTHS = {
    "week": 7 * _DAY,
    "day": _DAY,
    "hour": MICROSECONDS["hours"],
    "minute": MICROSECONDS["minutes"],
    "second": MICROSECONDS["s"],
    "millisecond": MICROSECONDS["ms"],
}
_MONDAY = 4
"""The number of days from 1970-01-01 to the first Monday."""


def _problem(known: tuple[str, ...]) -> Any:
    def problem(part: str) -> str | None:
        if part.lower() in known:
            return None
        close = get_close_matches(part.lower(), known, 1)
        meant = f"did you mean '{close[0]}'? " if close else ""
        return f"a time has no '{part[:40]}'; {meant}use one of {', '.join(known)}"

    return problem


# -- one value: the calendar in whole numbers ----------------------------------------------------------------


def _date(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01 in the Gregorian calendar, for any year."""
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    within = day - (365 * year + year // 4 - year // 100)
    month = (5 * within + 2) // 153
    return (
        year + 400 * era + (month >= 10),
        month + 3 if month < 10 else month - 9,
        within - (153 * month + 2) // 5 + 1,
    )


def _days(year: int, month: int, day: int) -> int:
    """The days since 1970-01-01 of a date."""
    year -= month <= 2
    era, within = divmod(year, 400)
    passed = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + within * 365 + within // 4 - within // 100 + passed - 719_468


def _part(part: str, at: int, scale: int) -> int:
    days, rest = divmod(at, _DAY * scale)
    year, month, day = _date(days)
    match part.lower():
        case "year":
            return year
        case "quarter":
            return (month + 2) // 3
        case "month":
            return month
        case "week":
            thursday = days - (days - _MONDAY) % 7 + 3
            return (thursday - _days(_date(thursday)[0], 1, 1)) // 7 + 1
        case "day":
            return day
        case "dow":
            return (days - _MONDAY) % 7 + 1
        case "doy":
            return days - _days(year, 1, 1) + 1
        case "hour":
            return rest // (_LENGTHS["hour"] * scale)
        case "minute":
            return rest // (_LENGTHS["minute"] * scale) % 60
        case _:
            return rest // (_LENGTHS["second"] * scale) % 60


def _trunc(unit: str, at: int, scale: int) -> int:
    days = at // (_DAY * scale)
    year, month, _ = _date(days)
    match unit.lower():
        case "year":
            return _days(year, 1, 1) * _DAY * scale
        case "quarter":
            return _days(year, (month - 1) // 3 * 3 + 1, 1) * _DAY * scale
        case "month":
            return _days(year, month, 1) * _DAY * scale
        case "week":
            return (days - (days - _MONDAY) % 7) * _DAY * scale
        case length:
            return at - at % (_LENGTHS[length] * scale)


# -- whole columns: the calendar of NumPy --------------------------------------------------------------------


def _months(days: Any) -> Any:
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _first_day(months: Any) -> Any:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _part_column(part: Any, at: Any, scale: int) -> Any:
    if not isinstance(part, pa.Scalar):
        return NotImplemented
    name, day = part.as_py().lower(), _DAY * scale
    at = np.asarray(at)
    days = at // day
    if name in ("hour", "minute", "second"):
        passed = (at - days * day) // (_LENGTHS[name] * scale)
        return passed if name == "hour" else passed % 60
    if name == "dow":
        return (days - _MONDAY) % 7 + 1
    if name == "week":
        thursday = days - (days - _MONDAY) % 7 + 3
        return (thursday - _first_day(_months(thursday) // 12 * 12)) // 7 + 1
    months = _months(days)
    match name:
        case "year":
            return months // 12 + 1970
        case "quarter":
            return months % 12 // 3 + 1
        case "month":
            return months % 12 + 1
        case "day":
            return days - _first_day(months) + 1
        case _:
            return days - _first_day(months // 12 * 12) + 1


def _trunc_column(unit: Any, at: Any, scale: int) -> Any:
    if not isinstance(unit, pa.Scalar):
        return NotImplemented
    name, day = unit.as_py().lower(), _DAY * scale
    at = np.asarray(at)
    days = at // day
    match name:
        case "year":
            days = _first_day(_months(days) // 12 * 12)
        case "quarter":
            days = _first_day(_months(days) // 3 * 3)
        case "month":
            days = _first_day(_months(days))
        case "week":
            days = days - (days - _MONDAY) % 7
        case _:
            length = _LENGTHS[name] * scale
            start = at // length
            return start * length, start * length <= at
    return days * day, days * day <= at  # wraps before the earliest representable time


TEMPORAL = (
    Function(
        "date_part",
        (word("part", _problem(PARTS)), moment()),
        Kind.INTEGER,
        _part,
        _part_column,
        f"a part of a time, in UTC: {', '.join(PARTS)}; `week` is that of ISO 8601, `dow` is 1 for Monday",
        "date_part('hour', TIMESTAMP '2026-01-31 12:30:00') = 12",
        is_timed=True,
    ),
    Function(
        "date_trunc",
        (word("unit", _problem(UNITS)), moment()),
        None,
        _trunc,
        _trunc_column,
        f"the start of the unit that contains the time, in UTC: {', '.join(UNITS)}",
        "date_trunc('hour', TIMESTAMP '2026-01-31 12:30:00') = TIMESTAMP '2026-01-31 12:00:00'",
        is_timed=True,
    ),
    Function(
        "dow",
        (moment(),),
        Kind.INTEGER,
        lambda at, scale: _part("dow", at, scale),
        lambda at, scale: _part_column(pa.scalar("dow"), at, scale),
        "the day of the week in UTC: 1 for Monday to 7 for Sunday",
        "dow(DATE '2026-01-31') = 6",
        is_timed=True,
    ),
)
