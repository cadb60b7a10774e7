"""The matches of a query set as one table: the query's name, the span, the events and returned values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.match_table import events_at, spanned, values_at
from nestream.model.output import UNBOUND, EventColumn, GroupColumn, Members, Output, event_type
from nestream.model.plain import empty_table
from nestream.model.python_rows import python_value
from nestream.model.schema import Schema

VALUES = pa.map_(pa.string(), pa.string())
Rows = npt.NDArray[np.int64]
QUERY, VERSION = "query", "version"
"""The columns with the name of a match's query and, if queries change, with its version."""


_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def set_schema(schema: Schema) -> pa.Schema:
    """The columns of the matches of a query set.

    `events` lists the events of a match with their variables; `values` holds what RETURN computes, as text.
    """
    time = schema.columns[schema.time]
    event = pa.struct([pa.field("variable", pa.string()), pa.field("event", event_type(schema))])
    return pa.schema(
        [
            pa.field("query", pa.string()),
            pa.field("match_start", time),
            pa.field("match_end", time),
            pa.field("events", pa.list_(event)),
            pa.field("values", VALUES),
        ]
    )


def with_versions(matches: pa.Table, versions: Mapping[str, int]) -> pa.Table:
    """Add the versions of the queries to the matches of a query set."""
    places = pc.index_in(matches.column(QUERY), pa.array(list(versions), pa.string()))
    numbers = pa.array(list(versions.values()), pa.int64()).take(places)
    return matches.add_column(matches.schema.get_field_index(QUERY) + 1, VERSION, numbers)


def shown_variables(output: Output) -> list[str]:
    """The variables whose events a query shows."""
    return [column.name for column in output.parts if isinstance(column, EventColumn)]


