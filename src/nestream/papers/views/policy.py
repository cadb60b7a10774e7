"""Which intervals are loaded when query-intervals are asked for: what tells the three kinds of view apart."""

from __future__ import annotations

import numpy as np

from nestream.engine.events import Ints
from nestream.papers.engine.program import Views
from nestream.papers.views.intervals import Intervals


def wanted(
    kind: Views, queries: Intervals, unknown: Ints, partition: Ints, trigger: Ints, oldest: Ints
) -> tuple[Intervals, Ints]:
    """The intervals to load, none in another, and for each the place of a query that it serves.

    `unknown` are the places of the queries that the view cannot answer. Each has a partition, a trigger,
    which is the last event of the outer result that asks, and the coordinate of the oldest row that is still
    asked for in its partition.

    - aggressive: all from the oldest row to the furthest right end that is asked for, in each partition;
    - passive: the greatest of the query-intervals themselves;
    - balanced: for the outer results of each trigger together the least interval around their
      query-intervals, and of these the greatest.
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
            keys = [trigger[unknown], partition[unknown]]
            _, left, _ = _grouped(keys, queries.left[unknown], unknown, np.minimum)
            _, right, served = _grouped(keys, queries.right[unknown], unknown, np.maximum)
            loaded = Intervals(left, right)
    greatest = loaded.maximal()
    return loaded.only(greatest), served[greatest]


def _grouped(keys: list[Ints], values: Ints, places: Ints, reduce: np.ufunc) -> tuple[Ints, Ints, Ints]:
    """Of the values with the same keys the least or greatest, and the first of their places."""
    order = np.lexsort(keys)
    changes = np.zeros(len(order), bool)
    changes[0] = True
    for key in keys:
        ordered = key[order]
        changes[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(changes)
    first = order[starts]
    return first, reduce.reduceat(values[order], starts), places[first]
