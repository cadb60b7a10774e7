"""Sorts matches into output order: by the time of their end, then by the rows of their events.

Operators find the matches of one last event together. So these groups are sorted by counting, and then each
group on its own.
"""

from __future__ import annotations

import numpy as np

from nestream.engine.kernels import Rows
from nestream.engine.kernels.order import by_group, groups_of
from nestream.engine.kernels.stack import sorted_by_key
from nestream.engine.program import Decided, Program


def in_output_order(columns: Rows, moment: Rows) -> Rows:
    """Sort matches, a column each with the rows of its events (-1 for none), into output order.

    `moment` holds for each row the first row with the same time; it may be empty where all times differ.
    """
    if columns.shape[1] < 2:
        return columns
    begin, moments, growing, in_order, before, after = groups_of(columns, moment)
    groups = np.arange(len(moments), dtype=np.int32)
    if not growing:
        least = moments.min()
        groups, _ = sorted_by_key(groups, moments - least, int(moments.max() - least) + 1)
    found: Rows = by_group(columns, begin, moments, in_order, groups, before, after)
    return found


def told_by_last(program: Program, *, at_once: bool) -> bool:
    """Whether equal matches come together: all show their last event, which decides them."""
    decided = set(program.decided)
    if not at_once and (len(decided) > 1 or Decided.WINDOW in decided):
        return False
    kept = set(program.kept)
    return all(kept.issuperset(outline.last) for outline in program.outlines)


def found_in_order(program: Program, *, at_once: bool) -> bool:
    """Whether matches are found in output order: by the last events that they show."""
    if program.distinct:
        return told_by_last(program, at_once=at_once)
    return at_once or Decided.WINDOW not in program.decided
