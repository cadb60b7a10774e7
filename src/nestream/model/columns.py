"""Events as columns: from what users bring to one Arrow table, and on to values to compute with.

Expressions compute with 64-bit integers, floats, strings and booleans. Times and durations are integers in
one resolution for all columns: nanoseconds where some column has them, else microseconds. NaN is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.python_values import column_of
from nestream.model.schema import EventError, Kind, Schema, kind_of
from nestream.model.widening import converted, mixing, widened


def to_table(events: Any, type_column: str = "type") -> pa.Table:
    """The events as an Arrow table.

    Takes a table or record batch of Arrow, a pandas or Polars frame or anything else with the Arrow stream
    interface, a sequence of dictionaries, or a mapping from event type to any of these.
    """
    if isinstance(events, pa.Table):
        return _plain(events)
    if isinstance(events, pa.RecordBatch):
        return _plain(pa.Table.from_batches([events]))
    if isinstance(events, Mapping):
        return _tables_by_type(events, type_column)
    try:
        if is_frame(events):
            return _plain(_from_pandas(events))
        if hasattr(events, "__arrow_c_stream__"):
            return _plain(pa.table(events))
    except (pa.ArrowException, ValueError, TypeError) as problem:
        raise EventError(f"cannot read events from this {type(events).__name__}: {problem}") from None
    if isinstance(events, Iterable) and not isinstance(events, str | bytes):
        return _from_dictionaries(list(events))
    raise EventError(
        f"cannot read events from a value of type {type(events).__name__}\n"
        "  hint: give an Arrow table, a pandas DataFrame, a list of dictionaries, or a mapping by type"
    )


def _from_pandas(events: Any) -> pa.Table:
    table = pa.Table.from_pandas(events, preserve_index=False)
    if table.num_rows:
        return table
    for place, field in enumerate(table.schema):  # what pandas takes where it knows nothing
        if pa.types.is_floating(field.type):
            table = table.set_column(place, field.name, pa.nulls(0))
    return table


def quiet(table: pa.Table, time: str, type: str, moment: pa.DataType, read: Iterable[str]) -> pa.Table:
    """A table without events with the columns that a query needs, where it does not say what they hold.

    A time of no known type gets the type `moment`. Where nothing is known of the events, not even the names
    of their columns, they have those that the query reads.
    """
    if table.num_rows:
        return table
    columns = {field.name: field.type for field in table.schema}
    if columns.keys() <= {time, type} and pa.types.is_null(columns.get(time, pa.null())):
        columns = {time: pa.null(), type: pa.string(), **columns, **{name: pa.null() for name in read}}
    for name, known in ((time, moment), (type, pa.string())):
        if name in columns and pa.types.is_null(columns[name]):
            columns[name] = known
    return pa.schema(list(columns.items())).empty_table()


def is_frame(events: Any) -> bool:
    """Whether the events are a DataFrame of pandas, which is not imported for it."""
    return type(events).__module__.partition(".")[0] == "pandas" and hasattr(events, "columns")


def _plain(table: pa.Table) -> pa.Table:
    """The table with plain strings, and dictionaries with room for more words.

    Arrow cannot take single rows of string views, nor join dictionaries that then have more than 127 words
    where the first had fewer.
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.large_string()))
        elif roomy(field.type) != field.type:
            table = table.set_column(place, field.name, table.column(place).cast(roomy(field.type)))
    return table


def roomy(datatype: pa.DataType) -> pa.DataType:
    """The type, if it is a dictionary with room for 2^31 words at least."""
    if pa.types.is_dictionary(datatype) and datatype.index_type.bit_width < 32:
        return pa.dictionary(pa.int32(), datatype.value_type, datatype.ordered)
    return datatype


def _from_dictionaries(rows: list[Any]) -> pa.Table:
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise EventError(f"event {number} is of type {type(row).__name__}, and an event is a dictionary")
    return table_of(rows, dict.fromkeys(name for row in rows for name in row))


def table_of(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> pa.Table:
    """The named attributes of dictionaries as a table, which holds just their values."""
    columns = {}
    for name in names:
        if not isinstance(name, str):
            raise EventError(f"the name of an attribute is a string, not {name!r}")
        columns[name] = column_of([row.get(name) for row in rows], name)
    return pa.table(columns)


def _tables_by_type(events: Mapping[str, Any], type_column: str) -> pa.Table:
    """One table of the tables by type, each row with its type; a column that a type lacks is NULL."""
    tables = []
    for name, part in events.items():
        if not isinstance(name, str):
            raise EventError(f"a mapping of events has event types for keys, which are strings, not {name!r}")
        try:
            table = to_table(part, type_column)
        except EventError as problem:
            raise EventError(f"the events of type `{name}`: {problem}") from None
        if type_column in table.column_names:
            table = table.drop_columns([type_column])
        tables.append(table.append_column(type_column, pa.array([name] * table.num_rows, pa.string())))
    if not tables:
        return _from_dictionaries([])
    return _together(tables)


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """The tables one after the other, each column wide enough for all of them."""
    columns: dict[str, pa.DataType] = {}
    for table in tables:
        for name, found in zip(table.column_names, table.schema.types, strict=True):
            wide = widened(columns.get(name, pa.null()), found)
            if wide is None:
                raise mixing(name, columns[name], found)
            columns[name] = wide
    return pa.concat_tables([with_columns(table, columns) for table in tables])


def with_columns(table: pa.Table, columns: Mapping[str, pa.DataType], *, held: bool = False) -> pa.Table:
    """The events, new or held, with exactly these columns; raises an `EventError` if a value would change."""
    return pa.table(
        {
            name: converted(table.column(name), datatype, name, held=held)
            if name in table.column_names
            else pa.nulls(table.num_rows, datatype)
            for name, datatype in columns.items()
        }
    )


def missing(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which values are NULL; of a dictionary, also by a word of it that is."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pc.is_null(column)


def attributes_by_type(events: Any) -> dict[str, list[str]] | None:
    """The attributes of each event type, where the events come as a mapping by type."""
    if not isinstance(events, Mapping):
        return None
    tables = {name: to_table(part) for name, part in events.items()}
    return {name: table.column_names for name, table in tables.items() if table.num_columns}


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
    """The column as values to compute with: int64, float64, large_string or bool, NULL for NaN."""
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
            case Kind.UNKNOWN:
                return column.cast(pa.float64())  # no values at all: any kind will do
            case _:
                return column
    except pa.ArrowInvalid as problem:
        raise EventError(f"column `{name}` cannot be computed with: {problem}") from None


def _without_nan(column: pa.Array) -> pa.Array:
    values = column.to_numpy(zero_copy_only=False)
    if not np.isnan(values).any():
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)


def result_type(kind: Kind, unit: str, zone: str | None = None) -> pa.DataType:
    """The Arrow type of a computed value."""
    match kind:
        case Kind.INTEGER:
            return pa.int64()
        case Kind.FLOAT:
            return pa.float64()
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
        absent = missing(table.column(name))
        if pc.any(absent).as_py():
            raise EventError(
                f"row {pc.index(absent, True).as_py()} has no {role} "
                f"(column `{name}` is NULL in {pc.sum(absent).as_py()} rows)\n"
                "  hint: remove such rows; `nestream run` and query.stream() put them aside as dead letters"
            )
