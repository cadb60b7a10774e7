"""Packs: events and matches cross the stateful operator many at a time, as Arrow in one binary value.

Spark passes rows to a stateful Python operator one at a time. A micro-batch of 200,000 events would be as
many calls; packed, it is a handful, and everything in them stays columnar. Packing happens in `mapInArrow`
before the shuffle, with one pack for each bucket and some 100,000 rows of a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from nestream.runtime.spark.columns import UNREAD, arrow_schema

SLOT = "nestream slot"
NO_TIME, NO_TYPE, NOT_READ, AHEAD = -1, -2, -3, -4
"""The slots of unusable events; those that were not read or are in the future have their own reasons.
"""
CLOCK, COUNT = -16, -15
"""The slots of packs that have the greatest time of all events, and how many rows there were.

A row with the slot `CLOCK - n` represents n events: its time is their greatest.
"""
REASONS = {NO_TIME: "no time: `{time}` is NULL", NO_TYPE: "no type: `{type}` is NULL"}
GUARD = -1
"""The bucket that sees every micro-batch with events: it records which query the checkpoint belongs to."""
ROWS_A_PACK = 1 << 17

PACK = StructType(
    [
        StructField("bucket", IntegerType()),
        StructField("slot", IntegerType()),
        StructField("task", IntegerType()),
        StructField("number", IntegerType()),
        StructField("rows", LongType()),
        StructField("data", BinaryType()),
    ]
)
_PACK = arrow_schema(PACK)
EVENTS, MATCHES, LATE, MALFORMED, FUTURE = "events", "matches", "late", "malformed", "future"
FOUND = StructType(
    [
        StructField("kind", StringType()),
        StructField("rows", LongType()),
        StructField("reason", StringType()),
        StructField("data", BinaryType()),
    ]
)

Batches = Iterator[pa.RecordBatch]


def packed(table: pa.Table | pa.RecordBatch) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpacked(data: bytes) -> pa.Table:
    """The table from bytes."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def packing(
    schema: pa.Schema, buckets: tuple[int, ...], *, whole: bool, clock: str | None = None
) -> Callable[[Batches], Batches]:
    """A function that packs the events of a task by bucket.

    Malformed events are only counted unless `whole`. An event's slot is its place in `buckets`. If `clock`
    names the time column, every bucket gets the greatest time, and no bucket guards the checkpoint.
    """
    numbers = np.asarray(buckets, np.int32)

    def pack(batches: Batches) -> Batches:
        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        seen = _Clock(clock) if clock is not None else None
        held: list[pa.RecordBatch] = []
        waiting = total = number = 0

        def packs(held: list[pa.RecordBatch], number: int) -> pa.RecordBatch:
            table, malformed = pa.Table.from_batches(held), GUARD if clock is None else buckets[0]
            return _packs(table, schema, numbers, task, number, whole=whole, malformed=malformed)

        for batch in batches:
            if seen is not None:
                batch = seen.without(batch)
            held.append(batch)
            waiting += batch.num_rows
            total += batch.num_rows
            if waiting >= ROWS_A_PACK:
                yield packs(held, number)
                held, waiting, number = [], 0, number + 1
        if waiting:
            yield packs(held, number)
        rows = [(GUARD, 0, total)] if seen is None and total else []
        if seen is not None:
            rows = seen.packs(numbers)
        if rows:
            yield pa.RecordBatch.from_pylist(
                [
                    {"bucket": bucket, "slot": slot, "task": task, "number": 0, "rows": count, "data": None}
                    for bucket, slot, count in rows
                ],
                _PACK,
            )

    return pack


class _Clock:
    """The greatest time of the events of a task, and how many rows it read."""

    def __init__(self, time: str) -> None:
        self._time = time
        self._greatest: int | None = None
        self._rows = 0

    def without(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events of a batch, without the rows that only carry the time."""
        slots = batch.column(SLOT).to_numpy()
        self._rows += int(((slots == NOT_READ) | (slots == AHEAD)).sum())
        tells = slots <= CLOCK
        if not tells.any():
            return batch
        self._rows += int((CLOCK - slots[tells]).sum())
        told = pc.max(batch.column(self._time).filter(pa.array(tells))).cast(pa.int64()).as_py()
        if told is not None:
            self._greatest = told if self._greatest is None else max(told, self._greatest)
        return batch.filter(pa.array(~tells))

    def packs(self, buckets: np.typing.NDArray[np.int32]) -> list[tuple[int, int, int]]:
        """Bucket, slot and number of the packs that send all buckets the time, and one of them the count."""
        first = [(int(buckets[0]), COUNT, self._rows)] if self._rows else []
        if self._greatest is None:
            return first
        return [*first, *((bucket, CLOCK, self._greatest) for bucket in buckets.tolist())]


def _packs(
    table: pa.Table,
    schema: pa.Schema,
    buckets: np.typing.NDArray[np.int32],
    task: int,
    number: int,
    *,
    whole: bool,
    malformed: int,
) -> pa.RecordBatch:
    slots = table.column(SLOT).to_numpy()
    events = table.select(schema.names).cast(schema)
    low = slots.min()
    if low == slots.max():
        parts = [(int(low), events)]
    else:
        order = np.argsort(slots, kind="stable")
        events, slots = events.take(pa.array(order)), slots[order]
        cuts = [0, *(np.flatnonzero(np.diff(slots)) + 1).tolist(), len(slots)]
        parts = [(int(slots[start]), events.slice(start, end - start)) for start, end in pairwise(cuts)]
    rows = [
        {
            "bucket": int(buckets[slot]) if slot >= 0 else malformed,
            "slot": slot,
            "task": task,
            "number": number,
            "rows": part.num_rows,
            "data": packed(part.combine_chunks()) if slot >= 0 or whole else None,
        }
        for slot, part in parts
    ]
    return pa.RecordBatch.from_pylist(rows, _PACK)


def reasons_of(table: pa.Table, reason: str | None) -> pa.Array:
    """Why each event was set aside: one common reason, or one for each."""
    if reason is None:
        return table.column(UNREAD).combine_chunks()
    return pa.array([reason] * table.num_rows, pa.string())


def unpacking(kind: str) -> Callable[[Batches], Batches]:
    """A function that yields the rows of the packs of one kind."""

    def unpack(batches: Batches) -> Batches:
        for batch in batches:
            for found, data in zip(batch.column("kind").to_pylist(), batch.column("data"), strict=True):
                if found == kind:
                    yield from unpacked(data.as_buffer()).to_batches()

    return unpack


def spread(count: int, partitions: int) -> tuple[int, ...]:
    """Bucket numbers that Spark's hash partitioning distributes evenly over the partitions."""
    wanted = [count // partitions + (1 if place < count % partitions else 0) for place in range(partitions)]
    found: list[int] = []
    number = 0
    while len(found) < count:
        place = _hash(number) % partitions
        if wanted[place]:
            wanted[place] -= 1
            found.append(number)
        number += 1
    return tuple(found)


_WORD = 0xFFFFFFFF


def _hash(number: int) -> int:
    """Murmur3 of a 32-bit integer with seed 42: what Spark partitions an integer column by."""
    word = (number * 0xCC9E2D51) & _WORD
    word = ((word << 15 | word >> 17) * 0x1B873593) & _WORD
    mixed = 42 ^ word
    mixed = ((mixed << 13 | mixed >> 19) & _WORD) * 5 + 0xE6546B64 & _WORD
    mixed ^= 4
    mixed ^= mixed >> 16
    mixed = mixed * 0x85EBCA6B & _WORD
    mixed ^= mixed >> 13
    mixed = mixed * 0xC2B2AE35 & _WORD
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed
