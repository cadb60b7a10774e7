"""Computes aggregates over the values of group members: section "Groups" of the semantics.

It uses exact arithmetic: Python integers and fractions, and `math.fsum` for floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from nestream.model.arithmetic import DIGITS, fits
from nestream.model.expression import Aggregate, Previous, walk


def asks_before(over: Aggregate) -> bool:
    """Whether the operand compares a member with the previous one, without a value for the first."""
    return any(isinstance(part, Previous) and len(part.operands) == 1 for part in walk(over.operand))


def aggregate(over: Aggregate, values: Sequence[Any]) -> Any:
    """The value of the aggregate; NULL values are ignored."""
    if over.function == "every":
        return all(one is True for one in values)
    known = [one for one in values if one is not None]
    if over.function == "count":
        return len(set(known)) if over.distinct else len(known)
    if not known:
        return None
    match over.function:
        case "sum":
            return _sum(known)
        case "avg":
            return _average(known)
        case "avg duration":
            return round(Fraction(sum(known), len(known)))
        case "min":
            return min(known)
        case "max":
            return max(known)
        case "stddev":
            return _deviation(known)
        case "first":
            return known[0]
        case "last":
            return known[-1]
    raise AssertionError(f"{over.function} is not an aggregate")


def _sum(values: Sequence[Any]) -> Any:
    """The sum: exact, or NULL if it does not fit; for floats as exact as a float can be."""
    if any(isinstance(one, float) for one in values):
        return _float_sum(values)
    if any(isinstance(one, Decimal) for one in values):
        total = _decimal(sum((Fraction(one) for one in values), Fraction()), values)
        return total if len(total.as_tuple().digits) <= DIGITS else None
    total = sum(values)
    return total if fits(total) else None


def _decimal(total: Fraction, values: Sequence[Any]) -> Decimal:
    """An exact sum of decimals, with as many decimal places as the longest operand."""
    scale = max(-min(int(Decimal(one).as_tuple().exponent), 0) for one in values)
    return Decimal(int(total * 10**scale)).scaleb(-scale)


def _float_sum(values: Sequence[Any]) -> float | None:
    try:
        total = math.fsum(values)
    except OverflowError:
        total = float(sum(values))
    except ValueError:  # infinities of both signs
        return None
    return None if math.isnan(total) else total


def _average(values: Sequence[Any]) -> float | None:
    """The mean as a float."""
    if any(isinstance(one, float) for one in values):
        total = _float_sum(values)
        return None if total is None else total / len(values)
    return float(sum((Fraction(one) for one in values), Fraction())) / len(values)


def _deviation(values: Sequence[Any]) -> float | None:
    """The sample standard deviation, of at least two values."""
    if len(values) < 2 or any(isinstance(one, float) and not math.isfinite(one) for one in values):
        return None
    exact = [Fraction(one) for one in values]
    mean = sum(exact, Fraction()) / len(exact)
    variance = sum(((one - mean) ** 2 for one in exact), Fraction()) / (len(exact) - 1)
    try:
        return math.sqrt(float(variance))
    except OverflowError:
        return math.inf
