"""Translates between Spark and the engine: schemas, and the filters that Spark applies before data crosses.

A pushed filter may let through more than the leaf takes (the engine filters again), never less. So only tests
with the same meaning in both are pushed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import reduce
from inspect import signature

import pyarrow as pa
from pyarrow import types as arrow
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from nestream.engine.program import LeafSpec, Scope
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import (
    END_ATTRIBUTE,
    TIME_ATTRIBUTE,
    TYPE_ATTRIBUTE,
    And,
    Attribute,
    Between,
    Call,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Or,
    transform,
)
from nestream.model.functions import FUNCTIONS
from nestream.model.output import CompositeColumn, EventColumn, GroupColumn, Output, ValueColumn
from nestream.model.schema import EventError, Kind, Schema, path_of
from nestream.model.text import print_expression, print_name

UNREAD, RAW = "nestream unread", "nestream raw"
"""Columns that a source adds to rows that are not events: why they could not be read, and their text."""
MOST_TESTED = 64
"""Up to this number of leaves, Spark applies the tests of each."""


def arrow_schema(schema: StructType, zone: str = "UTC") -> pa.Schema:
    """The Arrow schema of a DataFrame; a column that Arrow cannot carry becomes bytes."""
    return pa.schema(
        [pa.field(field.name, _arrow_type(field, zone) or pa.binary()) for field in schema.fields]
    )


def by_code_point(df: DataFrame) -> DataFrame:
    """The DataFrame with strings that Spark compares like the engine, character by character.

    A collation such as UTF8_LCASE would let Spark filter, hash and group by other rules.
    """
    collated = {field.name for field in df.schema.fields if _is_collated(field.dataType)}
    if not collated:
        return df
    return df.select(
        *(
            F.collate(named(name), "UTF8_BINARY").alias(name) if name in collated else named(name)
            for name in df.columns
        )
    )


def _is_collated(datatype: DataType) -> bool:
    return type(datatype) is StringType and datatype != StringType()


def attribute_of(name: str, attribute: str) -> Column:
    """An attribute, by the name of its column; a field where it is part of a struct."""
    column = named(name)
    for field in path_of(attribute):
        column = column.getField(field)
    return column


def key_of(name: str, key: str, schema: Schema) -> Column:
    """A key to hash by, equal wherever values are equal: decimals of any scale map to one float."""
    column = attribute_of(name, key)
    return column.cast("double") if arrow.is_decimal(schema.datatype(key)) else column


def session_zone(df: DataFrame) -> str:
    """The time zone of the session of a DataFrame."""
    return df.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"


def in_utc(schema: Schema) -> Schema:
    """The schema as the engine's workers see it, whatever the zone of the session."""
    columns = {
        name: pa.timestamp(datatype.unit, "UTC")
        if arrow.is_timestamp(datatype) and datatype.tz is not None
        else datatype
        for name, datatype in schema.columns.items()
    }
    return replace(schema, columns=columns)


def event_fields(df: DataFrame) -> StructType:
    """The columns of the events, without those about rows that could not be read."""
    return StructType([field for field in df.schema.fields if field.name not in (UNREAD, RAW)])


def spark_readable(datatype: pa.DataType) -> pa.DataType:
    """The type that Spark reads in place of one that it does not support."""
    if arrow.is_dictionary(datatype):
        return spark_readable(datatype.value_type)
    if arrow.is_null(datatype) or arrow.is_string_view(datatype) or arrow.is_large_string(datatype):
        return pa.string()
    if arrow.is_unsigned_integer(datatype):
        return pa.int64()
    if arrow.is_float16(datatype):
        return pa.float32()
    if arrow.is_timestamp(datatype):
        return pa.timestamp("us", None if datatype.tz is None else "UTC")
    if arrow.is_duration(datatype):
        return pa.duration("us")
    if arrow.is_date(datatype):
        return pa.date32()
    return datatype


def check_columns(schema: StructType, columns: Iterable[str]) -> None:
    """Raise an `EventError` for the first of the columns that Arrow cannot carry."""
    for name in columns:
        if not can_carry(schema[name]):
            raise EventError(
                f"column `{name}` of type {schema[name].dataType.simpleString()} cannot be read as Arrow\n"
                "  hint: cast it or drop it before matching, or RETURN only what is needed of the events"
            )


def can_carry(field: StructField) -> bool:
    """Whether Arrow has a type for the column."""
    return _arrow_type(field) is not None


