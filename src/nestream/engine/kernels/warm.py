"""Calls every kernel with arguments of the types that the engine uses, so that all are compiled."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from nestream.engine.kernels import Kernel
from nestream.engine.kernels.chain import (
    count_through,
    extend,
    extend_prefixes,
    extend_through,
    fill_in_order,
    fill_latest,
    first_matches,
    followers,
    running_maximum,
)
from nestream.engine.kernels.order import by_group, groups_of
from nestream.engine.kernels.product import combine, ranges_before
from nestream.engine.kernels.ranges import (
    block_extremes,
    differences,
    different,
    extremes,
    float_differences,
    prefix_sums,
    same_before,
)
from nestream.engine.kernels.scan import of_known_types
from nestream.engine.kernels.search import latest, places, raised_bounds, rows_back
from nestream.engine.kernels.stack import (
    between_by_key,
    first_of_time,
    in_row_order,
    key_of_place,
    keys_between,
    places_between,
    sorted_by_key,
    taken,
    taken_or_none,
    window_starts,
)
from nestream.engine.kernels.staircase import both_ended, latest_starts
from nestream.engine.kernels.sums import compensated, stretch_sums

_ROWS = np.zeros(1, np.int32)
_BEGIN = np.array((0, 1), np.int32)
_LONG = np.zeros(1, np.int64)
_FLOATS = np.zeros(1, np.float64)
_GRID = np.zeros((1, 1), np.int32)


def _held(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Values that cannot be changed, as those of Arrow's columns; to Numba that is another type."""
    view = values.view()
    view.flags.writeable = False
    return view


CALLS: tuple[tuple[Kernel, tuple[Any, ...]], ...] = (
    *(  # 8 bits come from Pandas, 16 from Spark, 32 from Arrow, and 32 without a sign from Polars
        (of_known_types, (some, np.zeros(1, np.int16)))
        for codes in (np.zeros(1, np.int8), np.zeros(1, np.int16), _ROWS, np.zeros(1, np.uint32))
        for some in (codes, _held(codes))
    ),
    *((first_of_time, (some,)) for some in (_LONG, _held(_LONG))),
    *((window_starts, (some, 1, 0)) for some in (_LONG, _held(_LONG))),
    (sorted_by_key, (_ROWS, _ROWS, 1)),
    (sorted_by_key, (_ROWS, np.zeros(1, np.int16), 1)),
    (keys_between, (_ROWS, _ROWS, 1, 0, 1)),
    (between_by_key, (_ROWS, _ROWS, np.ones(1, bool), 0, 1)),
    (key_of_place, (_BEGIN, 1)),
    (places_between, (_ROWS, _BEGIN, 0, 1)),
    (in_row_order, (_ROWS, 0, 1, 0, 1)),
    *((places, (_ROWS, _BEGIN, _ROWS, some)) for some in (_ROWS, _LONG)),
    (rows_back, (_ROWS, _BEGIN, _ROWS, _ROWS, 1)),
    (taken, (_ROWS, _ROWS)),
    *((taken_or_none, (_LONG, some)) for some in (_ROWS, _LONG)),
    (taken_or_none, (_ROWS, _ROWS)),
    (raised_bounds, (_ROWS, _BEGIN, _ROWS, _ROWS, _ROWS, _ROWS, _ROWS)),
    (latest, (_ROWS, _BEGIN, _ROWS, _ROWS, _ROWS)),
    (extend_prefixes, (_ROWS, _BEGIN, _ROWS, _ROWS, _BEGIN, _ROWS, _ROWS, _ROWS, _ROWS)),
    (extend_through, (_GRID, _ROWS, _ROWS, _ROWS, _ROWS, 1, 0, _BEGIN, _BEGIN, _ROWS, _GRID)),
    (count_through, (_GRID, _ROWS, _ROWS, _ROWS, _ROWS, 1, 0, 0, 1, _BEGIN, _BEGIN)),
    (extend, (_GRID, _ROWS, _ROWS, _ROWS + 1, 1)),
    (followers, (_BEGIN, _BEGIN, _ROWS, _ROWS)),
    (fill_in_order, (_ROWS, _ROWS, _ROWS, _ROWS, _ROWS, _ROWS, _ROWS, _BEGIN, _BEGIN, _GRID)),
    (fill_latest, (_ROWS, _ROWS, _ROWS, _GRID)),
    (first_matches, (_BEGIN.reshape(1, 2), _ROWS, _ROWS, _ROWS, _ROWS, 0, 1)),
    (running_maximum, (_ROWS, _BEGIN)),
    (latest_starts, (_ROWS, _BEGIN, _ROWS, _ROWS)),
    (both_ended, (_ROWS, _BEGIN, _ROWS, _ROWS, _BEGIN, _ROWS)),
    (ranges_before, (_ROWS, _ROWS, _ROWS, _BEGIN.reshape(1, 2), _ROWS, 0)),
    (taken, (_LONG, _ROWS)),
    (combine, (_ROWS, _GRID, _GRID + 1, _ROWS, _ROWS, 1)),
    (groups_of, (_GRID, _ROWS)),
    (by_group, (_GRID, _BEGIN, _ROWS, np.ones(1, bool), _ROWS, 0, 0)),
    *((prefix_sums, (some,)) for some in (_FLOATS, _held(_FLOATS))),
    (differences, (_LONG, _ROWS, _ROWS)),
    *(
        (float_differences, (some, _FLOATS, _FLOATS, _LONG, 0.0, _ROWS, _ROWS))
        for some in (_FLOATS, _held(_FLOATS))
    ),
    *((block_extremes, (some, True, 32)) for some in (_LONG, _FLOATS, _held(_LONG), _held(_FLOATS))),
    *(
        (extremes, (some, True, 5, best, best, best.reshape(1, 1), _LONG, _ROWS, _ROWS + 1))
        for best in (_LONG, _FLOATS)
        for some in (best, _held(best))
    ),
    (different, (_ROWS, _ROWS, _ROWS, _ROWS)),
    (same_before, (_LONG, 1)),
    (compensated, (_FLOATS, 0, 1)),
    (stretch_sums, (np.zeros(1, np.float64), np.array((0, 1), np.int64))),
)


def compile_all() -> int:
    """Compile every kernel for every set of types; return how many."""
    for kernel, arguments in CALLS:
        kernel.compile()(*fresh(arguments))
    return len(CALLS)


def compile_in_processes() -> int:
    """Compile every kernel, with a process for each core; this process reads the machine code they save."""
    kernels = list(dict.fromkeys(kernel for kernel, _ in reversed(CALLS)))  # the slowest are among the last
    with ProcessPoolExecutor() as pool:
        deque(pool.map(_compile_one, [kernel.__name__ for kernel in kernels]), maxlen=0)
    return compile_all()


def _compile_one(name: str) -> None:
    for kernel, arguments in CALLS:
        if kernel.__name__ == name:
            kernel.compile()(*fresh(arguments))


def fresh(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Copies of the arguments of a call: kernels write into theirs, and the next one would read it."""
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            copy = argument.copy()
            copy.flags.writeable = argument.flags.writeable
            yield copy
        else:
            yield argument
