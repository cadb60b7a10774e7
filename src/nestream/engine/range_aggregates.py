"""Aggregates of members that are a range of a stack: tables are built once a stack and asked once a match.

A table holds the operand for every event of the stack, with prefix sums or the extremes of blocks. So the
time that a match takes does not depend on the number of its members.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nestream.engine.aggregates import Expanded, exact_parts, from_parts, operand_values
from nestream.engine.evaluation import Bindings, Evaluation, Mask, Stack
from nestream.engine.kernels import Rows
from nestream.engine.kernels.ranges import extremes, prefix_sums
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
_BLOCK = 32
_MEMBER = "\4"
"""The variable of a member in the name of a table: queries that call it differently share the table."""
_ANSWERED = frozenset(("count", "sum", "avg", "min", "max", "first", "last", "every"))


@dataclass(frozen=True)
class Range:
    """The members of each match: places of a stack."""

    variable: str
    stack: Stack
    name: tuple[int, tuple[str, ...] | None]
    """The leaf and key of the stack."""
    first: Rows
    end: Rows


def from_table(evaluation: Evaluation, over: Aggregate, members: Range) -> Vector | None:
    """The aggregate of each match, None where no table answers it."""
    if over.operand == Literal(True) and over.function == "count":
        return Vector((members.end - members.first).astype(np.int64))
    if over.function not in _ANSWERED or over.distinct or not variables(over.operand) <= {members.variable}:
        return None
    looks_back = any(isinstance(part, Previous) for part in walk(over.operand))
    if looks_back and over.function != "every":
        return None
    if any(isinstance(part, Previous) and len(part.operands) > 1 for part in walk(over.operand)):
        return None

    def renamed(part: Expression) -> Expression:
        return Attribute(_MEMBER, part.name) if isinstance(part, Attribute) else part

    operand = transform(over.operand, renamed)
    table = evaluation.made(
        ("aggregates", members.name, operand), lambda: Table.of(evaluation, members.stack, operand)
    )
    answer = _ANSWERS[over.function]
    first = members.first
    if looks_back:  # asked only of members that have one before them
        first = np.minimum(first + 1, members.end)
    return answer(table, first.astype(np.int64), members.end.astype(np.int64))


@dataclass(frozen=True)
class Table:
    """The operand of aggregates for every event of a stack, with what answers questions about ranges."""

    vector: Vector
    count: int

    @classmethod
    def of(cls, evaluation: Evaluation, stack: Stack, operand: Expression) -> Table:
        """The table of an operand; the members before are those of the same key."""
        keys = np.repeat(np.arange(len(stack.begin) - 1), np.diff(stack.begin))
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
        """How many of the first values are not NULL."""
        if self.is_known:
            return np.arange(self.count + 1)
        return np.concatenate(([0], np.cumsum(self.known)))

    @cached_property
    def wrong(self) -> Ints:
        """Of how many of the first members the condition does not hold."""
        holds = np.broadcast_to(np.asarray(holding(self.vector)), (self.count,))
        return np.concatenate(([0], np.cumsum(~holds)))

    @cached_property
    def is_plain(self) -> bool:
        """Whether the values are integers or finite floats."""
        if self.vector.is_arrow or self.vector.is_object or self.vector.values.dtype.kind not in "if":
            return False
        if self.vector.values.dtype.kind == "i":
            return True
        return bool(np.isfinite(self.vector.values if self.is_known else self.values).all())

    @cached_property
    def values(self) -> npt.NDArray[np.generic]:
        """The values, with 0 for NULL."""
        values = np.broadcast_to(self.vector.values, (self.count,))
        kind = np.float64 if values.dtype.kind == "f" else np.int64
        return (values if self.is_known else np.where(self.known, values, 0)).astype(kind, copy=False)

    @cached_property
    def exact(self) -> tuple[Ints, Ints]:
        """Prefix sums of integers, in halves where one could overflow; else the first is empty."""
        values = self.values.astype(np.int64, copy=False)
        if len(values) and max(abs(int(values.max())), abs(int(values.min()))) * len(values) < 2**62:
            total = np.concatenate(([0], np.cumsum(values)))  # no sum of these can overflow
            return np.zeros(0, np.int64), total
        return exact_parts(values)

    def sums(self, first: Ints, end: Ints) -> tuple[Ints, Mask]:
        """The sum of each range of integers, and which of them fit in 64 bits."""
        upper, lower = self.exact
        if not len(upper):
            return lower[end] - lower[first], np.ones(len(first), bool)
        return from_parts(upper[end] - upper[first], lower[end] - lower[first])

    @cached_property
    def floats(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Prefix sums of floats, with their errors."""
        total, error = prefix_sums(self.values.astype(np.float64))
        return total, error

    def extremes(self, sign: int, first: Ints, end: Ints) -> npt.NDArray[np.generic]:
        """The least (1) or greatest (-1) value of each range."""
        filled, tables = self._least if sign > 0 else self._greatest
        found: npt.NDArray[np.generic] = extremes(filled, sign, _BLOCK, *tables, first, end)
        return found

    @cached_property
    def _least(self) -> tuple[npt.NDArray[np.generic], tuple[npt.NDArray[np.generic], ...]]:
        return self._extremes(1)

    @cached_property
    def _greatest(self) -> tuple[npt.NDArray[np.generic], tuple[npt.NDArray[np.generic], ...]]:
        return self._extremes(-1)

    def _extremes(self, sign: int) -> tuple[npt.NDArray[np.generic], tuple[npt.NDArray[np.generic], ...]]:
        none: float = np.inf * sign
        if self.values.dtype.kind == "i":
            none = np.iinfo(np.int64).max if sign > 0 else -np.iinfo(np.int64).max
        filled = self.values
        if not self.is_known:
            filled = np.where(self.known, self.values, np.array(none, self.values.dtype))
        return filled, _extremes_of_blocks(filled, sign, none)

    @cached_property
    def following(self) -> Ints:
        """For each place the first one from there on whose value is not NULL."""
        places = np.where(self.known, np.arange(self.count), self.count)
        return np.append(np.minimum.accumulate(places[::-1])[::-1], self.count)

    @cached_property
    def preceding(self) -> Ints:
        """For each number of places the last one among them whose value is not NULL, -1 if none."""
        places = np.where(self.known, np.arange(self.count), -1)
        return np.concatenate(([-1], np.maximum.accumulate(places)))


