"""Builds stacks: rows by key in time order, by counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel
from nestream.engine.kernels.search import first_at_least

LEAST = int(np.iinfo(np.int64).min)


@kernel
def sorted_by_key(rows: Any, number: Any, keys: int) -> Any:
    """Sort rows by the number of their key, stable; return them and where each key begins.

    `number` is by row; a row with the number -1 is left out. Key k has the places `begin[k]` to `begin[k +
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
def places_between(rows: Any, begin: Any, first: int, end: int) -> Any:
    """The places of a stack whose rows are in `[first, end)`, key by key."""
    keys = len(begin) - 1
    since = np.empty(keys, np.int32)
    until = np.empty(keys, np.int32)
    count = 0
    for key in range(keys):
        since[key] = first_at_least(rows, begin[key], begin[key + 1], first)
        until[key] = first_at_least(rows, since[key], begin[key + 1], end)
        count += until[key] - since[key]
    found = np.empty(count, np.int32)
    count = 0
    for key in range(keys):
        for place in range(since[key], until[key]):
            found[count] = place
            count += 1
    return found


@kernel
def in_row_order(rows: Any, places: Any, first: int, end: int) -> Any:
    """Sort places by their rows, which all differ and are in `[first, end)`."""
    by_row = np.full(end - first + 1, -1, np.int32)
    for i in range(len(places)):
        by_row[rows[places[i]] - first] = places[i]
    found = np.empty(end - first + 1, np.int32)
    count = 0
    for i in range(end - first):
        found[count] = by_row[i]
        count += by_row[i] >= 0
    return found[:count]


@kernel
def taken(values: Any, places: Any) -> Any:
    """The values at some places."""
    found = np.empty(len(places), values.dtype)
    for i in range(len(places)):
        found[i] = values[places[i]]
    return found


@kernel
def first_of_time(times: Any) -> Any:
    """For each row, the first row with the same time; times never decrease."""
    found = np.empty(len(times), np.int32)
    first = 0
    for row in range(len(times)):
        if times[row] != times[first]:
            first = row
        found[row] = first
    return found


@kernel
def window_starts(measure: Any, size: np.int64) -> Any:
    """For each row, the first row whose measure is less by at most `size`; measures never decrease."""
    found = np.empty(len(measure), np.int32)
    first = 0
    row = 0
    while row < len(measure) and measure[row] < LEAST + size:  # the difference would overflow
        found[row] = 0
        row += 1
    while row < len(measure):  # branch-free, because the branch would be unpredictable
        before = measure[first] < measure[row] - size
        found[row] = first
        first += before
        row += not before
    return found


@kernel
def taken_or_none(values: Any, places: Any) -> Any:
    """The values at some places, -1 where a place is -1."""
    found = np.empty(len(places), values.dtype)
    for i in range(len(places)):
        found[i] = values[places[i]] if places[i] >= 0 else -1
    return found
