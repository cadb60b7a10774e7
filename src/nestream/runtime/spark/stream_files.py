"""A stream from a folder or topics to a folder or a topic: what `nestream stream` runs."""

from __future__ import annotations

import builtins
import json
import time as clock
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from nestream.job.live_rules import Change
from nestream.job.progress import Progress, State
from nestream.model.kafka import is_kafka
from nestream.model.schema import EventError
from nestream.model.zones import zone_named
from nestream.runtime.spark.columns import (
    RAW,
    UNREAD,
    arrow_schema,
    event_fields,
    named,
    session_zone,
)
from nestream.runtime.spark.match import streaming_task
from nestream.runtime.spark.shipping import shipped, why
from nestream.runtime.spark.stream import Packer
from nestream.runtime.spark.stream_batch import REASON, TEXT
from nestream.runtime.spark.stream_checks import buckets_of, shuffle_partitions
from nestream.runtime.spark.stream_commit import Commits, check_logs
from nestream.runtime.spark.stream_job import Plan, Stopped, StreamJob, Writes
from nestream.runtime.spark.stream_kafka import BatchTopic, Topics
from nestream.runtime.spark.stream_pack import PACK, Batches
from nestream.runtime.spark.stream_place import Place
from nestream.runtime.spark.stream_rules import JobQueries
from nestream.runtime.spark.stream_sink import FORMATS, BatchFiles
from nestream.runtime.spark.stream_source import Files
from nestream.runtime.spark.stream_task import StreamTask

SCHEMA_FILE = "nestream-schema.json"
SHORTEST = 0.001
"""Spark refuses to wait for no time at all."""
STOPPING = 10.0
"""How many seconds to wait for a running micro-batch when a stream is stopped."""
TICK = 1.0
"""The seconds between two writes of progress.json while nothing happens."""
Queries = Callable[[DataFrame, int, Mapping[str, Any] | None, bool], JobQueries]
"""Makes the queries of a job.

Takes the events, the delay of the watermark in microseconds, the rules of a checkpoint, and whether a new
stream splits its events by key.
"""


@dataclass
class RunningStream:
    """A stream that runs until it is stopped, or with `once` until all files are done."""

    query: Any
    job: StreamJob
    spark: SparkSession
    ends: bool = False
    """Whether the stream ends by itself."""
    flush: bool = False
    """Whether the input has ended then."""
    on_batch: Callable[[Progress], None] | None = None
    """Called after each micro-batch, as soon as `wait` sees it."""
    on_change: Callable[[Change], None] | None = None
    """Called after each change of the rules."""
    _told: float = 0.0

    @property
    def progress(self) -> Progress:
        """How far the stream is."""
        return self.job.progress

    def wait(self, seconds: float | None = None) -> bool:
        """Wait that long, or until the stream has ended; return whether it has.

        Raises an `EventError` if it failed.
        """
        if seconds is None:
            while not self.wait(1.0):
                pass
            return True
        try:
            ended = bool(self.query.awaitTermination(max(seconds, SHORTEST)))
            if ended and self.ends and self.progress.state is not State.FINISHED:
                self.job.finish(flush=self.flush)
                self.progress.state = State.FINISHED
            elif not ended:
                self.job.look()
        except (PySparkException, Py4JError, EventError) as problem:
            failed = self.job.problem or problem
            with suppress(PySparkException):
                self.query.stop()
            self.progress.error = str(failed) if isinstance(failed, EventError) else why(str(failed))
            self._tell(State.FAILED)
            self.job.close()
            raise EventError(self.progress.error) from None
        self._tell()
        if ended:
            self.job.close()
        return ended

    def stop(self) -> None:
        """Stop after the running micro-batch; a later run continues from there."""
        self.job.stopping.set()
        end = clock.monotonic() + STOPPING
        while self.query.isActive and self.query.status["isTriggerActive"] and clock.monotonic() < end:
            clock.sleep(0.02)
        with suppress(PySparkException):
            self.query.stop()
        if self.job.problem is not None and not isinstance(self.job.problem, Stopped):
            self.wait(0)
        self._tell(State.STOPPED)
        self.job.close()

    def _tell(self, state: State | None = None) -> None:
        """Pass on what the job has done, and write progress.json when it is due."""
        news = False
        while not self.job.done.empty():
            done, news = self.job.done.get(), True
            if self.on_batch is not None:
                self.on_batch(done)
        while not self.job.changes.empty():
            change, news = self.job.changes.get(), True
            if self.on_change is not None:
                self.on_change(change)
        due = clock.monotonic() >= self._told + TICK
        if state is not None or news or due:
            self._told = clock.monotonic()
            with suppress(EventError):  # the disk may be full
                self.job.tell(state)


