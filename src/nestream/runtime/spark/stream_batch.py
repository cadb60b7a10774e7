"""One micro-batch in a worker: the packs of a partition go to the engines of their buckets, which are saved.

Which events are late follows from the events of earlier micro-batches. What is decided also follows from
those of this one: every bucket gets the greatest time of all of them, so a match needs no second micro-batch.
"""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from nestream.engine.matcher import END
from nestream.model.by_rule import matches_by_rule
from nestream.runtime.spark.columns import RAW, arrow_schema
from nestream.runtime.spark.stream_bucket import KEPT, Bucket, saved_state
from nestream.runtime.spark.stream_pack import (
    AHEAD,
    CLOCK,
    COUNT,
    FOUND,
    MATCHES,
    Batches,
    reasons_of,
    unpacked,
)
from nestream.runtime.spark.stream_place import Place
from nestream.runtime.spark.stream_sink import BatchFiles, Spool
from nestream.runtime.spark.stream_state import FileCells, Version
from nestream.runtime.spark.stream_task import Found, StreamTask

ASIDE, STATE = "aside", "state"
"""Rows that leave a worker besides matches: events that were left out, and the new state of each bucket."""
REASON, TEXT = "reason", "raw"
_FOUND = arrow_schema(FOUND)


@dataclass(frozen=True)
class Change:
    """A change of the queries of buckets: their previous task, and the names of the queries that stay."""

    before: bytes
    staying: frozenset[str]


@dataclass(frozen=True)
class Order:
    """What to do in a micro-batch; it is sent to the workers."""

    batch: int
    before: int | None
    """The greatest time of earlier micro-batches, in microseconds."""
    delay: int
    """How many microseconds the watermark is behind the greatest time."""
    states: Mapping[int, Version]
    place: Place
    matches: BatchFiles
    aside: BatchFiles | None
    most: int | None = None
    """How many more matches are wanted."""
    ends: bool = False
    """Whether the input has ended."""
    is_trial: bool = False
    """Whether matches are only counted, and nothing is written."""
    change: Change | None = None
    """Set if the buckets only change to other queries."""


class _Pack(NamedTuple):
    slot: int
    task: int
    number: int
    rows: int
    data: Any


@lru_cache(maxsize=4)
def _task(data: bytes) -> StreamTask:
    task: StreamTask = pickle.loads(data)
    return task


@dataclass(frozen=True)
class Matching:
    """A function that matches the packs of a partition; the task is pickled once and read once."""

    task: bytes
    order: Order

    def __call__(self, batches: Batches) -> Batches:
        """Yields rows of matches, of events that were left out, and one row for each bucket."""
        packs: dict[int, list[_Pack]] = {}
        for batch in batches:
            told = batch.drop_columns(["data"]).to_pylist()
            for pack, data in zip(told, batch.column("data"), strict=True):
                packs.setdefault(pack.pop("bucket"), []).append(_Pack(**pack, data=data.as_buffer()))
        task = _task(self.task)
        for number in sorted(packs):
            yield from _BucketBatch(task, self.order, number).run(packs.pop(number))


