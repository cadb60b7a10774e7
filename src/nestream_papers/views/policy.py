"""Decides which intervals are loaded for query-intervals: the difference between the three kinds of view."""

from __future__ import annotations

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream_papers.engine.program import Views
from nestream_papers.views.intervals import Intervals


def wanted(
    kind: Views, queries: Intervals, unknown: Ints, partition: Ints, trigger: Ints, oldest: Ints
) -> tuple[Intervals, Ints]:
    """The intervals to load, none in another, and for each the place of a query that it serves.

    `unknown` are the places of the queries that the view cannot answer. Each has a partition, a trigger,
    which is the last event of the outer result that asks, and the coordinate of the oldest row that is still
    asked for in its partition.

    - aggressive: all from the oldest row to the furthest right end that is asked for, in each partition;
    - passive: the greatest of the query-intervals themselves;
    - balanced: of the outer results of each trigger, the query-intervals that overlap are merged, and of the
      merged ones the greatest are loaded. Between intervals without a common row nothing is computed.
    """
    match kind:
        case Views.PASSIVE:
            loaded = queries.only(unknown)
            served = unknown
        case Views.AGGRESSIVE:
            own = partition[unknown]
            first, right, served = _grouped([own], queries.right[unknown], unknown, np.maximum)
            loaded = Intervals(oldest[unknown[first]], right)
        case Views.BALANCED:
            loaded, first = _merged(trigger[unknown], partition[unknown], queries.only(unknown))
            served = unknown[first]
    greatest = loaded.maximal()
    return loaded.only(greatest), served[greatest]


def _merged(trigger: Ints, partition: Ints, asked: Intervals) -> tuple[Intervals, Ints]:
    """Merge overlapping intervals of one trigger and partition; also returns a place of each.

    Ranks replace coordinates, so that adding a group's number times the number of ranks separates it from the
    next.
    """
    order = np.lexsort((asked.left, partition, trigger))
    group = np.zeros(len(order), np.int64)
    for key in (trigger[order], partition[order]):
        group[1:] |= key[1:] != key[:-1]
    values, ranks = np.unique(np.concatenate([asked.left[order], asked.right[order]]), return_inverse=True)
    left, right = ranks.reshape(2, -1) + np.cumsum(group) * len(values)
    reach = np.maximum.accumulate(right)
    begins = np.concatenate(([True], left[1:] >= reach[:-1]))
    starts = np.flatnonzero(begins)
    merged = values[np.maximum.reduceat(right, starts) % len(values)]
    return Intervals(asked.left[order[starts]], merged), order[starts]


def _grouped(keys: list[Ints], values: Ints, places: Ints, reduce: np.ufunc) -> tuple[Ints, Ints, Ints]:
    """Of the values with the same keys, the least or greatest, and the first of their places."""
    order = np.lexsort(keys)
    changes = np.zeros(len(order), bool)
    changes[0] = True
    for key in keys:
        ordered = key[order]
        changes[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(changes)
    first = order[starts]
    return first, reduce.reduceat(values[order], starts), places[first]
