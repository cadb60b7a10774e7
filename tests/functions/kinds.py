"""Events with a column of every kind, NULL included, and calls of every function on them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa

import nestream
from nestream.model.functions import FUNCTIONS, Function, Parameter

MOMENTS = [
    datetime(1969, 12, 29, 23, 59, 59, 999_999),
    datetime(2000, 2, 29, 12),
    datetime(2026, 11, 15, 19, 30, 1),
    datetime(1600, 3, 1),
    datetime(2262, 1, 1),
]
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int64(), [0, 1, -7, 3, 2**63 - 1, -(2**63), 2**53 + 1]),
    "f": (pa.float64(), [0.0, -0.0, 0.5, -1.5, 2.675, 1e300, -1e-300, math.inf, float(2**53), math.nan]),
    "d": (pa.decimal128(12, 3), [Decimal(text) for text in ("0", "1.000", "-2.675", "0.5", "123456789.125")]),
    "e": (pa.decimal128(38, 18), [Decimal(text) for text in ("1", "0.5", "-99999999999999999999", "1e-18")]),
    "s": (pa.string(), ["", "Über", " a b ", "100%", "a\nb", "-1", "😀x", "ab", "b\\", "a_b", "%"]),
    "g": (pa.dictionary(pa.int8(), pa.string()), ["ab", "x"]),
    "b": (pa.bool_(), [True, False]),
    "t": (pa.timestamp("us"), MOMENTS),
    "z": (pa.timestamp("us", "UTC"), [moment.replace(tzinfo=UTC) for moment in MOMENTS]),
    "y": (pa.date32(), [moment.date() for moment in MOMENTS]),
    "u": (pa.duration("us"), [timedelta(0), timedelta(days=-3), timedelta(microseconds=7)]),
    "n": (pa.null(), [None]),
    "l": (pa.list_(pa.int64()), [[1], []]),
    "r": (pa.struct([("x", pa.int64())]), [{"x": 1}]),
    "w": (pa.binary(), [b"ab"]),
    "m": (pa.map_(pa.string(), pa.int64()), [[("a", 1)]]),
}
CONSTANTS = {
    "date_part": ["year", "quarter", "month", "week", "day", "dow", "doy", "hour", "minute", "second"],
    "date_trunc": ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"],
    "like": ["", "%", "a_b", "1%\\%", "_ber", "% %", "%\\\\", "\\%%", "a\\_b", "\\\\"],
    "not like": ["%b", "\\_"],
    "matches": ["^a", "b$", "(?s)a.b", "[0-9]+", "\\p{Lu}"],
    "not matches": ["^a", ""],
}
LITERALS = {
    "i": ["0", "2", "-3"],
    "f": ["0.5", "-1.25"],
    "s": ["'ab'", "''", "'b'"],
    "b": ["TRUE"],
    "t": ["TIMESTAMP '2026-11-15 19:30:01'", "DATE '9999-12-31'"],
    "u": ["5 s"],
}


def events(seed: int, rows: int = 12, columns: Any = COLUMNS) -> pa.Table:
    """Random events of type A; about a fifth of the values are NULL."""
    choices = random.Random(seed)
    data: dict[str, pa.Array] = {
        "ts": pa.array(range(rows), pa.int64()),
        "type": pa.array(["A"] * rows, pa.string()),
    }
    for name in columns:
        datatype, values = COLUMNS[name]
        found = [None if choices.random() < 0.2 else choices.choice(values) for _ in range(rows)]
        data[name] = pa.array(found, datatype)
    return pa.table(data)


def calls(function: Function, most: int, seed: int = 1) -> Iterator[str]:
    """Calls of a function with arguments of all kinds, or of so many random combinations of kinds."""
    choices = random.Random(f"{function.name} {seed}")
    fitting, others = [], []
    for count in range(function.least, (function.most or function.least + 2) + 1):
        taken = [
            [kind for kind in COLUMNS if _accepts(function.parameter(place, count), kind)]
            for place in range(count)
        ]
        fitting += [kinds for kinds in product(*taken) if _is_alike(function, kinds)]
        others += [tuple(choices.choice(list(COLUMNS)) for _ in range(count)) for _ in range(most // 4)]
    for kinds in [*choices.sample(fitting, min(most, len(fitting))), *others]:
        yield written(function, [_argument(function, place, kinds, choices) for place in range(len(kinds))])


SCHEMA = nestream.Schema.of(events(0, 1).schema)


def _accepts(parameter: Parameter, column: str) -> bool:
    """Whether a parameter takes a column; one that is NULL throughout can be of any kind."""
    return column == "n" or SCHEMA.kind(column) in parameter.accepts


def _is_alike(function: Function, columns: tuple[str, ...]) -> bool:
    """Whether the arguments that must be of one kind are."""
    count = len(columns)
    common = {_family(c) for place, c in enumerate(columns) if function.parameter(place, count).common}
    return len(common - {"n"}) <= 1


def _family(kind: str) -> str:
    return "number" if kind in "ifde" else "text" if kind in "sg" else "time" if kind in "ty" else kind


def _argument(function: Function, place: int, kinds: tuple[str, ...], choices: random.Random) -> str:
    if function.parameter(place, len(kinds)).constant:
        return "'" + choices.choice(CONSTANTS[function.name]) + "'"
    kind = kinds[place]
    if kind in LITERALS and choices.random() < 0.3:
        return choices.choice(LITERALS[kind])
    return f"a.{kind}"


def written(function: Function, arguments: list[str]) -> str:
    """A call as a query has it."""
    if function.infix:
        return f"{arguments[0]} {function.infix} {arguments[1]}"
    if function.name == "case":
        pairs = zip(arguments[0::2], arguments[1::2], strict=False)
        when = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
        return f"CASE {when}{f' ELSE {arguments[-1]}' if len(arguments) % 2 else ''} END"
    return f"{function.name}({', '.join(arguments)})"


def all_functions() -> list[Function]:
    """The functions that a query can mention."""
    return [function for function in FUNCTIONS.values() if not function.is_implicit]


def alike(one: Any, other: Any) -> bool:
    """Whether two values are equal, floats up to the last digits."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=1e-13)
    return type(one) is type(other) and one == other
