"""Converts JSON events to a table, and matches to the rows that the pages show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MOMENT = pa.timestamp("us", "UTC")
NO_EVENT = "(no time or type)"
LEAST, MOST = -(2**63), 2**63 - 1
UNFIT = (pa.ArrowException, OverflowError, UnicodeError)
"""What pyarrow raises if a value does not fit a column."""


class Events:
    """Makes tables of events, with columns that keep their first type."""

    def __init__(self, time: str, type: str) -> None:
        self.time, self.type = time, type
        self.kinds: dict[str, pa.DataType] = {}

    def table(self, events: list[dict[str, Any]]) -> pa.Table:
        """The events as a table; a value that does not fit its column is left out.

        So is an attribute whose name is not text: no query could name it.
        """
        given = dict.fromkeys(name for event in events for name in event)
        names = dict.fromkeys([self.time, self.type, *filter(_is_text, given)])
        return pa.table({name: self._column(name, [event.get(name) for event in events]) for name in names})

    def _column(self, name: str, values: list[Any]) -> pa.Array:
        if name == self.time:
            return self._times(values)
        known = self.kinds.get(name)
        try:
            column = pa.array(values, known)
        except UNFIT:
            fitting = known or _commonest(values)
            column = pa.array([_fitted(value, fitting) for value in values], fitting)
        if not pa.types.is_null(column.type):
            self.kinds[name] = column.type
        elif known is not None:
            column = pa.nulls(len(values), known)
        return column

    def _times(self, values: list[Any]) -> pa.Array:
        """Times from text, or integers as they are: whichever most of the first ones are.

        If most are fractions, the column has them, and the query refuses it with a message.
        """
        kind = self.kinds.get(self.time)
        if kind is None:
            kinds = Counter(map(_kind_of_time, values))
            del kinds[None]
            kind = kinds.most_common(1)[0][0] if kinds else MOMENT
            self.kinds[self.time] = kind
        fitted = _clock if kind == MOMENT else _fraction if kind == pa.float64() else _whole
        return pa.array([fitted(value) for value in values], kind)


def sound(table: pa.Table, time: str, type: str) -> pa.Table:
    """The events with a time and a type: without these, a query refuses the whole table."""
    return table.filter(pc.and_(table[time].is_valid(), table[type].is_valid()))


def numbered(table: pa.Table, time: str, type: str) -> pa.Table:
    """All rows, so that their numbers stay; one without a time or type gets a type that no query names."""
    if table[time].null_count + table[type].null_count == 0:
        return table
    unsound = pc.invert(pc.and_(table[time].is_valid(), table[type].is_valid()))
    times = pc.fill_null_backward(pc.fill_null_forward(table[time]))
    types = pc.if_else(unsound, NO_EVENT, table[type].cast(pa.string()))
    names = table.column_names
    return table.set_column(names.index(time), time, times).set_column(names.index(type), type, types)


def _kind_of_time(value: Any) -> pa.DataType | None:
    for fitted, kind in ((_clock, MOMENT), (_whole, pa.int64()), (_fraction, pa.float64())):
        if fitted(value) is not None:
            return kind
    return None


def _clock(value: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
        if found is None or found.tzinfo is None:
            return None if found is None else found.replace(tzinfo=UTC)
        return found.astimezone(UTC)  # some valid texts are in no year that Python supports
    except (ValueError, OverflowError):
        return None


def _whole(value: Any) -> int | None:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if whole and not isinstance(value, bool) and LEAST <= value <= MOST else None


def _fraction(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _text(value: Any) -> str:
    """The value as text that can be stored: lone surrogates are replaced."""
    text = str(value)
    return text if _is_text(text) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeError:
        return False
    return True


def _commonest(values: list[Any]) -> pa.DataType:
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    found = {kinds.get(type(value), pa.string()) for value in values if value is not None}
    if len(found) == 1:
        return found.pop()
    if found <= {pa.int64(), pa.float64()}:
        return pa.float64()
    return pa.string()


def _fitted(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_string(kind):
        return _text(value)
    if pa.types.is_floating(kind):
        return _fraction(value)
    try:
        return pa.scalar(value, kind).as_py()
    except UNFIT:
        return None


def match_of(row: Mapping[str, Any], only: str) -> dict[str, Any]:
    """A match for the pages: its query, its times, its events by variable, and its values.

    Those of a set have these as columns. Those of a single query, whose name `only` the caller knows, have a
    column for each variable and each value.
    """
    if "query" in row and "events" in row:
        values = row.get("values")
        return {**plain(dict(row)), "values": dict(values) if isinstance(values, list) else values}
    found: dict[str, Any] = {"query": row.get("query", only), "events": [], "values": {}}
    for name, value in row.items():
        members = value if isinstance(value, list) else [value]
        if name in ("match_start", "match_end", "version"):
            found[name] = plain(value)
        elif members and all(isinstance(member, dict) for member in members):
            found["events"] += [{"variable": name, "event": plain(member)} for member in members]
        elif value is not None and name != "query":
            found["values"][name] = plain(value)
    return found


def plain(value: Any) -> Any:
    """The value with times as ISO 8601 text, and bytes as hexadecimal digits."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else value
