"""Putting matches into the order of the output: by the time of their end, then by their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel

FEW = 24
"""Up to so many matches are sorted by insertion."""


@kernel
def before(columns: Any, left: int, right: int) -> bool:
    """Whether the match `left` comes before `right` by its rows, variable by variable."""
    for step in range(columns.shape[0]):
        if columns[step, left] != columns[step, right]:
            return bool(columns[step, left] < columns[step, right])
    return False


@kernel
def sort_within(columns: Any, group: Any, order: Any, spare: Any) -> bool:
    """Sort `order`, numbers of matches grouped by `group`, within each group; whether anything moved.

    A small group is sorted by insertion, others by merging runs bottom up; a group in order costs one pass.
    """
    moved = False
    first = 0
    count = len(order)
    while first < count:
        end = first + 1
        sorted_ = True
        while end < count and group[order[end]] == group[order[first]]:
            if before(columns, order[end], order[end - 1]):
                sorted_ = False
            end += 1
        if not sorted_:
            moved = True
            width = 1
            if end - first <= FEW:
                width = FEW
                for place in range(first + 1, end):
                    match, at = order[place], place
                    while at > first and before(columns, match, order[at - 1]):
                        order[at] = order[at - 1]
                        at -= 1
                    order[at] = match
            while width < end - first:
                for left in range(first, end, 2 * width):
                    middle = min(left + width, end)
                    right = min(left + 2 * width, end)
                    if middle >= right or not before(columns, order[middle], order[middle - 1]):
                        continue
                    for place in range(left, right):
                        spare[place] = order[place]
                    a, b = left, middle
                    for place in range(left, right):
                        if b >= right or (a < middle and not before(columns, spare[b], spare[a])):
                            order[place] = spare[a]
                            a += 1
                        else:
                            order[place] = spare[b]
                            b += 1
                width *= 2
        first = end
    return moved


@kernel
def in_order(columns: Any, order: Any) -> Any:
    """The matches in another order."""
    found = np.empty((columns.shape[0], len(order)), np.int32)
    for step in range(columns.shape[0]):
        for i in range(len(order)):
            found[step, i] = columns[step, order[i]]
    return found


@kernel
def ends_of(columns: Any, moment: Any) -> Any:
    """The first row with the time of each match's last event; and whether these do not go down."""
    found = np.empty(columns.shape[1], np.int32)
    grouped = True
    for i in range(columns.shape[1]):
        last = -1
        for step in range(columns.shape[0]):
            last = max(last, columns[step, i])
        found[i] = moment[last]
        if i and found[i] < found[i - 1]:
            grouped = False
    return found, grouped
