"""The table of matches: a struct column for each variable, or the expressions of RETURN.

Matches are row numbers into a table of events in the order of positions, so the least row number of a match
is its first event and the greatest its last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.columns import field_of
from nestream.model.expression import Attribute
from nestream.model.output import (
    UNBOUND,
    CompositeColumn,
    EventColumn,
    GroupColumn,
    Members,
    Output,
    ValueColumn,
)
from nestream.model.schema import Schema

Rows = npt.NDArray[np.int64]
_POOL = pa.system_memory_pool()
"""Where the columns of matches live: Arrow's own pool keeps about 30 MB of what each thread has freed."""


def build_matches(
    output: Output,
    wanted: pa.Schema,
    events: pa.Table,
    rows: Mapping[str, Rows],
    schema: Schema,
    values: Callable[[ValueColumn], Any],
    members: Mapping[str, Members] | None = None,
    edges: tuple[str | None, str | None] = (None, None),
) -> pa.Table:
    """The matches as a table: `rows` holds the row number of each variable's event, match by match.

    `values` computes a returned expression for all matches. `members` are those of the groups that are shown
    or that may extend beyond the other events of a match. `edges` names the variables with the first and last
    event of every match, if these are known.
    """
    members = members or {}
    unbound = [name for name in rows if rows[name].min(initial=0) == UNBOUND]
    kept = [rows[name] for name in output.kept]
    if edges[0] is not None:
        first = rows[edges[0]]
    else:
        first = reduce(np.minimum, [np.where(r == UNBOUND, len(events), r) if unbound else r for r in kept])
    last = reduce(np.maximum, kept) if edges[1] is None else rows[edges[1]]
    for name in output.groups:
        if name in members:
            first, last = spanned(members[name], first, last)
    columns: list[pa.Array | pa.ChunkedArray] = []
    together = _together(output, wanted, events, rows, bool(unbound))
    for place, column in enumerate(output.columns):
        if column.name in together:
            columns.append(together[column.name])
        elif not isinstance(column, ValueColumn):
            datatype = wanted.field(place).type
            columns.append(_shown(events, column, datatype, rows, unbound, members, schema.time))
        elif isinstance(column.expression, Attribute):
            name = column.expression.variable or ""
            attribute = column.expression.name
            source = schema.column(attribute)
            column_taken = field_of(_take(events.column(source), rows[name], name in unbound), attribute)
            columns.append(column_taken)
        else:
            columns.append(values(column))
    columns += [_times_at(at, output, columns, events, rows, schema) for at in (first, last)]
    return pa.Table.from_arrays([_as(c, f.type) for c, f in zip(columns, wanted, strict=True)], schema=wanted)


