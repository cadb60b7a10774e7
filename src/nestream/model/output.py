"""What a match shows, and the table of matches: a struct column a variable, or the expressions of RETURN.

Matches arrive as row numbers into a table of events that is in the order of positions, so the least row
number of a match is its first event and the greatest its last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from nestream.model.arithmetic import PLACES, places
from nestream.model.expression import (
    END_ATTRIBUTE,
    TIME_ATTRIBUTE,
    Arithmetic,
    Attribute,
    Expression,
    Literal,
    attributes,
    children,
)
from nestream.model.lazy import Lazy, lazy
from nestream.model.schema import Kind, Schema

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    import pyarrow.compute as pc

    from nestream.model.columns import field_of, result_type
else:
    field_of, result_type = lazy("nestream.model.columns", "field_of", "result_type")
    np, pa, pc = Lazy("numpy"), Lazy("pyarrow"), Lazy("pyarrow.compute")


if TYPE_CHECKING:
    Rows = npt.NDArray[np.int64]
else:
    Rows = Any
_FEW = 4096
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

    @property
    def events(self) -> tuple[str, ...]:
        """The variables whose single events the column shows."""
        return (self.variable,)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the column shows."""
        return ()


@dataclass(frozen=True)
class CompositeColumn:
    """An output column that holds the match of an expression: a struct of its parts, and of `ts` and `te`."""

    variable: str
    parts: tuple[EventColumn | GroupColumn | CompositeColumn, ...]

    @property
    def name(self) -> str:
        """The column's name: the variable of the expression."""
        return self.variable

    @property
    def events(self) -> tuple[str, ...]:
        """The variables whose single events the column shows."""
        return tuple(name for part in self.parts for name in part.events)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the column shows."""
        return tuple(name for part in self.parts for name in part.groups)


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

    @property
    def events(self) -> tuple[str, ...]:
        """None: its events are members."""
        return ()

    @property
    def groups(self) -> tuple[str, ...]:
        """Itself."""
        return (self.variable,)


@dataclass(frozen=True)
class ValueColumn:
    """An output column that holds a named expression of RETURN."""

    name: str
    expression: Expression

    @property
    def events(self) -> tuple[str, ...]:
        """None: it shows a value."""
        return ()

    @property
    def groups(self) -> tuple[str, ...]:
        """None: it shows a value."""
        return ()


Column: TypeAlias = EventColumn | GroupColumn | CompositeColumn | ValueColumn


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
    columns: tuple[Column, ...]
    groups: tuple[str, ...] = ()
    into: str | None = None

    @property
    def parts(self) -> tuple[EventColumn | GroupColumn | ValueColumn, ...]:
        """The columns, with the parts of expressions in their places."""
        return tuple(part for column in self.columns for part in _parts(column))

    @property
    def shows_events(self) -> bool:
        """Whether a column holds whole events."""
        return not all(isinstance(column, ValueColumn) for column in self.columns)


def _parts(column: Column) -> Iterator[EventColumn | GroupColumn | ValueColumn]:
    if not isinstance(column, CompositeColumn):
        yield column
        return
    for part in column.parts:
        yield from _parts(part)


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
        if isinstance(column, ValueColumn):
            fields.append(pa.field(column.name, value_type(column, schema, kinds[column.name])))
        else:
            fields.append(pa.field(column.name, column_type(column, schema)))
    time = schema.columns[schema.time]
    return pa.schema([*fields, pa.field("match_start", time), pa.field("match_end", time)])


def event_type(schema: Schema) -> pa.DataType:
    """The struct that holds an event."""
    return pa.struct([pa.field(name, datatype) for name, datatype in schema.columns.items()])


def column_type(column: EventColumn | GroupColumn | CompositeColumn, schema: Schema) -> pa.DataType:
    """The type of a column that shows events."""
    match column:
        case EventColumn():
            return event_type(schema)
        case GroupColumn():
            return group_type(column, schema)
        case CompositeColumn(parts=parts):
            time = schema.columns[schema.time]
            fields = [pa.field(part.name, column_type(part, schema)) for part in parts]
            return pa.struct([*fields, pa.field(TIME_ATTRIBUTE, time), pa.field(END_ATTRIBUTE, time)])


def group_type(column: GroupColumn, schema: Schema) -> pa.DataType:
    """The list that holds the members of a group."""
    event = event_type(schema)
    member = pa.struct([pa.field(name, event) for name in column.members]) if column.members else event
    return pa.list_(member)


def value_type(column: ValueColumn, schema: Schema, kind: Kind) -> pa.DataType:
    """The type of a returned expression: the column's own for a plain attribute, else that of its kind."""
    if isinstance(column.expression, Attribute):
        return _datatype(column.expression.name, schema)
    zones = (_datatype(part.name, schema) for part in attributes(column.expression))
    zone = next((datatype.tz for datatype in zones if pa.types.is_timestamp(datatype) and datatype.tz), None)
    return result_type(kind, schema.unit, zone, decimal_places(column.expression, schema))


def _datatype(attribute: str, schema: Schema) -> pa.DataType:
    datatype = schema.datatype(attribute)
    assert datatype is not None, "typing has found the attribute"
    return datatype


def decimal_places(expression: Expression, schema: Schema) -> int:
    """The most digits after the point that a decimal expression can have."""
    match expression:
        case Literal(value=value):
            return places(value)
        case Attribute(name=name):
            datatype = _datatype(name, schema)
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
    edges: tuple[str | None, str | None] = (None, None),
) -> pa.Table:
    """The matches as a table: `rows` holds the row number of each variable's event, match by match.

    `values` computes a returned expression for all the matches. `members` are those of the groups that are
    shown or that may reach beyond the other events of a match. `edges` names the variables whose events are
    the first and the last of every match, where these are known.
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
    together = _together(output, wanted, events, rows, bool(unbound)) if len(first) <= _FEW else {}
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
    """The times of some events; where a variable always has these, they are shared with its column."""
    for column, built in zip(output.columns, columns, strict=False):
        own = rows[column.name] if isinstance(column, EventColumn) else None
        if own is not None and (own is at or np.array_equal(own, at)):
            return built.field(built.type.get_field_index(schema.time))
    return _take(events.column(schema.time), at, False)


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
    fields = list(datatype)
    columns = [_plain(_take(events.column(field.name), rows, unbound)) for field in fields]
    mask = pa.array(rows == UNBOUND) if unbound else None
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _together(
    output: Output, wanted: pa.Schema, events: pa.Table, rows: Mapping[str, Rows], unbound: bool
) -> dict[str, pa.Array]:
    """The events of all variables, taken in one call: with few matches, calls are what takes time."""
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
        structs = batch.take(pa.array(all_rows)).to_struct_array()
    count = len(rows[names[0]])
    return {name: structs.slice(place * count, count) for place, name in enumerate(names)}


def _take(column: pa.ChunkedArray, rows: Rows, unbound: bool) -> pa.Array | pa.ChunkedArray:
    indices = pa.array(rows, mask=rows == UNBOUND) if unbound else pa.array(rows)
    return pc.take(_plain(column), indices, boundscheck=False)


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            return column.chunk(0)
        column = column.combine_chunks()
    return column
