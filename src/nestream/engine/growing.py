"""An array that grows at its end and loses its beginning, as the events that a stream holds do."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_ROOM = 4
"""An array that is more than this many times as long as its values is replaced by a smaller one."""


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

    def drop(self, count: int, *, less: int = 0) -> None:
        """Forget the first values, or all if there are fewer; subtract `less` from the others, down to 0."""
        self._first = min(self._first + count, self._end)
        if less:
            own = self.values
            self._held = np.empty(len(own) + len(own) // 2, own.dtype)
            self._first, self._end = 0, len(own)
            np.maximum(own - own.dtype.type(less), 0, out=self._held[: len(own)])
        elif _ROOM * len(self) < len(self._held):
            self._held = self.values.copy()
            self._first, self._end = 0, len(self._held)
