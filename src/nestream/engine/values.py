"""Computes expressions over columns: every node is one operation of a fixed table on whole arrays.

A `Vector` is an array of values with a mask of those that are not NULL (None where all are). Strings stay in
Arrow; numbers, booleans, times and durations are NumPy arrays. No text of a query is ever run as code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
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

Mask = npt.NDArray[np.bool_]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Vector:
    """Values and which of them are not NULL; a single value stands for a column of it."""

    values: Any
    valid: Mask | None = None

    @property
    def is_string(self) -> bool:
        """Whether the values are strings, held by Arrow."""
        return isinstance(self.values, pa.Array | pa.Scalar)

    @classmethod
    def of(cls, column: pa.Array) -> Vector:
        """A column as it comes from `nestream.model.columns.computable`."""
        if pa.types.is_large_string(column.type) or pa.types.is_string(column.type):
            return cls(column)
        valid = None
        if column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            column = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
        return cls(column.to_numpy(zero_copy_only=False), valid)

    def take(self, rows: npt.NDArray[np.int64]) -> Vector:
        """The values of some rows."""
        if self.is_string:
            return Vector(pc.take(self.values, pa.array(rows), boundscheck=False))
        return Vector(self.values[rows], None if self.valid is None else self.valid[rows])


Fetch = Callable[[str, str], Vector]
"""Gives the values of an attribute for a variable, row by row."""


class Evaluator:
    """Evaluates expressions whose times are in a resolution: 1000 per microsecond for nanoseconds."""

    def __init__(self, per_microsecond: int = 1) -> None:
        self.per_microsecond = per_microsecond

    def satisfied(self, formula: Expression, fetch: Fetch, count: int) -> Mask:
        """Which of the rows satisfy a formula; NULL does not."""
        vector = self.value(formula, fetch)
        values = np.broadcast_to(np.asarray(vector.values, dtype=bool), (count,))
        return values if vector.valid is None else values & vector.valid

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
                valid = _valid(self.value(operand, fetch))
                return Vector(np.asarray(valid) if negated else ~np.asarray(valid))
            case Call(function=function, arguments=arguments):
                return _call(function, [self.value(argument, fetch) for argument in arguments])
        raise AssertionError(f"{expression!r} is not an expression of a plan")

    def formula(self, formula: Expression, fetch: Fetch) -> Mask:
        """A condition as a mask in which NULL is false."""
        vector = self.value(formula, fetch)
        values = np.asarray(vector.values, dtype=bool)
        return values if vector.valid is None else values & vector.valid

    def constant(self, constant: Any) -> Vector:
        """A literal as a single value."""
        match constant:
            case Duration(microseconds=microseconds):
                return Vector(np.int64(microseconds * self.per_microsecond))
            case datetime():
                moment = constant if constant.tzinfo is not None else constant.replace(tzinfo=UTC)
                passed = (moment - _EPOCH) // timedelta(microseconds=1)
                return Vector(np.int64(passed * self.per_microsecond))
            case str():
                return Vector(pa.scalar(constant, pa.large_string()))
            case bool():
                return Vector(np.bool_(constant))
            case int():
                return Vector(np.int64(constant))
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
_COMPARE_STRINGS: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _compare(operator: str, left: Vector, right: Vector) -> Mask:
    if left.is_string != right.is_string:  # a column without any value beside strings
        return np.zeros(max(np.shape(_valid(left)), np.shape(_valid(right))), bool)
    if left.is_string:
        return _as_mask(_COMPARE_STRINGS[operator](left.values, right.values))
    values, other = left.values, right.values
    if (values.dtype.kind == "f") != (other.dtype.kind == "f"):
        values, other = values.astype(np.float64), other.astype(np.float64)
    result = _COMPARE[operator](values, other)
    return _all([result, *(v.valid for v in (left, right) if v.valid is not None)])


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


def _valid(vector: Vector) -> Any:
    if vector.is_string:
        if isinstance(vector.values, pa.Scalar):
            return np.bool_(vector.values.is_valid)
        return vector.values.is_valid().to_numpy(zero_copy_only=False)
    if vector.valid is None:
        return np.ones(np.shape(vector.values), dtype=bool)
    return vector.valid


def _both_valid(left: Vector, right: Vector) -> Any:
    masks = [vector.valid for vector in (left, right) if vector.valid is not None]
    return _all(masks) if masks else None


def _arithmetic(operator: str, left: Vector, right: Vector) -> Vector:
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
    """Whether a 64-bit product wrapped: far from the limit by its size, near it by dividing back."""
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


def _call(function: str, arguments: list[Vector]) -> Vector:
    if function in ("lower", "upper", "length") or any(argument.is_string for argument in arguments):
        arguments = [_text(argument) for argument in arguments]
    first = arguments[0]
    match function:
        case "abs":
            if first.values.dtype.kind == "f":
                return Vector(np.abs(first.values), first.valid)
            negated = _integer_arithmetic("-", np.int64(0), first.values, first.valid)
            least = first.values == np.iinfo(np.int64).min
            valid = _and(first.valid, ~least) if np.any(least) else first.valid
            return Vector(np.where(first.values < 0, negated.values, first.values), valid)
        case "lower":
            return Vector(pc.utf8_lower(first.values))
        case "upper":
            return Vector(pc.utf8_upper(first.values))
        case "length":
            length = pc.utf8_length(first.values)
            if isinstance(length, pa.Scalar):
                return Vector(np.int64(length.as_py()))
            return Vector.of(length.cast(pa.int64()))
        case _:
            return _coalesce(arguments)


def _text(vector: Vector) -> Vector:
    """The vector as strings; one that has none stands for a column without any value."""
    if vector.is_string:
        return vector
    return Vector(pa.nulls(np.size(vector.values), pa.large_string()))


def _coalesce(arguments: list[Vector]) -> Vector:
    if arguments[0].is_string:
        return Vector(pc.coalesce(*(argument.values for argument in arguments)))
    result = arguments[0]
    for argument in arguments[1:]:
        known = _valid(result)
        values = np.where(known, result.values, argument.values)
        result = Vector(values, np.logical_or(known, _valid(argument)))
    return result
