"""The types that a column may take over time: it widens where every value stays the same.

Integers widen to longer ones, to decimals and to floats, times and durations to finer units, lists and
structs by their parts. Everything else is refused: no value is rounded, cut off or reinterpreted.
docs/reference/events.md shows this file as a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import types as arrow

from nestream.model.lazy import pc
from nestream.model.schema import EventError
from nestream.model.wording import cut

Column: TypeAlias = Any
"""An array or a chunked array of Arrow."""
_UNITS = ("s", "ms", "us", "ns")
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
_MOST_DIGITS = 76


def widened(held: pa.DataType, found: pa.DataType) -> pa.DataType | None:
    """The type of a column with values of one type that gets those of another; None if they do not mix.

    Values of both convert to it exactly, or `converted` refuses them.
    """
    if held == found or arrow.is_null(found):
        return held
    if arrow.is_dictionary(held):
        wide = widened(held.value_type, found)
        return held if wide == held.value_type and _is_text(wide) else wide
    if arrow.is_dictionary(found):
        return widened(held, found.value_type)
    if held == found:
        return held
    if arrow.is_null(held):
        return found
    for is_kind, join in _KINDS:
        if is_kind(held) and is_kind(found):
            return join(held, found)
    return None


def taking(held: pa.DataType, column: Column, *, fixed: bool = False) -> pa.DataType | None:
    """The type of a column that gets more values, None if they do not mix; a fixed type never changes.

    Floats that are whole numbers, and NaN, do not turn a column of integers into floats.
    """
    wide = widened(held, column.type)
    if wide is None or wide == held or arrow.is_null(held):
        return wide
    whole = arrow.is_integer(held) and arrow.is_floating(column.type) and _casts(column, held)
    return held if fixed or whole else wide


def converted(column: Column, datatype: pa.DataType, name: str, *, held: bool = False) -> Column:
    """The column as values of another type; raises an `EventError` for the first value that would change.

    NaN in a column of integers is NULL, as in all computations. With `held`, the new type does not fit, and
    not the values.
    """
    if column.type == datatype:
        return column
    try:
        return _cast(column, datatype)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        value = _first(column, lambda part: _casts(part, datatype))
        if held:
            new = f"{shown(datatype)} do not fit, as it could not keep {value}"
            raise EventError(f"column `{name}` holds {shown(column.type)}: {new}") from None
        raise EventError(f"column `{name}` holds {shown(datatype)}: {value} does not fit") from None


def mixing(name: str, held: pa.DataType, found: pa.DataType) -> EventError:
    """Report a column whose types do not mix."""
    return EventError(
        f"column `{name}` holds {shown(held)}: {shown(found)} do not fit\n  hint: convert them to one type"
    )


def shown(datatype: pa.DataType) -> str:
    """A type in words, with Arrow's name."""
    for is_kind, words in _WORDS:
        if is_kind(datatype):
            return f"{words} ({datatype})"
    return f"values of type {datatype}"


def _cast(column: Column, datatype: pa.DataType) -> Column:
    if arrow.is_null(column.type):
        return pa.nulls(len(column), datatype)
    if arrow.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if arrow.is_float16(column.type):  # Arrow cannot compute with it
        column = column.cast(pa.float32())
    if arrow.is_integer(datatype) and arrow.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)  # NaN is NULL
    if arrow.is_dictionary(datatype):
        return column.cast(datatype.value_type).cast(datatype)
    result = column.cast(datatype)
    if arrow.is_floating(column.type) and arrow.is_floating(datatype):  # Arrow rounds silently
        back = result.cast(column.type)
        if pc.any(pc.and_not(pc.not_equal(back, column), pc.is_nan(column))).as_py():
            raise pa.ArrowInvalid("a float would be rounded")
    return result


