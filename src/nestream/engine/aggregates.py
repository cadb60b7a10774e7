"""Computes aggregates over the members of groups: one value for each match.

The members of all matches are stored one match after the other. The operand of an aggregate is computed for
all members at once; each match's stretch is then reduced to one value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.engine.evaluation import Bindings
from nestream.engine.event_buffer import EventBuffer
from nestream.engine.kernels import Rows
from nestream.engine.kernels.sums import stretch_sums
from nestream.model.aggregates import OF_DURATIONS
from nestream.model.arithmetic import DIGITS, EXACT
from nestream.model.expression import (
    Aggregate,
    Attribute,
    Expression,
    Literal,
    Previous,
    children,
    transform,
    walk,
)
from nestream.model.functions import FUNCTIONS, holding
from nestream.model.lazy import pc
from nestream.model.vector import Mask, Vector

AGGREGATE = "\2"
"""The variable that stands in for computed aggregates in an expression: `\\2.0` is the first of them."""
_PREVIOUS = "\3"
"""The variable that stands in for the values of previous members (PREV)."""
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Expanded:
    """The members of all the matches of `bindings`, one match after the other.

    `whose` is the match of each member, `rows` holds the rows of its events by variable.
    """

    whose: Ints
    rows: Mapping[str, Rows]
    bindings: Bindings

    def __len__(self) -> int:
        return len(self.whose)

    @cached_property
    def begin(self) -> Ints:
        """The place of the first member of each match, and the total number of members."""
        found: Ints = np.searchsorted(self.whose, np.arange(self.bindings.count + 1))
        return found

    @cached_property
    def is_first(self) -> Mask:
        """Which members are the first of their match."""
        found = np.zeros(len(self), bool)
        begin = self.begin[:-1]
        found[begin[begin < self.begin[1:]]] = True
        return found


def without_aggregates(expression: Expression) -> tuple[Expression, list[Aggregate]]:
    """Replace aggregates by stand-ins `AGGREGATE.number`; return the expression and the aggregates."""
    found: list[Aggregate] = []

    def changed(part: Expression) -> Expression:
        if isinstance(part, Aggregate):
            if part not in found:
                found.append(part)
            return Attribute(AGGREGATE, str(found.index(part)))
        return part

    return _outermost(expression, changed), found


def _outermost(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Apply `change` to the outermost aggregates of an expression; what is inside them stays as it is."""
    kept: dict[Expression, Expression] = {}
    if isinstance(expression, Aggregate):
        return change(expression)
    for part in walk(expression):
        if isinstance(part, Aggregate):
            kept[part] = change(part)
    if not kept:
        return expression
    return transform(expression, lambda part: kept.get(part, part))


def aggregate_values(events: EventBuffer, over: Aggregate, expanded: Expanded) -> Vector:
    """Return the value of an aggregate for each match."""
    if over.function == "count" and over.operand == Literal(True):
        return Vector(np.diff(expanded.begin))
    vector = operand_values(events, over.operand, expanded)
    if over.function == "every":
        return _every(over, vector, expanded)
    known = np.broadcast_to(vector.known, (len(expanded),))
    places = np.flatnonzero(known)
    return _reduced(over, vector, places, expanded)


def operand_values(events: EventBuffer, operand: Expression, expanded: Expanded) -> Vector:
    """Return the operand of an aggregate for each member."""
    earlier: list[Vector] = []

    def fetch(variable: str, attribute: str) -> Vector:
        if variable == _PREVIOUS:
            return earlier[int(attribute)]
        if variable not in expanded.rows and variable not in expanded.bindings.rows:
            nothing = np.zeros(len(expanded), np.int64)  # for a branch that was not taken
            return events.attribute(attribute).take(nothing).where(nothing.astype(bool))
        if variable not in expanded.rows:
            return events.attribute(attribute).take(expanded.bindings.rows[variable][expanded.whose])
        rows = expanded.rows[variable]
        missing = rows < 0
        if not missing.any():
            return events.attribute(attribute).take(rows)
        return events.attribute(attribute).take(np.maximum(rows, 0)).where(~missing)

    def changed(part: Expression) -> Expression:
        if not isinstance(part, Previous):
            return part
        value, *first = (_whole(events.evaluator.value(one, fetch), len(expanded)) for one in part.operands)
        earlier.append(
            _before(value, first[0] if first else None, expanded, events.evaluator.per_microsecond)
        )
        return Attribute(_PREVIOUS, str(len(earlier) - 1))

    return _whole(events.evaluator.value(transform(operand, changed), fetch), len(expanded))


def _whole(vector: Vector, count: int) -> Vector:
    """Expand a single value to a vector with a value for each member."""
    if vector.length is not None:
        return vector
    if vector.is_arrow:
        return Vector(pa.array([vector.values.as_py()] * count, vector.values.type))
    valid = None if vector.valid is None else np.broadcast_to(vector.valid, (count,))
    return Vector(np.broadcast_to(vector.values, (count,)), valid)


