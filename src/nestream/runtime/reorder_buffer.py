"""Buffers events until the watermark: they arrive in any order and leave by time and arrival."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.model.columns import with_room

MOST_PARTS = 16
"""How many parts there may be before they are joined."""

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """Waiting events that arrived together, with their times; `number` orders the parts by arrival."""

    number: int
    table: pa.Table
    times: Times


class ReorderBuffer:
    """The events that have arrived and are after the watermark."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.arrivals = 0

    def __len__(self) -> int:
        return sum(len(part.times) for part in self.parts)

    def tables(self) -> Iterator[pa.Table]:
        """The events in arrival order."""
        return (part.table for part in self.parts)

    @property
    def first(self) -> int | None:
        """The time of the first waiting event."""
        return min((int(part.times.min()) for part in self.parts), default=None)

    def add(self, table: pa.Table, times: Times) -> None:
        """Add events that arrived after all others."""
        if table.num_rows:
            self.parts.append(Part(self.arrivals, table, times))
            self.arrivals += 1

    def mapped(self, change: Callable[[pa.Table], pa.Table]) -> ReorderBuffer:
        """The same events, with each table changed."""
        changed = ReorderBuffer()
        for part in self.parts:
            changed.add(change(part.table), part.times)
        return changed

    def settled(self, watermark: int) -> pa.Table | None:
        """Remove and return the events up to the watermark, by time and arrival; None if there are none."""
        ready: list[pa.Table] = []
        times: list[Times] = []
        remaining: list[Part] = []
        for part in self.parts:
            reached = part.times <= watermark
            if reached.all():
                ready.append(part.table)
                times.append(part.times)
            elif not reached.any():
                remaining.append(part)
            else:
                ready.append(part.table.filter(pa.array(reached)))
                times.append(part.times[reached])
                rest = ~reached
                remaining.append(Part(part.number, part.table.filter(pa.array(rest)), part.times[rest]))
        self.parts = remaining
        if len(remaining) > MOST_PARTS:
            self._merge()
        if len(ready) < 2:
            return in_order(ready[0], times[0]) if ready else None
        return in_order(together(ready), np.concatenate(times))

    def _merge(self) -> None:
        parts, self.parts = self.parts, []
        table = together(part.table for part in parts).combine_chunks()
        self.add(table, np.concatenate([part.times for part in parts]))


def together(tables: Iterable[pa.Table]) -> pa.Table:
    """The tables as one, with room in its dictionaries for the words of all."""
    return pa.concat_tables(map(with_room, tables))


def in_order(table: pa.Table, times: npt.NDArray[np.int64]) -> pa.Table:
    """The events by time and arrival."""
    if len(times) < 2 or bool((times[1:] >= times[:-1]).all()):
        return table
    return table.take(pa.array(np.argsort(times, kind="stable")))