def _casts(column: Column, datatype: pa.DataType) -> bool:
    try:
        _cast(column, datatype)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _first(column: Column, accepts: Callable[[Column], bool]) -> str:
    """The first value that is not accepted, as text."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepts(column.slice(low, middle - low)) else (low, middle)
    try:
        text = repr(column[low].as_py())
    except (ValueError, OverflowError):  # a time that Python has no date for
        text = str(column[low].cast(pa.int64()))
    return cut(text)


# -- numbers -----------------------------------------------------------------------------------------------


def _is_number(datatype: pa.DataType) -> bool:
    return any(test(datatype) for test in (arrow.is_integer, arrow.is_floating, arrow.is_decimal))


def _number(held: pa.DataType, found: pa.DataType) -> pa.DataType | None:
    if arrow.is_decimal(held) or arrow.is_decimal(found):
        return _decimal(held, found)
    if arrow.is_integer(held) and arrow.is_integer(found):
        return _integer(held, found)
    if arrow.is_floating(held) and arrow.is_floating(found):
        return max(held, found, key=lambda datatype: datatype.bit_width)
    return pa.float64()


def _integer(held: pa.DataType, found: pa.DataType) -> pa.DataType:
    if arrow.is_signed_integer(held) == arrow.is_signed_integer(found):
        return max(held, found, key=lambda datatype: datatype.bit_width)
    unsigned, signed = (found, held) if arrow.is_signed_integer(held) else (held, found)
    width = max(2 * unsigned.bit_width, signed.bit_width)
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(width, held)


def _decimal(held: pa.DataType, found: pa.DataType) -> pa.DataType | None:
    if arrow.is_floating(held) or arrow.is_floating(found):
        return None  # a float is not a decimal: 0.1 is neither equal to it nor kept exactly
    whole, scale = (max(parts) for parts in zip(_digits(held), _digits(found), strict=True))
    if whole + scale > _MOST_DIGITS:
        return None
    wide = any(arrow.is_decimal256(datatype) for datatype in (held, found))
    return (pa.decimal256 if wide or whole + scale > 38 else pa.decimal128)(whole + scale, scale)


def _digits(datatype: pa.DataType) -> tuple[int, int]:
    """The digits before and after the point."""
    if arrow.is_decimal(datatype):
        return datatype.precision - datatype.scale, max(datatype.scale, 0)
    return (20 if arrow.is_uint64(datatype) else _DIGITS[datatype.bit_width]), 0


# -- text, bytes, days and times ---------------------------------------------------------------------------


def _is_text(datatype: pa.DataType) -> bool:
    return any(test(datatype) for test in (arrow.is_string, arrow.is_large_string, arrow.is_string_view))


def _is_bytes(datatype: pa.DataType) -> bool:
    tests = (arrow.is_binary, arrow.is_large_binary, arrow.is_fixed_size_binary, arrow.is_binary_view)
    return any(test(datatype) for test in tests) and not arrow.is_decimal(datatype)


def _same_values(held: pa.DataType, found: pa.DataType) -> pa.DataType:
    return held


def _bytes(held: pa.DataType, found: pa.DataType) -> pa.DataType:
    return pa.binary() if arrow.is_fixed_size_binary(held) else held


def _timestamp(held: pa.DataType, found: pa.DataType) -> pa.DataType | None:
    if (held.tz is None) != (found.tz is None):
        return None
    return pa.timestamp(_finer(held, found), held.tz)  # the same times, in the zone that came first


def _duration(held: pa.DataType, found: pa.DataType) -> pa.DataType:
    return pa.duration(_finer(held, found))


def _time_of_day(held: pa.DataType, found: pa.DataType) -> pa.DataType:
    unit = _finer(held, found)
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def _finer(held: pa.DataType, found: pa.DataType) -> str:
    return _UNITS[max(_UNITS.index(held.unit), _UNITS.index(found.unit))]


# -- lists, structs and maps -------------------------------------------------------------------------------


def _list(held: pa.DataType, found: pa.DataType) -> pa.DataType | None:
    item = widened(held.value_type, found.value_type)
    return None if item is None else pa.list_(item)


def _struct(held: pa.DataType, found: pa.DataType) -> pa.DataType | None:
    parts = {field.name: field.type for field in held}
    if len(parts) < held.num_fields or len({field.name for field in found}) < found.num_fields:
        return None
    for field in found:
        wide = widened(parts.get(field.name, pa.null()), field.type)
        if wide is None:
            return None
        parts[field.name] = wide
    return pa.struct(list(parts.items()))


def _map(held: pa.DataType, found: pa.DataType) -> pa.DataType | None:
    key, item = widened(held.key_type, found.key_type), widened(held.item_type, found.item_type)
    return None if key is None or item is None else pa.map_(key, item)


_KINDS: tuple[tuple[Callable[..., bool], Callable[..., pa.DataType | None]], ...] = (
    (_is_number, _number),
    (_is_text, _same_values),
    (_is_bytes, _bytes),
    (arrow.is_date, _same_values),
    (arrow.is_timestamp, _timestamp),
    (arrow.is_duration, _duration),
    (arrow.is_time, _time_of_day),
    (arrow.is_list, _list),
    (arrow.is_struct, _struct),
    (arrow.is_map, _map),
)
"""Kinds of types that mix among themselves, and the type that holds the values of two of a kind."""

_WORDS: tuple[tuple[Callable[..., bool], str], ...] = (
    (arrow.is_boolean, "booleans"),
    (arrow.is_integer, "integers"),
    (arrow.is_floating, "floats"),
    (arrow.is_decimal, "decimals"),
    (_is_text, "strings"),
    (_is_bytes, "bytes"),
    (arrow.is_date, "dates"),
    (lambda datatype: arrow.is_timestamp(datatype) and datatype.tz is None, "timestamps without zone"),
    (arrow.is_timestamp, "timestamps with zone"),
    (arrow.is_duration, "durations"),
    (arrow.is_time, "times of day"),
    (arrow.is_list, "lists"),
    (arrow.is_struct, "structs"),
    (arrow.is_map, "maps"),
)
