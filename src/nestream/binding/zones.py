"""Gives times written without a zone the zone of the column they are compared with."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from nestream.model.expression import (
    Arithmetic,
    Between,
    Call,
    Comparison,
    Expression,
    In,
    Literal,
    attributes,
    constants,
    transform,
)
from nestream.model.lazy import pa
from nestream.model.schema import Schema
from nestream.model.zones import zone_named


def in_their_zones(expression: Expression, schema: Schema) -> Expression:
    """The expression with a zone for each time that is compared or combined with zoned times."""

    def placed(part: Expression) -> Expression:
        match part:
            case Comparison(operands=operands):
                return replace(part, operands=_placed(operands, schema))
            case Between(operand=operand, low=low, high=high):
                operand, low, high = _placed((operand, low, high), schema)
                return replace(part, operand=operand, low=low, high=high)
            case In(operand=operand, values=values):
                operand, *rest = _placed((operand, *values), schema)
                return replace(part, operand=operand, values=tuple(rest))
            case Arithmetic(left=left, right=right):
                left, right = _placed((left, right), schema)
                return replace(part, left=left, right=right)
            case Call(arguments=arguments):
                return replace(part, arguments=_placed(arguments, schema))
            case _:
                return part

    if not any(isinstance(part, datetime) and part.tzinfo is None for part in constants(expression)):
        return expression
    return transform(expression, placed)


def _placed(operands: tuple[Expression, ...], schema: Schema) -> tuple[Expression, ...]:
    zone = _zone_of(operands, schema)
    if zone is None:
        return operands

    def moment(part: Expression) -> Expression:
        if isinstance(part, Literal) and isinstance(part.value, datetime) and part.value.tzinfo is None:
            offset = part.value.replace(tzinfo=zone_named(zone)).utcoffset()
            return replace(part, value=part.value.replace(tzinfo=timezone(offset or timedelta())))
        return part

    return tuple(
        operand if any(True for _ in attributes(operand)) else transform(operand, moment)
        for operand in operands
    )


def _zone_of(operands: tuple[Expression, ...], schema: Schema) -> str | None:
    """The zone of the first column that has one."""
    for operand in operands:
        for attribute in attributes(operand):
            datatype = schema.datatype(attribute.name)
            if datatype is not None and pa.types.is_timestamp(datatype) and datatype.tz is not None:
                return str(datatype.tz)
    return None
