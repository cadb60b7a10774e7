"""Active instance stacks: the events of a leaf, ordered by key and position.

An event's coordinates are its position, low and reach, shifted by the number of its key times a stride. So
each key has its own stretch, and one binary search finds a place within a key (SASE's PAIS).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from nestream.engine.event_buffer import Ints
from nestream.engine.windowed_events import WindowedEvents

_HALF = 1 << 16
_FEW = 4096
"""Up to this many numbers, all ways of sorting are equally fast."""


class Stack:
    """The rows of a leaf, sorted by key and position, with their coordinates."""

    def __init__(self, store: WindowedEvents, rows: Ints, numbers: Ints | None, stride: int) -> None:
        self.store = store
        if numbers is None:
            self.rows = rows
            self.start = np.zeros(len(rows), np.int64)
        else:
            own = numbers[rows]
            if len(own) and own.min() < 0:  # NULL equals nothing
                rows, own = rows[own >= 0], own[own >= 0]
            order = by_number(own)
            self.rows = rows[order]
            self.start = own[order] * stride
        self.keyed = numbers is not None

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, which: Ints | npt.NDArray[np.bool_]) -> Stack:
        """The stack with only some of its events (a mask or an increasing list of places)."""
        part = object.__new__(Stack)
        part.store, part.keyed = self.store, self.keyed
        part.rows, part.start = self.rows[which], self.start[which]
        return part

    def seen_through(self, store: WindowedEvents) -> Stack:
        """The same stack with the window of another store over the same events."""
        same = object.__new__(Stack)
        same.store, same.keyed, same.rows, same.start = store, self.keyed, self.rows, self.start
        same.__dict__.update(pos=self.pos, low=self.low)
        return same

    @cached_property
    def pos(self) -> Ints:
        """The events' positions as coordinates."""
        return self.start + self.store.pos[self.rows]

    @cached_property
    def low(self) -> Ints:
        """The positions of the first events with the same times, as coordinates."""
        if self.store.low is self.store.pos:
            return self.pos
        return self.start + self.store.low[self.rows]

    @cached_property
    def reach(self) -> Ints:
        """The first positions in a window that ends with the event, as coordinates."""
        return self.start + self.store.reach(self.rows)


def by_number(numbers: Ints) -> Ints:
    """The places of numbers in sorted order, stable.

    Numbers of 16 bits are sorted by counting, several times faster than others; so larger ones are sorted by
    their low half and then by their high half.
    """
    most = int(numbers.max()) if len(numbers) else 0
    if most < _HALF:
        return np.argsort(numbers.astype(np.uint16), kind="stable")
    if len(numbers) < _FEW or most >= _HALF * _HALF:
        return np.argsort(numbers, kind="stable")
    order = np.argsort((numbers & (_HALF - 1)).astype(np.uint16), kind="stable")
    high = (numbers >> 16).astype(np.uint16)[order]
    return order[np.argsort(high, kind="stable")]


def places(coordinates: Ints, wanted: Ints, side: Literal["left", "right"]) -> Ints:
    """Where the wanted coordinates belong among sorted ones."""
    found: Ints = np.searchsorted(coordinates, wanted, side)
    return found


def before(stack: Stack, low: Ints) -> Ints:
    """How many events of the stack have a position before each coordinate."""
    return places(stack.pos, low, "left")


def least(columns: Sequence[Ints]) -> Ints:
    """The least of several columns, row by row."""
    found: Ints = np.minimum.reduce(columns)
    return found


def greatest(columns: Sequence[Ints]) -> Ints:
    """The greatest of several columns, row by row."""
    found: Ints = np.maximum.reduce(columns)
    return found


def expand(counts: Ints, first: Ints) -> tuple[Ints, Ints]:
    """The places `first[i], first[i] + 1, ...`, `counts[i]` of them, one run after the other.

    Returns for each place the number i of its run, and the place.
    """
    ends = np.cumsum(counts)
    run = np.repeat(np.arange(len(counts)), counts)
    return run, np.arange(len(run)) + (first - (ends - counts))[run]
