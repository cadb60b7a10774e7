"""The held events, seen through the window of one query."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.engine.event_buffer import EventBuffer, Ints
from nestream.engine.program import Measure, Program
from nestream.engine.values import Evaluator
from nestream.model.vector import Vector

_LEAST = int(np.iinfo(np.int64).min)
_MANY = 4096
"""From this number on, sorting rows before looking them up pays off."""


class WindowedEvents:
    """Events with the window of a program: what lies within a window of an event."""

    def __init__(self, events: EventBuffer, program: Program) -> None:
        self.events = events
        self.program = program

    def __len__(self) -> int:
        return len(self.events.pos)

    # -- the events ----------------------------------------------------------------------------------------

    @property
    def pos(self) -> Ints:
        """The positions of the events, relative to `base`."""
        return self.events.pos

    @property
    def base(self) -> int:
        """The position that `pos` is relative to."""
        return self.events.base

    @property
    def ts(self) -> Ints:
        """The times of the events."""
        return self.events.ts

    @property
    def type(self) -> npt.NDArray[np.int16]:
        """The numbers of the events' types."""
        return self.events.type

    @property
    def low(self) -> Ints:
        """The position of the first event with each event's time."""
        return self.events.low

    @property
    def payload(self) -> pa.Table:
        """The columns that are read or shown."""
        return self.events.payload

    @property
    def leaf_rows(self) -> list[npt.NDArray[Any]]:
        """The rows of each leaf."""
        return self.events.leaf_rows

    @property
    def evaluator(self) -> Evaluator:
        """Evaluates formulas over the events."""
        return self.events.evaluator

    def attribute(self, name: str) -> Vector:
        """The values of an attribute for every row."""
        return self.events.attribute(name)

    # -- the window ----------------------------------------------------------------------------------------

    def since(self, times: Ints | int) -> Ints:
        """The first row at or after a time; after it where windows are exclusive."""
        if isinstance(times, int):
            times = max(times, _LEAST)
        found: Ints = np.searchsorted(self.ts, times, "right" if self.program.exclusive else "left")
        return found

    def reach(self, rows: Ints) -> Ints:
        """For each row, the first position that fits in a window ending with it."""
        program = self.program
        match program.measure:
            case Measure.NONE:
                return np.zeros(len(rows), np.int64)
            case Measure.EVENTS:
                return np.maximum(self.pos[rows] - (program.window - 1), 0)
            case Measure.TIME:
                if len(rows) > _MANY and (rows[1:] < rows[:-1]).any():
                    return self._reach_in_order(rows)
                own = self.ts[rows]
                start = self.since(np.where(own < _LEAST + program.window, _LEAST, own - program.window))
                found: Ints = self.pos[np.minimum(start, len(self) - 1)]
                return found

    def _reach_in_order(self, rows: Ints) -> Ints:
        """Compute `reach` in the order of the rows: searching in time order is several times faster."""
        wanted = np.zeros(len(self), bool)
        wanted[rows] = True
        ordered = np.flatnonzero(wanted)
        found = np.empty(len(self), np.int64)
        found[ordered] = self.reach(ordered)
        return found[rows]
