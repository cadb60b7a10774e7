"""Query-intervals and view-intervals: what is requested, what a view holds, and how the two overlap.

An interval is a range of rows, including the left end and excluding the right; a result lies in it if all its
events do. View-intervals, none of which contains another, are sorted by their left ends and so by their right
ends too: two sorted arrays are an index of them, and one binary search finds the relevant one. Row numbers
are shifted by the number of a partition times a stride, which separates partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nestream.engine.event_buffer import Ints

Mask = npt.NDArray[np.bool_]


class QueryInterval(NamedTuple):
    """The range of rows in which an outer result looks for results of an inner query."""

    left: int
    right: int


class ViewInterval(NamedTuple):
    """A range of rows for which a view holds every result of its inner query."""

    left: int
    right: int


class Overlap(IntEnum):
    """How a view-interval overlaps a query-interval: the five cases."""

    CONTAINS = 0
    """It contains the query-interval: nothing has to be computed."""
    LEFT = 1
    """It overlaps the query-interval on the left: only results with later last events are missing."""
    RIGHT = 2
    """It overlaps it on the right: results with earlier first events are missing.

    They are computed with the others, from the last event back.
    """
    CONTAINED = 3
    """It is contained in the query-interval, which replaces it."""
    NONE = 4
    """Nothing of the query-interval is known."""


def overlap(view: ViewInterval, query: QueryInterval) -> Overlap:
    """Which of the five cases applies to two non-empty intervals.

    >>> overlap(ViewInterval(2, 9), QueryInterval(4, 9)).name
    'CONTAINS'
    >>> overlap(ViewInterval(2, 9), QueryInterval(4, 12)).name
    'LEFT'
    """
    if view.left <= query.left and query.right <= view.right:
        return Overlap.CONTAINS
    if view.right <= query.left or query.right <= view.left:
        return Overlap.NONE
    if view.left <= query.left:
        return Overlap.LEFT
    return Overlap.RIGHT if query.right <= view.right else Overlap.CONTAINED


@dataclass(frozen=True)
class Intervals:
    """Many intervals as two arrays."""

    left: Ints
    right: Ints

    def __len__(self) -> int:
        return len(self.left)

    @classmethod
    def none(cls) -> Intervals:
        """No interval at all."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    def only(self, which: Ints | Mask) -> Intervals:
        """Some of them."""
        return Intervals(self.left[which], self.right[which])

    def joined(self, others: Intervals) -> Intervals:
        """These and others."""
        return Intervals(np.concatenate([self.left, others.left]), np.concatenate([self.right, others.right]))

    def maximal(self) -> Ints:
        """The places of those that no other contains, by their left ends; of equal ones, the first."""
        places = np.flatnonzero(self.left < self.right)
        places = places[np.lexsort((-self.right[places], self.left[places]))]
        rights = self.right[places]
        before = np.maximum.accumulate(np.concatenate(([np.iinfo(np.int64).min], rights)))[:-1]
        return places[rights > before]


class Index:
    """A searchable set of view-intervals, none of which contains another."""

    def __init__(self, intervals: Intervals | None = None) -> None:
        intervals = intervals or Intervals.none()
        self.intervals = intervals.only(intervals.maximal())

    def __len__(self) -> int:
        return len(self.intervals)

    def with_(self, more: Intervals) -> Index:
        """The index with more view-intervals, without those that others contain."""
        return Index(self.intervals.joined(more))

    def _last(self, coordinates: Ints) -> Ints:
        """The place of the last view-interval that begins at or before each coordinate; -1 for none.

        Of all that begin so early, it reaches furthest to the right.
        """
        found: Ints = np.searchsorted(self.intervals.left, coordinates, "right") - 1
        return found

    def covers(self, queries: Intervals) -> Mask:
        """Which intervals some view-interval contains."""
        return self.known_until(queries.left) >= queries.right

    def known_until(self, left: Ints) -> Ints:
        """The coordinate up to which all results are known that begin at or after each; itself for none."""
        if not len(self):
            return left
        last = self._last(left)
        return np.where(last < 0, left, np.maximum(self.intervals.right[last], left))

    def cases(self, queries: Intervals) -> npt.NDArray[np.int8]:
        """The case of each query-interval with the most useful view-interval."""
        found = np.full(len(queries), Overlap.NONE, np.int8)
        if not len(self):
            return found
        lasting = np.searchsorted(self.intervals.left, queries.right, "left") - 1
        inside = (lasting >= 0) & (self.intervals.left[lasting] > queries.left)
        found[inside] = Overlap.CONTAINED
        found[inside & (self.intervals.right[lasting] >= queries.right)] = Overlap.RIGHT
        until = self.known_until(queries.left)
        found[until > queries.left] = Overlap.LEFT
        found[until >= queries.right] = Overlap.CONTAINS
        return found
