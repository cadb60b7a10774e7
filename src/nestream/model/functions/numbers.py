"""Functions of numbers."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

from nestream.model.arithmetic import EXACT, arithmetic, places
from nestream.model.functions.define import Function, Parameter, integer, number, size
from nestream.model.lazy import Lazy, np
from nestream.model.schema import Kind

EARTH = 6_371_008.8
"""The mean radius of the earth in metres."""
_LEAST = -(2**63)


def _abs(values: Any) -> Any:
    if values.dtype.kind == "f":
        return np.abs(values)
    return np.abs(values), values != _LEAST


def _whole(values: Any, rounded: Any) -> Any:
    """Floats rounded to integers, where they fit in 64 bits."""
    inside = (rounded >= -(2.0**63)) & (rounded < 2.0**63)
    return np.where(inside, rounded, 0).astype(np.int64), inside


def _to_whole(row: Any, decimal_mode: str, array: Any) -> tuple[Any, Any]:
    """The row function and the kernel of a function that rounds to an integer."""

    def of_row(value: Any) -> Any:
        if isinstance(value, Decimal):
            return int(value.to_integral_value(decimal_mode, EXACT))
        return row(value)

    def of_column(values: Any) -> Any:
        return values if values.dtype.kind == "i" else _whole(values, array(values))

    return of_row, of_column


def _round(value: Any, digits: int = 0) -> Any:
    """Round half away from zero, based on the decimal digits of the number."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    if digits > 400:
        return value
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    exponent = max(min(-digits, 400), -400)
    if isinstance(value, Decimal) and places(value) <= digits:
        return value
    rounded = exact.quantize(Decimal(1).scaleb(exponent, EXACT), ROUND_HALF_UP, _WIDE)
    if isinstance(value, float):
        return float(rounded)
    if isinstance(value, int):
        return int(rounded)
    return rounded if digits >= 0 else rounded.quantize(Decimal(1), context=EXACT)


_WIDE = EXACT.copy()
_WIDE.prec = 1000


def _round_column(values: Any, digits: Any = None) -> Any:
    if digits is not None and not (np.ndim(digits) == 0 and digits == 0):
        return NotImplemented
    if values.dtype.kind == "i":
        return values
    whole = np.trunc(values)
    away = np.abs(values - whole) >= 0.5
    return np.where(np.isfinite(values), whole + np.where(away, np.copysign(1.0, values), 0.0), values)


def _finite(result: Any) -> Any:
    return result, np.isfinite(result)


def _finite_row(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _power(base: float, exponent: float) -> float | None:
    result = math.pow(base, exponent)
    return _finite_row(result)


def _haversine(lat1: Any, lon1: Any, lat2: Any, lon2: Any, of: Any) -> Any:
    """The haversine of the angle between two positions; `of` is math or NumPy."""
    one, other = of.radians(lat1), of.radians(lat2)
    across = of.sin((other - one) / 2) ** 2
    along = of.sin((of.radians(lon2) - of.radians(lon1)) / 2) ** 2
    return across + of.cos(one) * of.cos(other) * along


def _haversine_row(lat1: float, lon1: float, lat2: float, lon2: float) -> float | None:
    share = _haversine(lat1, lon1, lat2, lon2, math)
    return _finite_row(2 * EARTH * math.asin(math.sqrt(min(max(share, 0.0), 1.0))))


def _haversine_column(lat1: Any, lon1: Any, lat2: Any, lon2: Any) -> Any:
    share = _haversine(lat1, lon1, lat2, lon2, np)
    return _finite(2 * EARTH * np.arcsin(np.sqrt(np.clip(share, 0.0, 1.0))))


def _floats(name: str, row: Any, array: Any, text: str, example: str) -> Function:
    def of_row(value: float) -> Any:
        return _finite_row(row(value))

    def of_column(values: Any) -> Any:
        return _finite(array(np.asarray(values, np.float64)))

    takes = (number(becomes_float=True),)
    return Function(name, takes, Kind.FLOAT, of_row, of_column, text, example)


_FLOOR = _to_whole(math.floor, ROUND_FLOOR, Lazy("numpy", "floor"))
_CEIL = _to_whole(math.ceil, ROUND_CEILING, Lazy("numpy", "ceil"))


def _sign(value: Any) -> int:
    return int(value > 0) - int(value < 0)


def _degrees(name: str) -> Parameter:
    return number(name, becomes_float=True)


NUMERIC = (
    Function(
        "abs",
        (size(),),
        None,
        lambda value: arithmetic("-", 0, value) if value < 0 else abs(value),
        _abs,
        "the absolute value",
        "abs(-2) = 2",
    ),
    Function(
        "sign",
        (size(),),
        Kind.INTEGER,
        _sign,
        lambda values: np.sign(values).astype(np.int64),
        "-1, 0 or 1",
        "sign(-2.5) = -1",
    ),
    Function(
        "round",
        (number(), integer("digits")),
        None,
        _round,
        _round_column,
        "rounded to that many decimal places, 0 by default; halves round away from zero",
        "round(2.665, 2) = 2.67",
        optional=1,
    ),
    Function(
        "floor",
        (number(),),
        Kind.INTEGER,
        *_FLOOR,
        "the greatest integer that is not above the number",
        "floor(-1.5) = -2",
    ),
    Function(
        "ceil",
        (number(),),
        Kind.INTEGER,
        *_CEIL,
        "the least integer that is not below the number",
        "ceil(-1.5) = -1",
    ),
    _floats("sqrt", math.sqrt, Lazy("numpy", "sqrt"), "the square root", "sqrt(9) = 3.0"),
    _floats("exp", math.exp, Lazy("numpy", "exp"), "e to the power of the number", "exp(0) = 1.0"),
    _floats("ln", math.log, Lazy("numpy", "log"), "the natural logarithm", "ln(1) = 0.0"),
    Function(
        "power",
        (number("base", becomes_float=True), number("exponent", becomes_float=True)),
        Kind.FLOAT,
        _power,
        lambda base, exponent: _finite(np.power(np.asarray(base, np.float64), exponent)),
        "the base to the power of the exponent, a float",
        "power(2, 10) = 1024.0",
    ),
    Function(
        "haversine",
        (_degrees("lat1"), _degrees("lon1"), _degrees("lat2"), _degrees("lon2")),
        Kind.FLOAT,
        _haversine_row,
        _haversine_column,
        "the distance in metres between two positions in degrees, on a sphere of the earth's mean radius",
        "round(haversine(52.52, 13.405, 48.137, 11.575) / 1000) = 504.0",
    ),
    Function(
        "as float",
        (number(),),
        Kind.FLOAT,
        float,
        lambda values: values.astype(np.float64),
        "the number as a float, where it meets floats",
        "",
    ),
)
