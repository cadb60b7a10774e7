"""The table of matches: a struct column for each variable, or the expressions of RETURN.

Matches are row numbers into columns of events in the order of positions, so the least row number of a match
is its first event and the greatest its last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Protocol

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

Rows = npt.NDArray[np.signedinteger[Any]]
Mask = npt.NDArray[np.bool_]
_POOL = pa.system_memory_pool()
"""Where the columns of matches live: Arrow's own pool keeps about 30 MB of what each thread has freed."""
_SOME = 64
"""Columns of rows that differ mostly differ among so many."""


class Events(Protocol):
    """The columns of the events that matches refer to."""

    def __len__(self) -> int:
        """The number of events."""
        ...

    def column(self, name: str) -> pa.Array | pa.ChunkedArray:
        """A column."""
        ...

    def structs(self, rows: Rows, missing: Mask | None, fields: Sequence[pa.Field]) -> pa.StructArray:
        """The events at some rows; NULL where one is missing."""
        ...


@dataclass(frozen=True)
class TableOfEvents:
    """Events in a table."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> pa.Array | pa.ChunkedArray:
        """A column."""
        return self.table.column(name)

    def structs(self, rows: Rows, missing: Mask | None, fields: Sequence[pa.Field]) -> pa.StructArray:
        """The events at some rows; NULL where one is missing."""
        held = self.table.select([field.name for field in fields])
        batch, *more = held.to_batches()
        if more:
            (batch,) = held.combine_chunks().to_batches()
        taken = pc.take(batch, pa.array(rows, mask=missing), boundscheck=False, memory_pool=_POOL)
        if missing is None:
            return taken.to_struct_array()
        return pa.StructArray.from_arrays(taken.columns, fields=fields, mask=pa.array(missing))


class MatchTables:
    """Builds the tables of matches of one query, with the columns `wanted`.

    `edges` names the variables with the first and the last event of every match, if these are known.
    `unbound` says that a match may lack some of the variables.
    """

    def __init__(
        self,
        output: Output,
        wanted: pa.Schema,
        schema: Schema,
        edges: tuple[str | None, str | None] = (None, None),
        *,
        unbound: bool = True,
    ) -> None:
        self.output = output
        self.wanted = wanted
        self.schema = schema
        self.edges = edges
        self.unbound = unbound
        self._types = wanted.types
        self._events = [
            (place, column.name)
            for place, column in enumerate(output.columns)
            if isinstance(column, EventColumn)
        ]
        """The variables whose events are shown, with the places of their columns."""

    @cached_property
    def _together(self) -> tuple[list[str], list[pa.Field]]:
        """The variables whose events are taken in one call (every call has a cost), and their fields."""
        names = [name for _, name in self._events]
        fields = list(self.wanted.field(names[0]).type) if names else []
        if any(pa.types.is_nested(field.type) for field in fields):
            return [], []  # Arrow cannot cast a slice of structs that hold structs with a column of type null
        return names, fields

    def build(
        self,
        events: Events,
        rows: Mapping[str, Rows],
        values: Callable[[ValueColumn], Any],
        members: Mapping[str, Members],
    ) -> pa.Table:
        """The matches as a table: `rows` holds the row number of each variable's event, match by match.

        `values` computes a returned expression for all matches. `members` are those of the groups that are
        shown or that may extend beyond the other events of a match.
        """
        output, edges, schema = self.output, self.edges, self.schema
        unbound = [name for name in rows if rows[name].min(initial=0) == UNBOUND] if self.unbound else []
        kept = [rows[name] for name in output.kept]
        if edges[0] is not None:
            first = rows[edges[0]]
        else:
            bound = [np.where(r == UNBOUND, len(events), r) if unbound else r for r in kept]
            first = reduce(np.minimum, bound)
        last = reduce(np.maximum, kept) if edges[1] is None else rows[edges[1]]
        for name in output.groups:
            if name in members:
                first, last = spanned(members[name], first, last)
        columns: list[pa.Array | pa.ChunkedArray] = []
        together = self._taken(events, rows, unbound)
        for place, column in enumerate(output.columns):
            if column.name in together:
                columns.append(together[column.name])
            elif not isinstance(column, ValueColumn):
                columns.append(
                    _shown(events, column, self._types[place], rows, unbound, members, schema.time)
                )
            elif isinstance(column.expression, Attribute):
                name = column.expression.variable or ""
                attribute = column.expression.name
                source = events.column(schema.column(attribute))
                columns.append(field_of(_take(source, rows[name], name in unbound), attribute))
            else:
                columns.append(values(column))
        columns += [self._times_at(at, columns, events, rows) for at in (first, last)]
        found = [_as(column, datatype) for column, datatype in zip(columns, self._types, strict=True)]
        return pa.Table.from_arrays(found, schema=self.wanted)

    def _taken(
        self, events: Events, rows: Mapping[str, Rows], unbound: Sequence[str]
    ) -> dict[str, pa.StructArray]:
        """The events of the variables that are taken together."""
        names, fields = self._together
        if not names or not len(events):
            return {}
        together = np.concatenate([rows[name] for name in names])
        structs = events.structs(together, together == UNBOUND if unbound else None, fields)
        count = len(rows[names[0]])
        return {name: structs.slice(place * count, count) for place, name in enumerate(names)}

    def _times_at(
        self, at: Rows, columns: list[Any], events: Events, rows: Mapping[str, Rows]
    ) -> pa.Array | pa.ChunkedArray:
        """The times of some events; if a variable always has these, they are shared with its column."""
        shown = [(rows[name], columns[place]) for place, name in self._events]
        for own, built in shown:
            if own is at:
                return built.field(self.schema.time)
        for own, built in shown:
            if np.array_equal(own[:_SOME], at[:_SOME]) and np.array_equal(own, at):
                return built.field(self.schema.time)
        return _take(events.column(self.schema.time), at, False)


def _shown(
    events: Events,
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


def _group(events: Events, members: Members, column: GroupColumn, datatype: pa.ListType) -> pa.Array:
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
    return _struct(TableOfEvents(events), rows, datatype, unbound=False)


def values_at(column: pa.ChunkedArray, rows: Rows) -> pa.Array | pa.ChunkedArray:
    """The values at some rows of a column."""
    return _take(column, rows, False)


def _as(column: Any, datatype: pa.DataType) -> Any:
    return column if column.type == datatype else column.cast(datatype)


def _struct(events: Events, rows: Rows, datatype: pa.StructType, unbound: bool) -> pa.Array:
    fields = list(datatype)
    columns = [_plain(_take(events.column(field.name), rows, unbound)) for field in fields]
    mask = pa.array(rows == UNBOUND) if unbound else None
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _take(column: pa.Array | pa.ChunkedArray, rows: Rows, unbound: bool) -> pa.Array | pa.ChunkedArray:
    indices = pa.array(rows, mask=rows == UNBOUND) if unbound else pa.array(rows)
    return pc.take(_plain(column), indices, boundscheck=False, memory_pool=_POOL)


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            return column.chunk(0)
        column = column.combine_chunks()
    return column
