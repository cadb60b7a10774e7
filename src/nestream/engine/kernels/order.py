"""Putting matches into the order of the output: by the time of their end, then by their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel

FEW = 24
"""Up to so many matches are sorted by insertion."""


@kernel
def groups_of(columns: Any, moment: Any) -> Any:
    """Runs of matches that end at one moment: where each begins, the moments, and whether these grow.

    `moment` is for each row the first row with its time; it may be empty where all times differ.
    """
    begin = np.empty(columns.shape[1] + 1, np.int32)
    moments = np.empty(columns.shape[1], np.int32)
    count = 0
    growing = True
    for i in range(columns.shape[1]):
        last = columns[0, i]
        for step in range(1, columns.shape[0]):
            last = max(last, columns[step, i])
        if len(moment):
            last = moment[last]
        if count == 0 or moments[count - 1] != last:
            if count and last < moments[count - 1]:
                growing = False
            begin[count] = i
            moments[count] = last
            count += 1
    begin[count] = columns.shape[1]
    return begin[: count + 1], moments[:count], growing


@kernel
def before(columns: Any, left: int, right: int) -> bool:
    """Whether the match `left` comes before `right` by its rows, variable by variable."""
    for step in range(columns.shape[0]):
        if columns[step, left] != columns[step, right]:
            return bool(columns[step, left] < columns[step, right])
    return False


@kernel
def sort_part(columns: Any, order: Any, spare: Any, first: int, end: int) -> None:
    """Sort the numbers of matches in `order[first:end]` by their rows.

    A few are sorted by insertion, others by merging runs bottom up; those in order cost one pass.
    """
    place = first + 1
    while place < end and not before(columns, order[place], order[place - 1]):
        place += 1
    if place >= end:
        return
    if end - first <= FEW:
        for unsorted in range(place, end):
            match, at = order[unsorted], unsorted
            while at > first and before(columns, match, order[at - 1]):
                order[at] = order[at - 1]
                at -= 1
            order[at] = match
        return
    width = 1
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


@kernel
def by_group(columns: Any, begin: Any, moments: Any, groups: Any) -> Any:
    """The matches in the order of their groups, and by their rows within those that end at one moment."""
    found = np.empty((columns.shape[0], columns.shape[1]), np.int32)
    order = np.empty(columns.shape[1], np.int32)
    spare = np.empty(columns.shape[1], np.int32)
    count = 0
    group = 0
    while group < len(groups):
        first = count
        moment = moments[groups[group]]
        while group < len(groups) and moments[groups[group]] == moment:
            for match in range(begin[groups[group]], begin[groups[group] + 1]):
                order[count] = match
                count += 1
            group += 1
        sort_part(columns, order, spare, first, count)
        for step in range(columns.shape[0]):
            for place in range(first, count):
                found[step, place] = columns[step, order[place]]
    return found
