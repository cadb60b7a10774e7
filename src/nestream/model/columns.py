"""Events as columns: from what users bring to one Arrow table, and on to values to compute with.

Expressions compute with 64-bit integers, floats, decimals, strings and booleans. Times and durations are
integers in one resolution for all columns: nanoseconds where some column has them, else microseconds. NaN is
NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.arithmetic import DIGITS
from nestream.model.schema import EventError, Kind, Schema, kind_of


def to_table(events: Any, type_column: str = "type") -> pa.Table:
    """The events as an Arrow table.

    Takes a table or record batch of Arrow, a pandas or Polars frame or anything else with the Arrow stream
    interface, a sequence of dictionaries, or a mapping from event type to any of these.
    """
    if isinstance(events, pa.Table):
        return _without_string_views(events)
    if isinstance(events, pa.RecordBatch):
        return _without_string_views(pa.Table.from_batches([events]))
    if isinstance(events, Mapping):
        return _tables_by_type(events, type_column)
    if type(events).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(events, preserve_index=False)
    if hasattr(events, "__arrow_c_stream__"):
        return _without_string_views(pa.table(events))
    if isinstance(events, Iterable) and not isinstance(events, str | bytes):
        return _from_dictionaries(list(events))
    raise EventError(
        f"cannot read events from a {type(events).__name__}\n"
        "  hint: give an Arrow table, a pandas DataFrame, a list of dictionaries, or a mapping by type"
    )


def _without_string_views(table: pa.Table) -> pa.Table:
    """The table with plain strings, as Arrow cannot take single rows of string views."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.large_string()))
    return table


def _from_dictionaries(rows: list[Any]) -> pa.Table:
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise EventError(f"event {number} is a {type(row).__name__}, not a dictionary")
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not rows:
        return pa.table({"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string())})
    columns = {}
    for name in names:
        try:
            columns[name] = pa.array([row.get(name) for row in rows])
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as problem:
            raise EventError(f"attribute `{name}` holds values of different types: {problem}") from None
    return pa.table(columns)


def _tables_by_type(events: Mapping[str, Any], type_column: str) -> pa.Table:
    """One table of the tables by type, each row with its type; a column that a type lacks is NULL."""
    tables = []
    for name, part in events.items():
        table = to_table(part, type_column)
        if type_column in table.column_names:
            table = table.drop_columns([type_column])
        tables.append(table.append_column(type_column, pa.array([name] * table.num_rows, pa.string())))
    if not tables:
        return _from_dictionaries([])
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
        raise EventError(f"the tables by type do not fit together: {problem}") from None


def attributes_by_type(events: Any) -> dict[str, list[str]] | None:
    """The attributes of each event type, where the events come as a mapping by type."""
    if not isinstance(events, Mapping):
        return None
    return {name: to_table(part).column_names for name, part in events.items()}


def resolution(schema: Schema) -> str:
    """The unit of times and durations in computations: "ns" where some column needs it, else "us"."""
    fine = any(
        (pa.types.is_timestamp(datatype) or pa.types.is_duration(datatype)) and datatype.unit == "ns"
        for datatype in schema.columns.values()
    )
    return "ns" if fine else "us"


def per_microsecond(unit: str) -> int:
    """How many of the unit make a microsecond."""
    return 1000 if unit == "ns" else 1


def computable(column: pa.Array | pa.ChunkedArray, unit: str, name: str = "") -> pa.Array:
    """The column as values to compute with: int64, float64, large_string or bool, NULL for NaN.

    Decimals stay what they are, and so does a column without values or of a type that cannot be compared.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if isinstance(column, pa.ChunkedArray):  # no chunks at all
            column = pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        match kind_of(column.type):
            case Kind.INTEGER:
                return column.cast(pa.int64())
            case Kind.FLOAT:
                return _without_nan(column.cast(pa.float64()))
            case Kind.STRING:
                return column.cast(pa.large_string())
            case Kind.TIMESTAMP | Kind.ZONED:
                zone = getattr(column.type, "tz", None)
                return column.cast(pa.timestamp(unit, zone)).view(pa.int64())
            case Kind.DURATION:
                return column.cast(pa.duration(unit)).view(pa.int64())
            case _:  # decimals; no values at all; and what can only be asked whether it is NULL
                return column
    except pa.ArrowInvalid as problem:
        raise EventError(f"column `{name}` cannot be computed with: {problem}") from None


def _without_nan(column: pa.Array) -> pa.Array:
    values = column.to_numpy(zero_copy_only=False)
    if not np.isnan(values).any():
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)


def result_type(kind: Kind, unit: str, zone: str | None = None, places: int = 0) -> pa.DataType:
    """The Arrow type of a computed value; a decimal has so many digits after the point."""
    match kind:
        case Kind.INTEGER:
            return pa.int64()
        case Kind.FLOAT:
            return pa.float64()
        case Kind.DECIMAL:
            return pa.decimal128(DIGITS, min(places, DIGITS))
        case Kind.UNKNOWN:
            return pa.null()
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.TIMESTAMP:
            return pa.timestamp(unit)
        case Kind.ZONED:
            return pa.timestamp(unit, zone or "UTC")
        case Kind.DURATION:
            return pa.duration(unit)
        case _:
            return pa.string()


def check_events(table: pa.Table, schema: Schema) -> None:
    """Raise an `EventError` for the first row without time or type."""
    for role, name in (("time", schema.time), ("type", schema.type)):
        column = table.column(name)
        if column.null_count:
            row = pc.index(column.is_null(), True).as_py()
            raise EventError(
                f"row {row} has no {role} (column `{name}` is NULL in {column.null_count} rows)\n"
                "  hint: remove such rows; `nestream run` and query.stream() put them aside as dead letters"
            )
