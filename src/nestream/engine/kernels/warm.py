"""Every kernel with arguments of the types that the engine calls it with: what has to be compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import Kernel
from nestream.engine.kernels.chain import count_extensions, extend, extend_prefixes, running_maximum
from nestream.engine.kernels.order import ends_of, sort_within, taken
from nestream.engine.kernels.product import combinations, combine
from nestream.engine.kernels.ranges import extremes, prefix_sums
from nestream.engine.kernels.scan import of_known_types
from nestream.engine.kernels.search import latest, places
from nestream.engine.kernels.stack import (
    first_of_time,
    in_row_order,
    key_of_place,
    sorted_by_key,
    window_starts,
)
from nestream.engine.kernels.staircase import latest_starts
from nestream.engine.kernels.sums import stretch_sums

_ROWS = np.zeros(1, np.int32)
_BEGIN = np.array((0, 1), np.int32)
_LONG = np.zeros(1, np.int64)
_FLOATS = np.zeros(1, np.float64)
_GRID = np.zeros((1, 1), np.int32)

CALLS: tuple[tuple[Kernel, tuple[Any, ...]], ...] = (
    (of_known_types, (np.zeros(1, np.int8), np.zeros(1, np.int16))),
    (of_known_types, (_ROWS, np.zeros(1, np.int16))),
    (first_of_time, (_LONG,)),
    (window_starts, (_LONG, _LONG)),
    (sorted_by_key, (_ROWS, _ROWS, 1)),
    (key_of_place, (_BEGIN, 1)),
    (in_row_order, (_ROWS, 0, 1)),
    (places, (_ROWS, _BEGIN, _ROWS, _ROWS)),
    (latest, (_ROWS, _BEGIN, _ROWS, _ROWS, _ROWS)),
    (extend_prefixes, (_ROWS, _BEGIN, _ROWS, _ROWS, _BEGIN, _ROWS, _ROWS, _ROWS, _ROWS)),
    (count_extensions, (_ROWS, _ROWS, _ROWS, _ROWS)),
    (extend, (_GRID, _ROWS, _ROWS, _ROWS + 1, 1)),
    (running_maximum, (_ROWS, _BEGIN)),
    (latest_starts, (_ROWS, _BEGIN, _ROWS, _ROWS)),
    (combinations, (_GRID, _GRID)),
    (combine, (_GRID, _GRID + 1, 1)),
    (ends_of, (_GRID, _ROWS)),
    (sort_within, (_GRID, _ROWS, _ROWS.copy(), _ROWS.copy())),
    (taken, (_GRID, _ROWS)),
    (prefix_sums, (_FLOATS,)),
    *(
        (extremes, (some, 1, 32, some, some, some.reshape(1, 1), _LONG, _LONG + 1))
        for some in (_LONG, _FLOATS)
    ),
    (stretch_sums, (np.zeros(1, np.float64), np.array((0, 1), np.int64))),
)


def compile_all() -> int:
    """Compile every kernel for every set of types; how many."""
    for kernel, arguments in CALLS:
        kernel.compile()(*arguments)
    return len(CALLS)
