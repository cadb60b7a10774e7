"""Query sets on Spark: queries whose events can be split in the same way run together, in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import DataFrame

from nestream.engine.program import LeafSpec
from nestream.model.lengths import Length
from nestream.model.output import Output
from nestream.model.schema import Schema
from nestream.model.together import set_schema
from nestream.runtime.many import Member, together
from nestream.runtime.spark.batch import Task, match_batch
from nestream.runtime.spark.columns import by_code_point, check_columns, event_fields, in_utc
from nestream.runtime.spark.partitioning import choose
from nestream.runtime.spark.statistics import planned
from nestream.runtime.spark.stream import match_stream, stream_partitioning


def split_alike(members: Sequence[Member]) -> list[list[str]]:
    """The names of the queries whose events can be split over partitions in the same way."""
    groups: dict[tuple[str, str | None], list[str]] = {}
    for member in members:
        plan = choose(member.program)
        groups.setdefault((plan.kind, plan.key), []).append(member.name)
    return list(groups.values())


def match_group(
    df: DataFrame,
    members: Sequence[Member],
    leaves: Iterable[LeafSpec],
    schema: Schema,
    unit: str,
    *,
    identity: str = "",
    partition_by: str | None = None,
    partitions: int | None = None,
    slice_length: Length | None = None,
    statistics: bool = True,
) -> DataFrame:
    """The matches of queries that are run together, each with the name of its query."""
    schema = in_utc(schema)
    program = together([member.program for member in members], leaves)
    columns = tuple(schema.columns)
    check_columns(df.schema, columns)
    shown, df = event_fields(df), by_code_point(df)
    if df.isStreaming:
        plan = stream_partitioning(program, partition_by, slice_length)
    else:
        plan = planned(
            df,
            program,
            schema,
            columns,
            wanted=partition_by,
            slice_length=slice_length,
            statistics=statistics,
        )
    task = Task(
        output=Output((), False, ()),
        program=program,
        kinds={},
        unit=unit,
        time=schema.time,
        type=schema.type,
        types=dict(schema.types),
        columns=columns,
        partitioning=plan,
        wanted=set_schema(schema),
        members=tuple(members),
    )
    if df.isStreaming:
        return match_stream(df, task, schema, shown, identity, partitions)
    return match_batch(df, task, schema, shown, partitions)


def union(parts: Iterable[DataFrame]) -> DataFrame:
    """The matches of all groups."""
    return reduce(DataFrame.unionByName, parts)
