"""Cuts work into pieces of a bounded number of rows, and takes samples of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from nestream.engine.kernels import Rows

Counts = npt.NDArray[np.int64]
_GOLDEN = (5**0.5 - 1) / 2
"""Steps of this share of a circle spread evenly over it, however many they are."""


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


def sample(rows: Rows, most: int) -> Rows:
    """Some rows, about `most` of them, spread evenly; so are the first ones of these, however many."""
    some = rows[:: max(1, len(rows) // most)]
    step = round(_GOLDEN * len(some))
    while math.gcd(step, len(some)) > 1:
        step += 1
    return some[np.arange(len(some)) * step % max(len(some), 1)]
