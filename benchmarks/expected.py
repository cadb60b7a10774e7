"""How many matches there must be, found in another way than by matching: prefix sums over sorted times.

For each c, the number of pairs (a, b) is the sum over the b in its range of the a between the start of its
window and that b: a difference of two prefix sums. A negation before c only shortens the range of b.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
_ID = 2**40
"""More than any time, so that the events of an id come before all of the next."""


def expected(shape: str, table: pa.Table, window: int) -> int | None:
    """The number of matches; None if there is no formula for the shape."""
    if shape not in ("flat", "not-event", "not-seq", "not-seq-not", "not-and", "unkeyed-3"):
        return None
    a, b, c = (_places(table, kind, keyed=shape != "unkeyed-3") for kind in "ABC")
    start = c - window
    since = start if shape in ("flat", "unkeyed-3") else np.maximum(start, _latest(shape, table, c) + 1)
    earlier = np.searchsorted(a, b, "left")  # the a before each b
    sums = np.concatenate(([0], np.cumsum(earlier)))
    first, end = np.searchsorted(b, since, "left"), np.searchsorted(b, c, "left")
    first = np.minimum(first, end)
    pairs = sums[end] - sums[first] - (end - first) * np.searchsorted(a, start, "left")
    return int(pairs.sum())


def _places(table: pa.Table, kind: str, *, keyed: bool) -> Ints:
    """The times of the events of a type in order; with a key, id after id."""
    rows = table.filter(pc.equal(table.column("type").cast(pa.string()), kind))
    times = rows.column("ts").to_numpy().astype(np.int64)
    return np.sort(times + rows.column("id").to_numpy().astype(np.int64) * _ID) if keyed else times


def _latest(shape: str, table: pa.Table, c: Ints) -> Ints:
    """For each c the start of the latest inner match before it; other ids are too early to matter."""

    def before(events: Ints, values: Ints, times: Ints) -> Any:
        """The value of the last event before each time; -1 if there is none."""
        return np.concatenate(([-1], values))[np.searchsorted(events, times, "left")]

    d, e, f = (_places(table, kind, keyed=True) for kind in "DEF")
    match shape:
        case "not-event":
            return np.asarray(before(d, d, c))
        case "not-and":
            return np.asarray(np.minimum(before(d, d, c), before(e, e, c)))
    starts = before(d, d, e)
    if shape == "not-seq-not":
        starts = np.where(starts > before(f, f, e), starts, -1)
    return np.asarray(before(e, np.maximum.accumulate(starts), c))