def stream_files(
    spark: SparkSession,
    queries: Queries,
    source: str,
    sink: str,
    *,
    checkpoint: str,
    time: str,
    type: str,
    watermark: int,
    limit: int | None = None,
    format: str | None = None,
    schemas: Sequence[str] = (),
    output: str = "parquet",
    late: str | None = None,
    once: bool = False,
    flush: bool = False,
    files: int | None = None,
    trigger: float = 0.0,
    partitions: int | None = None,
    future: timedelta | None = None,
) -> RunningStream:
    """Start matching the files of a folder or the messages of topics, present and future.

    Matches go to the folder or topic `sink`, late events and dead letters to `late`, and so do events whose
    time is ahead of the clock by more than `future`. `schemas` are the files with the schemas of messages of
    Avro, each `FILE`, or `ID=FILE` with its id in a registry.

    The watermark trails the greatest time by `watermark` microseconds. A micro-batch begins every `trigger`
    seconds, or when the previous one has ended. With `flush`, the input ends when the files are done.
    `partitions` is the number of key buckets; a checkpoint keeps its original number.
    """
    if builtins.type(spark).__module__.startswith("pyspark.sql.connect"):
        raise EventError(
            "a job of files or topics runs in the driver of Spark, and this is a session of Spark Connect\n"
            "  hint: run nestream stream with the --master of the cluster, or write query.match(df) "
            "with writeStream"
        )
    if output not in FORMATS:
        raise ValueError(f"unknown format {output!r} for matches: one of {', '.join(FORMATS)}")
    found = _source(source, format, schemas, time, type)
    columns = _columns(spark, found, source, checkpoint)
    _check_columns(columns, time, type)
    listed = found.listed(spark, source, files)
    reading = Reading(found, columns, future)
    df = reading(listed)
    with ExitStack() as opened:
        commits = Commits(checkpoint)
        opened.callback(commits.close)
        check_logs(checkpoint)
        count = partitions or _default_partitions(spark)
        now = queries(df.drop(UNREAD, RAW), watermark, commits.kept_rules(), count > 1)
        if commits.last is None:
            buckets = buckets_of(df, now.partitioning, count, count)
        else:
            buckets = commits.last.buckets
        planning = Planning(df, reading, buckets, whole=late is not None)
        aside = None
        if late is not None:
            columns_aside = _aside_columns(arrow_schema(event_fields(df)))
            aside = _written(late, "late", output, columns_aside, checkpoint)
        wanted = planning(now).task.wanted
        job = StreamJob(
            now,
            planning,
            buckets,
            Writes(checkpoint, _written(sink, "part", output, wanted, checkpoint), aside),
            commits,
            packs_of=lambda rows: spark.createDataFrame(rows, PACK),
            delay=watermark,
            limit=limit,
        )
        job.open()
        job.look()
        writer = listed.writeStream.foreachBatch(job).option("checkpointLocation", checkpoint)
        found.check_same(Place(checkpoint))  # what a start keeps comes last: one that fails keeps nothing
        _keep(columns, checkpoint)
        beat = f"{round(trigger * 1000)} milliseconds"
        once = once or flush
        writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=beat)
        job.tell(State.STARTING)
        running = RunningStream(writer.start(), job, spark, ends=once, flush=flush)
        job.progress.state = State.RUNNING
        opened.pop_all()
        return running


