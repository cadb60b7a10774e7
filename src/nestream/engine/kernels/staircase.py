"""Building staircases from the starts and ends of inner matches."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel


@kernel
def latest_starts(order: Any, begin: Any, starts: Any, ends: Any) -> Any:
    """The steps of a staircase: each end once a key, with the latest start of a match that ended by then.

    `order` holds numbers of matches by key and end; `begin` where each key begins in it.
    """
    keys = len(begin) - 1
    stair_ends = np.empty(len(order), np.int32)
    stair_starts = np.empty(len(order), np.int32)
    stair_begin = np.zeros(keys + 1, np.int32)
    count = 0
    for key in range(keys):
        stair_begin[key] = count
        latest = -1
        for place in range(begin[key], begin[key + 1]):
            match = order[place]
            if starts[match] <= latest:
                continue
            latest = starts[match]
            if count > stair_begin[key] and stair_ends[count - 1] == ends[match]:
                stair_starts[count - 1] = latest
            else:
                stair_ends[count] = ends[match]
                stair_starts[count] = latest
                count += 1
    stair_begin[keys] = count
    return stair_ends[:count], stair_begin, stair_starts[:count]