@dataclass
class Gathered:
    """Collects matches of several queries, as row numbers of events, to make one table."""

    wanted: pa.Schema
    time: str
    names: list[str] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    spans: list[tuple[Rows, Rows]] = field(default_factory=list)
    variables: dict[str, int] = field(default_factory=dict)
    rows: list[Rows] = field(default_factory=list)
    which: list[npt.NDArray[np.int32]] = field(default_factory=list)
    lengths: list[Rows] = field(default_factory=list)
    values: list[pa.Table | None] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many matches there are."""
        return sum(self.counts)

    def add(
        self,
        name: str,
        output: Output,
        rows: Mapping[str, Rows],
        count: int,
        found: pa.Table | None,
        members: Mapping[str, Members] | None = None,
    ) -> None:
        """Add matches of a query: the rows of its kept variables, and the table of what RETURN computes.

        `members` are those of its groups, listed one after the other under the variable of the group; those
        of a group `p` of matches are under `p.b`.
        """
        members = members or {}
        kept = np.column_stack([rows[variable] for variable in output.kept])
        first = np.where(kept == UNBOUND, np.iinfo(kept.dtype).max, kept).min(axis=1)
        last = kept.max(axis=1)
        for group in output.groups:
            if group in members:
                first, last = spanned(members[group], first, last)
        self.names.append(name)
        self.counts.append(count)
        self.spans.append((first, last))
        if any(isinstance(column, GroupColumn) for column in output.parts):
            self._add_grouped(output, rows, count, members)
            self.values.append(found)
            return
        shown = shown_variables(output)
        numbers = [self.variables.setdefault(variable, len(self.variables)) for variable in shown]
        columns = [rows[variable] for variable in shown]
        events = np.column_stack(columns) if columns else np.empty((count, 0), np.int64)
        bound = events != UNBOUND
        self.rows.append(events[bound])
        self.which.append(np.broadcast_to(np.array(numbers, np.int32), events.shape)[bound])
        self.lengths.append(bound.sum(axis=1))
        self.values.append(found)

    def _add_grouped(
        self, output: Output, rows: Mapping[str, Rows], count: int, members: Mapping[str, Members]
    ) -> None:
        """List the events of matches that show groups, in column order."""
        matches = np.arange(count)
        whose, places, which, listed = [], [], [], []
        for place, column in enumerate(output.parts):
            if isinstance(column, EventColumn):
                parts = [(column.name, matches, rows[column.name])]
            elif isinstance(column, GroupColumn):
                group = members[column.name]
                owner = np.repeat(matches, np.maximum(group.counts, 0))
                parts = [
                    (f"{column.name}.{name}" if column.members else column.name, owner, own)
                    for name, own in group.rows.items()
                ]
            else:
                continue
            for inner, (variable, owner, own) in enumerate(parts):
                bound = own != UNBOUND
                number = self.variables.setdefault(variable, len(self.variables))
                order = np.arange(len(own)) * len(parts) + inner
                whose.append(owner[bound])
                places.append(np.column_stack([np.full(len(own), place), order])[bound])
                which.append(np.full(int(bound.sum()), number, np.int32))
                listed.append(own[bound])
        owners, spots = np.concatenate(whose), np.concatenate(places)
        order = np.lexsort((spots[:, 1], spots[:, 0], owners))
        self.rows.append(np.concatenate(listed)[order])
        self.which.append(np.concatenate(which)[order])
        self.lengths.append(np.bincount(owners, minlength=count))

    def table(self, events: pa.Table) -> pa.Table:
        """The matches as a table, given the events that the row numbers refer to."""
        if not self.counts:
            return empty_table(self.wanted)
        queries = np.repeat(np.arange(len(self.names), dtype=np.int32), self.counts)
        first, last = (np.concatenate([span[side] for span in self.spans]) for side in (0, 1))
        time = events.column(self.time)
        return pa.Table.from_arrays(
            [
                _words(queries, self.names),
                values_at(time, first).cast(self.wanted.field("match_start").type),
                values_at(time, last).cast(self.wanted.field("match_end").type),
                self._events(events),
                self._values(),
            ],
            schema=self.wanted,
        )

    def _values(self) -> pa.Array:
        parts, empty = [], 0
        for count, found in zip(self.counts, self.values, strict=True):
            if found is None:
                empty += count
            else:
                parts += [_no_values(empty), _values(found)]
                empty = 0
        return pa.concat_arrays([*parts, _no_values(empty)])

    def _events(self, events: pa.Table) -> pa.Array:
        datatype = self.wanted.field("events").type
        kind = datatype.value_type
        variables = _words(np.concatenate(self.which), list(self.variables) or [""])
        rows, event = np.concatenate(self.rows), kind.field(1).type
        # if every query returns only values, not all columns of the events are held
        shown = events_at(events, rows, event) if len(rows) else pa.nulls(0, event)
        entries = pa.StructArray.from_arrays([variables, shown], fields=[kind.field(0), kind.field(1)])
        return pa.ListArray.from_arrays(_offsets(np.concatenate(self.lengths)), entries, type=datatype)


def _words(numbers: npt.NDArray[np.int32], words: Sequence[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(words, pa.string())).cast(pa.string())


def _values(found: pa.Table) -> pa.Array:
    """The columns of a table as a map for each row, with every value as text."""
    count, names = found.num_rows, found.column_names
    texts = pa.concat_arrays([_text(found.column(name)) for name in names])
    places = np.arange(count * len(names))
    texts = texts.take(pa.array((places % len(names)) * count + places // len(names)))
    keys = _words((places % len(names)).astype(np.int32), names)
    return pa.MapArray.from_arrays(_offsets(np.full(count, len(names))), keys, texts)


def _no_values(count: int) -> pa.Array:
    nothing = pa.array([], pa.string())
    return pa.MapArray.from_arrays(np.zeros(count + 1, np.int32), nothing, nothing)


def _offsets(lengths: Rows) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def _text(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column as text; a duration is its seconds, as in JSON."""
    if pa.types.is_duration(column.type):  # Arrow's own text depends on its version, its unit and pandas
        numbers, digits = column.cast(pa.int64()).to_pylist(), _DIGITS[column.type.unit]
        return pa.array([None if v is None else _seconds(v, digits) for v in numbers], pa.string())
    try:
        column = column.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # bytes that are not text, or lists
        values = (python_value(each) for each in column)
        return pa.array([None if v is None else _shown(v) for v in values], pa.string())
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _seconds(value: int, digits: int) -> str:
    """A number of seconds with so many digits after the point; those that say nothing are left out."""
    whole, rest = divmod(abs(value), 10**digits)
    fraction = f"{rest:0{digits}}".rstrip("0") if rest else ""
    return f"{'-' if value < 0 else ''}{whole}{'.' if fraction else ''}{fraction}"


def _shown(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
