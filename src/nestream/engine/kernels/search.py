"""Binary search, for one value and for whole arrays within the stretches of a stack."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel


@kernel
def first_at_least(values: Any, low: int, high: int, wanted: int) -> int:
    """The first place in the non-decreasing `values[low:high]` that is at least `wanted`."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def next_at_least(values: Any, at: int, limit: int, wanted: Any) -> int:
    """The first place from `at` on whose value is at least `wanted`, or `limit`.

    It is mostly near, so the first three places are counted without a branch, which would be unpredictable.
    `values` never decrease.
    """
    if at + 2 < limit:
        at += int(values[at] < wanted) + int(values[at + 1] < wanted) + int(values[at + 2] < wanted)
    while at < limit and values[at] < wanted:
        at += 1
    return at


@kernel
def first_at_least_near(values: Any, low: int, high: int, near: int, wanted: int) -> int:
    """The same as `first_at_least`, searched from a place `near` on in steps that double."""
    step = 1
    if near > low and values[near - 1] >= wanted:
        high = near - 1
        while high - step >= low and values[high - step] >= wanted:
            high -= step
            step *= 2
        low = max(low, high - step + 1)
    else:
        low = near
        while low + step <= high and values[low + step - 1] < wanted:
            low += step
            step *= 2
        high = min(high, low + step - 1)
    return int(first_at_least(values, low, high, wanted))


@kernel
def places(values: Any, begin: Any, number: Any, wanted: Any) -> Any:
    """For each query, the first place of its key's stretch whose value is at least the wanted one.

    `values` never decrease within a stretch. A query without a key (-1) gets place 0. Queries mostly come in
    time order, so the search begins at the last answer of the same key, unless there are too few.
    """
    found = np.empty(len(wanted), np.int32)
    many = len(wanted) > len(begin) // 4
    last = begin.copy() if many else begin
    for i in range(len(wanted)):
        key = number[i]
        if key < 0:
            found[i] = 0
            continue
        found[i] = first_at_least_near(values, begin[key], begin[key + 1], last[key], wanted[i])
        if many:
            last[key] = found[i]
    return found


@kernel
def rows_back(rows: Any, begin: Any, number: Any, places: Any, count: int) -> Any:
    """The row so many places before each place of a stack; -1 where its key begins later."""
    found = np.empty(len(places), np.int32)
    for i in range(len(places)):
        place = places[i] - count
        found[i] = rows[place] if number[i] >= 0 and place >= begin[number[i]] else -1
    return found


@kernel
def latest(ends: Any, begin: Any, starts: Any, number: Any, before: Any) -> Any:
    """For each query, the start at the last step of its key that ends before a row; -1 if there is none."""
    found = np.empty(len(before), np.int32)
    for i in range(len(before)):
        key = number[i]
        if key < 0:
            found[i] = -1
            continue
        place = first_at_least(ends, begin[key], begin[key + 1], before[i])
        found[i] = starts[place - 1] if place > begin[key] else -1
    return found


@kernel
def raised_bounds(ends: Any, begin: Any, starts: Any, number: Any, low: Any, rows: Any, bound: Any) -> Any:
    """For each event, the first row that its predecessor may have, given a staircase; -1 for any.

    An inner match lies between a predecessor and an event if it starts after the former and ends before the
    latter, so the predecessor must not come before the latest start. `bound`, unless it is empty, holds the
    bounds of other negations.
    """
    found = np.empty(len(rows), np.int32)
    for i in range(len(rows)):
        key = number[i]
        found[i] = bound[i] if len(bound) else -1
        if key >= 0:
            place = first_at_least(ends, begin[key], begin[key + 1], low[rows[i]])
            if place > begin[key]:
                found[i] = max(found[i], low[starts[place - 1]])
    return found
