"""Emits each match of a projection once: remembers what was emitted for as long as it could recur."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nestream.engine.event_buffer import Ints
from nestream.engine.windowed_events import WindowedEvents

_MOST_BITS = 62
"""How many bits the number of a row may have."""


class EmittedMatches:
    """The positions of the matches emitted so far, one row per match; -1 for an unbound variable."""

    def __init__(self, kept: Sequence[str]) -> None:
        self.positions = np.empty((0, len(kept)), np.int64)

    def new(self, columns: list[Ints], store: WindowedEvents, *, repeated: bool = True) -> list[Ints]:
        """Return the rows of the matches that were not emitted before, each once, and remember them.

        If they cannot be `repeated`, no earlier match can equal them, and nothing is remembered.
        """
        rows = _distinct(np.column_stack(columns))
        if not repeated:
            return [np.ascontiguousarray(rows[:, place]) for place in range(rows.shape[1])]
        positions = np.where(rows < 0, -1, store.pos[rows] + store.base)
        if len(self.positions):
            fresh = ~_contained(positions, self.positions)
            rows, positions = rows[fresh], positions[fresh]
        self.positions = np.concatenate([self.positions, positions])
        return [np.ascontiguousarray(rows[:, place]) for place in range(rows.shape[1])]

    def forget_before(self, position: int) -> None:
        """Forget the matches with an event before a position: no later match has that event."""
        oldest = np.where(self.positions < 0, np.iinfo(np.int64).max, self.positions).min(
            axis=1, initial=2**62
        )
        self.positions = self.positions[oldest >= position]


def _distinct(rows: Ints) -> Ints:
    """The rows without duplicates."""
    _, first = np.unique(numbered(rows), return_index=True)
    return rows[first]


def _contained(rows: Ints, among: Ints) -> npt.NDArray[np.bool_]:
    """Which of the rows are among the others."""
    numbers = numbered(np.concatenate([among, rows]))
    return np.isin(numbers[len(among) :], numbers[: len(among)])


def numbered(rows: Ints) -> Ints:
    """One number per row, equal only for equal rows; numbers that grow too long are renumbered."""
    found, used = np.zeros(len(rows), np.int64), 0
    for column in rows.T if len(rows) else ():
        least = int(column.min())
        bits = (int(column.max()) - least).bit_length()
        if used + bits > _MOST_BITS:
            _, found = np.unique(found, return_inverse=True)
            used = (len(rows) - 1).bit_length()
        found = (found << bits) | (column - least)
        used += bits
    return found