def _before(vector: Vector, first: Vector | None, expanded: Expanded, per_microsecond: int) -> Vector:
    """The value of the previous member for each member; for the first of a match NULL, or `first`."""
    if not len(expanded):
        return vector
    shifted = vector.take(np.maximum(np.arange(len(expanded)) - 1, 0))
    if first is None:
        return shifted.where(~expanded.is_first)
    if first.is_nothing or vector.is_nothing:
        other, kept = (vector, ~expanded.is_first) if first.is_nothing else (first, expanded.is_first)
        return shifted.where(kept) if first.is_nothing else other.where(kept)
    return FUNCTIONS["case"].of_columns([Vector(expanded.is_first), first, shifted], per_microsecond)


def _every(over: Aggregate, vector: Vector, expanded: Expanded) -> Vector:
    wrong = ~np.broadcast_to(np.asarray(holding(vector)), (len(expanded),))
    if any(isinstance(part, Previous) and len(list(children(part))) == 1 for part in walk(over.operand)):
        wrong = wrong & ~expanded.is_first
    return Vector(np.bincount(expanded.whose[wrong], minlength=expanded.bindings.count) == 0)


def _reduced(over: Aggregate, vector: Vector, places: Ints, expanded: Expanded) -> Vector:
    """Reduce the values at some places, none of them NULL, to one value per match."""
    count = expanded.bindings.count
    whose = expanded.whose[places]
    sizes = np.bincount(whose, minlength=count)
    if over.function == "count" and not over.distinct:
        return Vector(sizes)
    if vector.is_nothing:
        return Vector(np.zeros(count, np.int64)) if over.function == "count" else Vector.nothing(count)
    begin = np.concatenate(([0], np.cumsum(sizes)))
    some = sizes > 0
    match over.function:
        case "count":
            return Vector(_distinct(numbers_of(vector.take(places)), whose, count))
        case "first":
            return _chosen(vector, places, begin[:-1], some)
        case "last":
            return _chosen(vector, places, begin[1:] - 1, some)
        case "min" | "max":
            return _extreme(over.function, vector, places, begin, some)
    values = vector.values[places]
    if values.dtype == object:
        return _of_decimals(over, values, begin)
    if values.dtype.kind == "f":
        return _of_floats(over.function, values, begin, sizes)
    return _of_integers(over.function, values.astype(np.int64), begin, sizes)


def _chosen(vector: Vector, places: Ints, at: Ints, some: Mask) -> Vector:
    """Choose the value of one member for each match that has members."""
    if not len(places):
        return Vector.nothing(len(some))
    found = vector.take(places[np.clip(at, 0, len(places) - 1)])
    return found if some.all() else found.where(some)


def _extreme(function: str, vector: Vector, places: Ints, begin: Ints, some: Mask) -> Vector:
    if not len(places):
        return Vector.nothing(len(some))
    least = np.minimum if function == "min" else np.maximum
    if not vector.is_arrow and not vector.is_object:
        values = vector.values[places]
        found = np.zeros(len(some), values.dtype)
        found[some] = least.reduceat(values, begin[:-1][some])
        return Vector(found, None if some.all() else some)
    ranks = _ranks(vector.take(places))
    wanted = np.zeros(len(some), np.int64)
    wanted[some] = least.reduceat(ranks, begin[:-1][some])
    at = np.empty(len(ranks), np.int64)
    at[ranks] = np.arange(len(ranks))
    return _chosen(vector, places, at[wanted], some)


def _ranks(vector: Vector) -> Ints:
    """The rank of each value; equal values may have different ones."""
    if vector.is_arrow:
        order = pc.sort_indices(vector.values).to_numpy(zero_copy_only=False)
    else:
        order = np.argsort(vector.values, kind="stable")
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found


def numbers_of(vector: Vector) -> Ints:
    """Number values so that equal values have equal numbers."""
    if vector.is_arrow:
        encoded = vector.values.dictionary_encode()
        return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
    _, numbers = np.unique(vector.values, return_inverse=True)
    return np.asarray(numbers, np.int64)


