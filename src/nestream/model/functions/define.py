"""Defines a function: its name and parameters, the kind it returns, its value for a row and for columns.

Typing, engine, reference, Spark push-down and documentation all read this one definition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nestream.model.arithmetic import in_range
from nestream.model.lazy import np, pa
from nestream.model.schema import EventError, Kind
from nestream.model.vector import Vector, by_rows, common_length

NUMBERS = frozenset((Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL))
TIMES = frozenset((Kind.TIMESTAMP, Kind.ZONED))
ORDERED = NUMBERS | TIMES | {Kind.STRING, Kind.DURATION}
VALUES = ORDERED | {Kind.BOOLEAN}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function; `said` completes "not ...".

    A `constant` is written in the query, and `problem` reports what is wrong with it, if anything. The
    arguments of `common` parameters have one kind; those that become floats are computed as floats.
    """

    name: str
    accepts: frozenset[Kind]
    said: str
    constant: bool = False
    problem: Callable[[Any], str | None] = lambda _: None
    common: bool = False
    becomes_float: bool = False


def number(name: str = "number", *, becomes_float: bool = False) -> Parameter:
    """A parameter that takes numbers of any kind."""
    return Parameter(name, NUMBERS, "a number", becomes_float=becomes_float)


def size(name: str = "number") -> Parameter:
    """A parameter that takes numbers and durations."""
    return Parameter(name, NUMBERS | {Kind.DURATION}, "a number or duration")


def integer(name: str) -> Parameter:
    """A parameter that takes integers."""
    return Parameter(name, frozenset((Kind.INTEGER,)), "an integer")


def text(name: str = "text") -> Parameter:
    """A parameter that takes strings."""
    return Parameter(name, frozenset((Kind.STRING,)), "a string")


def moment(name: str = "time") -> Parameter:
    """A parameter that takes timestamps."""
    return Parameter(name, TIMES, "a timestamp")


def word(name: str, problem: Callable[[Any], str | None]) -> Parameter:
    """A parameter that takes a string written in the query."""
    return Parameter(name, frozenset((Kind.STRING,)), "a string", constant=True, problem=problem)


@dataclass(frozen=True)
class Function:
    """One function of the language.

    `gives` is the kind of the result, None for that of the common arguments or of the last that is needed.
    `row` computes one value from Python's values; `kernel` computes a column. In a `strict` function any NULL
    gives NULL, so neither sees one: its kernel takes the values of vectors, and returns an array, an array
    with a mask of the values that exist, or NotImplemented to go row by row. The kernel of any other takes
    and returns vectors. A function that `is_timed` takes the resolution of times as its last argument.
    """

    name: str
    parameters: tuple[Parameter, ...]
    gives: Kind | None
    row: Callable[..., Any]
    kernel: Callable[..., Any]
    text: str
    example: str
    """A call and its value, `abs(-2) = 2`; tested, and shown in the documentation."""
    optional: int = 0
    repeats: bool = False
    strict: bool = True
    is_timed: bool = False
    infix: str = ""
    """The word that stands between the two arguments."""
    spark: str = ""
    """The function of Spark SQL that means exactly the same, where there is one."""
    own: tuple[str, Callable[..., Any], str] | None = None
    """What the user passed to add it."""

    @property
    def is_own(self) -> bool:
        """Whether a user added it."""
        return self.own is not None

    @property
    def is_word(self) -> bool:
        """Whether it is written with its own words, not as a call."""
        return bool(self.infix) or self.name == "case"

    @property
    def is_implicit(self) -> bool:
        """Whether only typing inserts it, and no query can write it."""
        return " " in self.name and not self.infix

    @property
    def least(self) -> int:
        """The least number of arguments."""
        return len(self.parameters) - self.optional

    @property
    def most(self) -> int | None:
        """The maximum number of arguments; None for any."""
        return None if self.repeats else len(self.parameters)

    def parameter(self, place: int, count: int) -> Parameter:
        """The parameter of an argument, given the number of arguments."""
        if self.name == "case":  # condition, value, ..., and optionally a last value
            return self.parameters[0 if place % 2 == 0 and place < count - 1 else 1]
        return self.parameters[min(place, len(self.parameters) - 1)]

    @property
    def signature(self) -> str:
        """How it is written, for people."""
        if self.name == "case":
            return "CASE WHEN condition THEN value … [ELSE value] END"
        names = [parameter.name for parameter in self.parameters]
        if self.infix:
            return f"{names[0]} {self.infix} {names[1]}"
        needed, rest = names[: self.least], names[self.least :]
        listed = ", ".join(needed) + "".join(f"[, {name}" for name in rest) + "]" * len(rest)
        return f"{self.name}({listed}{', …' if self.repeats else ''})"

    @property
    def arity(self) -> str:
        """How many arguments it takes, for people."""
        numbers = ("no arguments", "one argument", "two arguments", "three arguments", "four arguments")
        if self.most is None:
            return f"at least {numbers[self.least]}"
        if self.most != self.least:
            return f"{numbers[self.least].split()[0]} or {numbers[self.most]}"
        return numbers[self.least] if self.least < len(numbers) else f"{self.least} arguments"

    def of_row(self, values: list[Any], scale: int = 1) -> Any:
        """The value for one row; None for NULL."""
        if self.strict and None in values:
            return None
        try:
            return in_range(self.row(*values, scale) if self.is_timed else self.row(*values))
        except (ArithmeticError, ValueError):
            return None

    def of_columns(self, vectors: list[Vector], scale: int = 1) -> Vector:
        """The values for whole columns."""
        if not self.strict:
            found: Vector = self.kernel(*vectors)
            return found
        length = common_length(vectors)
        if any(vector.is_nothing for vector in vectors):
            return Vector.nothing(length)
        result: Any = NotImplemented
        if not any(vector.is_object for vector in vectors):
            extra = (scale,) if self.is_timed else ()
            with np.errstate(all="ignore"):
                result = self.kernel(*(vector.values for vector in vectors), *extra)
        if result is NotImplemented:
            return by_rows(lambda *row: self.of_row(list(row), scale), vectors)
        values, exists = result if isinstance(result, tuple) else (result, None)
        vector = _vector(values)
        for mask in (exists, *(argument.valid for argument in vectors)):
            if mask is not None and not np.all(mask):
                vector = vector.where(mask)
        return self._for_null_texts(vector, vectors)

    @staticmethod
    def _for_null_texts(vector: Vector, arguments: list[Vector]) -> Vector:
        """NULL where a string was NULL, whatever the kernel returned."""
        for argument in arguments:
            if argument.is_arrow and not np.all(argument.known):
                vector = vector.where(argument.known)
        return vector


def _vector(values: Any) -> Vector:
    """The result of a kernel, as a vector."""
    if isinstance(values, pa.Scalar) and not pa.types.is_large_string(values.type):
        return Vector.from_items([values.as_py()], single=True)
    if isinstance(values, pa.Array) and not pa.types.is_large_string(values.type):
        return Vector.of(values.cast(pa.int64()) if pa.types.is_integer(values.type) else values)
    return Vector(values)


class FunctionError(EventError):
    """A user's function that failed, or returned something unexpected."""
