"""Which Python values a column takes unchanged, so that a single event can be checked without a table.

A value that is taken comes back from its column as the same value. All other values, and columns of other
types, are left to the tables, which convert, widen and refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

import pyarrow as pa

from nestream.engine.single.formulas import Read, Row
from nestream.model.expression import TIME_ATTRIBUTE
from nestream.model.schema import Schema

Check = Callable[[Any], bool]

_EPOCH, _ZONED_EPOCH = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST_YEAR = 9999
"""In another zone, a time of this year or of the year 1 may be beyond what Python can represent."""
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def check_of(datatype: pa.DataType) -> Check | None:
    """A function that returns whether a column of a type takes a value unchanged; every column takes None.

    Returns None for a type whose columns may change values.
    """
    if pa.types.is_dictionary(datatype):
        return check_of(datatype.value_type) if _is_text(datatype.value_type) else None
    if pa.types.is_integer(datatype) and not pa.types.is_uint64(datatype):
        signed, bits = pa.types.is_signed_integer(datatype), datatype.bit_width
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        return lambda value: value is None or (value.__class__ is int and least <= value <= most)
    if pa.types.is_float64(datatype):
        return lambda value: value is None or value.__class__ is float
    if _is_text(datatype):
        return _is_valid_text
    if pa.types.is_boolean(datatype):
        return lambda value: value is None or value.__class__ is bool
    if pa.types.is_timestamp(datatype) and datatype.unit in _MICROSECONDS:
        step, zoned = _MICROSECONDS[datatype.unit], datatype.tz is not None

        def is_moment(value: Any) -> bool:
            if value is None:
                return True
            if not isinstance(value, datetime) or value.__class__ is not datetime:  # not of pandas
                return False
            is_zoned = value.utcoffset() is not None
            return is_zoned == zoned and value.microsecond % step == 0 and 1 < value.year < _LAST_YEAR

        return is_moment
    if pa.types.is_null(datatype):
        return lambda value: value is None
    return None


def _is_text(datatype: pa.DataType) -> bool:
    return bool(pa.types.is_string(datatype) or pa.types.is_large_string(datatype))


def _is_valid_text(value: Any) -> bool:
    if value.__class__ is not str:
        return value is None
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:  # a surrogate
        return False
    return True


def reader(attribute: str, schema: Schema) -> Read:
    """How to read an attribute of an event for computing: NaN is NULL, a time is an integer."""
    if attribute == TIME_ATTRIBUTE:
        return itemgetter(0)
    name = schema.column(attribute)
    datatype = schema.columns[name]
    if pa.types.is_floating(datatype):

        def number(row: Row) -> Any:
            value = row[2].get(name)
            return value if value == value else None

        return number
    if pa.types.is_timestamp(datatype):
        moment = as_time(datatype, schema.per_microsecond)

        def time(row: Row) -> Any:
            value = row[2].get(name)
            return None if value is None else moment(value)

        return time
    return lambda row: row[2].get(name)


def as_time(datatype: pa.DataType, scale: int) -> Callable[[Any], int]:
    """A time of a column as an integer; `scale` units make a microsecond."""
    if not pa.types.is_timestamp(datatype):
        return int
    epoch = _ZONED_EPOCH if datatype.tz else _EPOCH
    return lambda value: (value - epoch) // _MICROSECOND * scale


def shown_as(datatype: pa.DataType) -> Callable[[Any], Any] | None:
    """A computed value as its column in a table of matches shows it; None for a type that needs the table."""
    if pa.types.is_int64(datatype) or pa.types.is_string(datatype) or pa.types.is_boolean(datatype):
        return lambda value: value
    if pa.types.is_float64(datatype):
        return lambda value: None if value is None else float(value)
    if pa.types.is_duration(datatype) and datatype.unit == "us":
        return lambda value: None if value is None else timedelta(microseconds=value)
    return None
