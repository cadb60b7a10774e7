"""Builds stacks: rows by key in time order, by counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel
from nestream.engine.kernels.search import first_at_least, next_at_least

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
def keys_between(rows: Any, number: Any, keys: int, first: int, end: int) -> Any:
    """Which keys the rows in `[first, end)` have; `rows` increase, and `number` is by row."""
    found = np.zeros(keys, np.bool_)
    for i in range(first_at_least(rows, 0, len(rows), first), first_at_least(rows, 0, len(rows), end)):
        if number[rows[i]] >= 0:
            found[number[rows[i]]] = True
    return found


@kernel
def between_by_key(rows: Any, number: Any, wanted: Any, first: int, end: int) -> Any:
    """Sort the rows in `[first, end)` by the number of their key, as `sorted_by_key`; only of wanted keys."""
    since = first_at_least(rows, 0, len(rows), first)
    until = first_at_least(rows, since, len(rows), end)
    begin = np.zeros(len(wanted) + 1, np.int32)
    for i in range(since, until):
        key = number[rows[i]]
        if key >= 0 and wanted[key]:
            begin[key + 1] += 1
    for key in range(len(wanted)):
        begin[key + 1] += begin[key]
    place = begin[:-1].copy()
    found = np.empty(begin[len(wanted)], np.int32)
    for i in range(since, until):
        key = number[rows[i]]
        if key >= 0 and wanted[key]:
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
def in_row_order(rows: Any, since: int, until: int, first: int, end: int) -> Any:
    """The places from `since` to `until` with rows in `[first, end)`, by their rows, which all differ."""
    by_row = np.full(end - first, -1, np.int32)
    for place in range(since, until):
        if first <= rows[place] < end:
            by_row[rows[place] - first] = place
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
def window_starts(measure: Any, size: np.int64, since: np.int64) -> Any:
    """For each row from `since` on, the first row whose measure is less by at most `size`.

    Measures never decrease.
    """
    found = np.empty(len(measure) - since, np.int32)
    first = 0
    for row in range(since, len(measure)):
        if measure[row] >= LEAST + size:  # otherwise the difference would overflow
            first = next_at_least(measure, first, row, measure[row] - size)
        found[row - since] = first
    return found


@kernel
def taken_or_none(values: Any, places: Any) -> Any:
    """The values at some places, -1 where a place is -1."""
    found = np.empty(len(places), values.dtype)
    for i in range(len(places)):
        found[i] = values[places[i]] if places[i] >= 0 else -1
    return found
