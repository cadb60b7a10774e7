"""The value of an expression under a binding of variables to events.

Times and durations are integers in the resolution of the time column. A comparison that touches NULL is not
satisfied; arithmetic on NULL, division by zero and results beyond 64 bits are NULL.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.expression import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Negative,
    Not,
    Or,
)
from nestream.model.time import Duration
from nestream.reference.events import Event

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def value(expression: Expression, binding: Mapping[str, Event], per_microsecond: int = 1) -> Any:
    """The value of the expression; None stands for NULL and for an unbound variable's attributes.

    `per_microsecond` is 1000 where times are in nanoseconds.
    """

    def of(part: Expression) -> Any:
        return value(part, binding, per_microsecond)

    match expression:
        case Literal(value=Duration(microseconds=microseconds)):
            return microseconds * per_microsecond
        case Literal(value=datetime() as moment):
            moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            return (moment - _EPOCH) // timedelta(microseconds=1) * per_microsecond
        case Literal(value=constant):
            return constant
        case Attribute(variable=variable, name=name):
            assert variable is not None
            return binding[variable][name] if variable in binding else None
        case Negative(operand=operand):
            return _arithmetic("-", 0, of(operand))
        case Arithmetic(operator=operator, left=left, right=right):
            return _arithmetic(operator, of(left), of(right))
        case Comparison(operator=operator, operands=operands):
            values = [of(operand) for operand in operands]
            return all(_compare(operator, a, b) for a, b in pairwise(values))
        case Not(operand=operand):
            return not of(operand)
        case And(operands=operands):
            return all(of(operand) for operand in operands)
        case Or(operands=operands):
            return any(of(operand) for operand in operands)
        case In(operand=operand, values=values, negated=negated):
            if negated:
                return all(_compare("!=", of(operand), of(item)) for item in values)
            return any(_compare("=", of(operand), of(item)) for item in values)
        case Between(operand=operand, low=low, high=high, negated=negated):
            middle = of(operand)
            if negated:
                return _compare("<", middle, of(low)) or _compare(">", middle, of(high))
            return _compare(">=", middle, of(low)) and _compare("<=", middle, of(high))
        case IsNull(operand=operand, negated=negated):
            return (of(operand) is None) != negated
        case Call(function=function, arguments=arguments):
            return _call(function, [of(argument) for argument in arguments])
    raise AssertionError(f"{expression!r} is not an expression of a plan")


def holds(formula: Expression, binding: Mapping[str, Event], per_microsecond: int = 1) -> bool:
    """Whether a formula is satisfied; NULL is not."""
    return value(formula, binding, per_microsecond) is True


def _compare(operator: str, left: Any, right: Any) -> bool:
    if left is None or right is None:
        return False
    if isinstance(left, float) != isinstance(right, float):  # an integer beside a float counts as a float
        left, right = float(left), float(right)
    match operator:
        case "=":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)


def _arithmetic(operator: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    if operator in ("/", "%") and right == 0:
        return None
    try:
        match operator:
            case "+":
                result = left + right
            case "-":
                result = left - right
            case "*":
                result = left * right
            case "/":
                result = float(left) / float(right)
            case _:
                result = _remainder(left, right)
    except OverflowError:
        return None
    if isinstance(result, int):
        return result if -(2**63) <= result < 2**63 else None
    return None if result is None or math.isnan(result) else result


def _remainder(left: Any, right: Any) -> Any:
    """The remainder with the sign of the left side, as SQL has it."""
    if isinstance(left, int) and isinstance(right, int):
        return abs(left) % abs(right) * (1 if left >= 0 else -1)
    return math.fmod(left, right) if math.isfinite(left) else None


def _call(function: str, arguments: list[Any]) -> Any:
    if function == "coalesce":
        return next((argument for argument in arguments if argument is not None), None)
    (argument,) = arguments
    if argument is None:
        return None
    match function:
        case "abs":
            return _arithmetic("-", 0, argument) if argument < 0 else argument
        case "lower":
            return pc.utf8_lower(pa.scalar(argument)).as_py()
        case "upper":
            return pc.utf8_upper(pa.scalar(argument)).as_py()
        case _:
            return len(argument)
