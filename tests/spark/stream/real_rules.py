"""A job with rules on real Spark that a test feeds one micro-batch after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import nestream
from nestream.job import LiveRules, RuleSource
from nestream.queries import stream_rules
from nestream.runtime.spark.stream_files import RunningStream
from nestream.runtime.spark.stream_job import StreamJob
from tests.spark.stream.streams import PATIENCE, Folder, wait_for_end


class RealRules:
    """The stream of a folder with rules that change; it has what a simulated one has."""

    running: RunningStream

    def __init__(
        self, rules: RuleSource, folder: Folder, first: pa.Table, *, partitions: int = 2, delay: int = 0
    ) -> None:
        self.rules, self.folder = rules, folder
        self._how = {"partitions": partitions, "watermark": f"{delay} microseconds"}
        self.folder.add(first)  # decides the columns
        self.start()
        self.wait_for(lambda: self.job.progress.batch == 0)

    @property
    def job(self) -> StreamJob:
        return self.running.job

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.job._buckets

    def start(self, **how: Any) -> None:
        """Start the stream, from its checkpoint."""
        if hasattr(self, "running"):
            self.running.stop()
        path = self.folder.path
        self.running = stream_rules(
            LiveRules(self.rules, nestream.queries, lambda parsed: parsed),
            self.folder.spark,
            str(path / "in"),
            str(path / "out"),
            checkpoint=str(path / "check"),
            late=str(path / "late"),
            files=1,
            **self._how,
            **how,
        )

    def wait_for(self, reached: Callable[[], bool]) -> None:
        """Wait for a state; a stream that fails raises."""
        end = time.monotonic() + PATIENCE
        while not reached():
            assert time.monotonic() < end, "the stream does not get there"
            self.running.wait(0.05)

    def batch(self, events: pa.Table, chance: Random | None = None) -> None:
        """One micro-batch."""
        number = self.job.progress.batch + 1
        self.folder.add(events)
        self.wait_for(lambda: self.job.progress.batch == number)

    def finish(self) -> None:
        """End the input, and emit what is pending."""
        self.start(flush=True)
        wait_for_end(self.running)

    @property
    def matches(self) -> pa.Table:
        """The matches so far, as any reader finds them."""
        return pa.concat_tables(map(pq.read_table, files(self.folder.path / "out")))


def files(folder: Path) -> list[Path]:
    """The files of a folder that any reader takes."""
    return sorted(folder.glob("[!.]*.parquet"))
