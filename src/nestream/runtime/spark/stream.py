"""`query.match(df)` for a streaming DataFrame: filter in Spark, pack, run the engine in a stateful operator.

`nestream stream` also uses filtering and packing; its jobs need no operator.

The events are grouped by key bucket, so that a micro-batch costs a few calls of the operator and not one per
key. Without a key for all events of a query there is one bucket.

The filter is applied above the watermark: Spark takes the watermark from all the events of the stream, those
of other types included, so time always advances. (Spark moves a filter below the watermark only if it does
not read the time; this one does, because events without a time are counted.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by
from pyspark.sql.types import LongType, StringType, StructField, StructType

from nestream.engine.program import Measure, Scope
from nestream.model.lengths import Length
from nestream.runtime.spark.batch import CODE, Task, type_code
from nestream.runtime.spark.columns import (
    RAW,
    UNREAD,
    arrow_schema,
    event_fields,
    key_of,
    named,
    pushed_filter,
)
from nestream.runtime.spark.partitioning import Partitioning, choose
from nestream.runtime.spark.shipping import shipped
from nestream.runtime.spark.stream_checks import buckets_of, use_rocksdb, watermark_delay
from nestream.runtime.spark.stream_operator import Operator
from nestream.runtime.spark.stream_pack import (
    AHEAD,
    CLOCK,
    EVENTS,
    FOUND,
    LATE,
    MALFORMED,
    MATCHES,
    NO_TIME,
    NO_TYPE,
    NOT_READ,
    PACK,
    SLOT,
    Batches,
    packing,
    reasons_of,
    unpacked,
    unpacking,
)
from nestream.runtime.spark.stream_task import StreamTask

METRICS = "nestream"
"""The name of the metrics in a query's progress: events, matches, late and malformed events."""


def match_stream(
    df: DataFrame, task: Task, events: StructType, identity: str, buckets: int | None
) -> DataFrame:
    """The matches of a streaming DataFrame; its late and malformed events are counted."""
    found = _found(df, task, identity, buckets, whole=False)
    shown = task.shown(events)
    return found.filter(F.col("kind") == MATCHES).mapInArrow(shipped(unpacking(MATCHES)), shown)


def match_outcomes(
    df: DataFrame, task: Task, events: StructType, identity: str, buckets: int | None
) -> DataFrame:
    """The matches of a streaming DataFrame together with its late and malformed events.

    `outcome` is "match", "late" or "malformed", and `reason` says why an event is not taken; `match` has the
    columns of a match, and `event` those of an event.
    """
    found = _found(df, task, identity, buckets, whole=True)
    match = task.shown(events)
    event = StructType([StructField(field.name, field.dataType) for field in events.fields])
    shown = StructType(
        [
            StructField("outcome", StringType()),
            StructField("reason", StringType()),
            StructField("match", match),
            StructField("event", event),
        ]
    )
    wanted = pa.struct(list(task.wanted)), pa.struct(list(arrow_schema(event_fields(df))))
    return found.filter(F.col("kind") != EVENTS).mapInArrow(shipped(_outcomes(*wanted)), shown)


def stream_partitioning(
    program: Scope, wanted: str | None = None, slice_length: Length | None = None
) -> Partitioning:
    """How the events of a stream are split: by key where there is one, else not at all."""
    if slice_length is not None:
        raise ValueError("a stream is not cut into time slices\n  hint: leave slice_length out")
    if wanted not in (None, "key", "single"):
        raise ValueError(f"a stream cannot be partitioned by {wanted}, only by: key, single")
    if wanted is None:
        wanted = "key" if choose(program).kind == "key" else "single"
    return choose(program, wanted)


def _found(df: DataFrame, task: Task, identity: str, buckets: int | None, *, whole: bool) -> DataFrame:
    """The packs that the operator returns, counted."""
    watermark_delay(df, task.time)
    use_rocksdb(df.sparkSession)
    numbers = buckets_of(df, task.partitioning, buckets)
    unread = [pa.field(name, pa.string()) for name in (UNREAD, RAW) if whole and name in df.columns]
    events = arrow_schema(event_fields(df))
    streaming = StreamTask.of(task, events, identity, numbers, whole=whole, unread=unread)
    packs = Packer.of(streaming, numbers, unread=UNREAD in df.columns)(df)
    found = packs.groupBy("bucket").transformWithState(Operator(streaming), FOUND, "append", "EventTime")
    return found.observe(METRICS, *(_counted(kind) for kind in (EVENTS, MATCHES, LATE, MALFORMED)))


