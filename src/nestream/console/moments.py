"""Times of events as the browser gets them: milliseconds since 1970, or the number itself where it is one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

MOST = 8.64e15
"""The farthest time that a browser has a date for, in milliseconds from 1970 either way."""


def moment(value: Any) -> float | None:
    """A time as a number: ISO 8601 texts and datetimes become milliseconds, without a zone as UTC.

    What is no time, or lies beyond all dates, is None. An integer may have any number of digits, so it is
    compared before it is made a float.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value) if -MOST <= value <= MOST else None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        zoned = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return zoned.timestamp() * 1000
    return None
