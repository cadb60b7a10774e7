"""Puts matches into the order of the output: by the time of their end, then by the rows of their events.

Operators find matches nearly in that order: usually grouped by their last event. A counting sort groups
those that are not, and each group is sorted alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nestream.engine.kernels import Rows
from nestream.engine.kernels.order import ends_of, in_order, sort_within
from nestream.engine.kernels.stack import sorted_by_key


def in_output_order(columns: Sequence[Rows], moment: Rows) -> list[Rows]:
    """The matches, given by the rows of their events (-1 for none), in the order of the output.

    `moment` is for each row the first row with the same time.
    """
    count = len(columns[0])
    if count < 2:
        return list(columns)
    matrix = np.empty((len(columns), count), np.int32)
    for place, column in enumerate(columns):
        matrix[place] = column
    ends, grouped = ends_of(matrix, moment)
    order = np.arange(count, dtype=np.int32)
    if not grouped:
        least = ends.min()
        order, _ = sorted_by_key(order, ends - least, int(ends.max() - least) + 1)
    moved = sort_within(matrix, ends, order, np.empty(count, np.int32))
    return list(in_order(matrix, order) if moved or not grouped else matrix)
