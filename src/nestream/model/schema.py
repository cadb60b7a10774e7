"""The schema of events: their columns, and which of them are the time and the type.

Columns of any Arrow type are carried along; the kinds below are those that a query can compute with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from nestream.model.expression import (
    COLUMN_MARK,
    PATH_MARK,
    TIME_ATTRIBUTE,
    TYPE_ATTRIBUTE,
    column_name,
)
from nestream.model.lazy import pa
from nestream.model.plain import is_uuid, plain_type, repeated_names


class Kind(StrEnum):
    """The kinds of value that expressions compute with."""

    INTEGER = "integer"
    FLOAT = "number"
    DECIMAL = "decimal"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    ZONED = "timestamp with zone"
    DURATION = "duration"
    UNKNOWN = "unknown"
    """Unknown before a schema is known, or for a column without any value."""
    OTHER = "other"
    """Not comparable: the column is only carried along."""

    @property
    def is_number(self) -> bool:
        """Whether arithmetic applies."""
        return self in (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL)


class Order(StrEnum):
    """How events are ordered."""

    TIME = "time"
    """Events with equal times have no order."""
    ARRIVAL = "arrival"
    """Events with equal times are ordered by arrival."""

    @classmethod
    def named(cls, name: str) -> Order:
        """The order of that name."""
        if name not in tuple(cls):
            raise ValueError(f"unknown order {name!r}: use one of {', '.join(cls)}")
        return cls(name)


def kind_of(datatype: pa.DataType) -> Kind:
    """The kind of an Arrow type. Dates are timestamps at midnight, and UUIDs are compared as text."""
    if pa.types.is_dictionary(datatype):
        return kind_of(datatype.value_type)
    if pa.types.is_integer(datatype):
        return Kind.INTEGER
    if pa.types.is_floating(datatype):
        return Kind.FLOAT
    if pa.types.is_decimal(datatype):
        return Kind.DECIMAL
    if (
        pa.types.is_string(datatype)
        or pa.types.is_large_string(datatype)
        or pa.types.is_string_view(datatype)
    ):
        return Kind.STRING
    if is_uuid(datatype):
        return Kind.STRING
    if pa.types.is_null(datatype):
        return Kind.UNKNOWN
    if pa.types.is_boolean(datatype):
        return Kind.BOOLEAN
    if pa.types.is_timestamp(datatype):
        return Kind.ZONED if datatype.tz is not None else Kind.TIMESTAMP
    if pa.types.is_date(datatype):
        return Kind.TIMESTAMP
    if pa.types.is_duration(datatype):
        return Kind.DURATION
    return Kind.OTHER


def _with_fields(datatype: pa.DataType) -> Iterator[pa.DataType]:
    """The type and, if it is a struct, those of its fields at any depth."""
    yield datatype
    if pa.types.is_struct(datatype):
        for place in range(datatype.num_fields):
            yield from _with_fields(datatype.field(place).type)


def path_of(attribute: str) -> tuple[str, ...]:
    """The names of the fields after the column, for a field of a struct."""
    return tuple(attribute.split(PATH_MARK)[1:])


class EventError(ValueError):
    """Events that cannot be matched: a missing column, an invalid time, a row without a type.

    >>> import nestream
    >>> try:
    ...     nestream.query("A a").match([{"ts": 1, "kind": "A"}])
    ... except nestream.EventError as problem:
    ...     print(str(problem).splitlines()[0])
    the events have no column `type` for their type
    """


def refuse_repeated(schema: pa.Schema) -> None:
    """Raise an `EventError` if columns, or children of a struct column, share a name."""
    names = [name for name, count in Counter(schema.names).items() if count > 1]
    if names:
        raise EventError(
            f"the events have several columns named {', '.join(f'`{name}`' for name in sorted(names))}\n"
            "  hint: rename or drop all but one of them"
        )
    for name, datatype in zip(schema.names, schema.types, strict=True):
        children = repeated_names(datatype)
        if children:
            raise EventError(
                f"column `{name}` holds structs with several children named "
                f"{', '.join(f'`{name}`' for name in sorted(children))}\n"
                "  hint: rename the children, or drop the column"
            )


def attributes_of(types: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """The attributes of event types as a user declares them; raises an error for anything else."""
    if not isinstance(types, Mapping):
        raise TypeError(
            f"types must map each type to its attributes, not {types!r}\n"
            '  hint: write types={"Shelf": ["id", "shelf"], "Counter": ["id"]}'
        )
    for name, own in types.items():
        if isinstance(own, str) or not isinstance(own, Iterable):  # a string would be read as its letters
            raise TypeError(
                f"the attributes of the type {name} must be a list of names, not {own!r}\n"
                f'  hint: write types={{"{name}": ["id", "shelf"]}}'
            )
    return {name: tuple(own) for name, own in types.items()}


@dataclass(frozen=True)
class Schema:
    """The schema of events: their columns by name, which of them are time and type, and their order.

    `types` declares the attributes of event types; a type that is not in it is assumed to have every column.

    >>> import nestream
    >>> import pyarrow as pa
    >>> nestream.Schema.of(pa.schema([("at", pa.timestamp("us")), ("type", pa.string())]), time="at").unit
    'us'
    """

    columns: Mapping[str, pa.DataType]
    time: str = TIME_ATTRIBUTE
    type: str = TYPE_ATTRIBUTE
    types: Mapping[str, frozenset[str]] = field(default_factory=dict)
    order: Order = Order.TIME

    def __post_init__(self) -> None:
        for role, name in (("time", self.time), ("type", self.type)):
            if not isinstance(name, str) or name not in self.columns:
                raise EventError(
                    f"the events have no column `{name}` for their {role}\n"
                    f"  their columns are: {', '.join(self.columns) or 'none'}\n"
                    f'  hint: name the column with {role}="..."'
                )
        kind = kind_of(self.columns[self.time])
        if kind not in (Kind.INTEGER, Kind.TIMESTAMP, Kind.ZONED, Kind.UNKNOWN):
            raise EventError(
                f"the time column `{self.time}` holds {self.columns[self.time]}, "
                "and a time must be an integer, a timestamp or a date\n"
                '  hint: convert the column, or name another with time="..."'
            )
        named = self.columns[self.type]
        if kind_of(named) not in (Kind.STRING, Kind.UNKNOWN) or is_uuid(named):
            raise EventError(
                f"the type column `{self.type}` holds {self.columns[self.type]}, "
                "and a type must be a string\n"
                '  hint: convert the column, or name another with type="..."'
            )

    @classmethod
    def of(
        cls,
        schema: pa.Schema,
        time: str = TIME_ATTRIBUTE,
        type: str = TYPE_ATTRIBUTE,
        types: Mapping[str, Iterable[str]] | None = None,
        order: str = Order.TIME,
    ) -> Schema:
        """The schema of an Arrow table."""
        refuse_repeated(schema)
        known = {name: frozenset(own) for name, own in attributes_of(types or {}).items()}
        columns = dict(zip(schema.names, map(plain_type, schema.types), strict=True))
        return cls(columns, time, type, known, Order.named(order))

    @cached_property
    def arrow(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return pa.schema(list(self.columns.items()))

    @cached_property
    def unit(self) -> str:
        """The unit of times and durations in computations: "ns" if some column needs it, otherwise "us"."""
        fine = any(
            (pa.types.is_timestamp(datatype) or pa.types.is_duration(datatype)) and datatype.unit == "ns"
            for column in self.columns.values()
            for datatype in _with_fields(column)
        )
        return "ns" if fine else "us"

    @property
    def per_microsecond(self) -> int:
        """How many units make a microsecond."""
        return 1000 if self.unit == "ns" else 1

    @property
    def by_arrival(self) -> bool:
        """Whether events with equal times are ordered by arrival."""
        return self.order is Order.ARRIVAL

    def column(self, attribute: str) -> str:
        """The column of an attribute in a plan, where `ts` and `type` are the event's own."""
        attribute = column_name(attribute)
        if attribute == TIME_ATTRIBUTE:
            return self.time
        if attribute == TYPE_ATTRIBUTE:
            return self.type
        return attribute.removeprefix(COLUMN_MARK)

    def datatype(self, attribute: str) -> pa.DataType | None:
        """The type of an attribute, or of a field of it; None if it does not exist."""
        datatype = self.columns.get(self.column(attribute))
        for name in path_of(attribute):
            if datatype is None or pa.types.is_null(datatype):
                return datatype
            if not pa.types.is_struct(datatype) or datatype.get_field_index(name) < 0:
                return None
            datatype = plain_type(datatype.field(name).type)
        return datatype

    @property
    def shadowed(self) -> dict[str, str]:
        """Those of `ts` and `type` that are columns with another role, with the column that has the role."""
        roles = {TIME_ATTRIBUTE: self.time, TYPE_ATTRIBUTE: self.type}
        return {name: column for name, column in roles.items() if name != column and name in self.columns}

    def kind(self, attribute: str) -> Kind | None:
        """The kind of an attribute; None if there is no such column."""
        datatype = self.datatype(attribute)
        return None if datatype is None else kind_of(datatype)

    def has(self, event_type: str, attribute: str) -> bool:
        """Whether events of the type have the attribute."""
        name = self.column(attribute)
        if name in (self.time, self.type):
            return True
        return name in self.columns and name in self.types.get(event_type, self.columns)
