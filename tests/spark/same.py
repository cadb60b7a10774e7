"""Comparing what Spark gives with what the engine gives in process."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from nestream import query


def rows(table: pa.Table) -> Counter[str]:
    """The rows without their order; NaN equals itself."""
    return Counter(map(repr, table.to_pylist()))


def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The table as a DataFrame; times without zone stay so."""
    return spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def jobs(spark: SparkSession) -> int:
    """How many jobs have been run so far."""
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup())


def assert_same(
    spark: SparkSession, text: str, table: pa.Table, *, least: int = 1, **on_spark: Any
) -> pa.Table:
    """Fail unless Spark gives the matches of the local engine, at least so many; the matches of Spark."""
    shared = {name: on_spark.pop(name) for name in ("time", "type", "order") if name in on_spark}
    expected = query(text).match(table, **shared)
    found = query(text).on_spark(frame(spark, table), **shared, **on_spark).toArrow()
    assert found.column_names == expected.column_names
    assert rows(found) == rows(expected.cast(found.schema))  # a zone may be named differently
    assert found.num_rows >= least
    return found
