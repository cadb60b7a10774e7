"""What a match shows, and the table of matches: a struct column a variable, or the expressions of RETURN.

Matches arrive as row numbers into a table of events that is in the order of positions, so the least row
number of a match is its first event and the greatest its last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.arithmetic import PLACES, places
from nestream.model.columns import result_type
from nestream.model.expression import Arithmetic, Attribute, Expression, Literal, attributes, children
from nestream.model.schema import Kind, Schema

Rows = npt.NDArray[np.int64]
START = "start"
"""The attribute with the start of its match, in an event that INTO makes."""
UNBOUND = -1
"""The row number of a variable that the branch taken left unbound."""


@dataclass(frozen=True)
class EventColumn:
    """An output column that holds the event of a variable, as a struct of that event's columns."""

    variable: str

    @property
    def name(self) -> str:
        """The column's name: the variable."""
        return self.variable


@dataclass(frozen=True)
class GroupColumn:
    """An output column that holds the members of a group, as a list of events or of matches.

    `members` are the variables of a group of matches; a repeated event has none besides its own.
    """

    variable: str
    members: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The column's name: the variable of the group."""
        return self.variable


@dataclass(frozen=True)
class ValueColumn:
    """An output column that holds a named expression of RETURN."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Output:
    """What a match gives: its columns, over the distinct bindings of the kept variables.

    `kept` are the variables left after EXISTS and a bare RETURN list, in the order of the output;
    `distinct` says that some variable was dropped, so that several bindings may give the same match.
    `groups` are the groups that `match_start` and `match_end` span as well. `into` is the type of the events
    that the matches become for other queries of a set.
    """

    kept: tuple[str, ...]
    distinct: bool
    columns: tuple[EventColumn | GroupColumn | ValueColumn, ...]
    groups: tuple[str, ...] = ()
    into: str | None = None

    @property
    def shows_events(self) -> bool:
        """Whether a column holds whole events."""
        return any(isinstance(column, EventColumn | GroupColumn) for column in self.columns)


@dataclass(frozen=True)
class Members:
    """The members of a group, match by match: how many each match has, -1 for an unbound group, and the rows.

    `rows` holds a column a variable, the members of all matches one after the other.
    """

    counts: Rows
    rows: Mapping[str, Rows]

    @property
    def begin(self) -> Rows:
        """The place of the first member of each match, and the number of all."""
        return np.concatenate(([0], np.cumsum(np.maximum(self.counts, 0))))


def output_schema(output: Output, schema: Schema, kinds: Mapping[str, Kind]) -> pa.Schema:
    """The columns of the matches, known before any event is."""
    fields = []
    for column in output.columns:
        if isinstance(column, EventColumn):
            fields.append(pa.field(column.name, event_type(schema)))
        elif isinstance(column, GroupColumn):
            fields.append(pa.field(column.name, group_type(column, schema)))
        else:
            fields.append(pa.field(column.name, value_type(column, schema, kinds[column.name])))
    time = schema.columns[schema.time]
    return pa.schema([*fields, pa.field("match_start", time), pa.field("match_end", time)])


def event_type(schema: Schema) -> pa.DataType:
    """The struct that holds an event."""
    return pa.struct([pa.field(name, datatype) for name, datatype in schema.columns.items()])


def group_type(column: GroupColumn, schema: Schema) -> pa.DataType:
    """The list that holds the members of a group."""
    event = event_type(schema)
    member = pa.struct([pa.field(name, event) for name in column.members]) if column.members else event
    return pa.list_(member)


def value_type(column: ValueColumn, schema: Schema, kind: Kind) -> pa.DataType:
    """The type of a returned expression: the column's own for a plain attribute, else that of its kind."""
    if isinstance(column.expression, Attribute):
        return schema.columns[schema.column(column.expression.name)]
    zones = (schema.columns[schema.column(part.name)] for part in attributes(column.expression))
    zone = next((datatype.tz for datatype in zones if pa.types.is_timestamp(datatype) and datatype.tz), None)
    return result_type(kind, schema.unit, zone, decimal_places(column.expression, schema))


def decimal_places(expression: Expression, schema: Schema) -> int:
    """The most digits after the point that a decimal expression can have."""
    match expression:
        case Literal(value=value):
            return places(value)
        case Attribute(name=name):
            datatype = schema.columns[schema.column(name)]
            return datatype.scale if pa.types.is_decimal(datatype) else 0
        case Arithmetic(operator="*", left=left, right=right):
            factors = decimal_places(left, schema), decimal_places(right, schema)
            return min(sum(factors), max(PLACES, *factors))
        case _:
            return max((decimal_places(part, schema) for part in children(expression)), default=0)


def build_matches(
    output: Output,
    wanted: pa.Schema,
    events: pa.Table,
    rows: Mapping[str, Rows],
    schema: Schema,
    values: Callable[[ValueColumn], Any],
    members: Mapping[str, Members] | None = None,
) -> pa.Table:
    """The matches as a table: `rows` holds the row number of each variable's event, match by match.

    `values` computes a returned expression for all the matches. `members` are those of the groups that are
    shown or that may reach beyond the other events of a match.
    """
    members = members or {}
    kept = [rows[name] for name in output.kept]
    unbound = [name for name in rows if (rows[name] == UNBOUND).any()]
    first = np.minimum.reduce([np.where(r == UNBOUND, len(events), r) if unbound else r for r in kept])
    last = np.maximum.reduce(kept)
    for name in output.groups:
        if name in members:
            first, last = spanned(members[name], first, last)
    columns: list[pa.Array | pa.ChunkedArray] = []
    for place, column in enumerate(output.columns):
        if isinstance(column, EventColumn):
            columns.append(
                _struct(events, rows[column.name], wanted.field(place).type, column.name in unbound)
            )
        elif isinstance(column, GroupColumn):
            columns.append(_group(events, members[column.name], column, wanted.field(place).type))
        elif isinstance(column.expression, Attribute):
            name = column.expression.variable or ""
            attribute = column.expression.name
            source = schema.column(attribute)
            columns.append(_take(events.column(source), rows[name], name in unbound))
        else:
            columns.append(values(column))
    time = events.column(schema.time)
    columns += [_take(time, first, False), _take(time, last, False)]
    return pa.Table.from_arrays([_as(c, f.type) for c, f in zip(columns, wanted, strict=True)], schema=wanted)


def spanned(members: Members, first: Rows, last: Rows) -> tuple[Rows, Rows]:
    """The first and last rows of matches, those of the members of a group included."""
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
    """The members of a group as lists, NULL where the group is unbound."""
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
    fields = [datatype.field(place) for place in range(datatype.num_fields)]
    columns = [_plain(_take(events.column(field.name), rows, unbound)) for field in fields]
    mask = pa.array(rows == UNBOUND) if unbound else None
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _take(column: pa.ChunkedArray, rows: Rows, unbound: bool) -> pa.Array | pa.ChunkedArray:
    indices = pa.array(rows, mask=rows == UNBOUND) if unbound else pa.array(rows)
    return pc.take(_plain(column), indices, boundscheck=False)


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            return column.chunk(0)
        column = column.combine_chunks()
    return column
