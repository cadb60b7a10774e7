"""Times of events for the browser: milliseconds since 1970, or the number itself if it is one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

MOST = 8.64e15
"""The farthest time that a browser has a date for, in milliseconds from 1970 in either direction."""


def moment(value: Any) -> float | None:
    """A time as a number: ISO 8601 text and datetimes become milliseconds; without a zone they are UTC.

    None for what is not a time, or beyond all dates. An integer may have any number of digits, so it is
    compared before it becomes a float.
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
