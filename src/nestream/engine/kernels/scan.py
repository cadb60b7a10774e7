"""Finding the events that some leaf takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel


@kernel
def of_known_types(indices: Any, known: Any) -> Any:
    """The numbers of the types, and the rows, of the events whose type is known.

    `indices` are by row into `known`, which holds the number of each type, -1 for one that no leaf takes.
    """
    count = 0
    for row in range(len(indices)):
        if known[indices[row]] >= 0:
            count += 1
    codes = np.empty(count, np.int16)
    rows = np.empty(count, np.int64)
    count = 0
    for row in range(len(indices)):
        code = known[indices[row]]
        if code >= 0:
            codes[count] = code
            rows[count] = row
            count += 1
    return codes, rows
