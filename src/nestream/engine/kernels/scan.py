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
    codes = np.empty(len(indices) + 1, np.int16)
    rows = np.empty(len(indices) + 1, np.int64)
    count = 0
    for row in range(len(indices)):  # branch-free, because the branch would be unpredictable
        code = known[indices[row]]
        codes[count] = code
        rows[count] = row
        count += code >= 0
    return codes[:count], rows[:count]
