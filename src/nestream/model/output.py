"""What a match shows: the columns of the table of matches, and their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from nestream.model.lazy import lazy, np, pa
from nestream.model.schema import Kind, Schema

if TYPE_CHECKING:
    import numpy.typing as npt

    from nestream.model.columns import result_type

    Rows = npt.NDArray[np.int64]
else:
    (result_type,) = lazy("nestream.model.columns", "result_type")
    Rows = Any

START = "start"
"""The attribute with the start of the match, in an event made by INTO."""
UNBOUND = -1
"""The row number of a variable that the taken branch leaves unbound."""


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

    `members` are the variables of a group of matches; a repeated event has only its own.
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
    """What a match returns: its columns, over the distinct bindings of the kept variables.

    `kept` are the variables left after EXISTS and a bare RETURN list, in output order; `distinct` says that
    some variable was dropped, so that several bindings may be the same match. `groups` are the groups that
    `match_start` and `match_end` include. `into` is the type of the events that the matches become for other
    queries of a set.
    """

    kept: tuple[str, ...]
    distinct: bool
    columns: tuple[Column, ...]
    groups: tuple[str, ...] = ()
    into: str | None = None

    @property
    def parts(self) -> tuple[EventColumn | GroupColumn | ValueColumn, ...]:
        """The columns, with expressions replaced by their parts."""
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

    `rows` holds a column per variable, with the members of all matches one after the other.
    """

    counts: Rows
    rows: Mapping[str, Rows]

    @property
    def begin(self) -> Rows:
        """The place of the first member of each match, and the total number of members."""
        return np.concatenate(([0], np.cumsum(np.maximum(self.counts, 0))))


def output_schema(output: Output, schema: Schema, kinds: Mapping[str, Kind]) -> pa.Schema:
    """The columns of the matches, known before any event."""
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
    """The type of a returned expression: the column's own for an attribute, otherwise that of its kind."""
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
    """The maximum number of decimal places of a decimal expression."""
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
