"""`query.match(df)` for a batch DataFrame: filter and prune in Spark, then run the engine in every partition.

Matching is lazy: nothing runs until the result is used. Only events of the query's types that pass its
single-event tests, and only the columns it needs, cross to Python, as Arrow; types cross as small numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by
from pyspark.sql.types import StructType

from nestream.engine.program import Measure, Scope
from nestream.model.columns import computable
from nestream.model.functions import function, own_functions
from nestream.model.schema import EventError, Schema
from nestream.runtime.compiled import Compiled, CompiledLayers, CompiledSet
from nestream.runtime.runs import AnyRun, started
from nestream.runtime.spark.columns import (
    attribute_of,
    key_of,
    match_schema,
    named,
    pushed_filter,
    set_match_schema,
    with_fields,
)
from nestream.runtime.spark.partitioning import Partitioning
from nestream.runtime.spark.shipping import shipped

ARRIVAL = "nestream arrival"
SLICE = "nestream slice"
SIDE = "nestream side"
"""Where an event lies: before its slice (-1), in it (0) or after it (1)."""
CODE = "nestream type"
OTHER_TYPE = ""
"""Stands for all types that the query does not name, where their events count."""
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
ROWS_AT_ONCE = 1 << 20
"""How many events a partition takes before it looks for matches."""


@dataclass(frozen=True)
class Task:
    """What a partition needs to know; it is sent to the workers."""

    compiled: Compiled
    partitioning: Partitioning
    functions: tuple[tuple[str, Callable[..., Any], str], ...] = field(default_factory=own_functions)
    """The user's own functions, which the workers do not know."""
    ordered: tuple[str, ...] = ()
    """The event types in the order of their numbers, where the query's own order may change."""

    @property
    def types(self) -> tuple[str, ...]:
        """The event types that are read, in the order of their numbers."""
        return self.ordered or self.scope.types

    @property
    def schema(self) -> Schema:
        """The schema of the events."""
        return self.compiled.schema

    @property
    def time(self) -> str:
        """The column with the time of an event."""
        return self.schema.time

    @property
    def type(self) -> str:
        """The column with the type of an event."""
        return self.schema.type

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns read from the events."""
        return self.compiled.read

    @property
    def scope(self) -> Scope:
        """Which events are read."""
        return self.compiled.scope

    @property
    def wanted(self) -> pa.Schema:
        """The columns of the matches."""
        return self.compiled.wanted

    def carried(self, column: str) -> str:
        """The name of a column in transit: `mapInArrow` fails on names with dots, and types are numbers."""
        return CODE if column == self.type else f"c{self.columns.index(column)}"

    def type_names(self, codes: pa.Array) -> pa.Array:
        """The names of types in transit, as a dictionary."""
        if self.scope.any_type:
            return codes.cast(pa.string()).dictionary_encode()
        names = pa.array([*self.types, OTHER_TYPE], pa.string())
        return pa.DictionaryArray.from_arrays(codes, names)

    def shown(self, events: StructType) -> StructType:
        """The columns of the matches over events with these columns."""
        if isinstance(self.compiled, CompiledLayers):
            return set_match_schema(with_fields(events, self.compiled.shown.columns), self.time)
        if isinstance(self.compiled, CompiledSet):
            return set_match_schema(events, self.time)
        return match_schema(self.compiled.output, events, self.wanted, self.time)

    def run(self, schema: pa.Schema) -> AnyRun:
        """Create an engine for events of the schema."""
        for name, kernel, returns in self.functions:
            function(name, kernel, returns=returns)
        known = Schema.of(schema, self.time, self.type, self.schema.types, self.schema.order)
        return started(self.compiled.over(known))


def match_batch(df: DataFrame, task: Task, events: StructType, partitions: int | None) -> DataFrame:
    """The matches of a batch DataFrame, lazily; `events` are the columns that they show."""
    arrived = df.withColumn(ARRIVAL, F.monotonically_increasing_id()) if _needs_arrival(task) else df
    relevant = arrived.filter(relevant_events(task.scope, task.schema, task.partitioning))
    kept = [name for name in task.columns if name != task.type]
    extra = [ARRIVAL] if _needs_arrival(task) else []
    carried = [named(name).alias(task.carried(name)) for name in kept]
    relevant = relevant.select(*carried, *map(named, extra), type_code(task).alias(CODE))
    relevant, order = _distributed(relevant, task, partitions)
    return relevant.sortWithinPartitions(*order).mapInArrow(shipped(_partition(task)), task.shown(events))


def type_code(task: Task) -> Column:
    """The number of an event's type; one more than the last for a type that the query does not name.

    It is the type itself where the query takes events of any type.
    """
    if task.scope.any_type:
        return named(task.type).cast("string")
    types = task.types
    numbers = (F.when(named(task.type) == name, F.lit(n)) for n, name in enumerate(types))
    return F.when(named(task.type).isNotNull(), F.coalesce(*numbers, F.lit(len(types)))).cast("short")


def relevant_events(program: Scope, schema: Schema, plan: Partitioning) -> Column:
    """The condition that Spark applies before anything crosses to Python.

    An event without a time or type always passes, so that it is reported.
    """
    if program.measure is Measure.EVENTS:  # every event counts
        return F.lit(True)
    condition = pushed_filter(program, schema)
    if plan.key is not None and not any(outline.null_keys for outline in program.outlines):
        # a single event with a NULL key can match: its negations then have nothing to equal
        condition = condition & attribute_of(schema.column(plan.key), plan.key).isNotNull()
    return condition | named(schema.time).isNull() | named(schema.type).isNull()


def _needs_arrival(task: Task) -> bool:
    return task.scope.by_arrival or task.scope.measure is Measure.EVENTS


def _distributed(df: DataFrame, task: Task, partitions: int | None) -> tuple[DataFrame, list[Column]]:
    """The events, distributed to where they are matched, and the order they need there."""
    plan = task.partitioning
    order = [named(task.carried(task.time)), *([named(ARRIVAL)] if _needs_arrival(task) else [])]
    numbers = () if partitions is None else (partitions,)
    keys = []
    if plan.key is not None:
        name = task.schema.column(plan.key)
        keys = [key_of(task.carried(name), plan.key, task.schema)]
    if plan.kind == "key":
        return df.repartition(*numbers, *keys), order
    if plan.kind == "single":
        return df.repartition(1), order  # unlike `coalesce`, it leaves the scan and the filter parallel
    moment = as_integer(df, task.carried(task.time))
    first = F.coalesce(F.try_subtract(moment, _whole(plan.after)), _whole(LEAST))
    last = F.coalesce(F.try_add(moment, _whole(plan.before)), _whole(GREATEST))
    slices = F.sequence(_slice_of(first, plan.length), _slice_of(last, plan.length))
    known = F.when(moment.isNotNull(), slices)  # an event without a time is in no slice, but not lost
    sliced = df.withColumn(SLICE, F.explode_outer(known))
    order.insert(0, named(SLICE))
    if plan.kind == "key+time":
        return sliced.repartition(*numbers, *keys, named(SLICE)), order
    side = F.signum(_slice_of(moment, plan.length) - named(SLICE)).cast("byte")
    return sliced.withColumn(SIDE, side).repartitionByRange(*numbers, named(SLICE)), order


def _slice_of(moment: Column, length: int) -> Column:
    """The number of the slice that contains a time, in integer arithmetic."""
    size = _whole(length)
    below = F.when(F.call_function("mod", moment, size) < 0, _whole(1)).otherwise(_whole(0))
    return F.call_function("div", moment, size) - below  # never overflows, unlike a difference of times


def _whole(number: int) -> Column:
    return F.lit(number).cast("long")


def as_integer(df: DataFrame, name: str) -> Column:
    """A column of times in the resolution of the engine."""
    column = named(name)
    match df.schema[name].dataType.typeName():
        case "timestamp":
            return F.unix_micros(column)
        case "timestamp_ntz":  # the difference does not depend on the zone of the session
            seconds = (column - F.lit("1970-01-01").cast("timestamp_ntz")).cast("interval second")
            return (seconds.cast("decimal(20, 6)") * F.lit(1_000_000)).cast("long")
        case "date":
            return F.try_multiply(F.unix_date(column).cast("long"), F.lit(86_400_000_000))
        case _:
            return column.cast("long")


def _partition(task: Task) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function that matches the events of one partition, in their order."""

    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for slices, events in _groups(batches, task):
            run: AnyRun | None = None
            waiting = 0
            for batch in events:
                if run is None:
                    run = task.run(batch.schema)
                    run.plan_for(pa.Table.from_batches([batch]))
                run.append(batch)
                waiting += batch.num_rows
                if slices is None and waiting >= ROWS_AT_ONCE:
                    yield from _given(run.advance(_last_time(batch, task), in_order=False), task)
                    waiting = 0
            if run is not None:
                found = run.finish(in_order=False) if slices is None else _within(run, slices, task)
                yield from _given(found, task)

    return match


