"""The chain: forward through its steps to leave out what no prefix reaches, backward to build its matches.

The laws are proved in docs/engine.md, "Chains".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel
from nestream.engine.kernels.search import first_at_least


@kernel
def extend_prefixes(
    previous: Any,
    previous_begin: Any,
    previous_start: Any,
    rows: Any,
    begin: Any,
    firsts: Any,
    bound: Any,
    low: Any,
    reach: Any,
) -> Any:
    """The events of a step that end a prefix, given those of the step before.

    An event needs a predecessor that comes before its first event (`firsts`, itself for a single event) and,
    where `bound` is not empty, not before its bound. It is left out if none of its prefixes fits in a window.
    Gives the places that stay, where each key begins among them, the latest start of a prefix, and the range
    of predecessors.

    Law: `previous_start` does not go down within a key, so the last predecessor has the latest start.
    """
    keys = len(begin) - 1
    stay = np.empty(len(rows), np.int32)
    start = np.empty(len(rows), np.int32)
    lowest = np.empty(len(rows), np.int32)
    end = np.empty(len(rows), np.int32)
    stay_begin = np.zeros(keys + 1, np.int32)
    count = 0
    for key in range(keys):
        stay_begin[key] = count
        first = previous_begin[key]
        limit = previous_begin[key + 1]
        after = first
        for place in range(begin[key], begin[key + 1]):
            earliest = low[firsts[place]]
            if (
                after > first and previous[after - 1] >= earliest
            ):  # composites come in the order of their ends
                after = first_at_least(previous, first, after, earliest)
            while after < limit and previous[after] < earliest:
                after += 1
            from_ = first
            if len(bound) and bound[place] > 0:
                from_ = first_at_least(previous, first, after, bound[place])
            if from_ < after:
                latest = previous_start[after - 1]
                if len(reach) == 0 or latest >= reach[rows[place]]:
                    stay[count] = place
                    start[count] = latest
                    lowest[count] = from_
                    end[count] = after
                    count += 1
    stay_begin[keys] = count
    return stay[:count], stay_begin, start[:count], lowest[:count], end[:count]


@kernel
def count_extensions(here: Any, window: Any, lowest: Any, end: Any) -> Any:
    """How many predecessors each partial match has; `window` is the first place that its window allows."""
    counts = np.empty(len(here), np.int64)
    for i in range(len(here)):
        first = max(lowest[here[i]], window[i])
        counts[i] = max(end[here[i]] - first, 0)
    return counts


@kernel
def extend(columns: Any, window: Any, lowest: Any, end: Any, total: int) -> Any:
    """The partial matches with each of their predecessors, which become the first column.

    `columns` holds the places of a partial match from the present step on, one step a row. Gives the longer
    columns and for each longer match the number of the one it extends.
    """
    longer = np.empty((columns.shape[0] + 1, total), np.int32)
    origin = np.empty(total, np.int32)
    count = 0
    for i in range(columns.shape[1]):
        here = columns[0, i]
        for place in range(max(lowest[here], window[i]), end[here]):
            longer[0, count] = place
            for step in range(columns.shape[0]):
                longer[step + 1, count] = columns[step, i]
            origin[count] = i
            count += 1
    return longer, origin


@kernel
def running_maximum(values: Any, begin: Any) -> Any:
    """For each place the greatest value of its key up to there."""
    found = np.empty(len(values), np.int32)
    for key in range(len(begin) - 1):
        greatest = -1
        for place in range(begin[key], begin[key + 1]):
            greatest = max(greatest, values[place])
            found[place] = greatest
    return found
