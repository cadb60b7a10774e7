"""The product: for each event as the last of its match, every combination of the ranges of the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel

MOST = 1 << 40
"""More combinations of a single event than this are not counted exactly."""


@kernel
def combinations(lows: Any, highs: Any) -> Any:
    """How many combinations each event has: the product of its ranges' lengths, at most MOST."""
    counts = np.empty(lows.shape[1], np.int64)
    for i in range(lows.shape[1]):
        product = 1
        for part in range(lows.shape[0]):
            product *= max(highs[part, i] - lows[part, i], 0)
            if product == 0:
                break
            if product > MOST:
                product = MOST
        counts[i] = product
    return counts


@kernel
def combine(lows: Any, highs: Any, total: int) -> Any:
    """Every combination of each event's ranges: the places of the parts, and the number of the event.

    The last part moves fastest, so the combinations of an event are in the order of their places.
    """
    parts = lows.shape[0]
    found = np.empty((parts, total), np.int32)
    origin = np.empty(total, np.int32)
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
            for part in range(parts):
                found[part, count] = place[part]
            origin[count] = i
            count += 1
            part = parts - 1
            while part >= 0:
                place[part] += 1
                if place[part] < highs[part, i]:
                    break
                place[part] = lows[part, i]
                part -= 1
            if part < 0:
                break
    return found, origin