def _arrow_type(field: StructField, zone: str = "UTC") -> pa.DataType | None:
    try:
        if _TAKES_ZONE:
            return to_arrow_type(field.dataType, timezone=zone)
        return _in_zone(to_arrow_type(field.dataType), zone)
    except PySparkException:
        return None


_TAKES_ZONE = "timezone" in signature(to_arrow_type).parameters
"""Whether PySpark, as 4.2 and later, makes timestamps in a zone; before it makes all of them in UTC."""


def _in_zone(datatype: pa.DataType, zone: str) -> pa.DataType:
    """The type with its timestamps, at any depth, in a zone."""
    if arrow.is_timestamp(datatype) and datatype.tz is not None:
        return pa.timestamp(datatype.unit, zone)
    if arrow.is_struct(datatype):
        inner = (datatype.field(place) for place in range(datatype.num_fields))
        return pa.struct([each.with_type(_in_zone(each.type, zone)) for each in inner])
    if arrow.is_list(datatype):
        return pa.list_(datatype.value_field.with_type(_in_zone(datatype.value_type, zone)))
    if arrow.is_map(datatype):
        item = datatype.item_field.with_type(_in_zone(datatype.item_type, zone))
        return pa.map_(_in_zone(datatype.key_type, zone), item)
    return datatype


def match_schema(output: Output, events: StructType, wanted: pa.Schema, time: str) -> StructType:
    """The columns of the matches, with the original types of the events' columns."""
    fields = []
    for column in output.columns:
        if isinstance(column, ValueColumn):
            datatype = _value_type(column.expression, events, wanted.field(column.name).type)
            fields.append(StructField(column.name, datatype))
        else:
            fields.append(_shown_field(column, events, time))
    moment = events[time].dataType
    return StructType([*fields, StructField("match_start", moment), StructField("match_end", moment)])


def _shown_field(
    column: EventColumn | GroupColumn | CompositeColumn, events: StructType, time: str
) -> StructField:
    """The column that shows an event, the members of a group, or the match of an expression."""
    match column:
        case EventColumn():
            return StructField(column.name, events, True)
        case GroupColumn(members=members):
            parts = [StructField(name, events, True) for name in members]
            return StructField(column.name, ArrayType(StructType(parts) if parts else events))
        case CompositeColumn(parts=inner):
            moment = events[time].dataType
            edges = [StructField(name, moment) for name in (TIME_ATTRIBUTE, END_ATTRIBUTE)]
            return StructField(
                column.name, StructType([*(_shown_field(part, events, time) for part in inner), *edges])
            )


def set_match_schema(events: StructType, time: str) -> StructType:
    """The columns of the matches of a query set, with the original types of the events' columns."""
    moment = events[time].dataType
    event = StructType([StructField("variable", StringType()), StructField("event", events)])
    return StructType(
        [
            StructField("query", StringType()),
            StructField("match_start", moment),
            StructField("match_end", moment),
            StructField("events", ArrayType(event)),
            StructField("values", MapType(StringType(), StringType())),
        ]
    )


def with_fields(events: StructType, columns: Mapping[str, pa.DataType]) -> StructType:
    """The columns of events, followed by those that only composite events have."""
    added = [
        StructField(name, _spark_type(datatype))
        for name, datatype in columns.items()
        if name not in events.fieldNames()
    ]
    return StructType([*events.fields, *added])


def _value_type(expression: Expression, events: StructType, datatype: pa.DataType) -> DataType:
    """The Spark type of a returned expression; the column's own type where it is a column."""
    if isinstance(expression, Attribute) and expression.name in events.fieldNames():
        return events[expression.name].dataType
    return _spark_type(datatype)


def _spark_type(datatype: pa.DataType) -> DataType:
    """The Spark type of values that the engine computes."""
    return from_arrow_type(pa.string() if arrow.is_large_string(datatype) else datatype)


def pushed_filter(program: Scope, schema: Schema) -> Column:
    """What an event must pass to belong to some leaf: its type, and the tests that Spark can do.

    For a set with very many leaves, only the types are tested.
    """
    if len(program.leaves) > MOST_TESTED:
        return F.lit(True) if program.any_type else named(schema.type).isin(*program.types)
    return reduce(lambda a, b: a | b, [_leaf_filter(leaf, schema) for leaf in program.leaves if leaf.types])


