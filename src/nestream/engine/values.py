"""Computes expressions over columns: every node is one operation of a fixed table on whole arrays.

The functions are those of `nestream.model.functions`. The text of a query is never run as code.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from nestream.model.arithmetic import arithmetic, fits
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
from nestream.model.functions import FUNCTIONS, holding
from nestream.model.lazy import pc
from nestream.model.time import computed_constant
from nestream.model.vector import Mask, Vector, by_rows, common_length, text_type

_EXACT = 2**53
"""Up to this size, integers are exact as floats."""


Fetch = Callable[[str, str], Vector]
"""Returns the values of an attribute for a variable, row by row."""


class Evaluator:
    """Evaluates expressions whose times are in a given resolution: 1000 per microsecond for nanoseconds."""

    def __init__(self, per_microsecond: int = 1) -> None:
        self.per_microsecond = per_microsecond

    def satisfied(self, formula: Expression, fetch: Fetch, count: int) -> Mask:
        """Which of the rows satisfy a formula; NULL does not."""
        return np.broadcast_to(self.formula(formula, fetch), (count,))

    def value(self, expression: Expression, fetch: Fetch) -> Vector:
        """The values of an expression."""
        match expression:
            case Literal(value=constant):
                return self.constant(constant)
            case Attribute(variable=variable, name=name):
                return fetch(variable or "", name)
            case Negative(operand=operand):
                return _arithmetic("-", Vector(np.int64(0)), self.value(operand, fetch))
            case Arithmetic(operator=operator, left=left, right=right):
                return _arithmetic(operator, self.value(left, fetch), self.value(right, fetch))
            case Comparison(operator=operator, operands=operands):
                vectors = [self.value(operand, fetch) for operand in operands]
                return Vector(_all([_compare(operator, a, b) for a, b in pairwise(vectors)]))
            case Not(operand=operand):
                return Vector(~self.formula(operand, fetch))
            case And(operands=operands):
                return Vector(_all([self.formula(operand, fetch) for operand in operands]))
            case Or(operands=operands):
                return Vector(_any([self.formula(operand, fetch) for operand in operands]))
            case In(operand=operand, values=items, negated=negated):
                vector = self.value(operand, fetch)
                found = [
                    _compare("!=" if negated else "=", vector, self.value(item, fetch)) for item in items
                ]
                return Vector(_all(found) if negated else _any(found))
            case Between(operand=operand, low=low, high=high, negated=negated):
                middle, least, most = (self.value(part, fetch) for part in (operand, low, high))
                if negated:
                    return Vector(_any([_compare("<", middle, least), _compare(">", middle, most)]))
                return Vector(_all([_compare(">=", middle, least), _compare("<=", middle, most)]))
            case IsNull(operand=operand, negated=negated):
                known = np.asarray(self.value(operand, fetch).known)
                return Vector(known if negated else ~known)
            case Call(function=function, arguments=arguments):
                vectors = [self.value(argument, fetch) for argument in arguments]
                return FUNCTIONS[function].of_columns(vectors, self.per_microsecond)
        raise AssertionError(f"{expression!r} is not an expression of a plan")

    def formula(self, formula: Expression, fetch: Fetch) -> Mask:
        """A condition as a mask in which NULL is false."""
        return np.asarray(holding(self.value(formula, fetch)))

    def constant(self, constant: Any) -> Vector:
        """A literal as a single value."""
        match computed_constant(constant, self.per_microsecond):
            case str():
                return Vector(pa.scalar(constant, text_type()))
            case bool():
                return Vector(np.bool_(constant))
            case int(integer):
                return _integer(integer)
            case Decimal():
                return Vector(np.array(constant, dtype=object))
            case _:
                return Vector(np.float64(constant))


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_COMPARE_STRINGS = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
"""Arrow's functions."""


def _integer(constant: int) -> Vector:
    """An integer; one beyond 64 bits, such as a time too far for nanoseconds, is still compared exactly."""
    return Vector(np.int64(constant) if fits(constant) else np.array(constant, dtype=object))


