"""Functions that choose among their arguments; they handle NULL themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from nestream.model.functions.define import ORDERED, VALUES, Function, Parameter
from nestream.model.lazy import np, pa, pc
from nestream.model.schema import Kind
from nestream.model.vector import Vector, by_rows, common_length, text_type


def _alike(vectors: tuple[Vector, ...]) -> tuple[Vector, ...]:
    """The vectors, with columns of NULL in the form of the others."""
    some = [vector for vector in vectors if not vector.is_nothing]
    if not some or len(some) == len(vectors):
        return vectors
    return tuple(_null_like(some[0], v.length) if v.is_nothing else v for v in vectors)


def _null_like(vector: Vector, length: int | None) -> Vector:
    if vector.is_arrow:
        return Vector(pa.scalar(None, text_type()) if length is None else pa.nulls(length, text_type()))
    shape = () if length is None else (length,)
    return Vector(np.zeros(shape, vector.values.dtype), np.zeros(shape, bool))


def _choose(condition: Any, one: Vector, other: Vector) -> Vector:
    """One value where the condition holds, the other elsewhere."""
    one, other = _alike((one, other))
    if one.is_arrow:
        if one.is_nothing:
            length = common_length([Vector(np.asarray(condition)), one, other])
            return Vector.nothing(length)
        mask = pa.array(condition) if np.ndim(condition) else bool(condition)
        return Vector(pc.if_else(mask, one.values, other.values))
    values = np.where(condition, one.values, other.values)
    if one.valid is None and other.valid is None:
        return Vector(values)
    return Vector(values, np.where(condition, one.known, other.known))


def _coalesce(*vectors: Vector) -> Vector:
    return reduce(lambda found, other: _choose(found.known, found, other), _alike(vectors))


def _first_known(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _extreme(smaller: bool) -> Callable[..., Vector]:
    row = _extreme_row(min if smaller else max)

    def of_columns(*vectors: Vector) -> Vector:
        vectors = _alike(vectors)
        if any(vector.is_object for vector in vectors):
            return by_rows(row, vectors)
        return reduce(lambda one, other: _choose(_wins(one, other, smaller), one, other), vectors)

    return of_columns


def _wins(one: Vector, other: Vector, smaller: bool) -> Any:
    """Where the first of two wins: it is not NULL, and the other is NULL or does not come before it."""
    if one.is_nothing:
        return one.known
    if one.is_arrow:
        found = (pc.less_equal if smaller else pc.greater_equal)(one.values, other.values)
        single = isinstance(found, pa.Scalar)
        before = (
            np.bool_(bool(found.as_py())) if single else found.fill_null(False).to_numpy(zero_copy_only=False)
        )
    else:
        before = one.values <= other.values if smaller else one.values >= other.values
    return one.known & (~other.known | before)


def _extreme_row(choose: Callable[[Any], Any]) -> Callable[..., Any]:
    def of_row(*values: Any) -> Any:
        known = [value for value in values if value is not None]
        return choose(known) if known else None

    return of_row


def _case(*vectors: Vector) -> Vector:
    pairs = len(vectors) // 2
    result = vectors[-1] if len(vectors) % 2 else Vector.nothing(None)
    for place in reversed(range(pairs)):
        condition, value = vectors[2 * place], vectors[2 * place + 1]
        result = _choose(holding(condition), value, result)
    return result


def holding(condition: Vector) -> Any:
    """Where a condition holds; NULL does not."""
    if condition.is_nothing:
        return condition.known
    values = np.asarray(condition.values, dtype=bool)
    return values if condition.valid is None else values & condition.valid


def _case_row(*values: Any) -> Any:
    for place in range(len(values) // 2):
        if values[2 * place] is True:
            return values[2 * place + 1]
    return values[-1] if len(values) % 2 else None


_VALUE = Parameter("value", VALUES, "a value to compute with", common=True)
_ORDERED = Parameter("value", ORDERED, "a value with an order", common=True)
_CONDITION = Parameter("condition", frozenset((Kind.BOOLEAN,)), "a condition")

CHOOSING = (
    Function(
        "coalesce",
        (_VALUE,),
        None,
        _first_known,
        _coalesce,
        "the first value that is not NULL",
        "coalesce('a', 'b') = 'a'",
        repeats=True,
        strict=False,
    ),
    Function(
        "least",
        (_ORDERED,),
        None,
        _extreme_row(min),
        _extreme(smaller=True),
        "the least value that is not NULL",
        "least(3, 1, 2) = 1",
        repeats=True,
        strict=False,
    ),
    Function(
        "greatest",
        (_ORDERED,),
        None,
        _extreme_row(max),
        _extreme(smaller=False),
        "the greatest value that is not NULL",
        "greatest(3, 1, 2) = 3",
        repeats=True,
        strict=False,
    ),
    Function(
        "case",
        (_CONDITION, _VALUE),
        None,
        _case_row,
        _case,
        "the value of the first condition that holds, else the last value; without ELSE that is NULL",
        "CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END = 'b'",
        repeats=True,
        strict=False,
    ),
)
