"""Cuts work into pieces of a bounded number of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]


def pieces(counts: Counts, limit: int) -> Iterator[slice]:
    """Consecutive slices that add up to at most `limit` each; a single count beyond it is its own slice."""
    ends = np.cumsum(counts)
    if len(ends) and ends[-1] <= limit:
        yield slice(0, len(counts))
        return
    start, done = 0, 0
    while start < len(counts):
        end = max(int(np.searchsorted(ends, done + limit, "right")), start + 1)
        yield slice(start, end)
        done = int(ends[end - 1])
        start = end
