"""Columns from Python values, without what Arrow would change silently.

Arrow builds a column from values that only look alike: it drops the zone of a timestamp beside one without,
the time of day beside a date, the nanoseconds of a pandas Timestamp, and it reads TRUE as 1.0 beside a float.
Such values are refused here, with what to do instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa

from nestream.model.schema import EventError

_UNREADABLE = (pa.ArrowException, OverflowError, TypeError, ValueError, AttributeError)
"""What Arrow raises for values that it cannot hold in one column."""


def python_column(name: str, values: Sequence[Any], datatype: pa.DataType | None = None) -> pa.Array:
    """The values as a column, of the type where one is given; raises an `EventError` that names it."""
    kinds = set(map(type, values))
    if any(kind.__name__ in ("NAType", "NaTType") for kind in kinds):  # pandas' own words for NULL
        values = [None if type(v).__name__ in ("NAType", "NaTType") else v for v in values]
    _refuse_lookalikes(name, values)
    datatype = _with_nanoseconds(values, datatype)
    try:
        array = pa.array(values, datatype)
    except _UNREADABLE as problem:
        raise EventError(
            f"column `{name}` holds values that are not of one type that Arrow knows: {problem}\n"
            "  hint: convert them to one type of number, string, boolean, time or duration"
        ) from None
    _refuse_changes(name, values, array.type)
    return array


def _refuse_lookalikes(name: str, values: Sequence[Any]) -> None:
    """Raise for values of kinds that Arrow would take for one another, also inside lists and dictionaries."""
    found: dict[str, Any] = {}
    inside: dict[str, list[Any]] = {}
    for value in values:
        if isinstance(value, Mapping):
            for key, part in value.items():
                inside.setdefault(str(key), []).append(part)
        elif isinstance(value, list | tuple):
            inside.setdefault("", []).extend(value)
        elif (kind := _kind(value)) is not None:
            found.setdefault(kind, value)
    for one, other in _CONFUSED:
        if one in found and other in found:
            raise EventError(
                f"column `{name}` holds {one} beside {other}: {found[one]!r} and {found[other]!r}\n"
                "  hint: convert the values to one of the two"
            )
    for key, parts in inside.items():
        _refuse_lookalikes(f"{name}.{key}" if key else name, parts)


_NAIVE, _AWARE, _DATE = "timestamps without a zone", "timestamps with a zone", "dates"
_TEXT, _BYTES, _BOOLEAN, _NUMBER = "strings", "bytes", "booleans", "numbers"
_CONFUSED = ((_NAIVE, _AWARE), (_NAIVE, _DATE), (_AWARE, _DATE), (_TEXT, _BYTES), (_BOOLEAN, _NUMBER))


def _kind(value: Any) -> str | None:
    """What a value is, so far as Arrow may take it for something else."""
    match value:
        case None:
            return None
        case str():
            return _TEXT
        case bool() | np.bool_():
            return _BOOLEAN
        case int() | float() | np.number():
            return _NUMBER
        case datetime():
            return _NAIVE if value.tzinfo is None else _AWARE
        case date():
            return _DATE
        case bytes() | bytearray() | memoryview():
            return _BYTES
    return None


def _with_nanoseconds(values: Sequence[Any], datatype: pa.DataType | None) -> pa.DataType | None:
    """The type for pandas' times, whose nanoseconds Arrow would drop."""
    if datatype is not None:
        return datatype
    for value in values:
        if isinstance(value, datetime) and getattr(value, "nanosecond", None):
            return pa.timestamp("ns", None if value.tzinfo is None else pa.scalar(value).type.tz)
        if hasattr(value, "total_seconds") and getattr(value, "nanoseconds", None):
            return pa.duration("ns")
    return None


def _refuse_changes(name: str, values: Sequence[Any], datatype: pa.DataType) -> None:
    """Raise for a value that the column's type would hold in part."""
    lost = next((value for value in values if _loses(value, datatype)), None)
    if lost is not None:
        raise EventError(
            f"column `{name}` holds {datatype}, and {lost!r} does not fit\n"
            "  hint: convert the value, or give the column another type"
        )


def _loses(value: Any, datatype: pa.DataType) -> bool:
    types = pa.types
    match value:
        case None | str():
            return False if value is None else types.is_binary(datatype) or types.is_large_binary(datatype)
        case bool() | np.bool_():
            return bool(types.is_floating(datatype) or types.is_decimal(datatype))
        case float() | np.floating():
            return bool(types.is_integer(datatype)) and not float(value).is_integer()
        case datetime():
            if not types.is_timestamp(datatype):
                return bool(types.is_date(datatype))
            return (value.tzinfo is None) != (datatype.tz is None) or _too_fine(value, datatype.unit)
        case bytes() | bytearray() | memoryview():
            return bool(types.is_string(datatype) or types.is_large_string(datatype))
        case time():
            return value.tzinfo is not None
    return types.is_duration(datatype) and _too_fine(value, datatype.unit)


_FINEST = {"s": 10**6, "ms": 10**3, "us": 1}


def _too_fine(value: Any, unit: str) -> bool:
    """Whether a time or duration of Python or pandas has parts that the unit cannot hold."""
    if unit == "ns":
        return False
    fine = getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0)
    parts = value.microsecond if isinstance(value, datetime) else getattr(value, "microseconds", 0)
    return bool(fine) or bool(parts % _FINEST[unit])


def names_of_rows(rows: Sequence[Any]) -> Iterator[str]:
    """The names of the attributes of dictionaries, in the order in which they appear."""
    seen: set[str] = set()
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise EventError(
                f"event {number} is {a(type(row).__name__)}, not a dictionary\n"
                '  hint: write each event as {"ts": 1, "type": "A", ...}; '
                "for columns of values give an Arrow table or a DataFrame"
            )
        for name in row:
            if name not in seen:
                if not isinstance(name, str):
                    raise EventError(
                        f"event {number} has an attribute named {name!r}, and a name is a string\n"
                        "  hint: name the attribute with a string"
                    )
                seen.add(name)
                yield name


def a(noun: str) -> str:
    """The noun with its article."""
    return f"{'an' if noun[:1].lower() in 'aeio' else 'a'} {noun}"
