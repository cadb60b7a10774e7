"""`query.match` on Spark: from a typed plan to a DataFrame of matches."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from nestream.engine.program import Program
from nestream.model.lengths import Length
from nestream.model.output import Output, output_schema
from nestream.model.schema import EventError, Kind, Schema
from nestream.runtime.spark.batch import Task, columns_to_read, match_batch
from nestream.runtime.spark.columns import (
    arrow_schema,
    by_code_point,
    check_columns,
    event_fields,
    in_utc,
    session_zone,
)
from nestream.runtime.spark.statistics import planned
from nestream.runtime.spark.stream import match_outcomes, match_stream, stream_partitioning


def match_dataframe(
    df: DataFrame,
    output: Output,
    program: Program,
    schema: Schema,
    kinds: Mapping[str, Kind],
    unit: str,
    *,
    partition_by: str | None = None,
    partitions: int | None = None,
    slice_length: Length | None = None,
    statistics: bool = True,
    identity: str = "",
    outcomes: bool = False,
) -> DataFrame:
    """The matches of a DataFrame; of a streaming one with `outcomes` also its late and malformed events.

    `identity` is what a checkpoint must agree with. Without `statistics` no event of a batch is looked at
    before the matches are used, however large it is.
    """
    schema = in_utc(schema)
    columns = columns_to_read(output, program, schema)
    check_columns(df.schema, columns)
    shown, df = event_fields(df), by_code_point(df)
    task = Task(
        output=output,
        program=program,
        kinds=dict(kinds),
        unit=unit,
        time=schema.time,
        type=schema.type,
        types=dict(schema.types),
        columns=columns,
        partitioning=stream_partitioning(program, partition_by, slice_length)
        if df.isStreaming
        else planned(
            df,
            program,
            schema,
            columns,
            wanted=partition_by,
            slice_length=slice_length,
            statistics=statistics,
        ),
        wanted=output_schema(output, schema, kinds, unit),
    )
    if df.isStreaming:
        streaming = match_outcomes if outcomes else match_stream
        return streaming(df, task, schema, shown, identity, partitions)
    return match_batch(df, task, schema, shown, partitions)


def spark_schema(df: DataFrame, time: str, type: str) -> pa.Schema:
    """The Arrow schema of a DataFrame; times are in the zone of its session."""
    fields = event_fields(df)
    check_columns(fields, [name for name in (time, type) if name in fields.names])
    return arrow_schema(fields, session_zone(df))


def union_by_type(frames: Mapping[str, DataFrame], type: str) -> DataFrame:
    """One DataFrame of the frames by event type, each row with its type; missing columns are NULL."""
    typed = [frame.drop(type).withColumn(type, F.lit(name)) for name, frame in frames.items()]
    try:
        return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), typed)
    except AnalysisException as problem:
        raise EventError(
            f"the DataFrames by type do not fit together: {str(problem).splitlines()[0]}\n"
            "  hint: cast the columns of one name to one type"
        ) from None