def _compare(operator: str, left: Vector, right: Vector) -> Mask:
    if left.is_nothing or right.is_nothing:
        return np.zeros(np.broadcast_shapes(np.shape(left.known), np.shape(right.known)), bool)
    if left.is_arrow:
        return _as_mask(pc.call_function(_COMPARE_STRINGS[operator], [left.values, right.values]))
    result = _COMPARE[operator](*_comparable(left.values, right.values))
    return _all([result, *(v.valid for v in (left, right) if v.valid is not None)])


def _comparable(left: Any, right: Any) -> tuple[Any, Any]:
    """Convert numbers of two types so that they compare exactly by value."""
    kinds = left.dtype.kind + right.dtype.kind
    if kinds[0] == kinds[1]:
        return left, right
    if "O" not in kinds:
        integers = left if kinds[1] == "f" else right
        if "f" not in kinds or not (np.any(integers > _EXACT) or np.any(integers < -_EXACT)):
            return left, right
    return left.astype(object), right.astype(object)


def _as_mask(result: Any) -> Mask:
    if isinstance(result, pa.Scalar):
        return np.asarray(bool(result.as_py()))
    return result.fill_null(False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _all(masks: list[Any]) -> Mask:
    result: Any = masks[0] if masks else np.bool_(True)
    for mask in masks[1:]:
        result = np.logical_and(result, mask)
    return np.asarray(result)


def _any(masks: list[Any]) -> Mask:
    result: Any = masks[0] if masks else np.bool_(False)
    for mask in masks[1:]:
        result = np.logical_or(result, mask)
    return np.asarray(result)


def _both_valid(left: Vector, right: Vector) -> Any:
    masks = [vector.valid for vector in (left, right) if vector.valid is not None]
    return _all(masks) if masks else None


def _arithmetic(operator: str, left: Vector, right: Vector) -> Vector:
    if left.is_nothing or right.is_nothing:
        return Vector.nothing(common_length((left, right)))
    if left.is_object or right.is_object:
        return by_rows(partial(arithmetic, operator), (left, right))
    a, b = left.values, right.values
    valid = _both_valid(left, right)
    with np.errstate(all="ignore"):
        if operator == "/" or "f" in (a.dtype.kind, b.dtype.kind):
            return _float_arithmetic(operator, a.astype(np.float64), b.astype(np.float64), valid)
        return _integer_arithmetic(operator, a, b, valid)


def _float_arithmetic(operator: str, a: Any, b: Any, valid: Any) -> Vector:
    match operator:
        case "+":
            result = a + b
        case "-":
            result = a - b
        case "*":
            result = a * b
        case "/":
            result, valid = a / np.where(b == 0, 1.0, b), _and(valid, b != 0)
        case _:
            result, valid = np.fmod(a, np.where(b == 0, 1.0, b)), _and(valid, b != 0)
    missing = np.isnan(result)
    return Vector(result, _and(valid, ~missing) if np.any(missing) else valid)


def _integer_arithmetic(operator: str, a: Any, b: Any, valid: Any) -> Vector:
    match operator:
        case "+":
            result = np.add(a, b)
            over = ((a ^ result) & (b ^ result)) < 0
        case "-":
            result = np.subtract(a, b)
            over = ((a ^ b) & (a ^ result)) < 0
        case "*":
            result = np.multiply(a, b)
            over = _product_overflows(a, b, result)
        case _:
            safe = np.where((b == 0) | (b == -1), 1, b)  # x % -1 is 0, and the least integer would overflow
            result, over = np.fmod(a, safe), b == 0
    return Vector(result, _and(valid, ~over) if np.any(over) else valid)


def _product_overflows(a: Any, b: Any, product: Any) -> Any:
    """Whether a 64-bit product wrapped: judged by size far from the limit, by dividing back near it."""
    size = np.abs(a.astype(np.float64)) * np.abs(b.astype(np.float64))
    near = size >= 2.0**62
    if not np.any(near):
        return np.zeros(np.shape(product), dtype=bool)
    least = np.iinfo(np.int64).min
    divisor = np.where((b == 0) | (b == -1), 1, b)
    wrapped = (product // divisor != a) | (product % divisor != 0)
    return near & np.where(b == -1, a == least, np.where(b == 0, False, wrapped))


def _and(valid: Any, mask: Any) -> Any:
    return mask if valid is None else valid & mask
