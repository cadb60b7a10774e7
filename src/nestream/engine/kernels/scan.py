"""Finds the events that some leaf takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel


@kernel
def of_known_types(indices: Any, known: Any) -> Any:
    """The numbers of the types, and the rows, of the events whose type is known.

    `indices` are by row into `known`, which holds the number of each type, -1 for one that no leaf takes.
    """
    is_known = (known >= 0).astype(np.uint8)
    rows = np.empty(len(indices) + 1, np.int64)
    count = np.uint64(0)
    for row in range(len(indices)):  # branch-free, because the branch would be unpredictable
        rows[count] = row
        count += np.uint64(is_known[np.uint64(indices[row])])
    rows = rows[: np.int64(count)]
    codes = np.empty(len(rows), np.int16)
    for i in range(len(rows)):
        codes[i] = known[indices[rows[i]]]
    return codes, rows
