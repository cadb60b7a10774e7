"""The product: for each event as the last of its match, every combination of the other parts' ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel

MOST = 1 << 32
"""From this number on, the combinations of a single event are not counted; times 2^31 it fits in 64 bits."""


@kernel
def ranges_before(events: Any, parts: Any, number: Any, begin: Any, reach: Any, since: int) -> Any:
    """For each event as the last of its match, the ranges of the other parts in its window before it.

    `events` are the rows of the events of all parts in ascending order, `parts` and `number` the part and the
    key of each. Key k of part p has the places `begin[p, k]` to `begin[p, k + 1]`; `reach` holds, by row, the
    first row in the window.

    Returns the numbers of the events from row `since` on that have some combination, the places where the
    ranges of their other parts begin and end, and how many combinations there are, at most MOST.

    Law: `reach` never decreases, so each event enters the window once, leaves it once, and never returns.
    """
    width = begin.shape[0]
    left = begin[:, :-1].copy()  # for each part and key, where the events in the window begin
    entered = begin[:, :-1].copy()  # and where they end
    found = np.empty(len(events), np.int32)
    lows = np.empty((width - 1, len(events)), np.int32)
    highs = np.empty((width - 1, len(events)), np.int32)
    counts = np.empty(len(events), np.int64)
    count = 0
    leaving = 0
    i = 0
    while i < len(events):
        row = events[i]
        while events[leaving] < reach[row]:
            left[parts[leaving], number[leaving]] += 1
            leaving += 1
        end = i
        while end < len(events) and events[end] == row:  # an event may serve several parts
            end += 1
        for j in range(i, end if row >= since else i):
            product = 1
            for line in range(width - 1):
                part = line + int(line >= parts[j])
                low = left[part, number[j]]
                high = entered[part, number[j]]
                lows[line, count] = low
                highs[line, count] = high
                # interpreted, the product of NumPy integers of 32 bits would overflow
                product = min(product * (int(high) - int(low)), MOST)
            found[count] = j
            counts[count] = product
            count += product > 0
        for j in range(i, end):
            entered[parts[j], number[j]] += 1
        i = end
    return found[:count], lows[:, :count].copy(), highs[:, :count].copy(), counts[:count]


@kernel
def combine(rows: Any, lows: Any, highs: Any, events: Any, parts: Any, total: int) -> Any:
    """Build every combination of each event's ranges as a column of rows; the event is part `parts[i]`.

    `lows` and `highs` are places in `rows`. Later parts move faster, so the combinations of an event are in
    the order of their rows.
    """
    width = lows.shape[0] + 1
    found = np.empty((width, total), np.int32)
    at = np.empty(width, np.int32)
    last = width - 2
    count = 0
    for i in range(lows.shape[1]):
        own = parts[i]
        final = last + (last >= own)
        fixed = 1  # the combinations of all ranges but the last
        for line in range(last):
            at[line] = lows[line, i]
            fixed *= int(highs[line, i]) - int(lows[line, i])
        event = events[i]
        low, length = int(lows[last, i]), int(highs[last, i]) - int(lows[last, i])
        for _ in range(fixed):
            for place in range(low, low + length):
                for line in range(last):
                    found[line + (line >= own), count] = rows[at[line]]
                found[final, count] = rows[place]
                found[own, count] = event
                count += 1
            line = last - 1
            while line >= 0:
                at[line] += 1
                if at[line] < highs[line, i]:
                    break
                at[line] = lows[line, i]
                line -= 1
    return found
