"""Projections give each match once: what was already given is remembered as long as it could come again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nestream.engine.events import Ints
from nestream.engine.store import Store

_MOST_BITS = 62
"""Matches whose rows need no more bits are told apart by one number each, which is several times faster."""


class Given:
    """The kept positions of the matches given so far, one row a match; -1 for an unbound variable."""

    def __init__(self, kept: Sequence[str]) -> None:
        self.positions = np.empty((0, len(kept)), np.int64)

    def new(self, columns: list[Ints], store: Store) -> list[Ints]:
        """The rows of the matches that were not given before, each once; they now are."""
        rows = _distinct(np.column_stack(columns))
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
    """The rows without repetition."""
    packed = _packed(rows)
    if packed is None:
        return np.unique(rows, axis=0)
    _, first = np.unique(packed, return_index=True)
    return rows[first]


def _contained(rows: Ints, among: Ints) -> npt.NDArray[np.bool_]:
    """Which rows occur among others."""
    together = np.concatenate([among, rows])
    numbers = _packed(together)
    if numbers is None:
        _, numbers = np.unique(together, axis=0, return_inverse=True)
    return np.isin(numbers[len(among) :], numbers[: len(among)])


def _packed(rows: Ints) -> Ints | None:
    """One number a row, the same for equal rows alone; None where it would not fit."""
    if not len(rows):
        return None
    least, most = rows.min(axis=0), rows.max(axis=0)
    bits = [(int(high) - int(low)).bit_length() for low, high in zip(least, most, strict=True)]
    if sum(bits) > _MOST_BITS:
        return None
    packed = np.zeros(len(rows), np.int64)
    for place, size in enumerate(bits):
        packed = (packed << size) | (rows[:, place] - least[place])
    return packed
