"""Spark's part of a stream, simulated: micro-batches, watermark, timers, and a state that comes and goes.

It runs the very functions that Spark runs, without Spark, so that thousands of streams can be tried; what
Spark itself does is tried with it in the other modules.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

import nestream
from nestream.runtime.spark.batch import CODE, Task
from nestream.runtime.spark.stream import stream_partitioning
from nestream.runtime.spark.stream_bucket import KEPT
from nestream.runtime.spark.stream_operator import Operator
from nestream.runtime.spark.stream_pack import (
    LATE,
    MATCHES,
    NO_TIME,
    NO_TYPE,
    SLOT,
    packing,
    spread,
    unpacked,
)
from nestream.runtime.spark.stream_task import StreamTask


@dataclass
class State:
    """What the state store has for one bucket."""

    values: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    maps: dict[str, dict[Any, Any]] = field(default_factory=lambda: defaultdict(dict))
    timers: set[int] = field(default_factory=set)


class _Value:
    def __init__(self, handle: Handle, name: str) -> None:
        self.handle, self.name = handle, name

    def get(self) -> tuple[Any, ...] | None:
        return self.handle.current.values.get(self.name)

    def update(self, value: tuple[Any, ...]) -> None:
        self.handle.current.values[self.name] = value

    def clear(self) -> None:
        self.handle.current.values.pop(self.name, None)


class _Map:
    def __init__(self, handle: Handle, name: str) -> None:
        self.handle, self.name = handle, name

    def getValue(self, key: Any) -> Any:  # noqa: N802
        return self.handle.current.maps[self.name].get(key)

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802
        self.handle.current.maps[self.name][key] = value

    def removeKey(self, key: Any) -> None:  # noqa: N802
        del self.handle.current.maps[self.name][key]

    def clear(self) -> None:
        self.handle.current.maps[self.name].clear()


class Handle:
    """The handle that Spark gives to an operator."""

    def __init__(self) -> None:
        self.buckets: dict[int, State] = {}
        self.current = State()

    def getValueState(self, name: str, schema: Any) -> _Value:  # noqa: N802
        return _Value(self, name)

    def getMapState(self, name: str, key: Any, value: Any) -> _Map:  # noqa: N802
        return _Map(self, name)

    def registerTimer(self, moment: int) -> None:  # noqa: N802
        self.current.timers.add(moment)

    def deleteTimer(self, moment: int) -> None:  # noqa: N802
        self.current.timers.remove(moment)

    def use(self, bucket: int) -> None:
        """Make a bucket the current one."""
        self.current = self.buckets.setdefault(bucket, State())


class SimulatedStream:
    """A stream over events of a schema with a delay in microseconds.

    A timer expires when the watermark is so many milliseconds `after` it: none or one, with the version of
    Spark.
    """

    def __init__(
        self,
        text: str,
        schema: pa.Schema,
        *,
        order: str = "time",
        buckets: int = 3,
        delay: int = 0,
        after: int = 0,
        strategy: str = "auto",
    ) -> None:
        query = nestream.query(text)
        compiled = query.prepare(schema.empty_table(), order=order, strategy=strategy).compiled()
        partitioning = stream_partitioning(compiled.scope)
        task = Task(compiled, partitioning)
        self.numbers = spread(buckets, 3) if partitioning.kind == "key" else (0,)
        self.task = StreamTask.of(task, schema, f"{text} {order} {strategy}", self.numbers, whole=True)
        self.wanted = task.wanted
        self.handle = Handle()
        self.delay = delay
        self.watermark = 0
        self.greatest = 0
        self.after = after
        self.found: list[Row] = []

    def batch(self, events: pa.Table | None, chance: Random) -> None:
        """One micro-batch, at times after others of it that failed half way."""
        before = copy.deepcopy(self.handle.buckets)
        while chance.random() < 0.15:
            for _ in zip(self._rows(events), range(chance.randrange(4)), strict=False):
                pass
            self.handle.buckets = copy.deepcopy(before)
        if chance.random() < 0.3:
            KEPT._buckets.clear()
        self.found += list(self._rows(events))
        if events is not None and events.num_rows:
            latest = max(moment for moment in self._micros(events) if moment is not None)
            self.greatest = max(self.greatest, latest)

    def next_watermark(self) -> None:
        """What Spark does between micro-batches."""
        self.watermark = max(self.watermark, self.greatest // 1000 - self.delay // 1000)

    def _rows(self, events: pa.Table | None) -> Iterator[Row]:
        operator = Operator(self.task)
        operator.init(self.handle)  # type: ignore[arg-type]
        values = TimerValues(0, self.watermark)
        groups: dict[int, list[Any]] = defaultdict(list)
        for batch in packing(self.task.carried, self.numbers, whole=True)(self._prepared(events)):
            for row in batch.to_pylist():
                groups[row["bucket"]].append(Row(**row))
        for bucket, rows in groups.items():
            self.handle.use(bucket)
            yield from operator.handleInputRows((bucket,), iter(rows), values)
        for bucket, state in list(self.handle.buckets.items()):
            for moment in sorted(state.timers):
                if moment <= self.watermark - self.after:
                    self.handle.use(bucket)
                    yield from operator.handleExpiredTimer((bucket,), values, ExpiredTimerInfo(moment))
                    state.timers.discard(moment)
        operator.close()

    def _prepared(self, events: pa.Table | None) -> Iterator[pa.RecordBatch]:
        """The columns that Spark computes before packing."""
        if events is None or not events.num_rows:
            return
        types = self.task.task.scope.types
        key = self.task.task.partitioning.key
        names = events.column("type").to_pylist()
        codes = [types.index(name) if name in types else len(types) for name in names]
        keys = events.column(key).to_pylist() if key is not None else [0] * len(names)
        slots = [
            NO_TIME if moment is None else NO_TYPE if name is None else hash(repr(value)) % len(self.numbers)
            for moment, name, value in zip(self._micros(events), names, keys, strict=True)
        ]
        numbers = pa.array(names if self.task.task.scope.any_type else codes)
        events = events.append_column(CODE, numbers.cast(self.task.carried.field(CODE).type))
        events = events.append_column(SLOT, pa.array(np.asarray(slots), pa.int32()))
        yield from events.combine_chunks().to_batches()

    def _micros(self, events: pa.Table) -> list[int | None]:
        return events.column("ts").cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]

    @property
    def matches(self) -> pa.Table:
        """The matches so far."""
        tables = [unpacked(row.data) for row in self.found if row.kind == MATCHES]
        return pa.concat_tables([self.wanted.empty_table(), *tables])

    @property
    def late(self) -> list[dict[str, Any]]:
        """The late events so far."""
        return [event for row in self.found if row.kind == LATE for event in unpacked(row.data).to_pylist()]