@dataclass(frozen=True)
class Reading:
    """Reads the events of a micro-batch, and the rows that cannot be used."""

    files: Files
    columns: StructType
    future: timedelta | None

    def __call__(self, listed: DataFrame) -> DataFrame:
        """The events of files or messages; times are timestamps."""
        function = self._function
        if self.future is not None:  # one limit for the micro-batch, however often its tasks run
            limit = datetime.now(zone_named(session_zone(listed))) + self.future
            function = shipped(self.files.reading(arrow_schema(self.columns), limit))
        return listed.mapInArrow(function, self._carried).select(*self._shown)

    @cached_property
    def _function(self) -> Callable[[Batches], Batches]:
        return shipped(self.files.reading(arrow_schema(self.columns)))

    @cached_property
    def _carried(self) -> StructType:
        """The columns in transit: `mapInArrow` fails on names with dots."""
        fields = [StructField(f"c{n}", field.dataType) for n, field in enumerate(self.columns.fields)]
        return StructType([*fields, StructField(UNREAD, StringType()), StructField(RAW, StringType())])

    @cached_property
    def _shown(self) -> list[Column]:
        shown = []
        for number, field in enumerate(self.columns.fields):
            column = named(f"c{number}")
            if field.name == self.files.time and field.dataType.typeName() == "timestamp_ntz":
                column = column.cast("timestamp")
            shown.append(column.alias(field.name))
        return [*shown, named(UNREAD), named(RAW)]


@dataclass(frozen=True)
class Planning:
    """Plans the micro-batches of queries over events with the columns of a DataFrame."""

    df: DataFrame
    reading: Reading
    buckets: tuple[int, ...]
    whole: bool

    def __call__(self, queries: JobQueries) -> Plan:
        """How micro-batches run with these queries."""
        task = streaming_task(self.df, queries.compiled, queries.partitioning, queries.types)
        unread = [pa.field(name, pa.string()) for name in (UNREAD, RAW) if self.whole]
        events = arrow_schema(event_fields(self.df))
        streaming = StreamTask.of(
            task,
            events,
            queries.identity,
            self.buckets,
            whole=self.whole,
            unread=unread,
            versions=queries.versions,
        )
        packer = Packer.of(streaming, self.buckets, unread=True, clock=True)
        return Plan(streaming, lambda listed: packer(self.reading(listed)))


def _source(source: str, format: str | None, schemas: Sequence[str], time: str, type: str) -> Files:
    """The files of a folder, or the messages of topics, as a source."""
    if is_kafka(source):
        return Topics.at(source, time, type, format, schemas)
    if schemas:
        raise EventError(
            f"only Avro messages in Kafka need a schema, and {source} is a folder: Avro files have their own"
        )
    return Files.of(source, format, time, type)


def _written(where: str, prefix: str, format: str, schema: pa.Schema, checkpoint: str) -> BatchFiles:
    """The files of a folder, or the messages of a topic, as a sink."""
    if is_kafka(where):
        return BatchTopic.at(where, checkpoint, prefix, schema)
    return BatchFiles(Place(where), prefix, format, schema)


def _default_partitions(spark: SparkSession) -> int:
    """One partition per core of this machine, for one wave of tasks per micro-batch; else Spark's own."""
    context = spark.sparkContext
    is_local = (context.master or "").startswith("local")
    return context.defaultParallelism if is_local else shuffle_partitions(spark)


def _check_columns(columns: StructType, time: str, type: str) -> None:
    for role, name in (("time", time), ("type", type)):
        if name not in columns.names:
            raise EventError(
                f"the events have no column `{name}` for the {role}: they have {', '.join(columns.names)}"
            )
    moment = columns[time].dataType
    if moment.typeName() not in ("timestamp", "timestamp_ntz"):
        raise EventError(
            f"the time column `{time}` holds {moment.simpleString()}, but Spark streams need timestamps\n"
            "  hint: write the times as ISO-8601 timestamps; `nestream run` and query.stream() take integers"
        )


def _aside_columns(events: pa.Schema) -> pa.Schema:
    """The columns of events that are left out: their own, the reason, and the text of unreadable rows."""
    taken = [name for name in (REASON, TEXT) if name in events.names]
    if taken:
        raise EventError(
            f"the events have a column `{taken[0]}`, and late events are written with a column of that name\n"
            "  hint: rename the column, or leave out --late"
        )
    return pa.schema([*events, pa.field(REASON, pa.string()), pa.field(TEXT, pa.string())])


def _columns(spark: SparkSession, files: Files, source: str, checkpoint: str) -> StructType:
    """The columns that are kept with the checkpoint, or those of the files."""
    known = Place(checkpoint).read(SCHEMA_FILE)
    return files.columns(spark, source) if known is None else StructType.fromJson(json.loads(known))


def _keep(columns: StructType, checkpoint: str) -> None:
    """Keep the columns with the checkpoint, for all starts after the first."""
    kept = Place(checkpoint)
    if kept.read(SCHEMA_FILE) is None:
        kept.make()
        kept.write(SCHEMA_FILE, columns.json().encode())
