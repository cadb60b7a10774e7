"""Events as columns: from what users pass to one Arrow table, and on to values to compute with.

Expressions compute with 64-bit integers, floats, decimals, strings and booleans. Times and durations are
integers in one resolution for all columns: nanoseconds if some column has them, otherwise microseconds. NaN
is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.model.arithmetic import DIGITS
from nestream.model.frames import are_batches, from_pandas, is_of, is_unread, read
from nestream.model.iso_times import with_times
from nestream.model.lazy import pc
from nestream.model.plain import is_uuid, plain_column, roomy, uuid_texts
from nestream.model.python_values import a, names_of_rows, python_column
from nestream.model.schema import EventError, Kind, Schema, kind_of, path_of, refuse_repeated
from nestream.model.widening import converted, mixing, widened

_INTEGERS = pa.int64()


def to_table(events: Any, type_column: str = "type", time_column: str | None = None) -> pa.Table:
    """Convert events to an Arrow table, each column in its plain type.

    Takes a table, a record batch, a dataset or a reader of Arrow, a pandas or Polars frame (lazy ones too) or
    anything else with the Arrow stream interface, such as a relation of DuckDB, a sequence of dictionaries or
    of batches, or a mapping from event type to any of these. Times that are text become timestamps.
    """
    table = _plain_table(_read(events, type_column, time_column))
    return table if time_column is None else with_times(table, time_column)


def _read(events: Any, type_column: str, time_column: str | None) -> pa.Table:
    if _is_of_spark(events):
        raise EventError(
            "a Spark DataFrame is matched on Spark, by `match(df)` and `count(df)` alone\n"
            "  hint: for events that fit into this process pass df.toArrow(), whose times are in UTC"
        )
    if isinstance(events, pa.Table):
        return events
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    if isinstance(events, Mapping):
        return _tables_by_type(events, type_column, time_column)
    if is_unread(events):
        return _read(read(events), type_column, time_column)
    if is_of(events, "pandas", "DataFrame"):
        return from_pandas(events, time_column)
    if hasattr(events, "__arrow_c_stream__") and not is_of(events, "", "Series", "ChunkedArray"):
        try:
            return pa.table(events)
        except (pa.ArrowException, TypeError, ValueError) as problem:
            raise EventError(
                f"cannot read events from {a(type(events).__name__)}: {problem}\n"
                "  hint: pass a table with a column for each attribute"
            ) from None
    if isinstance(events, Iterable) and not isinstance(events, str | bytes) and not hasattr(events, "dtype"):
        rows = list(events)
        if are_batches(rows):
            return _together([_plain_table(_read(each, type_column, time_column)) for each in rows])
        return _from_dictionaries(rows, type_column)
    raise EventError(
        f"cannot read events from {a(type(events).__name__)}\n"
        "  hint: pass the path of a file, an Arrow table, a pandas or Polars DataFrame, "
        "a list of dictionaries, or a mapping of these by type"
    )


def _is_of_spark(events: Any) -> bool:
    return type(events).__module__.startswith("pyspark.")


def _plain_table(table: pa.Table) -> pa.Table:
    """The table in plain types; raises an `EventError` if columns have the same name."""
    refuse_repeated(table.schema)
    for place, field in enumerate(table.schema):
        column = plain_column(table.column(place))
        if column is not table.column(place):
            table = table.set_column(place, pa.field(field.name, column.type), column)
    return table


def quiet(table: pa.Table, time: str, type: str, moment: pa.DataType, read: Iterable[str]) -> pa.Table:
    """A table without events, with the columns that a query needs, if the input does not say what they hold.

    A time of no known type gets the type `moment`. If nothing is known of the events, not even the names of
    their columns, they have those that the query reads.
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


def with_room(table: pa.Table) -> pa.Table:
    """A table whose columns have the types that `roomy` returns."""
    for place, field in enumerate(table.schema):
        wide = roomy(field.type)
        if wide != field.type:
            table = table.set_column(place, field.with_type(wide), table.column(place).cast(wide))
    return table


def _from_dictionaries(rows: list[Any], type_column: str) -> pa.Table:
    names = list(names_of_rows(rows))  # all rows are checked before the first is read
    if rows and not names:
        names = [type_column]  # a table without columns has no rows, so the events would be lost
    return table_of(rows, names)


