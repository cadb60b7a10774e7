"""Projections give each match once: what was already given is remembered as long as it could come again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nestream.engine.events import Ints
from nestream.engine.store import Store


class Given:
    """The kept positions of the matches given so far, one row a match; -1 for an unbound variable."""

    def __init__(self, kept: Sequence[str]) -> None:
        self.positions = np.empty((0, len(kept)), np.int64)

    def new(self, columns: list[Ints], store: Store) -> list[Ints]:
        """The rows of the matches that were not given before, each once; they now are."""
        rows = np.unique(np.column_stack(columns), axis=0)
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


def _contained(rows: Ints, among: Ints) -> npt.NDArray[np.bool_]:
    """Which rows occur among others."""
    _, numbers = np.unique(np.concatenate([among, rows]), axis=0, return_inverse=True)
    return np.isin(numbers[len(among) :], numbers[: len(among)])