def _extremes_of_blocks(
    values: npt.NDArray[np.generic], sign: int, none: float
) -> tuple[npt.NDArray[np.generic], ...]:
    """For the least (1) or greatest (-1) of ranges: the extremes within blocks, and of runs of blocks.

    From the beginning of its block up to each place, from each place to the end of its block, and in row `k`
    of a grid those of `2 ** k` blocks, from each block on.
    """
    better = np.minimum if sign > 0 else np.maximum
    blocks = max(-(-len(values) // _BLOCK), 1)
    padded = np.full(blocks * _BLOCK, none, values.dtype)
    padded[: len(values)] = values
    grouped = padded.reshape(blocks, _BLOCK)
    before = better.accumulate(grouped, axis=1)
    after = np.ascontiguousarray(better.accumulate(grouped[:, ::-1], axis=1)[:, ::-1])
    grid = [after[:, 0]]
    while (1 << len(grid)) <= blocks:
        half, last = 1 << (len(grid) - 1), grid[-1]
        grid.append(np.append(better(last[:-half], last[half:]), last[-half:]))
    return before.ravel(), after.ravel(), np.ascontiguousarray(np.stack(grid))


def _count(table: Table, first: Ints, end: Ints) -> Vector:
    return Vector(table.counts[end] - table.counts[first])


def _every(table: Table, first: Ints, end: Ints) -> Vector:
    return Vector(table.wrong[end] == table.wrong[first])


def _sum(table: Table, first: Ints, end: Ints) -> Vector | None:
    if not table.is_plain:
        return None
    some = table.counts[end] > table.counts[first]
    if table.values.dtype.kind == "i":
        total, fits = table.sums(first, end)
        return Vector(total, some & fits)
    return Vector(_float_sums(table, first, end), some)


def _float_sums(table: Table, first: Ints, end: Ints) -> npt.NDArray[np.float64]:
    total, error = table.floats
    found: npt.NDArray[np.float64] = (total[end] - total[first]) + (error[end] - error[first])
    return found


def _average(table: Table, first: Ints, end: Ints) -> Vector | None:
    if not table.is_plain:
        return None
    number = table.counts[end] - table.counts[first]
    if table.values.dtype.kind == "i":
        total, fits = table.sums(first, end)
        if not fits.all():
            return None
        return Vector(total / np.maximum(number, 1), number > 0)
    return Vector(_float_sums(table, first, end) / np.maximum(number, 1), number > 0)


def _least(table: Table, first: Ints, end: Ints) -> Vector | None:
    if not table.is_plain:
        return None
    return Vector(table.extremes(1, first, end), table.counts[end] > table.counts[first])


def _greatest(table: Table, first: Ints, end: Ints) -> Vector | None:
    if not table.is_plain or _has_lowest(table):
        return None
    return Vector(table.extremes(-1, first, end), table.counts[end] > table.counts[first])


def _has_lowest(table: Table) -> bool:
    """Whether the least integer is among the values: it has no opposite to compare."""
    return table.values.dtype.kind == "i" and bool((table.values == np.iinfo(np.int64).min).any())


def _first(table: Table, first: Ints, end: Ints) -> Vector | None:
    return _chosen(table, table.following[first], table.following[first] < end)


def _last(table: Table, first: Ints, end: Ints) -> Vector | None:
    return _chosen(table, table.preceding[end], table.preceding[end] >= first)


def _chosen(table: Table, places: Ints, some: Mask) -> Vector | None:
    if not table.count:
        return None
    return table.vector.take(np.clip(places, 0, table.count - 1)).where(some)


_ANSWERS: dict[str, Callable[[Table, Ints, Ints], Vector | None]] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
    "min": _least,
    "max": _greatest,
    "first": _first,
    "last": _last,
    "every": _every,
}
