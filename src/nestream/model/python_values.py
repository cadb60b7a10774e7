"""Python values as an Arrow column with exactly these values: nothing is rounded, cut off or reinterpreted.

Arrow itself keeps only the day of a datetime after a date, reads 1 after a timedelta as a microsecond, and
drops zones and nanoseconds. So values of each class first become a column of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from nestream.model.schema import EventError
from nestream.model.widening import converted, mixing, widened
from nestream.model.wording import cut

_SIMPLE = frozenset((bool, int, float, str, bytes, timedelta, date, Decimal, np.int64, np.float64))
_WRONG = (pa.ArrowException, OverflowError, ValueError, TypeError, AttributeError)

DEEPEST = 64
"""The maximum depth of lists and dictionaries in a value."""
_PARTS = "has parts of different types\n  hint: convert the parts to one type, in all events"
_ZONED = "has a zone, which a time of day cannot keep\n  hint: remove the zone, or pass a datetime"


def python_column(name: str, values: Sequence[Any]) -> pa.Array:
    """The values as a column; raises an `EventError` if they do not fit together."""
    classes = set(map(type, values))
    classes.discard(type(None))
    if len(classes) <= 1 and classes <= _SIMPLE:
        return _alike(values, name)
    groups: dict[tuple[type, bool], list[int]] = {}
    for place, value in enumerate(values):
        if not _is_missing(value):
            groups.setdefault((type(value), getattr(value, "tzinfo", None) is None), []).append(place)
    parts = [_alike([values[place] for place in places], name) for places in groups.values()]
    wide: pa.DataType = pa.null()
    for part in parts:
        joined = widened(wide, part.type)
        if joined is None:
            raise mixing(name, wide, part.type)
        wide = joined
    order = np.full(len(values), -1)
    order[[place for places in groups.values() for place in places]] = np.arange(sum(map(len, parts)))
    whole = pa.concat_arrays([converted(part, wide, name) for part in parts] or [pa.nulls(0)])
    return whole.take(pa.array(order, mask=order < 0))


def _is_missing(value: Any) -> bool:
    """Whether a value is None, or one of pandas' missing values."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _alike(values: Sequence[Any], name: str) -> pa.Array:
    """Values of one class as a column."""
    if any(_is_deeper(value, DEEPEST) for value in values):  # Arrow and Python recurse into it
        raise EventError(
            f"attribute `{name}`: a value is nested more than {DEEPEST} levels deep\n"
            "  hint: flatten it, or pass it as text"
        )
    if isinstance(next(iter(values), None), dict | list):
        values = [_with_texts(value) for value in values]
    try:
        column = pa.array(values)
        if type(values[0] if values else None) not in _SIMPLE and any(_is_finer(value) for value in values):
            zone = getattr(column.type, "tz", None)
            fine = pa.timestamp("ns", zone) if pa.types.is_timestamp(column.type) else pa.duration("ns")
            column = pa.array(values, fine)
    except _WRONG:
        raise EventError(f"attribute `{name}`: {_reason(values)}") from None
    if pa.types.is_nested(column.type) or pa.types.is_time(column.type):
        for value, kept in zip(values, column.to_pylist(), strict=True):
            if not _same(value, kept):
                reason = _ZONED if isinstance(value, time) else _PARTS
                raise EventError(f"attribute `{name}`: {_short(value)} {reason}")
    return column


def _with_texts(value: Any) -> Any:
    """A nested value with UUIDs as text: Arrow has no type for them inside others."""
    match value:
        case UUID():
            return str(value)
        case dict():
            return {name: _with_texts(part) for name, part in value.items()}
        case list():
            return [_with_texts(part) for part in value]
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether a value is nested more than that many levels, such as one that contains itself."""
    match value:
        case Mapping():
            parts: Any = value.values()
        case list() | tuple() | set() | frozenset():
            parts = value
        case np.ndarray() if value.dtype == object:
            parts = value
        case _:
            return False
    return levels == 0 or any(_is_deeper(part, levels - 1) for part in parts)


def _is_finer(value: Any) -> bool:
    """Whether one of pandas' times or durations has nanoseconds, which Arrow would drop."""
    return bool(getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0))


def _reason(values: Sequence[Any]) -> str:
    """Why Arrow cannot make a column of the values."""
    for value in values:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return f"the integer {_short(value)} does not fit in 64 bits\n  hint: pass a Decimal or a float"
        if isinstance(value, str) and not _is_taken(value):
            return f"{_short(value)} is not valid Unicode\n  hint: replace the surrogates, or pass bytes"
    value = next((value for value in values if not _is_taken(value)), values[0])
    if isinstance(value, Mapping | list | tuple | set | frozenset | np.ndarray):
        if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
            return f"{_short(value)} has keys that are not strings\n  hint: convert the keys to strings"
        return f"{_short(value)} {_PARTS}"
    return (
        f"no column holds {_short(value)}, a value of type {type(value).__name__}\n"
        "  hint: convert it to a number, a string, a time, a list or a dictionary"
    )


def _is_taken(value: Any) -> bool:
    """Whether a column can hold the value by itself."""
    try:
        pa.array([value])
    except _WRONG:
        return False
    return True


def _same(given: Any, kept: Any) -> bool:
    """Whether a column keeps a nested value exactly."""
    if kept is None or given is None:
        return (kept is None and _is_missing(given)) or kept is given
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, Mapping):
        if not isinstance(kept, dict):
            return _same(list(given.items()), kept)
        return given.keys() <= kept.keys() and all(
            _same(given.get(name), value) for name, value in kept.items()
        )
    if isinstance(given, list | tuple):
        return len(given) == len(kept) and all(map(_same, given, kept))
    if isinstance(given, set | frozenset):
        return given == set(kept)
    if isinstance(given, float) and given != given:
        return bool(kept != kept)
    return _family(given) == _family(kept) and bool(given == kept)


def _family(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return bool
    if isinstance(value, datetime | time):
        return datetime, value.tzinfo is None
    for family in (str, bytes, date, timedelta):
        if isinstance(value, family):
            return family
    return "number"


def _short(value: Any) -> str:
    return cut(repr(value))


def names_of_rows(rows: Sequence[Any]) -> Iterator[str]:
    """The names of the attributes of dictionaries, in order of appearance."""
    seen: set[str] = set()
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise EventError(
                f"event {number} is {a(type(row).__name__)}, not a dictionary\n"
                '  hint: write each event as {"ts": 1, "type": "A", ...}; '
                "for columns of values pass an Arrow table or a DataFrame"
            )
        for name in row:
            if name not in seen:
                if not isinstance(name, str):
                    raise EventError(
                        f"event {number} has an attribute named {name!r}, but a name must be a string\n"
                        "  hint: name the attribute with a string"
                    )
                seen.add(name)
                yield name


def a(noun: str) -> str:
    """The noun with its article."""
    return f"{'an' if noun[:1].lower() in 'aeio' else 'a'} {noun}"
