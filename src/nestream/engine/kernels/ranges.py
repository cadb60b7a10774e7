"""Answers questions about ranges of an array from tables built once: sums, extremes, distinct values."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel
from nestream.engine.kernels.sums import compensated


@kernel
def prefix_sums(values: Any) -> Any:
    """The sums of the first values, each as a float and its error; the first sum is empty.

    Law: the error of an addition is itself a float (Knuth). Both together are the sum to twice the precision
    of a float, and their differences keep what one float would lose.
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
def differences(prefix: Any, first: Any, end: Any) -> Any:
    """The sum of each range `[first, end)`, from the sums of the first values."""
    found = np.empty(len(first), prefix.dtype)
    for i in range(len(first)):
        found[i] = prefix[end[i]] - prefix[first[i]]
    return found


@kernel
def float_differences(
    values: Any, total: Any, error: Any, filled: Any, blurred: float, first: Any, end: Any
) -> Any:
    """The sum of each range of floats, from what `prefix_sums` returns; as exact as adding up the range.

    Law: a prefix sum is wrong by less than `blurred`, which depends on all values before the range. Where the
    result is not much larger than that, the values of the range are added up instead; `filled` counts the
    non-zero ones.
    """
    found = np.empty(len(first), np.float64)
    for i in range(len(first)):
        low, high = first[i], end[i]
        result = (total[high] - total[low]) + (error[high] - error[low])
        if abs(result) > blurred:
            found[i] = result
        elif filled[high] == filled[low]:
            found[i] = 0.0
        else:
            found[i] = compensated(values, low, high)
    return found


@kernel
def block_extremes(values: Any, is_least: bool, size: int) -> Any:
    """For each place, the extreme value of its block up to it, and from it on."""
    before = np.empty(len(values), values.dtype)
    after = np.empty(len(values), values.dtype)
    for begin in range(0, len(values), size):
        end = min(begin + size, len(values))
        best = values[begin]
        for place in range(begin, end):
            if (values[place] < best) == is_least:
                best = values[place]
            before[place] = best
        best = values[end - 1]
        for place in range(end - 1, begin - 1, -1):
            if (values[place] < best) == is_least:
                best = values[place]
            after[place] = best
    return before, after


@kernel
def extremes(
    values: Any,
    is_least: bool,
    bits: int,
    before: Any,
    after: Any,
    grid: Any,
    levels: Any,
    first: Any,
    end: Any,
) -> Any:
    """The least or greatest value of each non-empty range `[first, end)`, from the tables of the values.

    A block has `2 ** bits` values. Row `k` of the grid holds the extremes of `2 ** k` blocks, starting at
    each block. `levels` maps a number of blocks to the greatest such `k`.
    """
    found = np.zeros(len(first), values.dtype)
    for i in range(len(first)):
        low, high = first[i], end[i] - 1
        if low > high:
            continue
        left, right = low >> bits, high >> bits
        if left == right:
            best = values[low]
            for place in range(low + 1, high + 1):
                if (values[place] < best) == is_least:
                    best = values[place]
        else:
            best = after[low]
            if (before[high] < best) == is_least:
                best = before[high]
            count = right - left - 1
            if count > 0:
                level = levels[count]
                one, other = grid[level, left + 1], grid[level, right - (1 << level)]
                if (one < best) == is_least:
                    best = one
                if (other < best) == is_least:
                    best = other
        found[i] = best
    return found


@kernel
def different(earlier: Any, first: Any, end: Any, order: Any) -> Any:
    """Count the distinct values of each range `[first, end)`; `order` sorts the ranges by their ends.

    `earlier` holds for each place the last one before it with the same value, -1 for none, -2 for a value
    that does not count. Law: up to an end, a value is counted only at its last place. So one pass over the
    places keeps those counts in a tree of sums (Fenwick), and a range asks for the sum from its start on.
    """
    length = len(earlier)
    tree = np.zeros(length + 1, np.int32)
    asked = np.zeros(length + 1, np.int32)
    for i in range(len(first)):
        if first[i] < end[i]:
            asked[first[i]] += 1
            asked[end[i]] -= 1
    found = np.zeros(len(first), np.int64)
    place = 0
    counted = 0
    ranges = 0
    for number in range(len(order)):
        i = order[number]
        if first[i] >= end[i]:
            continue
        while place < end[i]:
            ranges += asked[place]
            asked[place] = ranges
            if ranges > 0 and earlier[place] > -2:
                at = place + 1
                counted += 1
                while at <= length:
                    tree[at] += 1
                    at += at & -at
                at = earlier[place] + 1
                if at > 0 and asked[at - 1] > 0:
                    counted -= 1
                    while at <= length:
                        tree[at] -= 1
                        at += at & -at
            place += 1
        total = counted
        at = first[i]
        while at > 0:
            total -= tree[at]
            at -= at & -at
        found[i] = total
    return found


@kernel
def same_before(numbers: Any, count: int) -> Any:
    """For each place, the last one before it with the same number; -1 if there is none.

    Numbers are below `count`. A place with a negative number gets -2.
    """
    last = np.full(count, -1, np.int32)
    found = np.empty(len(numbers), np.int32)
    for place in range(len(numbers)):
        number = numbers[place]
        if number < 0:
            found[place] = -2
        else:
            found[place] = last[number]
            last[number] = place
    return found
