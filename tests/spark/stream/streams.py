"""Running streams on Spark from files: one file is one micro-batch."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import nestream
from nestream.runtime.spark.collecting import LOST_WORKERS
from nestream.runtime.spark.stream_files import RunningStream

FIRST_MOMENT = 1_700_000_000
"""The modification time of the first file: the source takes files by that."""

MOST_STARTS = 40
"""How often a stream is started whose workers do not start in Spark's ten seconds."""
PATIENCE = 600
"""The seconds within which a stream must take further events or come to its end, on any machine."""


def wait_for_end(running: RunningStream) -> None:
    """Wait until a stream with `once` has done all files; fail where it stands still."""
    events, since = 0, time.monotonic()
    while not running.wait(1):
        if running.progress.events > events:
            events, since = running.progress.events, time.monotonic()
        assert time.monotonic() < since + PATIENCE, f"the stream has stood still for {PATIENCE} seconds"


@dataclass
class Folder:
    """A folder of events that a stream reads, with its checkpoint and its sink."""

    spark: SparkSession
    path: Path

    def add(self, events: pa.Table) -> None:
        """Add a file of events."""
        (self.path / "in").mkdir(exist_ok=True)
        number = len(list((self.path / "in").glob("*.parquet")))
        hidden, file = self.path / f".{number}", self.path / "in" / f"{number:05}.parquet"
        pq.write_table(events, hidden)
        os.utime(hidden, (FIRST_MOMENT + number, FIRST_MOMENT + number))
        hidden.rename(file)

    def read(self, schema: pa.Schema, delay: str = "0 seconds", files: int = 1) -> DataFrame:
        """The events as a stream, a micro-batch for some files."""
        columns = from_arrow_schema(schema, prefer_timestamp_ntz=True)
        reader = self.spark.readStream.schema(columns).option("maxFilesPerTrigger", files)
        return reader.parquet(str(self.path / "in")).withWatermark("ts", delay)

    def run(self, matches: DataFrame, **options: Any) -> list[Any]:
        """Write all that is there now to the sink, and go on from the checkpoint; the progress."""
        stream = matches.writeStream.format("parquet").option("checkpointLocation", str(self.path / "check"))
        stream = stream.options(**options).trigger(availableNow=True)
        before: list[Any] = []
        for left in reversed(range(MOST_STARTS)):
            running = stream.start(str(self.path / "out"))
            try:
                assert running.awaitTermination(PATIENCE), f"the stream takes longer than {PATIENCE} seconds"
            except StreamingQueryException as problem:
                if LOST_WORKERS[0] not in str(problem) or not left:
                    raise
            else:
                return [*before, *running.recentProgress]
            finally:
                running.stop()
            before += running.recentProgress  # on a busy machine: go on from the checkpoint
        raise AssertionError("the last start ends the stream or raises")

    def stream(self, query: Any, delay: str = "0 seconds", **options: Any) -> RunningStream:
        """Start `stream_files` over what is there now, from the checkpoint; a micro-batch for each file."""
        running: RunningStream = query.stream_files(
            self.spark,
            str(self.path / "in"),
            str(self.path / "out"),
            checkpoint=str(self.path / "check"),
            late=str(self.path / "late"),
            watermark=delay,
            **{"once": True, "files": 1, **options},
        )
        return running

    def found(self) -> pa.Table:
        """What the sink has, as Spark reads it."""
        return self.spark.read.parquet(str(self.path / "out")).toArrow()

    def matches(
        self, text: str, parts: Iterable[pa.Table], delay: str = "0 seconds", **options: Any
    ) -> pa.Table:
        """The matches over parts of a stream, one micro-batch each."""
        schema = None
        for part in parts:
            self.add(part)
            schema = part.schema
        assert schema is not None
        self.run(nestream.query(text).on_spark(self.read(schema, delay), **options))
        return self.found()
