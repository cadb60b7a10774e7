"""An array that grows at its end and loses its beginning, as the events that a stream holds do."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Growing:
    """An array with room at its end; values that were read never change."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._held = values
        self._first, self._end = 0, len(values)

    def __len__(self) -> int:
        return self._end - self._first

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values."""
        return self._held[self._first : self._end]

    def extend(self, *parts: npt.NDArray[Any]) -> None:
        """Add values at the end, in the type of the array; the first ones are not copied."""
        more = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if not len(more):
            return
        if self._first == self._end:
            self._held, self._first, self._end = more.astype(self._held.dtype, copy=False), 0, len(more)
            return
        end = self._end + len(more)
        if end > len(self._held):
            own = self.values
            self._held = np.empty(len(own) + max(len(own) // 2, 2 * len(more)), own.dtype)
            self._held[: len(own)] = own
            self._first, self._end, end = 0, len(own), len(own) + len(more)
        self._held[self._end : end] = more
        self._end = end

    def drop(self, count: int) -> None:
        """Forget the first values, or all if there are fewer."""
        self._first = min(self._first + count, self._end)
