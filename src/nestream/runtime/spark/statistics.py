"""Estimates a batch before it is matched, so that a key with too many events is also split by time.

First comes what Spark knows without running anything: the estimated size of the events. If all events
together are small enough for one task, so is every key. Only if they are not, and if the DataFrame does
little more than read files, a small job samples the first rows of every partition and counts keys. The limit
for one task is Spark's own setting for skewed partitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by
from pyspark.sql.pandas.types import from_arrow_schema

from nestream.model.lengths import Length, in_resolution, length_of_time
from nestream.model.schema import Schema
from nestream.runtime.compiled import Compiled
from nestream.runtime.spark.batch import as_integer, relevant_events
from nestream.runtime.spark.columns import attribute_of, named
from nestream.runtime.spark.partitioning import Partitioning, choose, possible
from nestream.runtime.spark.shipping import shipped

SKEWED = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
TASKS = "spark.sql.shuffle.partitions"
ROWS_A_PARTITION = 1 << 16
"""How many rows of each partition are sampled."""
_SKEWED_BYTES = 1 << 28
_SMALL = 1 << 20
"""The size in bytes of events that are not worth a sample."""
_CHEAP = frozenset(
    ("Project", "Filter", "Union", "Relation", "RelationV2", "LocalRelation", "Range", "InMemoryRelation")
)
"""The operators of a plan that only read and select; a plan with others, such as a join, is not run twice."""
_UNITS = {"": 1, **{unit: 1 << 10 * power for power, unit in enumerate("KMGTP", 1)}}
_COUNTED = pa.schema(
    [
        ("key", pa.string()),
        ("found", pa.int64()),
        ("rows", pa.int64()),
        ("first", pa.int64()),
        ("last", pa.int64()),
    ]
)
_SLICES_A_TASK = 8
"""How many slices of a skewed key a task gets: with fewer, chance gives some tasks many more than others."""


def first_events(df: DataFrame) -> pa.Table:
    """Some events of the first partitions, for planning."""
    return df.limit(20_000).toArrow()


@dataclass(frozen=True)
class Estimate:
    """What Spark knows of a DataFrame: its size in bytes (None if unknown), and what makes it expensive."""

    size: int | None
    costly: str | None = None


@dataclass(frozen=True)
class Sample:
    """The result of sampling: the key with the most events, its share of the rows, their number and times."""

    key: str | None
    share: float
    rows: int
    span: int = 0
    """About the time from the first to the last of the relevant rows."""


def planned(
    df: DataFrame,
    compiled: Compiled,
    wanted: str | None,
    partitions: int | None,
    slice_length: Length | None,
    statistics: bool,
) -> Partitioning:
    """How the events of a batch are split; a choice that is not fixed may sample the events."""
    length = None if slice_length is None else _in_times(slice_length, compiled.schema)
    plan = choose(compiled.scope, wanted, length)
    sliced = possible(compiled.scope, length).get("key+time")
    if plan.kind == "key+time" and length is None and statistics:
        estimate = estimated(df.select(*map(named, compiled.read)))
        if estimate.costly is None and (estimate.size or 0) > _SMALL:
            return _lengthened(plan, sampled(df, compiled, plan), partitions or _tasks(df))
    if wanted is not None or plan.kind != "key" or plan.key is None or sliced is None:
        return plan
    if not statistics:
        return replace(plan, statistics="off, so every key is assumed to fit in a task")
    most = _skewed_bytes(df)
    estimate = estimated(df.select(*map(named, compiled.read)))
    if estimate.size is None:
        return replace(plan, statistics="Spark has no estimate of the size; no events were sampled")
    about = f"{_text(estimate.size)} of events by Spark's estimate"
    if estimate.size <= most:
        return replace(plan, statistics=f"{about}, so no key has more than {_text(most)}; none were sampled")
    if estimate.costly is not None:
        return replace(plan, statistics=f"{about}; not sampled, because that would run a {estimate.costly}")
    sample = sampled(df, compiled, plan)
    largest = int(sample.share * estimate.size)
    told = f"{about}; of {sample.rows:,} rows sampled, {sample.share:.0%} "
    told += f"have the key {sample.key!r}, about {_text(largest)}"
    if largest <= most:
        return replace(plan, statistics=f"{told}, and one task takes up to {_text(most)}")
    reason = f"the key {sample.key!r} has too many events for one task"
    if length is None:
        sliced = _lengthened(sliced, sample, partitions or _tasks(df))
    return replace(sliced, reason=reason, statistics=f"{told}, more than {_text(most)} ({SKEWED})")


def _lengthened(plan: Partitioning, sample: Sample, tasks: int) -> Partitioning:
    """With slices as long as they may be: each of them has a cost of its own in every task."""
    return replace(plan, length=max(plan.length, sample.span // (_SLICES_A_TASK * tasks)))


def _tasks(df: DataFrame) -> int:
    """The number of tasks after a shuffle, by the settings of the session; on some platforms it is `auto`."""
    text = df.sparkSession.conf.get(TASKS) or ""
    return int(text) if text.isdigit() and int(text) else 200


def _in_times(slice_length: Length, schema: Schema) -> int:
    """The length of a time slice in the resolution of the times."""
    length = length_of_time(slice_length, "slice_length")
    return in_resolution(length, "slice_length", schema)


def estimated(df: DataFrame) -> Estimate:
    """What Spark's optimizer reports of a DataFrame; nothing is run."""
    row = df.sparkSession.sql("EXPLAIN COST SELECT * FROM {events}", events=df).first()
    lines = [] if row is None else str(row[0]).partition("== Physical Plan ==")[0].splitlines()[1:]
    found = re.search(r"sizeInBytes=([\d.E+]+) (\w*?)i?B", lines[0]) if lines else None
    if found is None or found[2] not in _UNITS:  # Spark reports eight exbibytes for an unknown size
        return Estimate(None)
    nodes = [re.sub(r"^[\s:+-]*", "", line) for line in lines]
    names = [name[0] for node in nodes if (name := re.match(r"~?[A-Za-z]\w*", node))]
    costly = next((name for name in names if name not in _CHEAP), None)
    return Estimate(int(float(found[1]) * _UNITS[found[2]]), costly)


