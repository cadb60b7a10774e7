"""Checks what a stream needs of its DataFrame and session: a watermark, buckets, a state store."""

from __future__ import annotations

import importlib

from pyspark.sql import DataFrame, SparkSession

from nestream.model.extras import needs
from nestream.model.schema import EventError
from nestream.runtime.spark.partitioning import Partitioning
from nestream.runtime.spark.stream_pack import spread

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_WATERMARK = "spark.watermarkDelayMs"


def buckets_of(
    df: DataFrame, plan: Partitioning, wanted: int | None, partitions: int | None = None
) -> tuple[int, ...]:
    """The numbers of the buckets: one for each partition of the shuffle, unless another number is wanted."""
    if plan.kind != "key":
        return (0,)
    if wanted is not None and wanted < 1:
        raise ValueError(f"{wanted} buckets: at least one is needed")
    partitions = partitions or shuffle_partitions(df.sparkSession)
    return spread(wanted or partitions, partitions)


def shuffle_partitions(spark: SparkSession) -> int:
    """How many partitions Spark makes of a shuffle."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 200)


def watermark_delay(df: DataFrame, time: str) -> int:
    """The delay of the watermark in milliseconds.

    Reports what is missing for a stream in terms of the query, before Spark does in its own.
    """
    kind = df.schema[time].dataType.typeName()
    if kind != "timestamp":
        change = (
            "F.col({}).cast('timestamp')" if kind in ("timestamp_ntz", "date") else "F.timestamp_millis({})"
        )
        unit = "" if "cast" in change else " for milliseconds"
        raise EventError(
            f"the time column `{time}` is {kind}, but Spark supports watermarks only on timestamps\n"
            f"  hint: df.withColumn({time!r}, {change.format(repr(time))}){unit}"
        )
    if _WATERMARK not in df.schema[time].metadata:
        others = [field.name for field in df.schema.fields if _WATERMARK in field.metadata]
        where = f" (it is on `{others[0]}`)" if others else ""
        raise EventError(
            f"the stream has no watermark on its time column `{time}`{where}\n"
            f'  hint: query.match(df.withWatermark("{time}", "10 seconds")): how late an event may be'
        )
    try:
        importlib.import_module("google.protobuf")
    except ImportError:
        raise EventError(needs("a stream on Spark", "protobuf", "spark")) from None
    return int(df.schema[time].metadata[_WATERMARK])


def use_rocksdb(spark: SparkSession) -> None:
    """Make sure that state is kept in RocksDB, which Spark's stateful Python operators need."""
    provider = spark.conf.get(PROVIDER, "")
    if not provider:
        spark.conf.set(PROVIDER, ROCKSDB)
        if not spark.conf.get(CHANGELOG, ""):  # write changes, not a snapshot, in each micro-batch
            spark.conf.set(CHANGELOG, "true")
    elif "RocksDB" not in provider:
        raise EventError(
            f"the state store is {provider}, but nestream streams need RocksDB\n"
            f'  hint: spark.conf.set("{PROVIDER}", "{ROCKSDB}")'
        )