def table_of(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> pa.Table:
    """The named attributes of dictionaries as a table, which holds exactly their values."""
    return pa.table({name: python_column(name, [row.get(name) for row in rows]) for name in names})


def _tables_by_type(events: Mapping[Any, Any], type_column: str, time_column: str | None) -> pa.Table:
    """Combine tables by type to one, each row with its type; a column that a type lacks is NULL."""
    tables = []
    for name, part in events.items():
        table = _of_type(name, part, type_column, time_column)
        if type_column in table.column_names:
            table = table.drop_columns([type_column])
        tables.append(table.append_column(type_column, pa.array([name] * table.num_rows, pa.string())))
    if not tables:
        return _from_dictionaries([], type_column)
    return _together(tables)


def _of_type(name: Any, part: Any, type_column: str, time_column: str | None) -> pa.Table:
    """The events of a type in a mapping by type."""
    if not isinstance(name, str):
        raise EventError(
            f"the events by type have a type {name!r}, but a type must be a string\n"
            '  hint: write the mapping as {"A": events, ...}'
        )
    several = isinstance(part, Iterable) or hasattr(part, "__arrow_c_stream__") or _is_of_spark(part)
    several = several or is_unread(part)
    if isinstance(part, Mapping) or not several:
        raise EventError(
            f"a mapping maps types to their events, but `{name}` holds {a(type(part).__name__)}\n"
            "  hint: put a single event in a list: [{...}]"
        )
    try:
        return to_table(part, type_column, time_column)
    except EventError as problem:
        raise EventError(f"the events of type `{name}`: {problem}") from None


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate the tables, each column wide enough for all of them."""
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
    """Which values are NULL; in a dictionary, also those whose word is NULL."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pc.is_null(column)


def attributes_by_type(events: Any) -> dict[str, list[str]] | None:
    """The attributes of each event type, if the events are a mapping by type."""
    if not isinstance(events, Mapping):
        return None
    tables = {name: to_table(part) for name, part in events.items()}
    return {name: table.column_names for name, table in tables.items() if table.num_columns}


def field_of(column: pa.Array | pa.ChunkedArray, attribute: str) -> pa.Array | pa.ChunkedArray:
    """The values of an attribute, given its column; a field is NULL where its struct is NULL."""
    path = path_of(attribute)
    if not path:
        return column
    if pa.types.is_null(column.type):
        return column
    return pc.struct_field(column, list(path))


def computable(column: pa.Array | pa.ChunkedArray, unit: str, name: str = "") -> pa.Array:
    """The column as values to compute with: int64, float64, large_string or bool, with NULL for NaN.

    Decimals stay as they are, and so does a column without values or of a type that cannot be compared.
    """
    if isinstance(column, pa.ChunkedArray):
        match column.num_chunks:
            case 0:
                column = pa.nulls(0, column.type)
            case 1:
                column = column.chunk(0)
            case _:
                column = column.combine_chunks()
    if column.type == _INTEGERS:  # most often; a cast takes as long as everything else for a few values
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        match kind_of(column.type):
            case Kind.INTEGER:
                return column.cast(pa.int64())
            case Kind.FLOAT:
                return _without_nan(column.cast(pa.float64()))
            case Kind.STRING if is_uuid(column.type):
                return uuid_texts(column)
            case Kind.STRING:
                return column.cast(pa.large_string())
            case Kind.TIMESTAMP | Kind.ZONED:
                zone = getattr(column.type, "tz", None)
                return column.cast(pa.timestamp(unit, zone)).view(pa.int64())
            case Kind.DURATION:
                return column.cast(pa.duration(unit)).view(pa.int64())
            case _:  # decimals, no values at all, or types that can only be tested for NULL
                return column
    except pa.ArrowException as problem:
        raise EventError(
            f"column `{name}` holds values that do not fit {_fits(kind_of(column.type), unit)}: {problem}\n"
            "  hint: convert the column, or leave out the rows with such values"
        ) from None


def _fits(kind: Kind, unit: str) -> str:
    if kind in (Kind.TIMESTAMP, Kind.ZONED, Kind.DURATION):
        return f"64 bits of {'nanoseconds, which another column needs' if unit == 'ns' else 'microseconds'}"
    return "64 bits"


def times_of(column: pa.Array | pa.ChunkedArray, schema: Schema) -> npt.NDArray[np.int64]:
    """A column of times as numbers in the resolution of a schema."""
    return np.asarray(computable(column, schema.unit, schema.time).to_numpy(zero_copy_only=False), np.int64)


def _without_nan(column: pa.Array) -> pa.Array:
    values = column.to_numpy(zero_copy_only=False)
    if not np.isnan(values).any():
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)


def result_type(kind: Kind, unit: str, zone: str | None = None, places: int = 0) -> pa.DataType:
    """The Arrow type of a computed value; a decimal has that many decimal places."""
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
    """Raise an `EventError` for the first row without a time or type."""
    for role, name in (("time", schema.time), ("type", schema.type)):
        column = table.column(name)
        if column.null_count:
            row = pc.index(column.is_null(), True).as_py()
            raise EventError(
                f"row {row} has no {role} (column `{name}` is NULL in {column.null_count} rows)\n"
                "  hint: remove such rows; `nestream run` and query.stream() turn them into dead letters"
            )
