"""Builds staircases from the starts and ends of inner matches."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel


@kernel
def latest_starts(order: Any, begin: Any, starts: Any, ends: Any) -> Any:
    """The steps of a staircase: each end once per key, with the latest start of a match ended by then.

    `order` holds the numbers of matches by key and end; `begin` where each key begins in it.
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


@kernel
def both_ended(
    ends: Any, begin: Any, starts: Any, other_ends: Any, other_begin: Any, other_starts: Any
) -> Any:
    """The steps of a conjunction of two staircases: at each end, the earlier of their latest starts.

    Steps that do not raise the start are left out.
    """
    keys = len(begin) - 1
    room = len(ends) + len(other_ends)
    stair_ends = np.empty(room, np.int32)
    stair_starts = np.empty(room, np.int32)
    stair_begin = np.zeros(keys + 1, np.int32)
    count = 0
    for key in range(keys):
        stair_begin[key] = count
        here, there = begin[key], other_begin[key]
        latest = -1
        while here < begin[key + 1] or there < other_begin[key + 1]:
            if there >= other_begin[key + 1] or (here < begin[key + 1] and ends[here] <= other_ends[there]):
                end = ends[here]
                here += 1
            else:
                end = other_ends[there]
                there += 1
            if here > begin[key] and there > other_begin[key]:
                start = min(starts[here - 1], other_starts[there - 1])
                if start > latest:
                    latest = start
                    stair_ends[count] = end
                    stair_starts[count] = start
                    count += 1
    stair_begin[keys] = count
    return stair_ends[:count], stair_begin, stair_starts[:count]
