"""A stream from a folder of files to a folder of files: what `nestream stream` runs."""

from __future__ import annotations

import json
import re
import time as clock
from collections.abc import Callable, Iterator
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
from nestream.runtime.spark.stream import METRICS
from nestream.runtime.spark.stream_aside import Aside, with_aside

SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
SCHEMA_FILE = "nestream-schema.json"
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
    _seen: int = -1

    def wait(self, seconds: float) -> bool:
        """Wait for so long; whether the stream has come to its end. Raises `EventError` where it failed."""
        try:
            ended = bool(self.query.awaitTermination(seconds))
        except StreamingQueryException as problem:
            raise EventError(why(str(problem))) from None
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
        progress.events += entry.numInputRows
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
        progress.rate = entry.processedRowsPerSecond


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
    chosen = format or format_of(source)
    df = _read(spark, source, chosen, checkpoint, files)
    if time not in df.columns:
        raise EventError(
            f"the events have no column `{time}` for the time: they have {', '.join(df.columns)}"
        )
    if df.schema[time].dataType.typeName() == "string":
        df = df.withColumn(time, F.try_to_timestamp(named(time)))
    try:
        timed = df.withWatermark(time, watermark)
    except AnalysisException as problem:
        raise EventError(f"the watermark {watermark!r} on `{time}`: {why(str(problem))}") from None
    with with_aside(None if late is None else Aside(late, output)):
        matches = match(timed)
    if output != "parquet":
        matches = matches.select(F.to_json(F.struct("*")).alias("value"))
    writer = matches.writeStream.format("parquet" if output == "parquet" else "text")
    writer = writer.option("checkpointLocation", checkpoint).outputMode("append")
    beat = f"{round(trigger * 1000)} milliseconds"
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=beat)
    return RunningStream(writer.start(sink))


def _read(spark: SparkSession, source: str, format: str, checkpoint: str, files: int | None) -> DataFrame:
    """The files as a stream; their columns are looked at once and kept with the checkpoint."""
    options = {"header": "true", "inferSchema": "true"} if format == "csv" else {}
    kept = Path(checkpoint) / SCHEMA_FILE
    if kept.is_file():
        schema = StructType.fromJson(json.loads(kept.read_text()))
    else:
        schema = spark.read.format(format).options(**options).load(source).schema
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(schema.json())
    reader = spark.readStream.format(format).options(**options).schema(schema)
    if files is not None:
        reader = reader.option("maxFilesPerTrigger", files)
    return reader.load(source)


def format_of(source: str) -> str:
    """The format of the files of a folder, by their suffixes."""
    found = set(_formats(Path(source)))
    if not found:
        raise EventError(
            f"there are no files of events in {source} yet, so their columns are unknown\n"
            f"  hint: put a first file there ({', '.join(SUFFIXES)})"
        )
    if len(found) > 1:
        raise EventError(f"{source} has files of several formats ({', '.join(sorted(found))}): name one")
    return found.pop()


def _formats(folder: Path) -> Iterator[str]:
    if not folder.is_dir():
        raise EventError(f"there is no folder {folder}")
    for file in folder.rglob("*"):
        hidden = any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts)
        suffix = "".join(file.suffixes[-2:-1]) if file.suffix in (".gz", ".zst") else file.suffix
        if file.is_file() and not hidden and suffix in SUFFIXES:
            yield SUFFIXES[suffix]


def why(text: str) -> str:
    """What is wrong, out of all that Spark says."""
    for pattern in (
        r"StateError: (.*?)\n(?=\S| SQLSTATE)",
        r"EventError: (.*?)\n(?=\S| SQLSTATE)",
        r"terminated with exception: (.*?)(?: SQLSTATE|\n=== )",
    ):
        found = re.search(pattern, text, re.DOTALL)
        if found is not None:
            return found[1].strip()
    return text.strip().splitlines()[0]