def _shown(
    events: pa.Table,
    column: EventColumn | GroupColumn | CompositeColumn,
    datatype: pa.DataType,
    rows: Mapping[str, Rows],
    unbound: Sequence[str],
    members: Mapping[str, Members],
    time: str,
) -> pa.Array:
    """A column that shows events; `unbound` are the variables that some match does not bind."""
    if isinstance(column, EventColumn):
        return _struct(events, rows[column.name], datatype, column.name in unbound)
    if isinstance(column, GroupColumn):
        return _group(events, members[column.name], column, datatype)
    parts = [
        _plain(_shown(events, part, datatype.field(place).type, rows, unbound, members, time))
        for place, part in enumerate(column.parts)
    ]
    bound = [rows[name] for name in column.events]
    last = reduce(np.maximum, bound)
    first = reduce(np.minimum, [np.where(r == UNBOUND, last, r) if unbound else r for r in bound])
    missing = last == UNBOUND
    times = [_plain(_take(events.column(time), edge, bool(missing.any()))) for edge in (first, last)]
    fields = [datatype.field(place) for place in range(datatype.num_fields)]
    columns = [_as(c, field.type) for c, field in zip([*parts, *times], fields, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=pa.array(missing))


def _times_at(
    at: Rows,
    output: Output,
    columns: list[Any],
    events: pa.Table,
    rows: Mapping[str, Rows],
    schema: Schema,
) -> pa.Array | pa.ChunkedArray:
    """The times of some events; if a variable always has these, they are shared with its column."""
    for column, built in zip(output.columns, columns, strict=False):
        own = rows[column.name] if isinstance(column, EventColumn) else None
        if own is not None and (own is at or np.array_equal(own, at)):
            return built.field(built.type.get_field_index(schema.time))
    return _take(events.column(schema.time), at, False)


def spanned(members: Members, first: Rows, last: Rows) -> tuple[Rows, Rows]:
    """The first and last rows of matches, including the members of groups."""
    some = np.flatnonzero(members.counts > 0)
    if not len(some):
        return first, last
    begin = members.begin[:-1][some]
    first, last = first.copy(), last.copy()
    for column in members.rows.values():
        bound = np.where(column == UNBOUND, np.iinfo(column.dtype).max, column)
        first[some] = np.minimum(first[some], np.minimum.reduceat(bound, begin))
        last[some] = np.maximum(last[some], np.maximum.reduceat(column, begin))
    return first, last


def _group(events: pa.Table, members: Members, column: GroupColumn, datatype: pa.ListType) -> pa.Array:
    """The members of a group as lists; NULL where the group is unbound."""
    if not members.rows:
        return pa.nulls(len(members.counts), datatype)
    offsets = members.begin
    member = datatype.value_type
    if column.members:
        fields = [member.field(place) for place in range(member.num_fields)]
        structs = [
            _struct(events, own := members.rows[field.name], field.type, bool((own == UNBOUND).any()))
            for field in fields
        ]
        values = pa.StructArray.from_arrays(structs, fields=fields)
    else:
        (own,) = members.rows.values()
        values = _struct(events, own, member, unbound=False)
    missing = members.counts < 0
    if missing.any():
        nulls = pa.array(np.append(missing, False))
        places = pa.array(offsets.astype(np.int32), mask=nulls.to_numpy(zero_copy_only=False))
        return pa.ListArray.from_arrays(places, values)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def events_at(events: pa.Table, rows: Rows, datatype: pa.StructType) -> pa.Array:
    """The events at some rows of a table, as structs; no rows need no columns."""
    if not len(rows):
        return pa.nulls(0, datatype)
    return _struct(events, rows, datatype, unbound=False)


def values_at(column: pa.ChunkedArray, rows: Rows) -> pa.Array | pa.ChunkedArray:
    """The values at some rows of a column."""
    return _take(column, rows, False)


def _as(column: Any, datatype: pa.DataType) -> Any:
    return column if column.type == datatype else column.cast(datatype)


def _struct(events: pa.Table, rows: Rows, datatype: pa.StructType, unbound: bool) -> pa.Array:
    fields = list(datatype)
    columns = [_plain(_take(events.column(field.name), rows, unbound)) for field in fields]
    mask = pa.array(rows == UNBOUND) if unbound else None
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _together(
    output: Output, wanted: pa.Schema, events: pa.Table, rows: Mapping[str, Rows], unbound: bool
) -> dict[str, pa.Array]:
    """The events of all variables, taken in one call: every call has a cost."""
    names = [column.name for column in output.columns if isinstance(column, EventColumn)]
    if not names or not len(events):
        return {}
    datatype = wanted.field(names[0]).type
    if any(pa.types.is_nested(field.type) for field in datatype):
        return {}  # Arrow cannot cast a slice of structs that hold structs with a column of type null
    held = events if events.column_names == datatype.names else events.select(datatype.names)
    batch, *more = held.to_batches()
    if more:
        (batch,) = held.combine_chunks().to_batches()
    all_rows = np.concatenate([rows[name] for name in names])
    if unbound:
        missing = pa.array(all_rows == UNBOUND)
        taken = batch.take(pa.array(all_rows, mask=all_rows == UNBOUND))
        structs = pa.StructArray.from_arrays(taken.columns, fields=list(datatype), mask=missing)
    else:
        structs = pc.take(batch, pa.array(all_rows), boundscheck=False, memory_pool=_POOL).to_struct_array()
    count = len(rows[names[0]])
    return {name: structs.slice(place * count, count) for place, name in enumerate(names)}


def _take(column: pa.ChunkedArray, rows: Rows, unbound: bool) -> pa.Array | pa.ChunkedArray:
    indices = pa.array(rows, mask=rows == UNBOUND) if unbound else pa.array(rows)
    return pc.take(_plain(column), indices, boundscheck=False, memory_pool=_POOL)


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            return column.chunk(0)
        column = column.combine_chunks()
    return column
