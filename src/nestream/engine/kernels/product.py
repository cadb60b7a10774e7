"""The product: for each event as the last of its match, every combination of the other parts' ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel
from nestream.engine.kernels.search import first_at_least

MOST = 1 << 40
"""Above this number, the combinations of a single event are not counted exactly."""


@kernel
def ranges_before(rows: Any, begin: Any, other: Any, other_begin: Any, reach: Any) -> Any:
    """For each event, the places of another stack, by the same keys, that lie in its window before it."""
    lows = np.empty(len(rows), np.int32)
    highs = np.empty(len(rows), np.int32)
    for key in range(len(begin) - 1):
        if begin[key] == begin[key + 1]:
            continue
        limit = other_begin[key + 1]
        low = first_at_least(other, other_begin[key], limit, reach[rows[begin[key]]])
        high = first_at_least(other, low, limit, rows[begin[key]])
        for place in range(begin[key], begin[key + 1]):
            since = reach[rows[place]]
            while low < limit and other[low] < since:
                low += 1
            while high < limit and other[high] < rows[place]:
                high += 1
            lows[place] = low
            highs[place] = max(low, high)
    return lows, highs


@kernel
def combinations(lows: Any, highs: Any) -> Any:
    """How many combinations each event has: the product of the lengths of its ranges, at most MOST."""
    counts = np.empty(lows.shape[1], np.int64)
    for i in range(lows.shape[1]):
        product = 1
        for part in range(lows.shape[0]):
            # interpreted, the product of NumPy integers of 32 bits would overflow
            product *= max(int(highs[part, i]) - int(lows[part, i]), 0)
            if product == 0:
                break
            if product > MOST:
                product = MOST
        counts[i] = product
    return counts


@kernel
def combine(rows: Any, lows: Any, highs: Any, events: Any, last: int, total: int) -> Any:
    """Build every combination of each event's ranges as a column of rows; the event is part `last`.

    `rows` are those of the stacks of all other parts, one after the other, and `lows` and `highs` places in
    it. The last part moves fastest, so the combinations of an event are in the order of their rows.
    """
    parts = lows.shape[0]
    found = np.empty((parts + 1, total), np.int32)
    place = np.empty(parts, np.int32)
    count = 0
    for i in range(lows.shape[1]):
        empty = False
        for part in range(parts):
            place[part] = lows[part, i]
            if lows[part, i] >= highs[part, i]:
                empty = True
        if empty:
            continue
        while True:
            for moving in range(lows[parts - 1, i], highs[parts - 1, i]):
                for part in range(parts - 1):
                    found[part + (part >= last), count] = rows[place[part]]
                found[parts - (last == parts), count] = rows[moving]
                found[last, count] = events[i]
                count += 1
            part = parts - 2
            while part >= 0:
                place[part] += 1
                if place[part] < highs[part, i]:
                    break
                place[part] = lows[part, i]
                part -= 1
            if part < 0:
                break
    return found
