"""Turns arriving events into a table with the columns of a stream's schema, or refuses them with a reason.

Nothing here changes a stream. Its schema grows with the events: a new attribute is added, and a column is
widened where every value stays the same (`nestream.model.widening`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.columns import computable, missing, table_of
from nestream.model.frames import is_frame, is_unread
from nestream.model.python_values import names_of_rows
from nestream.model.schema import Kind, kind_of
from nestream.model.widening import mixing, taking

Rows = npt.NDArray[np.int64]
Columns = dict[str, pa.DataType]


def is_batch(events: Any) -> bool:
    """Whether the events are a whole batch, rather than one event or a sequence of events or batches."""
    plain = isinstance(events, pa.Table | pa.RecordBatch | Mapping) or is_frame(events) or is_unread(events)
    named = events.__class__.__module__.startswith("pyspark.")
    return plain or named or (hasattr(events, "__arrow_c_stream__") and hasattr(events, "columns"))


def table_of_events(events: list[dict[str, Any]], time: str, type: str) -> pa.Table:
    """Convert single events to a table, which always has columns for the time and the type."""
    return table_of(events, dict.fromkeys([time, type, *names_of_rows(events)]))


def without_role(table: pa.Table, role: str, name: str) -> tuple[npt.NDArray[np.bool_], str] | None:
    """Which events lack their time or type, and why; None if all have it."""
    if table.schema.get_field_index(name) < 0:
        return (np.ones(table.num_rows, bool), f"no {role}: there is no column `{name}`")
    column = table.column(name)
    words = pa.types.is_dictionary(column.type)
    if not column.null_count and not (words and any(part.dictionary.null_count for part in column.chunks)):
        return None
    absent = missing(column).to_numpy()
    return (absent, f"no {role}: `{name}` is NULL") if absent.any() else None


def event_at(table: pa.Table, row: int) -> dict[str, Any]:
    """One event of a batch as a dictionary; a value that has no Python type becomes text."""
    event = {}
    for name in table.column_names:
        value = table.column(name)[row]
        try:
            event[name] = value.as_py()
        except (ValueError, OverflowError):  # such as a time after the year 9999
            event[name] = " ".join(table.column(name).slice(row, 1).to_string().split())
    return event


def grown(known: Columns, table: pa.Table, fixed: Collection[str], mentioned: Iterable[str]) -> Columns:
    """The columns of a schema after taking in a table: more or wider columns where the table needs them."""
    columns = dict(known)
    for name in table.column_names:
        if name not in columns:
            columns[name] = table.schema.field(name).type
            continue
        wide = taking(columns[name], table.column(name), fixed=name in fixed)
        if wide is None:
            raise mixing(name, columns[name], table.schema.field(name).type)
        columns[name] = wide
    return {**columns, **{name: pa.null() for name in mentioned if name not in columns}}


def check_computable(table: pa.Table, names: Iterable[str], unit: str) -> None:
    """Raise an `EventError` for a value that the query cannot compute with: beyond 64 bits in its unit."""
    for name in names:
        place = table.schema.get_field_index(name)
        if place >= 0 and _may_hold(table.schema.field(place).type, unit):
            _check(table.column(place), unit, name)


def _may_hold(datatype: pa.DataType, unit: str) -> bool:
    """Whether a column, or a field of its structs, may hold a value that is beyond 64 bits in a unit."""
    return _may_overflow(datatype, unit) or pa.types.is_struct(datatype)


def _check(column: pa.ChunkedArray, unit: str, name: str) -> None:
    """Raise an `EventError` for a value beyond 64 bits in a column, or in a field of its structs."""
    if _may_overflow(column.type, unit):
        computable(column, unit, name)
    if pa.types.is_struct(column.type):
        for place in range(column.type.num_fields):
            field = column.type.field(place).name
            _check(pc.struct_field(column, [field]), unit, f"{name}.{field}")


def _may_overflow(datatype: pa.DataType, unit: str) -> bool:
    if pa.types.is_dictionary(datatype):
        return _may_overflow(datatype.value_type, unit)
    timed = kind_of(datatype) in (Kind.TIMESTAMP, Kind.ZONED, Kind.DURATION)
    return pa.types.is_uint64(datatype) or (timed and getattr(datatype, "unit", None) != unit)