def _last_time(batch: pa.RecordBatch, task: Task) -> int:
    column = batch.column(task.time).slice(batch.num_rows - 1)
    return int(computable(column, task.schema.unit, task.time)[0].as_py())


def _within(run: AnyRun, slices: range, task: Task) -> Iterator[pa.Table]:
    """The matches that end in these slices."""
    first, end = slices.start * task.partitioning.length, slices.stop * task.partitioning.length
    return run.within(max(first, LEAST), end if end <= GREATEST else None)


def _given(tables: Iterator[pa.Table], task: Task) -> Iterator[pa.RecordBatch]:
    for table in tables:
        yield from table.cast(task.wanted).to_batches()


def _complete(batches: Iterator[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Check the batches: raise for an event without a time or type."""
    for batch in batches:
        for role, name in (("time", task.time), ("type", task.type)):
            column = batch.column(task.carried(name))
            if column.null_count:
                raise EventError(
                    f"an event has no {role}: column `{name}` is NULL\n"
                    f'  hint: leave such rows out: df.filter("`{name}` IS NOT NULL")'
                )
        yield batch


def _groups(
    batches: Iterator[pa.RecordBatch], task: Task
) -> Iterator[tuple[range | None, Iterator[pa.RecordBatch]]]:
    """The events that are matched together: of some slices, or of the whole partition."""
    batches = _complete(batches, task)
    if not task.partitioning.length:
        yield None, (_typed(batch, task) for batch in batches)
        return
    group = Group()
    for number, events in _slices(batches):
        if group.is_before(number) and (task.partitioning.kind != "time" or group.rows >= ROWS_AT_ONCE):
            yield group.slices, (_typed(batch, task) for batch in group.events)
            group = Group()
        group.add(number, events)
    if group.slices:
        yield group.slices, (_typed(batch, task) for batch in group.events)


def _slices(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The parts of batches that lie in one slice, with its number."""
    for batch in batches:
        numbers = batch.column(SLICE).to_numpy(zero_copy_only=False)
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for start, end in pairwise(cuts):
            if start < end:
                yield int(numbers[start]), batch.slice(start, end - start)


@dataclass
class Group:
    """Neighbouring slices that are matched together: their events, and the events around all of them.

    A partition by time has every slice between its first and its last. So an event that lies before or after
    its slice is also in a neighbour, unless that neighbour is not in the group.
    """

    slices: range = range(0)
    rows: int = 0
    _events: list[pa.RecordBatch] = field(default_factory=list)
    _after: list[pa.RecordBatch] = field(default_factory=list)

    def is_before(self, number: int) -> bool:
        """Whether a slice comes after those of the group."""
        return bool(self.slices) and number >= self.slices.stop

    def add(self, number: int, events: pa.RecordBatch) -> None:
        """Add events of the last slice, or of one after it, in their order."""
        if self.is_before(number):
            self._after = []
        self.slices = range(self.slices.start if self.slices else number, number + 1)
        if SIDE in events.schema.names:
            side = events.column(SIDE).to_numpy(zero_copy_only=False)
            own = int(np.searchsorted(side, 0))
            after = int(np.searchsorted(side, 1))
            self._after.append(events.slice(after))
            events = events.slice(0, after) if number == self.slices.start else events.slice(own, after - own)
        self.rows += events.num_rows
        self._events.append(events)

    @property
    def events(self) -> Iterator[pa.RecordBatch]:
        """The events in the order of their times."""
        return (batch for batch in (*self._events, *self._after) if batch.num_rows)


def _typed(batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
    """Replace the type numbers of events by a column of type names, as a dictionary."""
    types = task.type_names(batch.column(CODE))
    columns = [types if name == task.type else batch.column(task.carried(name)) for name in task.columns]
    return pa.RecordBatch.from_arrays(columns, task.columns)