def _distinct(numbers: Ints, whose: Ints, count: int) -> Ints:
    """How many distinct numbers each match has."""
    if not len(numbers):
        return np.zeros(count, np.int64)
    pairs = np.unique(whose * (int(numbers.max()) + 1) + numbers)
    return np.bincount(pairs // (int(numbers.max()) + 1), minlength=count)


# -- sums --------------------------------------------------------------------------------------------------


def exact_parts(values: Ints) -> tuple[Ints, Ints]:
    """Prefix sums of the upper and lower halves of integers, so that no sum overflows."""
    zero = np.zeros(1, np.int64)
    upper = np.concatenate((zero, np.cumsum(values >> 32)))
    lower = np.concatenate((zero, np.cumsum(values & 0xFFFFFFFF)))
    return upper, lower


def from_parts(upper: Ints, lower: Ints) -> tuple[Ints, Mask]:
    """Add up the sums of the halves; return the sums and which of them fit in 64 bits."""
    upper = upper + (lower >> 32)
    fits = (upper >= -(2**31)) & (upper < 2**31)
    return (upper << 32) | (lower & 0xFFFFFFFF), fits


def _of_integers(function: str, values: Ints, begin: Ints, sizes: Ints) -> Vector:
    parts = [prefix[begin[1:]] - prefix[begin[:-1]] for prefix in exact_parts(values)]
    total, fits = from_parts(parts[0], parts[1])
    some = sizes > 0
    if function == "sum":
        return Vector(total, some & fits)
    divisor = np.maximum(sizes, 1)
    if function == OF_DURATIONS:
        if fits.all():
            return Vector(_rounded(total, divisor), some)
        return Vector.from_items([_exact_mean(values[a:b]) for a, b in pairwise(begin.tolist())])
    if function == "avg":
        mean = total / divisor
        for place in np.flatnonzero(~fits):
            exact = sum(values[begin[place] : begin[place + 1]].tolist())
            mean[place] = float(exact) / float(sizes[place])
        return Vector(mean, some)
    return _deviations(values, begin, sizes)


def _rounded(total: Ints, divisor: Ints) -> Ints:
    """The quotients, rounded half to even."""
    quotient, rest = total // divisor, total % divisor
    up = (rest > divisor - rest) | ((rest == divisor - rest) & (quotient % 2 != 0))
    rounded: Ints = quotient + up
    return rounded


def _exact_mean(values: Ints) -> int | None:
    from fractions import Fraction

    return round(Fraction(sum(values.tolist()), len(values))) if len(values) else None


def _of_floats(function: str, values: npt.NDArray[np.float64], begin: Ints, sizes: Ints) -> Vector:
    if function == "stddev":
        return _deviations(values, begin, sizes)
    with np.errstate(all="ignore"):
        total = stretch_sums(values, begin)
        result = total if function == "sum" else total / np.maximum(sizes, 1)
    return Vector(np.where(np.isnan(result), 0.0, result), (sizes > 0) & ~np.isnan(result))


def _deviations(values: npt.NDArray[Any], begin: Ints, sizes: Ints) -> Vector:
    """The sample standard deviation of each stretch: exact for small integers, else from the mean."""
    some = sizes > 1
    divisor = np.maximum(sizes, 2).astype(np.float64)
    whose = np.repeat(np.arange(len(sizes)), sizes)
    with np.errstate(all="ignore"):
        if values.dtype.kind == "i" and _small(values, sizes):
            total = np.diff(np.concatenate(([0], np.cumsum(values)))[begin])
            squares = np.diff(np.concatenate(([0], np.cumsum(values * values)))[begin])
            spread = (sizes * squares - total * total).astype(np.float64)
            variance = spread / (divisor * (divisor - 1))
        else:
            floats = values.astype(np.float64)
            mean = stretch_sums(floats, begin) / np.maximum(sizes, 1)
            away = floats - mean[whose]
            rest = stretch_sums(away, begin)
            variance = (stretch_sums(away * away, begin) - rest * rest / np.maximum(sizes, 1)) / (divisor - 1)
        result = np.sqrt(np.maximum(variance, 0.0))
    known = some & ~np.isnan(variance)
    if values.dtype.kind == "f":
        infinite = np.bincount(whose[~np.isfinite(values)], minlength=len(sizes)) > 0
        known &= ~infinite
    return Vector(np.where(known, result, 0.0), known)


def _small(values: Ints, sizes: Ints) -> bool:
    """Whether the squares of integers can be summed, and multiplied by their number, exactly as floats."""
    if not len(values):
        return True
    largest = max(abs(int(values.max())), abs(int(values.min())))
    return largest < 2**31 and largest * largest * int(sizes.sum()) * int(sizes.max()) < 2**53


def _of_decimals(over: Aggregate, values: npt.NDArray[Any], begin: Ints) -> Vector:
    """Reduce decimals, match by match, as `_of_integers` does."""
    stretches = (values[a:b].tolist() for a, b in pairwise(begin.tolist()))
    return Vector.from_items([_of_decimal(over.function, one) for one in stretches])


def _of_decimal(function: str, values: list[Decimal]) -> Decimal | float | None:
    if not values:
        return None
    total = Decimal(0)
    for one in values:
        total = EXACT.add(total, one)
    if function == "sum":
        return total if len(total.as_tuple().digits) <= DIGITS else None
    if function == "avg":
        return float(total) / len(values)
    if len(values) < 2:
        return None
    mean = EXACT.divide(total, Decimal(len(values)))
    spread = Decimal(0)
    for one in values:
        away = EXACT.subtract(one, mean)
        spread = EXACT.add(spread, EXACT.multiply(away, away))
    return math.sqrt(float(EXACT.divide(spread, Decimal(len(values) - 1))))
