"""Cuts a finite table of events into slices of time, each with the events around it that its matches can see.

A slice yields the matches that end in it. So slices are matched independently, by several threads, and their
matches come one slice after the other in output order. What the engine builds is limited by the slice: it
fits in the processor's caches, and memory does not grow with the table.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa

from nestream.engine.keeper import kept_by_earlier, kept_by_last
from nestream.engine.matcher import PIECE
from nestream.engine.native import NativeProgram
from nestream.engine.ordering import found_in_order
from nestream.engine.program import Decided, Measure, Program
from nestream.model.columns import times_of
from nestream.model.event_types import ANY_TYPE
from nestream.model.lazy import pc
from nestream.model.schema import Schema

ROWS = 1 << 19
"""The approximate number of events in a slice; twice as many if the query reads few of them."""
_FEW = 8
"""Few are less than one in this many."""
_RUNS, _RUN = 16, 64
"""To know that, so many runs of so many events are looked at: events may come in a cycle of types."""
_SHARE = 4
"""A slice is at least this many times as long as what it repeats of the previous one."""
_PIECES = 4
"""A slice has at most about this many pieces of matches, so that no thread waits long for another."""


@dataclass(frozen=True)
class TimeSlice:
    """The events that the matches ending from `first` on and before `end` can see; None is the end.

    `rows` of them are from `first` on and before `end`.
    """

    first: int
    end: int | None
    rows: int
    events: pa.Table


def can_be_sliced(program: Program) -> bool:
    """Whether the matches that end in a time slice depend only on the events around it."""
    return (
        isinstance(program, NativeProgram)
        and program.measure is Measure.TIME
        and found_in_order(program, at_once=True)
        and (kept_by_last(program) or kept_by_earlier(program))
    )


def _rows(types: pa.ChunkedArray, program: Program) -> int:
    """How many events a slice should have, given the types of all events."""
    read = {name for leaf in program.leaves for name in leaf.types}
    if len(types) <= ROWS or ANY_TYPE in read:
        return ROWS
    runs = (types.slice(start, _RUN) for start in range(0, len(types), -(-len(types) // _RUNS)))
    sample = pa.chunked_array([chunk for run in runs for chunk in run.chunks], types.type).cast(pa.string())
    count = pc.sum(pc.is_in(sample, value_set=pa.array(sorted(read)))).as_py()
    return 2 * ROWS if _FEW * count < len(sample) else ROWS


def _windows_before(program: Program) -> int:
    """How many windows before its matches a time slice has events.

    KEEP may compare them with matches that end up to a window earlier, and so begin up to two windows before.
    One window is enough if they agree on their first event, which is in it, and if the query looks for
    nothing before that event.
    """
    if program.keep is None or kept_by_last(program):
        return 1
    per = set(program.keep.variables)
    by_first = all(per.issuperset(outline.first) for outline in program.outlines)
    return 1 if by_first and not program.looks_back else 2


class TimeSlices:
    """The slices of a table whose events are in order, for the matches of one program."""

    def __init__(self, events: pa.Table, schema: Schema, program: Program, threads: int) -> None:
        self._events = events
        chunks = [times_of(chunk, schema) for chunk in events.column(schema.time).chunks if len(chunk)]
        self._times = chunks
        """The times of the events, chunk by chunk; mostly the chunks themselves."""
        self._begin = [0, *accumulate(map(len, chunks))]
        """The first row of each chunk, and the number of rows."""
        self._before = _windows_before(program) * program.window
        self._after = program.window if Decided.WINDOW in program.decided else 0
        count = -(-len(events) // _rows(events.column(schema.type), program))
        self._rows = len(events) if count < 2 else -(-len(events) // (-(-count // threads) * threads))
        """How many events the next slice has."""
        self._most = _PIECES * PIECE // program.width
        """How many matches a slice should have at most."""

    def __iter__(self) -> Iterator[TimeSlice]:
        start, length = 0, len(self._events)
        while start < length:
            first = self._time(start)
            before = self._since(first - self._before) if start else 0
            end = self._cut(start, max(self._rows, _SHARE * (start - before)))
            until, after = None, length
            if end < length:
                until = self._time(end)
                after = self._since(until + self._after) if self._after else end
            yield TimeSlice(first, until, end - start, self._events.slice(before, after - before))
            start = end

    def adapt(self, one: TimeSlice, found: int) -> None:
        """Make slices shorter if one had many matches."""
        if found > self._most:
            self._rows = max(1, min(self._rows, one.rows * self._most // found))

    def _cut(self, start: int, rows: int) -> int:
        """The row, at most about `rows` ahead, at which a new time begins."""
        if start + rows >= len(self._events):
            return len(self._events)
        end = self._since(self._time(start + rows))
        return end if end > start else self._since(self._time(start) + 1)

    def _time(self, row: int) -> int:
        chunk = bisect_right(self._begin, row) - 1
        return int(self._times[chunk][row - self._begin[chunk]])

    def _since(self, time: int) -> int:
        """The first row at or after a time."""
        chunk = bisect_left(self._times, time, key=lambda times: int(times[-1]))
        if chunk == len(self._times):
            return len(self._events)
        return self._begin[chunk] + int(np.searchsorted(self._times[chunk], time))
