"""`match` on Spark: from a compiled query or set to a DataFrame of matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from nestream.model.lengths import Length
from nestream.model.schema import EventError
from nestream.runtime.compiled import Compiled, CompiledQuery
from nestream.runtime.spark.batch import Task, match_batch
from nestream.runtime.spark.columns import (
    arrow_schema,
    by_code_point,
    check_columns,
    event_fields,
    in_utc,
    session_zone,
)
from nestream.runtime.spark.partitioning import Partitioning, choose
from nestream.runtime.spark.statistics import planned
from nestream.runtime.spark.stream import match_outcomes, match_stream, stream_partitioning


def match_dataframe(
    df: DataFrame,
    compiled: Compiled,
    *,
    partition_by: str | None = None,
    partitions: int | None = None,
    slice_length: Length | None = None,
    statistics: bool = True,
    identity: str = "",
    outcomes: bool = False,
) -> DataFrame:
    """The matches of a DataFrame; with `outcomes`, also the late and malformed events of a streaming one.

    `identity` is what a checkpoint must agree with. Without `statistics`, no event of a batch is sampled
    before the matches are used, however large it is.
    """
    shown = event_fields(df)
    if df.isStreaming:
        plan = stream_partitioning(compiled.scope, partition_by, slice_length)
        task, df = streaming_task(df, compiled, plan), by_code_point(df)
        streaming = match_outcomes if outcomes else match_stream
        return streaming(df, task, shown, identity, partitions)
    df, compiled = by_code_point(df), _prepared(df, compiled)
    plan = planned(df, compiled, partition_by, partitions, slice_length, statistics)
    return match_batch(df, Task(compiled, plan), shown, partitions)


def streaming_task(
    df: DataFrame, compiled: Compiled, plan: Partitioning, types: tuple[str, ...] = ()
) -> Task:
    """The task for the events of a stream, split as planned; types may have given numbers."""
    return Task(_prepared(df, compiled), plan, ordered=types)


def _prepared(df: DataFrame, compiled: Compiled) -> Compiled:
    """The query over events with comparable strings."""
    check_columns(df.schema, compiled.read)
    return compiled.over(in_utc(compiled.schema))


def split_alike(members: Iterable[CompiledQuery]) -> list[list[str]]:
    """The names of the queries whose events can be split in the same way, group by group."""
    groups: dict[tuple[str, str | None], list[str]] = {}
    for member in members:
        plan = choose(member.program)
        groups.setdefault((plan.kind, plan.key), []).append(member.name)
    return list(groups.values())


def union(parts: Iterable[DataFrame]) -> DataFrame:
    """The matches of all groups of queries."""
    return reduce(DataFrame.unionByName, parts)


def spark_schema(df: DataFrame, time: str, type: str) -> pa.Schema:
    """The Arrow schema of a DataFrame; times are in the zone of its session."""
    fields = event_fields(df)
    check_columns(fields, [name for name in (time, type) if name in fields.names])
    return arrow_schema(fields, session_zone(df))


def union_by_type(frames: Mapping[str, DataFrame], type: str) -> DataFrame:
    """Combine DataFrames by event type to one, each row with its type; missing columns are NULL."""
    typed = [frame.drop(type).withColumn(type, F.lit(name)) for name, frame in frames.items()]
    try:
        return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), typed)
    except AnalysisException as problem:
        raise EventError(
            f"the DataFrames by type do not fit together: {str(problem).splitlines()[0]}\n"
            "  hint: cast the columns of one name to one type"
        ) from None
