"""Building stacks: rows by key in the order of time, by counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel


@kernel
def sorted_by_key(rows: Any, number: Any, keys: int) -> Any:
    """The rows by the number of their key, in their own order within one; and where each key begins.

    `number` is by row; a row whose number is -1 is left out. Key k has the places `begin[k]` to `begin[k +
    1]`.
    """
    begin = np.zeros(keys + 1, np.int32)
    for i in range(len(rows)):
        key = number[rows[i]]
        if key >= 0:
            begin[key + 1] += 1
    for key in range(keys):
        begin[key + 1] += begin[key]
    place = begin[:-1].copy()
    found = np.empty(begin[keys], np.int32)
    for i in range(len(rows)):
        key = number[rows[i]]
        if key >= 0:
            found[place[key]] = rows[i]
            place[key] += 1
    return found, begin


@kernel
def key_of_place(begin: Any, length: int) -> Any:
    """The number of the key at each place of a stack."""
    found = np.empty(length, np.int32)
    for key in range(len(begin) - 1):
        for place in range(begin[key], begin[key + 1]):
            found[place] = key
    return found


@kernel
def in_row_order(rows: Any, first: int, end: int) -> Any:
    """The places of a stack whose rows are in `[first, end)`, in the order of the rows."""
    place = np.full(max(end - first, 0), -1, np.int32)
    count = 0
    for i in range(len(rows)):
        if first <= rows[i] < end:
            place[rows[i] - first] = i
            count += 1
    found = np.empty(count, np.int32)
    count = 0
    for i in range(len(place)):
        if place[i] >= 0:
            found[count] = place[i]
            count += 1
    return found


@kernel
def first_of_time(times: Any) -> Any:
    """For each row the first row with the same time; times do not go down."""
    found = np.empty(len(times), np.int32)
    first = 0
    for row in range(len(times)):
        if times[row] != times[first]:
            first = row
        found[row] = first
    return found


@kernel
def window_starts(measure: Any, limits: Any) -> Any:
    """For each row the first row whose measure is not below the row's limit; neither goes down."""
    found = np.empty(len(limits), np.int32)
    first = 0
    for row in range(len(limits)):
        while measure[first] < limits[row]:
            first += 1
        found[row] = first
    return found
