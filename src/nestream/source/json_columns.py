"""Columns of JSON values: one kind for a column's values, and the casts between kinds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nestream.source.kinds import TIME_KINDS, Kind, find_misfits, widen


@dataclass
class Column:
    """Values of one kind. Timestamps stay text until the whole file is known."""

    kind: Kind
    values: pa.Array

    def take(self, places: pa.Array) -> Column:
        """The values at these places."""
        return Column(self.kind, self.values.take(places))

    def has_values(self) -> bool:
        """Whether not everything is NULL."""
        return bool(self.values.null_count < len(self.values))

    def misfits(self, wanted: pa.DataType) -> list[int]:
        """The places of values that cannot be cast."""

        def accepts(part: pa.Array) -> bool:
            try:
                cast_column(Column(self.kind, part), wanted)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                return False
            return True

        return find_misfits(self.values, accepts)

    def shown(self, at: int) -> str:
        """A value for a message."""
        return repr(self.values[at].as_py())


def column_of(values: list[Any]) -> Column:
    """The narrowest kind that holds all values: text where numbers, booleans and text are mixed."""
    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return Column(Kind.EMPTY, pa.nulls(len(values), pa.string()))
    if kinds == {str}:
        texts = pa.array(values, pa.string())
        return Column(widen(Kind.EMPTY, texts, TIME_KINDS), texts)
    if kinds == {bool}:
        return Column(Kind.BOOLEAN, pa.array(values, pa.bool_()))
    if kinds <= {int, float}:
        try:
            whole = kinds == {int}
            return Column(
                Kind.INTEGER if whole else Kind.FLOAT,
                pa.array(values, pa.int64())
                if whole
                else pa.array([None if value is None else float(value) for value in values], pa.float64()),
            )
        except (OverflowError, pa.ArrowInvalid):
            pass
    return Column(Kind.TEXT, pa.array([_text(value) for value in values], pa.string()))


def array_column(values: pa.Array) -> Column:
    """The column of values that were read as integers, floats, booleans or strings."""
    if values.null_count == len(values):
        return Column(Kind.EMPTY, pa.nulls(len(values), pa.string()))
    if pa.types.is_string(values.type):
        return Column(widen(Kind.EMPTY, values, TIME_KINDS), values)
    if pa.types.is_boolean(values.type):
        return Column(Kind.BOOLEAN, values)
    return Column(Kind.INTEGER if pa.types.is_integer(values.type) else Kind.FLOAT, values)


def cast_column(column: Column, wanted: pa.DataType) -> pa.Array:
    """The column as an Arrow type; a time kind is read from its text."""
    values = column.values
    if values.type == wanted:
        return values
    if pa.types.is_null(wanted):
        return pa.nulls(len(values))
    if pa.types.is_boolean(values.type) and not pa.types.is_string(wanted):
        raise pa.ArrowInvalid(f"a boolean is not of type {wanted}")  # Arrow would make numbers of them
    if not pa.types.is_string(values.type) and _is_other(wanted):
        raise pa.ArrowInvalid(f"a number is not of type {wanted}")
    if pa.types.is_string(wanted):
        if pa.types.is_floating(values.type):
            texts = [None if value is None else json.dumps(value) for value in values.to_pylist()]
            return pa.array(texts, pa.string())
        return pc.cast(values, wanted)
    if column.kind in TIME_KINDS and pa.types.is_timestamp(wanted):
        values = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
    return pc.cast(values, wanted)


def _is_other(wanted: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(wanted) or pa.types.is_boolean(wanted))


def _text(value: Any) -> str | None:
    if value is None or type(value) is str:
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