def pushed_text(program: Scope, schema: Schema) -> str:
    """The pushed filter as text: the types, each with the tests that Spark does on its events."""
    if len(program.leaves) > MOST_TESTED:
        return "ANY" if program.any_type else " or ".join(map(print_name, program.types))
    parts = dict.fromkeys(_leaf_text(leaf, schema) for leaf in program.leaves if leaf.types)
    return " or ".join(parts)


def _leaf_text(leaf: LeafSpec, schema: Schema) -> str:
    def bare(part: Expression) -> Expression:
        return Attribute(None, part.name) if isinstance(part, Attribute) else part

    types = "ANY" if ANY_TYPE in leaf.types else " | ".join(map(print_name, leaf.types))
    tests = [formula for formula in leaf.filters if pushed_test(formula, schema) is not None]
    return types + (f" ({', '.join(print_expression(transform(t, bare)) for t in tests)})" if tests else "")


def _leaf_filter(leaf: LeafSpec, schema: Schema) -> Column:
    tests = [F.lit(True) if ANY_TYPE in leaf.types else named(schema.type).isin(*leaf.types)]
    tests += [test for formula in leaf.filters if (test := pushed_test(formula, schema)) is not None]
    return reduce(lambda a, b: a & b, tests)


def named(name: str) -> Column:
    """The column of exactly that name, whatever characters it has."""
    return F.col(f"`{name.replace('`', '``')}`")


def pushed_test(formula: Expression, schema: Schema) -> Column | None:
    """The formula as a Spark condition; None if Spark might evaluate it differently."""
    match formula:
        case And(operands=operands):
            tests = [test for part in operands if (test := pushed_test(part, schema)) is not None]
            return reduce(lambda a, b: a & b, tests) if tests else None
        case Or(operands=operands):
            either = [pushed_test(part, schema) for part in operands]
            if any(test is None for test in either):
                return None
            return reduce(lambda a, b: a | b, [test for test in either if test is not None])
        case Comparison(operator=operator, operands=(left, right)):
            return _comparison(operator, left, right, schema)
        case In(operand=operand, values=values, negated=False):
            column, constants = _operand(operand, schema), [_constant(value) for value in values]
            if column is None or any(constant is None for constant in constants):
                return None
            return column.isin(*constants)
        case Between(operand=operand, low=low, high=high, negated=False):
            both = _comparison(">=", operand, low, schema), _comparison("<=", operand, high, schema)
            return None if both[0] is None or both[1] is None else both[0] & both[1]
        case IsNull(operand=operand, negated=True):
            column = _operand(operand, schema)
            return None if column is None else column.isNotNull()
        case Call(function=function) if FUNCTIONS[function].gives is Kind.BOOLEAN:
            return _operand(formula, schema)
        case _:
            return None


def _comparison(operator: str, left: Expression, right: Expression, schema: Schema) -> Column | None:
    if isinstance(left, Literal):
        flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
        return _comparison(flipped.get(operator, operator), right, left, schema)
    column, value = _operand(left, schema), _constant(right)
    return None if column is None or value is None else _COMPARE[operator](column, F.lit(value))


def _operand(part: Expression, schema: Schema) -> Column | None:
    """An attribute, or a function of one that Spark computes like the engine."""
    match part:
        case Attribute() if _plain(part, schema):
            return attribute_of(schema.column(part.name), part.name)
        case Call(function=function, arguments=(argument, *rest)) if FUNCTIONS[function].spark:
            column, constants = _operand(argument, schema), [_constant(value) for value in rest]
            if column is None or any(constant is None for constant in constants):
                return None
            return F.call_function(FUNCTIONS[function].spark, column, *map(F.lit, constants))
        case _:
            return None


_COMPARE: dict[str, Callable[[Column, Column], Column]] = {
    "=": Column.__eq__,
    "!=": Column.__ne__,
    "<": Column.__lt__,
    "<=": Column.__le__,
    ">": Column.__gt__,
    ">=": Column.__ge__,
}


def _plain(part: Attribute, schema: Schema) -> bool:
    """Whether Spark compares the attribute like the engine: integers, strings and booleans."""
    if part.name in (TIME_ATTRIBUTE, TYPE_ATTRIBUTE):
        return part.name == TYPE_ATTRIBUTE
    return schema.kind(part.name) in (Kind.INTEGER, Kind.STRING, Kind.BOOLEAN)


def _constant(value: Expression) -> int | str | bool | None:
    """The value of a literal that Spark compares like the engine; None for any other expression."""
    if isinstance(value, Literal) and isinstance(value.value, int | str | bool):
        return value.value
    return None
