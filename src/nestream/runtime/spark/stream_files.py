"""A stream from a folder of files to a folder of files: what `nestream stream` runs."""

from __future__ import annotations

import json
import time as clock
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by
from pyspark.sql.types import StructType

from nestream.model.schema import EventError
from nestream.runtime.spark.columns import named
from nestream.runtime.spark.shipping import why
from nestream.runtime.spark.stream import METRICS
from nestream.runtime.spark.stream_aside import Aside, with_aside
from nestream.runtime.spark.stream_source import Files

READ = "nestream read"
"""The name under which a query's progress has the number of rows in the files, events or not."""
SCHEMA_FILE = "nestream-schema.json"
SLOW_START = "Python worker failed to connect back"
"""What Spark says of a worker that does not start within ten seconds, as on a busy machine; it is fixed."""
MOST_RESTARTS = 5
"""How often a stream is started again for that reason; its checkpoint loses and repeats nothing."""
STOPPING = 5.0
"""The seconds that a micro-batch under way is waited for when a stream is stopped."""


@dataclass
class Progress:
    """How far a stream is, since it was started."""

    events: int = 0
    matches: int = 0
    late: int = 0
    malformed: int = 0
    batches: int = 0
    batch: int = -1
    """The number of the last micro-batch; a stream that goes on from a checkpoint counts on."""
    at: datetime | None = None
    """When the last micro-batch began."""
    watermark: datetime | None = None
    lag: float | None = None
    """The seconds from the watermark to the time of the last micro-batch."""
    state_bytes: int = 0
    rate: float = 0.0
    """Events a second in the last micro-batch."""


@dataclass
class RunningStream:
    """A stream that runs until it is stopped, or with `once` until all the files are done."""

    query: Any
    progress: Progress = field(default_factory=Progress)
    on_batch: Callable[[Progress], None] | None = None
    """Called after each micro-batch, as soon as `wait` sees it."""
    again: Callable[[], Any] | None = None
    """Starts the query from its checkpoint."""
    _seen: int = -1
    _restarts: int = 0

    def wait(self, seconds: float) -> bool:
        """Wait for so long; whether the stream has come to its end. Raises `EventError` where it failed."""
        try:
            ended = bool(self.query.awaitTermination(seconds))
        except StreamingQueryException as problem:
            if SLOW_START not in str(problem) or self.again is None or self._restarts == MOST_RESTARTS:
                raise EventError(why(str(problem))) from None
            self._update()
            self._restarts += 1
            self.query, ended = self.again(), False
        finally:
            self._update()
        return ended

    def stop(self) -> None:
        """Stop after the last complete micro-batch; a later run goes on from there.

        One that is under way is waited for, within limits: Spark reports one that is cut off as a failure.
        """
        end = clock.monotonic() + STOPPING
        while self.query.status["isTriggerActive"] and clock.monotonic() < end:
            clock.sleep(0.02)
        self.query.stop()
        self._update()

    def _update(self) -> None:
        for entry in self.query.recentProgress:
            idle = "addBatch" not in entry.durationMs  # told under the number of the batch to come
            if idle or entry.batchId <= self._seen or not entry.stateOperators:
                continue
            self._seen = entry.batchId
            self._count(entry)
            if self.on_batch is not None:
                self.on_batch(self.progress)

    def _count(self, entry: Any) -> None:
        progress = self.progress
        progress.batches += 1
        progress.batch = entry.batchId
        progress.at = _moment(entry.timestamp)
        read = entry.observedMetrics.get(READ)
        rows = 0 if read is None else read["rows"]
        progress.events += rows
        counted = entry.observedMetrics.get(METRICS)
        if counted is not None:
            progress.matches += counted["matches"]
            progress.late += counted["late"]
            progress.malformed += counted["malformed"]
        watermark = entry.eventTime.get("watermark")
        if watermark is not None and not watermark.startswith("1970"):
            progress.watermark = _moment(watermark)
            progress.lag = (progress.at - progress.watermark).total_seconds()
        operators = entry.stateOperators
        progress.state_bytes = sum(
            max(one.memoryUsedBytes, one.customMetrics.get("rocksdbSstFileSize", 0)) for one in operators
        )
        progress.rate = 1000 * rows / max(entry.durationMs["triggerExecution"], 1)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


def stream_files(
    spark: SparkSession,
    match: Callable[[DataFrame], DataFrame],
    source: str,
    sink: str,
    *,
    checkpoint: str,
    time: str,
    type: str,
    watermark: str,
    format: str | None = None,
    output: str = "parquet",
    late: str | None = None,
    once: bool = False,
    files: int | None = None,
    trigger: float = 1.0,
) -> RunningStream:
    """Start matching the files of a folder, there and to come; late events go to `late`.

    A micro-batch begins every `trigger` seconds, or when the one before has ended.
    """
    found = Files.of(source, format, time, type)
    columns = _columns(spark, found, source, checkpoint)
    for role, name in (("time", time), ("type", type)):
        if name not in columns.names:
            raise EventError(
                f"the events have no column `{name}` for the {role}: they have {', '.join(columns.names)}"
            )
    moment = columns[time].dataType
    if moment.typeName() not in ("timestamp", "timestamp_ntz"):
        raise EventError(
            f"the time column `{time}` holds {moment.simpleString()}, and Spark streams need timestamps\n"
            "  hint: write the times as ISO-8601 timestamps; `nestream run` and query.stream() take integers"
        )
    df = found.events(spark, source, columns, files).observe(READ, F.count(F.lit(1)).alias("rows"))
    if moment.typeName() == "timestamp_ntz":  # Spark has no watermarks on these
        df = df.withColumn(time, named(time).cast("timestamp"))
    try:
        timed = df.withWatermark(time, watermark)
    except AnalysisException as problem:
        raise EventError(f"the watermark {watermark!r} on `{time}`: {why(str(problem))}") from None
    with with_aside(None if late is None else Aside(late, output)):
        matches = match(timed)
    writer = matches.writeStream.format(output)
    writer = writer.option("checkpointLocation", checkpoint).outputMode("append")
    beat = f"{round(trigger * 1000)} milliseconds"
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=beat)
    return RunningStream(writer.start(sink), again=lambda: writer.start(sink))


def _columns(spark: SparkSession, files: Files, source: str, checkpoint: str) -> StructType:
    """The columns of the files; they are looked at once and kept with the checkpoint."""
    kept = Path(checkpoint) / SCHEMA_FILE
    if kept.is_file():
        return StructType.fromJson(json.loads(kept.read_text(encoding="utf-8")))
    columns = files.columns(spark, source)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(columns.json(), encoding="utf-8")
    return columns
