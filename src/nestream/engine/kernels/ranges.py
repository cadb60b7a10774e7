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
def extremes_table(values: Any, sign: int, size: int) -> Any:
    """For the least (sign 1) or greatest (-1) of ranges: of each block of values up to and from each place.

    Gives the extremes from the beginning of its block to each place, from each place to the end of its block,
    and in each row `k` of a grid those of `2 ** k` blocks, from each block on.
    """
    blocks = (len(values) + size - 1) // size
    before = values.copy()
    after = values.copy()
    for place in range(1, len(values)):
        if place % size and sign * before[place - 1] < sign * before[place]:
            before[place] = before[place - 1]
    for place in range(len(values) - 2, -1, -1):
        if (place + 1) % size and sign * after[place + 1] < sign * after[place]:
            after[place] = after[place + 1]
    levels = 1
    while (1 << levels) <= blocks:
        levels += 1
    grid = np.empty((levels, blocks), values.dtype)
    for block in range(blocks):
        grid[0, block] = after[block * size]
    for level in range(1, levels):
        half = 1 << (level - 1)
        for block in range(blocks):
            grid[level, block] = grid[level - 1, block]
            if block + half < blocks and sign * grid[level - 1, block + half] < sign * grid[level, block]:
                grid[level, block] = grid[level - 1, block + half]
    return before, after, grid


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