def sampled(df: DataFrame, compiled: Compiled, plan: Partitioning) -> Sample:
    """Sample the first rows of every partition: which key has the most relevant events?"""
    assert plan.key is not None
    matters = F.coalesce(relevant_events(compiled.scope, compiled.schema, plan), F.lit(False))
    key = attribute_of(compiled.schema.column(plan.key), plan.key).cast("string")
    time = F.when(matters, as_integer(df, compiled.schema.time))
    looked = df.select(F.when(matters, key).alias("key"), time.alias("time"))
    counts = looked.mapInArrow(shipped(_counted), from_arrow_schema(_COUNTED)).groupBy("key")
    sums = [F.sum(name).alias(name) for name in ("found", "rows")]
    times = [F.min("first").alias("first"), F.max("last").alias("last")]
    summed = counts.agg(*sums, *times)
    row = summed.agg(
        F.max(F.struct("found", "key")).alias("most"), F.sum("rows").alias("rows"), *times
    ).first()
    if row is None or row.rows is None or not row.rows:
        return Sample(None, 0.0, 0)
    span = 0 if row["first"] is None else row["last"] - row["first"]
    return Sample(row.most.key, row.most.found / row.rows, row.rows, span)


def _counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How often each key occurs in the first rows of a partition; an extra row has their number and times."""
    taken, rows = [], 0
    for batch in batches:
        taken.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_A_PARTITION:
            break
    if rows:
        table = pa.Table.from_batches(taken)
        counted = pc.value_counts(table.column("key").drop_null())
        found = {"key": counted.field("values"), "found": counted.field("counts")}
        none = {name: pa.nulls(len(counted), pa.int64()) for name in ("rows", "first", "last")}
        yield pa.RecordBatch.from_pydict({**found, **none}, _COUNTED)
        # Not the first and the last: one event with a wrong time would make every slice too long.
        first, last = pc.quantile(table.column("time"), [0.01, 0.99], interpolation="nearest").to_pylist()
        about = {"key": None, "found": 0, "rows": rows, "first": first, "last": last}
        yield pa.RecordBatch.from_pylist([about], _COUNTED)


def _skewed_bytes(df: DataFrame) -> int:
    """The size in bytes from which a partition is skewed, by the settings of the session."""
    try:
        text = df.sparkSession.conf.get(SKEWED) or ""
    except PySparkException:  # this Spark has no such setting
        text = ""
    found = re.fullmatch(r"\s*(\d+)\s*([kmgtp]?)i?b?\s*", text.lower())
    return int(found[1]) * _UNITS[found[2].upper()] if found else _SKEWED_BYTES


def _text(size: int) -> str:
    """A number of bytes as text."""
    for unit in "PTGMK":
        if size >= _UNITS[unit]:
            return f"{size / _UNITS[unit]:.1f} {unit}B"
    return f"{size} B"
