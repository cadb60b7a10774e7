"""Aggregates members that are a range of a stack: tables are built once per stack and queried per match.

A table holds the operand for every event of the stack, with prefix sums or the extremes of blocks. So the
time per match does not depend on the number of its members.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from nestream.engine.aggregates import Expanded, exact_parts, from_parts, numbers_of, operand_values
from nestream.engine.evaluation import Bindings, Evaluation, Mask, Stack
from nestream.engine.kernels import Rows
from nestream.engine.kernels.ranges import (
    block_extremes,
    differences,
    different,
    extremes,
    float_differences,
    prefix_sums,
    same_before,
)
from nestream.model.expression import (
    Aggregate,
    Attribute,
    Expression,
    Literal,
    Previous,
    transform,
    variables,
    walk,
)
from nestream.model.functions import holding
from nestream.model.vector import Vector

Ints = npt.NDArray[np.int64]
Values = npt.NDArray[Any]
_BITS = 5
_BLOCK = 1 << _BITS
_MEMBER = "\4"
"""The variable of a member in the name of a table: queries with other names for it share the table."""
_EXACT = 2.0**-70
"""1e9 times the greatest error of a prefix sum per value, relative to the sum of the absolute values."""


@dataclass(frozen=True)
class Range:
    """The members of each match, as places of a stack."""

    variable: str
    stack: Stack
    name: tuple[int, tuple[str, ...] | None]
    """The leaf and key of the stack."""
    first: Rows
    end: Rows
    _asked: dict[tuple[Expression, bool], Asked] = field(default_factory=dict, repr=False, compare=False)

    def asked(self, table: Table, operand: Expression, *, looks_back: bool) -> Asked:
        """The ranges over which an operand is aggregated, shared by all aggregates of that operand."""
        found = self._asked.get((operand, looks_back))
        if found is None:
            # A condition on the previous member applies only to members that have one.
            first = np.minimum(self.first + 1, self.end) if looks_back else self.first
            found = self._asked[operand, looks_back] = Asked(table, first, self.end)
        return found


def from_table(evaluation: Evaluation, over: Aggregate, members: Range) -> Vector | None:
    """The aggregate of each match; None if no table answers it.

    Tables answer COUNT, FIRST, LAST and EVERY of any values, SUM, AVG, MIN and MAX of integers and of finite
    floats, and STDDEV of integers whose squares add up exactly. They do not answer an operand that mentions
    other events, an AVG whose sum overflows, or PREV outside EVERY or with a default.
    """
    if over.operand == Literal(True) and over.function == "count":
        return Vector(np.subtract(members.end, members.first, dtype=np.int64))
    function = "different" if over.distinct and over.function == "count" else over.function
    if function not in ANSWERS or not variables(over.operand) <= {members.variable}:
        return None
    looks_back = any(isinstance(part, Previous) for part in walk(over.operand))
    if looks_back and function != "every":
        return None
    if any(isinstance(part, Previous) and len(part.operands) > 1 for part in walk(over.operand)):
        return None

    def renamed(part: Expression) -> Expression:
        return Attribute(_MEMBER, part.name) if isinstance(part, Attribute) else part

    operand = transform(over.operand, renamed)
    table = evaluation.made(
        ("aggregates", members.name, operand), lambda: Table.of(evaluation, members.stack, operand)
    )
    return ANSWERS[function](members.asked(table, operand, looks_back=looks_back))


@dataclass(frozen=True)
class Table:
    """The operand of aggregates for every event of a stack, with tables for questions about ranges."""

    vector: Vector
    count: int

    @classmethod
    def of(cls, evaluation: Evaluation, stack: Stack, operand: Expression) -> Table:
        """The table of an operand; previous members are those of the same key."""
        if any(isinstance(part, Previous) for part in walk(operand)):
            keys = np.repeat(np.arange(len(stack.begin) - 1), np.diff(stack.begin))
        else:
            keys = np.broadcast_to(np.int64(0), (len(stack),))
        whole = Expanded(keys, {_MEMBER: stack.rows}, Bindings({}, len(stack.begin) - 1))
        return cls(operand_values(evaluation.events, operand, whole), len(stack))

    @cached_property
    def is_known(self) -> bool:
        """Whether no value is NULL."""
        return not self.vector.is_arrow and self.vector.valid is None

    @cached_property
    def known(self) -> Mask:
        """Which values are not NULL."""
        return np.broadcast_to(self.vector.known, (self.count,))

    @cached_property
    def counts(self) -> Ints:
        """For each prefix, how many values are not NULL."""
        return _prefixes(self.known)

    @cached_property
    def wrong(self) -> Ints:
        """For each prefix, for how many members the condition does not hold."""
        return _prefixes(~np.broadcast_to(np.asarray(holding(self.vector)), (self.count,)))

    @cached_property
    def is_plain(self) -> bool:
        """Whether the values are integers or finite floats."""
        if self.vector.is_arrow or self.vector.is_object or self.vector.values.dtype.kind not in "if":
            return False
        return self.is_whole or bool(np.isfinite(self.values).all())

    @cached_property
    def is_whole(self) -> bool:
        """Whether plain values are integers."""
        return bool(self.vector.values.dtype.kind == "i")

    @cached_property
    def values(self) -> Values:
        """The values, with 0 for NULL."""
        values = np.broadcast_to(self.vector.values, (self.count,))
        kind = np.float64 if values.dtype.kind == "f" else np.int64
        return (values if self.is_known else np.where(self.known, values, 0)).astype(kind, copy=False)

    @cached_property
    def largest(self) -> int:
        """The greatest absolute value of integers."""
        return max(abs(int(self.values.max())), abs(int(self.values.min()))) if self.count else 0

    @cached_property
    def totals(self) -> Ints | None:
        """Prefix sums of integers; None if one could overflow."""
        return _prefixes(self.values) if self.largest * self.count < 2**62 else None

    @cached_property
    def halves(self) -> tuple[Ints, Ints]:
        """Prefix sums of the halves of integers, which cannot overflow."""
        return exact_parts(self.values.astype(np.int64, copy=False))

    @cached_property
    def squares(self) -> Ints:
        """Prefix sums of the squares of integers."""
        return _prefixes(self.values.astype(np.int64, copy=False) ** 2)

    @cached_property
    def floats(self) -> tuple[Values, Values, Ints, float]:
        """Prefix sums of floats, their errors, the counts of non-zero values, and a limit.

        Sums up to the limit may be wrong; it is negative if all are exact.
        """
        total, error = prefix_sums(self.values)
        if not error.any():
            return total, error, _prefixes(self.values != 0), -1.0  # all are exact
        with np.errstate(over="ignore"):
            blurred = float(np.abs(self.values.astype(np.float64, copy=False)).sum()) * self.count * _EXACT
        return total, error, _prefixes(self.values != 0), blurred

    @cached_property
    def least(self) -> tuple[Values, ...]:
        """The tables for the least value of a range."""
        return self._extremes(is_least=True)

    @cached_property
    def greatest(self) -> tuple[Values, ...]:
        """The tables for the greatest value of a range."""
        return self._extremes(is_least=False)

    def _extremes(self, *, is_least: bool) -> tuple[Values, ...]:
        """The values, their extremes within blocks, and those of `2 ** k` blocks in row `k` of a grid."""
        filled = self.values
        if not self.is_known:
            none: float = np.inf if is_least else -np.inf
            if self.is_whole:
                none = np.iinfo(np.int64).max if is_least else np.iinfo(np.int64).min
            filled = np.where(self.known, filled, np.array(none, filled.dtype))
        before, after = block_extremes(filled, is_least, _BLOCK)
        better = np.minimum if is_least else np.maximum
        grid = [after[::_BLOCK]]
        blocks = len(grid[0])
        while (1 << len(grid)) <= blocks:
            half, last = 1 << (len(grid) - 1), grid[-1]
            grid.append(np.append(better(last[:-half], last[half:]), last[-half:]))
        levels = np.frexp(np.arange(blocks + 1))[1].astype(np.int64) - 1
        return filled, before, after, np.ascontiguousarray(np.stack(grid)), levels

    @cached_property
    def same_before(self) -> Rows:
        """For each place, the last one before it with the same value, as `different` takes it."""
        numbers = np.full(self.count, -2, np.int64)
        places = np.flatnonzero(self.known)
        if len(places) and not self.vector.is_nothing:
            numbers[places] = numbers_of(self.vector.take(places))
        found: Rows = same_before(numbers, int(numbers.max(initial=0)) + 1)
        return found

    @cached_property
    def following(self) -> Ints:
        """For each place, the first one from there on whose value is not NULL."""
        places = np.where(self.known, np.arange(self.count), self.count)
        return np.append(np.minimum.accumulate(places[::-1])[::-1], self.count)

    @cached_property
    def preceding(self) -> Ints:
        """For each prefix, its last place whose value is not NULL; -1 if none."""
        places = np.where(self.known, np.arange(self.count), -1)
        return np.concatenate(([-1], np.maximum.accumulate(places)))


def _prefixes(values: npt.NDArray[Any]) -> Ints:
    """The sums of all prefixes, starting with the empty one."""
    found = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=found[1:])
    return found


@dataclass(frozen=True)
class Asked:
    """Ranges of a table: what several aggregates of the same members need is computed once."""

    table: Table
    first: Rows
    end: Rows

    @cached_property
    def sizes(self) -> Ints:
        """How many values of each range are not NULL."""
        if self.table.is_known:
            return np.subtract(self.end, self.first, dtype=np.int64)
        found: Ints = differences(self.table.counts, self.first, self.end)
        return found

    @cached_property
    def some(self) -> Mask | None:
        """Which ranges have a value; None if all do."""
        found = self.sizes > 0
        return None if found.all() else found

    @cached_property
    def sums(self) -> tuple[Values, Mask | None]:
        """The sum of each range, and which sums fit in 64 bits; None if all do."""
        table = self.table
        if not table.is_whole:
            total = float_differences(table.values, *table.floats, self.first, self.end)
            return total, None
        if table.totals is not None:
            return differences(table.totals, self.first, self.end), None
        upper, lower = (differences(half, self.first, self.end) for half in table.halves)
        found, fits = from_parts(upper, lower)
        return found, None if fits.all() else fits

    @property
    def divisors(self) -> Ints:
        """The sizes, with 1 in place of 0."""
        return self.sizes if self.some is None else np.maximum(self.sizes, 1)


def _count(asked: Asked) -> Vector:
    return Vector(asked.sizes)


def _different(asked: Asked) -> Vector:
    order = np.argsort(asked.end, kind="stable").astype(np.int32)
    return Vector(different(asked.table.same_before, asked.first, asked.end, order))


def _every(asked: Asked) -> Vector:
    return Vector(differences(asked.table.wrong, asked.first, asked.end) == 0)


def _sum(asked: Asked) -> Vector | None:
    if not asked.table.is_plain:
        return None
    total, fits = asked.sums
    return Vector(total, asked.some if fits is None else fits if asked.some is None else fits & asked.some)


def _average(asked: Asked) -> Vector | None:
    if not asked.table.is_plain:
        return None
    total, fits = asked.sums
    return Vector(total / asked.divisors, asked.some) if fits is None else None


def _deviation(asked: Asked) -> Vector | None:
    """The sample standard deviation, where it follows from exact sums of integers and their squares."""
    table, sizes = asked.table, asked.sizes
    if not table.is_plain or not table.is_whole:
        return None
    if table.largest**2 * table.count * max(int(sizes.max(initial=0)), 1) >= 2**62:
        return None
    total, _ = asked.sums
    squares = differences(table.squares, asked.first, asked.end)
    pairs = np.maximum(sizes, 2) * (np.maximum(sizes, 2) - 1)
    return Vector(np.sqrt((sizes * squares - total * total) / pairs), sizes > 1)


def _least(asked: Asked) -> Vector | None:
    return _extreme(asked, is_least=True)


def _greatest(asked: Asked) -> Vector | None:
    return _extreme(asked, is_least=False)


def _extreme(asked: Asked, *, is_least: bool) -> Vector | None:
    table = asked.table
    if not table.is_plain:
        return None
    if not table.count:
        return Vector(np.zeros(len(asked.first), table.values.dtype), asked.some)
    filled, *tables = table.least if is_least else table.greatest
    return Vector(extremes(filled, is_least, _BITS, *tables, asked.first, asked.end), asked.some)


def _first(asked: Asked) -> Vector | None:
    places = asked.table.following[asked.first]
    return _chosen(asked, places, places < asked.end)


def _last(asked: Asked) -> Vector | None:
    places = asked.table.preceding[asked.end]
    return _chosen(asked, places, places >= asked.first)


def _chosen(asked: Asked, places: Ints, some: Mask) -> Vector | None:
    if not asked.table.count:
        return None
    if some.all():
        return asked.table.vector.take(places)
    return asked.table.vector.take(np.clip(places, 0, asked.table.count - 1)).where(some)


ANSWERS: dict[str, Callable[[Asked], Vector | None]] = {
    "count": _count,
    "different": _different,
    "sum": _sum,
    "avg": _average,
    "stddev": _deviation,
    "min": _least,
    "max": _greatest,
    "first": _first,
    "last": _last,
    "every": _every,
}
