"""The partitions of a view: the values that the outer match must equal, as numbers valid for one evaluation.

To be found again in the next evaluation, a partition remembers events that have its values: those of the last
outer result that requested it. If one of them is forgotten, so is the partition.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream_papers.engine.context import Bindings, Evaluation
from nestream_papers.views.intervals import Mask

Term = tuple[str, str]


class Partitions:
    """The values by which a view is partitioned, as pairs of an inner and an outer term."""

    def __init__(self, equal: tuple[tuple[Term, Term], ...]) -> None:
        self.attributes = tuple(own[1] for own, _ in equal)
        self.outer = tuple(term for _, term in equal)
        self._numbers: Ints = np.empty(0, np.int64)
        self._rows: Ints = np.empty((len(equal), 0), np.int64)

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, evaluation: Evaluation, asking: Bindings) -> Ints:
        """The partition that each outer result requests; negative if a value is NULL or does not occur."""
        if not self.attributes:
            return np.zeros(asking.count, np.int64)
        return self._of_rows(evaluation, [asking.rows[variable] for variable, _ in self.outer])

    def _of_rows(self, evaluation: Evaluation, rows: list[Ints]) -> Ints:
        parts = [evaluation.keys.numbers((a,))[own] for (_, a), own in zip(self.outer, rows, strict=True)]
        return evaluation.keys.combine(self.attributes, parts)[0]

    def note(self, numbers: Ints, asking: Bindings, which: Mask) -> None:
        """Remember, for each requested partition, the events of the last outer result that requested it."""
        if not self.attributes:
            return
        places = np.flatnonzero(which & (numbers >= 0))
        rows = np.stack([asking.rows[variable][places] for variable, _ in self.outer])
        together = np.concatenate([numbers[places], self._numbers])
        rows = np.concatenate([rows, self._rows], axis=1)
        newest = np.lexsort((-rows.min(axis=0), together))  # the one that is forgotten last comes first
        self._numbers, first = np.unique(together[newest], return_index=True)
        self._rows = rows[:, newest[first]]

    def forget(self) -> None:
        """Forget all partitions."""
        self._numbers, self._rows = self._numbers[:0], self._rows[:, :0]

    def renumbered(self, evaluation: Evaluation, shift: int) -> Callable[[Ints], tuple[Mask, Ints]]:
        """Move to another evaluation; return a function: which old numbers are known, and new ones."""
        if not self.attributes:
            return lambda old: (np.ones(len(old), bool), old)
        before = self._numbers
        self._rows = self._rows - shift
        alive = (self._rows >= 0).all(axis=0)
        numbers = np.full(len(before), -1, np.int64)
        numbers[alive] = self._of_rows(evaluation, list(self._rows[:, alive]))
        kept = numbers >= 0
        order = np.argsort(numbers[kept])
        self._numbers, self._rows = numbers[kept][order], self._rows[:, kept][:, order]

        def new(old: Ints) -> tuple[Mask, Ints]:
            if not len(before):
                return np.zeros(len(old), bool), old
            place = np.minimum(np.searchsorted(before, old), len(before) - 1)
            found = np.where(before[place] == old, numbers[place], -1)
            return found >= 0, found

        return new
