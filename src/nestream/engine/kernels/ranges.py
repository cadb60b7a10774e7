"""Questions about ranges of an array, answered from tables that are built once: sums, least and greatest."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel


@kernel
def prefix_sums(values: Any) -> Any:
    """The sums of the first values, each as a float and the error of that float; the first is of none.

    Law: the error of an addition is itself a float (Knuth), so both together are the sum to twice the digits
    of a float, and differences of them keep what one float would lose.
    """
    total = np.zeros(len(values) + 1, np.float64)
    error = np.zeros(len(values) + 1, np.float64)
    for place in range(len(values)):
        added = total[place] + values[place]
        back = added - total[place]
        rest = error[place] + ((total[place] - (added - back)) + (values[place] - back))
        total[place + 1] = added + rest
        error[place + 1] = rest - (total[place + 1] - added)
    return total, error


@kernel
def extremes(
    values: Any, sign: int, size: int, before: Any, after: Any, grid: Any, first: Any, end: Any
) -> Any:
    """The least or greatest of each range `[first, end)` that is not empty, from the tables of the values."""
    found = np.zeros(len(first), values.dtype)
    for i in range(len(first)):
        low, high = first[i], end[i] - 1
        if low > high:
            continue
        left, right = low // size, high // size
        if left == right:
            best = values[low]
            for place in range(low + 1, high + 1):
                if sign * values[place] < sign * best:
                    best = values[place]
        else:
            best = after[low]
            if sign * before[high] < sign * best:
                best = before[high]
            count = right - left - 1
            if count > 0:
                level = 0
                while (2 << level) <= count:
                    level += 1
                one, other = grid[level, left + 1], grid[level, right - (1 << level)]
                if sign * one < sign * best:
                    best = one
                if sign * other < sign * best:
                    best = other
        found[i] = best
    return found
