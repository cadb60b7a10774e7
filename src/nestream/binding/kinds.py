"""How kinds of values combine: the results of arithmetic, conversions of numbers, and hints for clashes."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TypeAlias

from nestream.model.arithmetic import DIGITS, places
from nestream.model.expression import Arithmetic, Call, Expression, Literal, attributes
from nestream.model.functions.define import TIMES
from nestream.model.schema import Kind
from nestream.model.text import print_expression

_NO_ARITHMETIC = frozenset((Kind.STRING, Kind.BOOLEAN))
Typed: TypeAlias = tuple[Expression, Kind]


def as_float(expression: Expression, kind: Kind) -> Expression:
    """A number as a float."""
    if kind not in (Kind.INTEGER, Kind.DECIMAL):
        return expression
    if isinstance(expression, Literal) and isinstance(expression.value, int | Decimal):
        return replace(expression, value=float(expression.value))
    return Call("as float", (expression,), expression.span)


def exact(expression: Expression) -> Typed | None:
    """A number written with a point as a decimal; None for anything else."""
    if isinstance(expression, Literal) and isinstance(expression.value, float):
        value = Decimal(repr(expression.value))
        if len(value.as_tuple().digits) <= DIGITS and 0 <= places(value) <= DIGITS:
            return replace(expression, value=value), Kind.DECIMAL
    return None


def arithmetic_kind(operator: str, left: Kind, right: Kind) -> Kind | None:
    """The kind of an arithmetic expression; None if the operator does not apply."""
    if Kind.OTHER in (left, right) or (Kind.UNKNOWN in (left, right) and {left, right} & _NO_ARITHMETIC):
        return None
    if Kind.UNKNOWN in (left, right):
        return Kind.FLOAT if operator == "/" else Kind.UNKNOWN
    if left.is_number and right.is_number:
        if Kind.FLOAT in (left, right) or operator == "/":
            return Kind.FLOAT
        return Kind.DECIMAL if Kind.DECIMAL in (left, right) else Kind.INTEGER
    match operator:
        case "+" if {left, right} == {Kind.DURATION} or (left in TIMES and right is Kind.DURATION):
            return left
        case "+" if left is Kind.DURATION and right in TIMES:
            return right
        case "-" if left is right and left in TIMES | {Kind.DURATION}:
            return Kind.DURATION
        case "-" if left in TIMES and right is Kind.DURATION:
            return left
        case "*" if {left, right} == {Kind.DURATION, Kind.INTEGER}:
            return Kind.DURATION
        case "/" if left is right is Kind.DURATION:
            return Kind.FLOAT
    return None


def is_constant(expression: Expression) -> bool:
    return not any(True for _ in attributes(expression))


def a_kind(kind: Kind) -> str:
    """The kind with its article."""
    if kind is Kind.OTHER:
        return "a value of a type that only IS NULL applies to"
    return f"an {kind}" if kind is Kind.INTEGER else f"a {kind}"


def text_hint(left: Kind, right: Kind) -> str | None:
    """A hint for text compared with something else."""
    if Kind.STRING in (left, right) and {left, right} & TIMES:
        return "write the time as TIMESTAMP '2026-01-31 12:00:00', or convert the column"
    if Kind.STRING in (left, right) and (left.is_number or right.is_number):
        return "put the number in quotes to compare text; one value that is not a number makes a column text"
    return None


def time_hint(expression: Arithmetic, left: Kind, right: Kind) -> str | None:
    """A hint for a timestamp plus or minus a bare number."""
    if expression.operator in "+-" and left in TIMES and right.is_number:
        amount = expression.right
        size = print_expression(amount) if isinstance(amount, Literal) else "5"
        start = print_expression(expression.left)
        return f"a duration needs a unit: write `{start} {expression.operator} {size} s`"
    return None


def clock_hint(left: tuple[Expression, Kind], right: tuple[Expression, Kind]) -> str | None:
    """A hint for common confusions of times."""
    kinds = {left[1], right[1]}
    if kinds == {Kind.TIMESTAMP, Kind.ZONED}:
        return "one side has a time zone and the other has none: convert one of them"
    if Kind.DURATION in kinds and (left[1].is_number or right[1].is_number):
        number, duration = (left[0], right[0]) if left[1].is_number else (right[0], left[0])
        if isinstance(number, Literal):
            return f"a duration needs a unit: write `{print_expression(number)} s`"
        if isinstance(duration, Literal):
            return "the time column holds integers: write the duration as a number in its unit"
        return f"`{print_expression(duration)}` is a duration and `{print_expression(number)}` a number"
    return None
