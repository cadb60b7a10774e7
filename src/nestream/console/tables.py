"""Events that come as JSON, made a table; and matches, made the rows that the pages show."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

MOMENT = pa.timestamp("us", "UTC")


class Events:
    """Makes tables of events, with columns that keep the type they had first."""

    def __init__(self, time: str, type: str) -> None:
        self.time, self.type = time, type
        self.kinds: dict[str, pa.DataType] = {}

    def table(self, events: list[dict[str, Any]]) -> pa.Table:
        """The events as a table; a value that does not fit its column is left out of it."""
        names = dict.fromkeys([self.time, self.type, *(name for event in events for name in event)])
        return pa.table({name: self._column(name, [event.get(name) for event in events]) for name in names})

    def _column(self, name: str, values: list[Any]) -> pa.Array:
        if name == self.time:
            return self._times(values)
        known = self.kinds.get(name)
        try:
            column = pa.array(values, known)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            fitting = known or _commonest(values)
            column = pa.array([_fitted(value, fitting) for value in values], fitting)
        if not pa.types.is_null(column.type):
            self.kinds[name] = column.type
        elif known is not None:
            column = pa.nulls(len(values), known)
        return column

    def _times(self, values: list[Any]) -> pa.Array:
        """Times of a clock from texts, or numbers as they are."""
        if self.time not in self.kinds:
            given = next((value for value in values if value is not None), None)
            self.kinds[self.time] = pa.int64() if isinstance(given, int) else MOMENT
        kind = self.kinds[self.time]
        if kind == MOMENT:
            return pa.array([_clock(value) for value in values], MOMENT)
        return pa.array([value if isinstance(value, int) else None for value in values], kind)


def _clock(value: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is None or found.tzinfo is not None else found.replace(tzinfo=UTC)


def _commonest(values: list[Any]) -> pa.DataType:
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    found = {kinds.get(type(value), pa.string()) for value in values if value is not None}
    if found <= {pa.int64(), pa.float64()}:
        return pa.float64()
    return pa.string()


def _fitted(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_string(kind):
        return str(value)
    try:
        return pa.scalar(value, kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None


def rows_of(name: str, matches: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Matches of one query in the form that those of a set have: events with variables, and values."""
    return [_row(name, match) for match in matches]


def _row(name: str, match: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"query": name, "events": [], "values": {}}
    for column, value in match.items():
        if column in ("match_start", "match_end"):
            row[column] = plain(value)
        elif isinstance(value, dict):
            row["events"].append({"variable": column, "event": plain(value)})
        elif value is not None:
            row["values"][column] = plain(value)
    return row


def plain(value: Any) -> Any:
    """The value with times as ISO 8601 texts, and bytes as hexadecimal digits."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else value