@dataclass(frozen=True)
class Packer:
    """Packs the relevant events of a DataFrame, one micro-batch after the other."""

    relevant: Column
    selected: tuple[Column, ...]
    pack: Callable[[Batches], Batches]

    @classmethod
    def of(
        cls, streaming: StreamTask, buckets: tuple[int, ...], *, unread: bool = False, clock: bool = False
    ) -> Packer:
        """The packer of a task, for a source that may have rows that could not be read.

        With `clock`, the source has rows that carry the time of irrelevant events, and all buckets get it.
        """
        task = streaming.task
        names = [name for name in streaming.carried.names if name != CODE]
        relevant, slot = _relevant(task), _slot(task, len(buckets), unread=unread)
        if clock:
            tells = named(UNREAD).isNull() & named(RAW).isNotNull()
            relevant = relevant | tells | named(UNREAD).isNotNull()
            slot = F.when(tells, F.lit(CLOCK) - named(RAW).cast("int")).otherwise(slot)
        selected = (*map(named, names), type_code(task).alias(CODE), slot.cast("int").alias(SLOT))
        time = task.time if clock else None
        return cls(
            relevant,
            selected,
            shipped(packing(streaming.carried, buckets, whole=streaming.whole, clock=time)),
        )

    def __call__(self, df: DataFrame) -> DataFrame:
        """The events as packs."""
        return df.filter(self.relevant).select(*self.selected).mapInArrow(self.pack, PACK)


def _counted(kind: str) -> Any:
    rows = F.sum(F.when(F.col("kind") == kind, F.col("rows")).otherwise(F.lit(0)))
    return F.coalesce(rows, F.lit(0)).cast(LongType()).alias(kind)


def _relevant(task: Task) -> Any:
    """The events that may matter, and the rows that could not be read."""
    malformed = named(task.time).isNull() | named(task.type).isNull()
    if task.scope.measure is Measure.EVENTS:  # every event counts
        return F.lit(True)
    return malformed | pushed_filter(task.scope, task.schema)


def _slot(task: Task, count: int, *, unread: bool) -> Any:
    key = task.partitioning.key
    place = F.lit(0)
    if key is not None and task.partitioning.kind == "key" and count > 1:
        name = task.schema.column(key)
        place = F.pmod(F.hash(key_of(name, key, task.schema)), F.lit(count))
    malformed = F.when(named(task.time).isNull(), F.lit(NO_TIME))
    if unread:
        told, timed = named(UNREAD).isNotNull(), named(task.time).isNotNull()
        malformed = F.when(told & timed, F.lit(AHEAD)).when(told, F.lit(NOT_READ))
        malformed = malformed.when(named(task.time).isNull(), F.lit(NO_TIME))
    malformed = malformed.when(named(task.type).isNull(), F.lit(NO_TYPE))
    return malformed.otherwise(place)


def _outcomes(match: pa.StructType, event: pa.StructType) -> Any:
    """A function that yields a row for each match, late event and malformed event."""

    def outcomes(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                table = unpacked(row["data"])
                is_match = row["kind"] == MATCHES
                wanted = match if is_match else event
                reasons = (
                    pa.nulls(table.num_rows, pa.string()) if is_match else reasons_of(table, row["reason"])
                )
                table = table.select([field.name for field in wanted]).cast(pa.schema(list(wanted)))
                count = table.num_rows
                rows = pa.concat_arrays([_struct(part, wanted) for part in table.to_batches()])
                name = "match" if is_match else row["kind"]
                yield pa.RecordBatch.from_pydict(
                    {
                        "outcome": pa.array([name] * count, pa.string()),
                        "reason": reasons,
                        "match": rows if is_match else pa.nulls(count, match),
                        "event": pa.nulls(count, event) if is_match else rows,
                    }
                )

    return outcomes


def _struct(batch: pa.RecordBatch, wanted: pa.StructType) -> pa.StructArray:
    return pa.StructArray.from_arrays(batch.columns, fields=list(wanted))
