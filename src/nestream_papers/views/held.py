"""What a view holds: results as rows of events ordered by their ends, or facts about non-empty intervals.

Rows are row numbers of the event buffer. When it forgets its first rows, `shifted` reduces all numbers
accordingly; what began in them is gone.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream_papers.views.intervals import Intervals, Mask


class Held:
    """Results of an inner query, or facts about them, sorted by their partitions and ends."""

    def __init__(self) -> None:
        self.start = self.end = self.part = self.key = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self.start)

    @property
    def nbytes(self) -> int:
        """The memory of all columns."""
        return self.start.nbytes + self.end.nbytes + self.part.nbytes + self.key.nbytes

    def only(self, which: Mask | Ints) -> None:
        """Keep some of them, or all in another order."""
        self.start, self.end, self.part = self.start[which], self.end[which], self.part[which]
        self.key = self.key[which]

    def shift(self, count: int) -> None:
        """Reduce the row numbers."""
        self.start, self.end = self.start - count, self.end - count

    def place(self, part: Ints, stride: int) -> None:
        """Assign new partitions to all of them, and sort by these and their ends."""
        key = part * stride + self.end
        order = np.argsort(key, kind="stable")
        self.only(order)
        self.part, self.key = part[order], key[order]


class Results(Held):
    """Results of an inner query: for each variable, the rows of its events."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.rows = dict.fromkeys(names, self.start)
        self.used: Mask = np.empty(0, bool)

    @property
    def nbytes(self) -> int:
        """The memory of all columns."""
        return super().nbytes + sum(column.nbytes for column in (*self.rows.values(), self.used))

    def add(self, rows: Mapping[str, Ints], start: Ints, end: Ints, part: Ints, stride: int) -> None:
        """Add results that are not yet here."""
        key = np.concatenate([self.key, part * stride + end])
        order = np.argsort(key, kind="stable")
        self.key = key[order]
        for name, column in rows.items():
            self.rows[name] = np.concatenate([self.rows[name], column])[order]
        self.start = np.concatenate([self.start, start])[order]
        self.end = np.concatenate([self.end, end])[order]
        self.part = np.concatenate([self.part, part])[order]
        self.used = np.concatenate([self.used, np.zeros(len(start), bool)])[order]

    def within(self, queries: Intervals) -> tuple[Ints, Ints]:
        """For each query-interval, the first place and the number of the results that end in it."""
        first: Ints = np.searchsorted(self.key, queries.left, "left")
        return first, np.maximum(np.searchsorted(self.key, queries.right, "left") - first, 0)

    def only(self, which: Mask | Ints) -> None:
        """Keep some of them, or all in another order."""
        super().only(which)
        self.rows = {name: column[which] for name, column in self.rows.items()}
        self.used = self.used[which]

    def shift(self, count: int) -> None:
        """Reduce the row numbers."""
        super().shift(count)
        self.rows = {name: column - count for name, column in self.rows.items()}


class Facts(Held):
    """The smallest intervals known to be non-empty: those of results that contain no other result's.

    None contains another, so they are sorted by their starts and by their ends alike, and an interval has a
    result exactly if the last of them that ends in it also starts in it.
    """

    def add(self, start: Ints, end: Ints, part: Ints, stride: int) -> int:
        """Learn that intervals are not empty; return how many facts are new."""
        before = len(self)
        start, end = np.concatenate([self.start, start]), np.concatenate([self.end, end])
        part = np.concatenate([self.part, part])
        known = np.arange(len(start)) < before
        order = np.lexsort((-start, part * stride + end))
        starts = (part * stride + start)[order]
        latest = np.maximum.accumulate(np.concatenate(([-1], starts)))[:-1]
        kept = order[starts > latest]
        self.start, self.end, self.part = start[kept], end[kept], part[kept]
        self.key = self.part * stride + self.end
        return int(np.count_nonzero(~known[kept]))

    def has(self, queries: Intervals, stride: int) -> Mask:
        """Which intervals are known not to be empty."""
        if not len(self):
            return np.zeros(len(queries), bool)
        last = np.searchsorted(self.key, queries.right, "left") - 1
        found: Mask = (last >= 0) & (self.part[last] * stride + self.start[last] >= queries.left)
        return found
