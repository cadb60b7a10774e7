"""Bit-marking: blocks that differ only in their constraints are built once, and marks record which hold.

The EMap has a mask for each block (an expression): a bit for each of its constraints that the blocks do not
all have. The RVI of a row are the facts found so far, also as bits. Three laws:

1. A row is given up when each expression has a constraint that was looked at and does not hold.
2. A match is given exactly if the mask of some expression is covered by its facts.
3. Rows are built once, whatever the number of expressions, so no match is given twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nestream_papers.engine.context import Bindings, Mask
from nestream_papers.engine.program import Constraint, Group

Facts = npt.NDArray[np.uint64]
"""The RVI of each row: one bit per constraint."""


def bit(column: int) -> int:
    """The mask of one column."""
    return 1 << column


@dataclass(frozen=True)
class EMap:
    """The constraints that distinguish some expressions, at most 64, and each expression's mask of them."""

    columns: tuple[Constraint, ...]
    masks: tuple[int, ...]

    @classmethod
    def of(cls, expressions: Sequence[Sequence[Constraint]]) -> EMap:
        """The map of expressions, given by their constraints."""
        columns: list[Constraint] = []
        for constraints in expressions:
            columns += [part for part in constraints if part not in columns]
        if len(columns) > 64:
            raise ValueError(f"{len(columns)} constraints: a row of facts has room for 64")
        masks = [sum(bit(columns.index(part)) for part in constraints) for constraints in expressions]
        return cls(tuple(columns), tuple(dict.fromkeys(masks)))

    def mask(self, constraints: Sequence[Constraint]) -> int:
        """The mask of an expression."""
        return mask_of(map(self.columns.index, constraints))

    @classmethod
    def of_group(cls, group: Group) -> EMap:
        """The map of a group's blocks."""
        return cls.of([member.own for member in group.members])

    def patterns(self, known: int) -> list[int]:
        """The different masks restricted to the known columns; only the weakest of them matter."""
        found = {mask & known for mask in self.masks}
        return [p for p in sorted(found) if not any(other != p and other & p == other for other in found)]

    def alive(self, facts: Facts, known: int) -> Mask | None:
        """Which rows some expression may still accept, given the known columns; None for all."""
        patterns = self.patterns(known)
        if 0 in patterns:
            return None
        held = np.zeros(len(facts), bool)
        for pattern in patterns:
            held |= (facts & np.uint64(pattern)) == np.uint64(pattern)
        return held

    def covered(self, facts: Facts) -> Mask:
        """Which rows satisfy some expression, once all columns are known."""
        held = self.alive(facts, bit(len(self.columns)) - 1)
        return np.ones(len(facts), bool) if held is None else held


def marked(facts: Facts, held: Mask, column: int) -> Facts:
    """The facts with those of one more column."""
    return facts | (held.astype(np.uint64) << np.uint64(column))


def mask_of(columns: Iterable[int]) -> int:
    """The mask of some columns."""
    return sum(map(bit, columns))


@dataclass
class Marked(Bindings):
    """Partial matches with their facts."""

    facts: Facts = None  # type: ignore[assignment]

    def only(self, which: npt.NDArray[np.int64] | Mask) -> Marked:
        """Some of the partial matches."""
        part = super().only(which)
        return Marked(part.rows, part.count, part.outer, self.facts[which])
