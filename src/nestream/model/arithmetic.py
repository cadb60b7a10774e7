"""Arithmetic on single values, as docs/reference/semantics.md defines it: integers, floats, decimals or None.

The reference computes with it, and so does the engine where values are Python objects.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

DIGITS = 38
"""The maximum number of digits of a decimal; a result with more is NULL."""
PLACES = 18
"""The maximum number of decimal places of a product, or those of the longer factor."""

EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def fits(number: Any) -> bool:
    """Whether an integer fits in 64 bits; true for anything else."""
    return not isinstance(number, int) or -(2**63) <= number < 2**63


def places(number: Any) -> int:
    """The number of decimal places of a decimal or integer."""
    return max(-int(number.as_tuple().exponent), 0) if isinstance(number, Decimal) else 0


def in_range(result: Any) -> Any:
    """A computed value; None if it is not a number, or beyond what its kind can hold."""
    match result:
        case bool() | None | str():
            return result
        case int():
            return result if fits(result) else None
        case Decimal():
            return result if result.is_finite() and len(result.as_tuple().digits) <= DIGITS else None
        case _:
            return None if math.isnan(result) else result


def arithmetic(operator: str, left: Any, right: Any) -> Any:
    """The value of `left operator right` with one of + - * / %."""
    if left is None or right is None or (operator in ("/", "%") and right == 0):
        return None
    exact = isinstance(left, Decimal) or isinstance(right, Decimal)
    if exact and (isinstance(left, float) or isinstance(right, float)):
        left, right, exact = float(left), float(right), False
    result: Any
    try:
        match operator:
            case "/":
                result = float(left) / float(right)
            case _ if exact:
                result = _exact(operator, left, right)
            case "+":
                result = left + right
            case "-":
                result = left - right
            case "*":
                result = left * right
            case _:
                result = _remainder(left, right)
    except OverflowError:
        return None
    return in_range(result)


def _exact(operator: str, left: Any, right: Any) -> Decimal:
    match operator:
        case "+":
            return EXACT.add(left, right)
        case "-":
            return EXACT.subtract(left, right)
        case "*":
            return _shortened(EXACT.multiply(left, right), max(PLACES, places(left), places(right)))
        case _:
            return EXACT.remainder(left, right)


def _shortened(number: Decimal, most: int) -> Decimal:
    return number if places(number) <= most else number.quantize(Decimal(1).scaleb(-most), context=EXACT)


def _remainder(left: Any, right: Any) -> Any:
    """The remainder with the sign of the left side, as in SQL."""
    if isinstance(left, int) and isinstance(right, int):
        return abs(left) % abs(right) * (1 if left >= 0 else -1)
    return math.fmod(left, right) if math.isfinite(left) else None
