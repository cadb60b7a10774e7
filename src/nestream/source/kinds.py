"""Column kinds: the type that holds every value of a text column, decided over the whole file.

A kind only ever widens (integer to float, anything to text), so that the type of a column does not depend on
how the file is cut into batches. Only the empty value is NULL. Numbers with leading zeros and integers of
more than 64 bits are identifiers, not numbers, and stay text.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc


class Kind(Enum):
    """What a column holds. EMPTY: nothing yet."""

    EMPTY = "empty"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NS = "timestamp with nanoseconds"
    INSTANT = "timestamp with zone"
    INSTANT_NS = "timestamp with zone and nanoseconds"
    TEXT = "text"


ARROW_TYPES = {
    Kind.EMPTY: pa.null(),  # of no known type, so that any use fits
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMP_NS: pa.timestamp("ns"),
    Kind.INSTANT: pa.timestamp("us", "UTC"),
    Kind.INSTANT_NS: pa.timestamp("ns", "UTC"),
    Kind.TEXT: pa.string(),
}
_WIDER = {
    Kind.INTEGER: (Kind.FLOAT,),
    Kind.TIMESTAMP: (Kind.TIMESTAMP_NS,),
    Kind.INSTANT: (Kind.INSTANT_NS,),
}
TIME_KINDS = (Kind.TIMESTAMP, Kind.TIMESTAMP_NS, Kind.INSTANT, Kind.INSTANT_NS)
ALL_KINDS = (Kind.BOOLEAN, Kind.INTEGER, Kind.FLOAT, *TIME_KINDS)


def widen(kind: Kind, values: pa.Array, candidates: tuple[Kind, ...] = ALL_KINDS) -> Kind:
    """The narrowest kind that holds the values of `kind` and of a text array."""
    if kind is Kind.TEXT:
        return kind
    values = non_empty(values)
    if len(values) == 0 or (kind is not Kind.EMPTY and fits(kind, values)):
        return kind
    wider = candidates if kind is Kind.EMPTY else _WIDER.get(kind, ())
    return next((candidate for candidate in wider if fits(candidate, values)), Kind.TEXT)


def join(left: Kind, right: Kind) -> Kind:
    """The narrowest kind that holds the values of both."""
    if left is right or right is Kind.EMPTY:
        return left
    if left is Kind.EMPTY or left in _WIDER.get(right, ()):
        return left if left is not Kind.EMPTY else right
    return right if right in _WIDER.get(left, ()) else Kind.TEXT


def fits(kind: Kind, values: pa.Array) -> bool:
    """Whether every value (text, none empty) reads as `kind`.

    Arrow formats an error for each value it cannot cast, so a few values are tried first.
    """
    return all(
        _converted(kind, values.slice(0, some)) is not None
        for some in (1, 64, len(values))
        if some <= len(values) or some == 1
    )


def convert(kind: Kind, values: pa.Array) -> pa.Array:
    """A text array as `kind`; empty text is NULL unless the column is text."""
    if kind is Kind.TEXT:
        return values
    if kind is Kind.EMPTY:
        return pa.nulls(len(values))
    empty = pc.equal(values, "")
    if pc.any(empty).as_py():
        values = pc.if_else(empty, pa.scalar(None, pa.string()), values)
    converted = _converted(kind, values)
    if converted is None:
        raise ValueError(f"a value does not fit {kind.value}")
    return converted


def non_empty(values: pa.Array) -> pa.Array:
    """The values that are neither NULL nor the empty text."""
    if values.null_count:
        values = values.drop_null()
    blank = pc.equal(values, "")
    return values.filter(pc.invert(blank)) if pc.any(blank).as_py() else values


def _converted(kind: Kind, values: pa.Array) -> pa.Array | None:
    if kind is Kind.BOOLEAN:
        lower = pc.utf8_lower(values)
        known = pc.is_in(lower, pa.array(["true", "false", None]))
        return pc.equal(lower, "true") if pc.all(known).as_py() is not False else None
    try:
        converted = pc.cast(values, ARROW_TYPES[kind])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if kind is Kind.INTEGER and not _plain(values, "^-?0.|^0x|^\\+"):
        return None
    if kind is Kind.FLOAT and not (_plain(values, "^[+-]?0[0-9]") and _no_huge_integer(values)):
        return None
    return converted


def _plain(values: pa.Array, forbidden: str) -> bool:
    """Whether no value matches; only values that start like one are checked with the expression."""
    suspect = pc.or_(
        pc.starts_with(values, "0"), pc.or_(pc.starts_with(values, "-"), pc.starts_with(values, "+"))
    )
    if not pc.any(suspect).as_py():
        return True
    return not pc.any(pc.match_substring_regex(values.filter(suspect), forbidden)).as_py()


def _no_huge_integer(values: pa.Array) -> bool:
    suspect = pc.greater_equal(pc.binary_length(values), 19)
    if not pc.any(suspect).as_py():
        return True
    long = values.filter(suspect)
    digits = long.filter(pc.match_substring_regex(long, "^[+-]?[0-9]+$"))
    return len(digits) == 0 or fits(Kind.INTEGER, digits)


def find_misfits(values: pa.Array, accepts: Callable[[pa.Array], bool]) -> list[int]:
    """The positions of the values that `accepts` refuses, by bisection: few misfits cost few tests."""
    misfits: list[int] = []
    pending = [(0, len(values))] if len(values) else []
    while pending:
        start, stop = pending.pop()
        if accepts(values.slice(start, stop - start)):
            continue
        if stop - start == 1:
            misfits.append(start)
            continue
        middle = (start + stop) // 2
        pending += [(middle, stop), (start, middle)]
    return misfits
