"""Merges the events of several partitions into time order.

This only fixes disorder that comes from reading one partition before another. A partition has been read up to
the greatest time that came from it. Events wait here until every other partition with more data was read as
far. So a backlog of hours arrives as if it had been read when it was written, and no event is late because
its partition was read last.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.source.dead_letter import DeadLetter
from nestream.source.protocol import Batch

Longs = npt.NDArray[np.int64]
_LEAST = np.iinfo(np.int64).min
_GREATEST = np.iinfo(np.int64).max


class Partitions:
    """Rows that wait for the other partitions, which are numbered from 0."""

    def __init__(self, time: str) -> None:
        self._time = time
        self._reached = np.empty(0, np.int64)
        """The greatest time of each partition."""
        self._events: pa.Table | None = None
        self._of, self._offsets, self._times = (np.empty(0, np.int64) for _ in range(3))
        """The partition, the offset and the reached time of each waiting event."""
        self._dead: list[tuple[int, int, DeadLetter]] = []

    def grow(self) -> None:
        """There is one more partition."""
        self._reached = np.append(self._reached, np.int64(_LEAST))

    def add(self, events: pa.Table, of: Longs, offsets: Longs) -> None:
        """Add events that have arrived, with the partition and the offset of each."""
        if not events.num_rows:
            return
        times = events.column(self._time).cast(pa.int64()).to_numpy()
        reached = np.empty_like(times)
        for partition in np.unique(of):
            own = of == partition
            reached[own] = np.maximum(np.maximum.accumulate(times[own]), self._reached[partition])
            self._reached[partition] = reached[own][-1]
        if self._events is None:
            self._events = events
        else:
            self._events = pa.concat_tables([self._events, events], promote_options="permissive")
        self._of = np.concatenate([self._of, of])
        self._offsets = np.concatenate([self._offsets, offsets])
        self._times = np.concatenate([self._times, reached])

    def add_dead(self, partition: int, offset: int, letter: DeadLetter) -> None:
        """Add a message that is not an event. It follows the earlier events of its partition."""
        self._dead.append((partition, offset, letter))

    def take(self, waited_for: Collection[int]) -> Batch | None:
        """Remove and return the events that no longer wait, given the partitions with more data."""
        bound = min((self._reached[partition] for partition in waited_for), default=_GREATEST)
        events = self._take_events(bound)
        first = self.first_held()
        dead = [letter for of, offset, letter in self._dead if offset < first.get(of, _GREATEST)]
        self._dead = [one for one in self._dead if one[1] >= first.get(one[0], _GREATEST)]
        if events is None and not dead:
            return None
        return Batch(pa.table({}) if events is None else events, dead)

    def _take_events(self, bound: int) -> pa.Table | None:
        goes = self._times <= bound
        if self._events is None or not goes.any():
            return None
        events, order = self._events, np.flatnonzero(goes)
        order = order[np.argsort(self._times[order], kind="stable")]
        stays = ~goes
        self._events = events.filter(pa.array(stays)) if stays.any() else None
        self._of, self._offsets, self._times = self._of[stays], self._offsets[stays], self._times[stays]
        in_order = len(order) == events.num_rows and bool((np.diff(order) > 0).all())
        return events if in_order else events.take(pa.array(order))

    def held(self) -> Longs:
        """The number of waiting events of each partition."""
        return np.bincount(self._of, minlength=len(self._reached))

    def first_held(self) -> dict[int, int]:
        """The offset of the first waiting event, for the partitions that have one."""
        partitions, places = np.unique(self._of, return_index=True)
        return dict(zip(partitions.tolist(), self._offsets[places].tolist(), strict=True))
