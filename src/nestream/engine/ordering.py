"""Puts matches into the order of the output: by the time of their end, then by the rows of their events.

Operators find the matches of one last event together. So these groups are sorted by counting, and each group
alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nestream.engine.kernels import Rows
from nestream.engine.kernels.order import by_group, groups_of
from nestream.engine.kernels.stack import sorted_by_key


def in_output_order(columns: Sequence[Rows], moment: Rows) -> list[Rows]:
    """The matches, given by the rows of their events (-1 for none), in the order of the output.

    `moment` is for each row the first row with the same time; it may be empty where all times differ.
    """
    count = len(columns[0])
    if count < 2:
        return list(columns)
    matrix = np.empty((len(columns), count), np.int32)
    for place, column in enumerate(columns):
        matrix[place] = column
    begin, moments, growing, before, after = groups_of(matrix, moment)
    groups = np.arange(len(moments), dtype=np.int32)
    if not growing:
        least = moments.min()
        groups, _ = sorted_by_key(groups, moments - least, int(moments.max() - least) + 1)
    return list(by_group(matrix, begin, moments, groups, before, after))