class _BucketBatch:
    """One bucket in one micro-batch."""

    def __init__(self, task: StreamTask, order: Order, number: int) -> None:
        self._task, self._order, self._number = task, order, number
        self._matches = Spool(order.matches, order.batch, number, is_cut=order.most is not None)
        self._aside = None if order.aside is None else Spool(order.aside, order.batch, number)
        self._counts: Counter[str] = Counter()
        self._by_rule: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}

    def run(self, packs: list[_Pack]) -> Iterator[pa.RecordBatch]:
        packs.sort(key=lambda pack: (pack.task, pack.number))
        if self._order.change is not None:
            yield from self._report(
                {"bucket": self._number, "greatest": None, **self._change(self._order.change)}
            )
            return
        for pack in packs:
            if AHEAD <= pack.slot < 0:
                self._take(self._task.malformed(pack))
        self._counts["events"] = sum(pack.rows for pack in packs if pack.slot == COUNT)
        clock = max((pack.rows for pack in packs if pack.slot == CLOCK), default=None)
        told: dict[str, Any] = {}
        if clock is not None or self._order.ends:
            events = [unpacked(pack.data) for pack in packs if pack.slot >= 0]
            told = self._advance(pa.concat_tables(events) if events else None, clock)
        told |= {"bucket": self._number, "greatest": clock, **self._counts}
        told |= {"by_rule": self._by_rule, "seconds": self._seconds}
        yield from self._report(told)

    def _advance(self, events: pa.Table | None, clock: int | None) -> dict[str, Any]:
        order, scale = self._order, self._task.task.schema.per_microsecond
        bucket, cells = self._bucket(self._task)
        before = bucket.seconds
        if events is not None:
            late = None if order.before is None else (order.before - order.delay) * scale
            for found in self._task.take(bucket, events, late):
                self._take(found)
        known = [moment for moment in (order.before, clock) if moment is not None]
        watermark = END if order.ends else (max(known) - order.delay) * scale
        for found in self._task.settle(bucket, watermark):
            self._take(found)
        self._seconds = {name: round(took - before[name], 6) for name, took in bucket.seconds.items()}
        if order.ends:
            return {"state": None}
        return self._saved(bucket, cells)

    def _change(self, change: Change) -> dict[str, Any]:
        """Continue with other queries from here: the state is rewritten, without what they do not need."""
        before = _task(change.before)
        bucket, _ = self._bucket(before)
        return self._saved(
            self._task.changed(bucket, before, change.staying), FileCells(self._order.place, None)
        )

    def _bucket(self, task: StreamTask) -> tuple[Bucket, FileCells]:
        """The engine that this worker keeps, if it has the right version; otherwise one from its files."""
        version = self._order.states.get(self._number)
        cells = FileCells(self._order.place, version)
        if version is None:
            return task.bucket(), cells
        kept = KEPT.take(task.identity, self._number, version.token)
        if kept is not None:
            assert isinstance(kept.cells, FileCells)
            return kept, kept.cells
        header = cells.header()
        assert header is not None
        return task.restored(saved_state(header, task.identity), cells), cells

    def _saved(self, bucket: Bucket, cells: FileCells) -> dict[str, Any]:
        if bucket.is_empty:
            return {"state": None}
        bucket.save(self._task.identity, cells)
        assert bucket.token is not None
        version = cells.write(f"state-{self._order.batch:08}-{self._number:05}", bucket.token, bucket.rows)
        bucket.cells = cells
        KEPT.keep(self._task.identity, self._number, bucket)
        return {"state": version.plain()}

    def _take(self, found: Found) -> None:
        most = self._order.most
        if found.kind == MATCHES and most is not None and self._counts[MATCHES] >= most:
            return
        self._counts[found.kind] += found.rows
        if self._order.is_trial:
            return
        if found.kind == MATCHES:
            assert found.data is not None
            self._matches.add(found.data)
            self._by_rule += matches_by_rule(unpacked(found.data))
        elif self._aside is not None and found.data is not None:
            self._aside.add_table(self._left_out(unpacked(found.data), found.reason))

    def _left_out(self, events: pa.Table, reason: str | None) -> pa.Table:
        """Events with the reason, and with the text of rows that could not be read."""
        assert self._order.aside is not None
        columns = {REASON: reasons_of(events, reason), TEXT: events.column(RAW)}
        wanted = self._order.aside.schema
        arrays = [columns[name] if name in columns else events.column(name) for name in wanted.names]
        return pa.Table.from_arrays(arrays, names=wanted.names).cast(wanted)

    def _report(self, told: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        spools = {MATCHES: self._matches, ASIDE: self._aside}
        rows: list[dict[str, Any]] = []
        for kind, spool in spools.items():
            if spool is not None:
                spool.close()
                told[f"{kind} files"] = spool.names
                rows += [{"kind": kind, "rows": 0, "reason": None, "data": data} for data in spool.held]
        rows.append({"kind": STATE, "rows": 0, "reason": json.dumps(told), "data": None})
        yield pa.RecordBatch.from_pylist(rows, _FOUND)
