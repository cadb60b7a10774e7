"""A stream of `nestream stream` without Spark: the very functions of driver and workers, and real files.

Micro-batches fail half way, workers forget their engines, and drivers start again from the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import nestream
from nestream.engine.program import Measure
from nestream.runtime.spark.batch import CODE, Task
from nestream.runtime.spark.columns import RAW, UNREAD
from nestream.runtime.spark.stream_batch import Matching, Order
from nestream.runtime.spark.stream_bucket import KEPT
from nestream.runtime.spark.stream_commit import Commits
from nestream.runtime.spark.stream_job import Plan, StreamJob, Writes
from nestream.runtime.spark.stream_pack import CLOCK, NO_TIME, NO_TYPE, SLOT, packing, spread
from nestream.runtime.spark.stream_place import Place
from nestream.runtime.spark.stream_results import Results
from nestream.runtime.spark.stream_rules import FixedQueries, JobQueries
from nestream.runtime.spark.stream_sink import BatchFiles
from nestream.runtime.spark.stream_task import StreamTask


class LostError(Exception):
    """A worker that died."""


class _Job(StreamJob):
    """A driver whose workers are functions of this process."""

    lose: Callable[[], bool] = staticmethod(lambda: False)

    def _results(self, packs: Any, order: Order) -> Results:
        found: list[pa.RecordBatch] = []
        for number in self._buckets:
            rows = [row for row in packs if row["bucket"] == number]
            if rows:
                batch = pa.RecordBatch.from_pylist(rows, PACKS)
                found += Matching(self._plan.shipped, order)(iter([batch]))
            if self.lose():
                raise LostError
        return Results.of(pa.Table.from_batches(found, FOUND))


UNREAD_COLUMNS = [pa.field(name, pa.string()) for name in (UNREAD, RAW)]
PACKS = pa.schema(
    [(name, pa.int32()) for name in ("bucket", "slot", "task", "number")]
    + [("rows", pa.int64()), ("data", pa.binary())]
)
FOUND = pa.schema(
    [("kind", pa.string()), ("rows", pa.int64()), ("reason", pa.string()), ("data", pa.binary())]
)


class SimulatedJob:
    """A stream over events of a schema with a delay in microseconds, in a folder."""

    job: _Job

    def __init__(
        self,
        text: str,
        schema: pa.Schema,
        path: Path,
        *,
        order: str = "time",
        buckets: int = 3,
        delay: int = 0,
        strategy: str = "auto",
    ) -> None:
        compiled = (
            nestream.query(text).prepare(schema.empty_table(), order=order, strategy=strategy).compiled()
        )
        identity = f"{text} {order} {strategy}"
        self.queries: Callable[[Commits], JobQueries] = lambda _: FixedQueries(compiled, identity)
        self.limit = compiled.limit
        self._begin(schema, path, delay, buckets)

    def _begin(self, schema: pa.Schema, path: Path, delay: int, buckets: int) -> None:
        self.schema, self.path, self.delay = schema, path, delay
        self.wanted_buckets = buckets
        self.number = 0
        self.start()

    def start(self) -> None:
        """Start the driver, as after it was killed."""
        if hasattr(self, "job"):
            self.job.close()  # as the system does for a process that ends
        commits = Commits(str(self.path / "check"))
        try:
            queries = self.queries(commits)
            is_split = queries.partitioning.kind == "key"
            self.numbers = spread(self.wanted_buckets, 3) if is_split else (0,)
            aside = pa.schema([*self.schema, pa.field("reason", pa.string()), pa.field("raw", pa.string())])
            writes = Writes(
                str(self.path / "check"),
                BatchFiles(Place(str(self.path / "out")), "part", "parquet", pa.schema([])),
                BatchFiles(Place(str(self.path / "late")), "late", "parquet", aside),
            )
            self.job = _Job(
                queries,
                self._planned,
                self.numbers,
                writes,
                commits,
                packs_of=list,  # type: ignore[arg-type]
                delay=self.delay,
                limit=self.limit,
            )
            self.job.open()
        except BaseException:
            commits.close()
            raise

    def _planned(self, queries: JobQueries) -> Plan:
        """How a micro-batch is run, its events being a table."""
        task = Task(queries.compiled, queries.partitioning, ordered=queries.types)
        self.task = StreamTask.of(
            task,
            self.schema,
            queries.identity,
            self.numbers,
            whole=True,
            unread=UNREAD_COLUMNS,
            versions=queries.versions,
        )
        return Plan(self.task, self._packs)

    def _packs(self, events: pa.Table) -> Any:
        pack = packing(self.task.carried, self.numbers, whole=True, clock="ts")
        return [row for batch in pack(self._prepared(events)) for row in batch.to_pylist()]

    def batch(self, events: pa.Table, chance: Random) -> None:
        """One micro-batch, at times after others of it that failed half way."""
        while chance.random() < 0.2:
            self.job.lose = lambda: chance.random() < 0.5
            try:
                self.run(events)
            except LostError:
                pass
            else:
                break
            if chance.random() < 0.5:
                self.start()
        self.job.lose = lambda: False
        if chance.random() < 0.3:
            KEPT._buckets.clear()
        if chance.random() < 0.2:
            self.start()
        self.run(events)  # again where it was done: it is passed over
        self.number += 1

    def run(self, events: pa.Table) -> None:
        """The micro-batch that is next."""
        self.job(events, self.number)

    def _prepared(self, events: pa.Table) -> Iterator[pa.RecordBatch]:
        """The columns that Spark computes before packing, and the row that tells the time."""
        task = self.task.task
        told = max(
            moment for moment in events.column("ts").cast(pa.int64()).to_pylist() if moment is not None
        )
        count = events.num_rows
        events = self._relevant(events)
        moments = events.column("ts").cast(pa.int64()).to_pylist()
        names = events.column("type").to_pylist()
        codes = [task.types.index(n) if n in task.types else len(task.types) for n in names]
        key = task.partitioning.key
        keys = events.column(key).to_pylist() if key is not None else [0] * len(names)
        slots = [
            NO_TIME if moment is None else NO_TYPE if name is None else hash(repr(value)) % len(self.numbers)
            for moment, name, value in zip(moments, names, keys, strict=True)
        ]
        numbers = pa.array(names if task.scope.any_type else codes)
        for field in UNREAD_COLUMNS:
            events = events.append_column(field, pa.nulls(events.num_rows, field.type))
        rows = events.append_column(CODE, numbers.cast(self.task.carried.field(CODE).type))
        rows = rows.append_column(SLOT, pa.array(np.asarray(slots), pa.int32()))
        clock = pa.Table.from_pylist(
            [{"ts": told, SLOT: CLOCK - count}],
            pa.schema([field if field.name != "ts" else pa.field("ts", pa.int64()) for field in rows.schema]),
        ).cast(rows.schema)
        yield from pa.concat_tables([rows, clock]).combine_chunks().to_batches()

    def _relevant(self, events: pa.Table) -> pa.Table:
        """The events that Spark lets through."""
        scope = self.task.task.scope
        if scope.any_type or scope.measure is Measure.EVENTS:
            return events
        known = pc.is_in(events.column("type"), pa.array([*scope.types, None], pa.string()))
        return events.filter(pc.or_(known, pc.is_null(events.column("ts"))))

    @property
    def matches(self) -> pa.Table:
        """The matches so far, as any reader finds them."""
        files = sorted((self.path / "out").glob("*.parquet"))
        return pa.concat_tables([self.task.wanted.empty_table(), *map(pq.read_table, files)])

    @property
    def late(self) -> list[dict[str, Any]]:
        """The events that were left out so far."""
        files = sorted((self.path / "late").glob("*.parquet"))
        return [event for file in files for event in pq.read_table(file).to_pylist()]

    @property
    def state_files(self) -> list[Path]:
        """The files of the state."""
        return sorted((self.path / "check" / "nestream").glob("state-*"))
