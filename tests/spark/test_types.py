"""Columns of every type and name: matches have the types of the events, mistakes are told at plan time."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DayTimeIntervalType

import nestream
from nestream.runtime.spark.columns import named
from tests.spark.same import assert_same, frame, jobs, rows

START = datetime(2026, 3, 29, 0, 30)  # the clocks change in Europe within the next hours
HALF_HOURS = "PATTERN SEQ(A a, B b, a.key = b.key) WITHIN 2 hours"
TIMES = {
    "zoned": pa.timestamp("us", "UTC"),
    "zoned elsewhere": pa.timestamp("us", "Europe/Berlin"),
    "without zone": pa.timestamp("us"),
    "date": pa.date32(),
    "integer": pa.int64(),
    "small integer": pa.int16(),
}
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "decimal": (pa.decimal128(12, 2), [Decimal("1.10"), Decimal("2.20")]),
    "string": (pa.string(), ["naïve", ""]),
    "boolean": (pa.bool_(), [True, False]),
    "float": (pa.float64(), [1.5, -0.0]),
    "date": (pa.date32(), [date(2026, 1, 1), date(1960, 1, 1)]),
    "timestamp": (pa.timestamp("us"), [START, START - timedelta(days=30_000)]),
    "byte": (pa.int8(), [1, -1]),
}


def events(times: pa.DataType = TIMES["without zone"], keys: str = "string") -> pa.Table:
    """Twenty-four events, half an hour (a day, a second) apart."""
    key_type, values = KEYS[keys]
    if pa.types.is_timestamp(times):
        zone = ZoneInfo(times.tz) if times.tz else None
        ts: list[Any] = [(START + n * timedelta(minutes=30)).replace(tzinfo=zone) for n in range(24)]
    elif pa.types.is_date(times):
        ts = [date(2026, 3, 20) + timedelta(days=n) for n in range(24)]
    else:
        ts = list(range(24))
    return pa.table(
        {
            "ts": pa.array(ts, times),
            "type": ["A", "B", "B"] * 8,
            "key": pa.array([values[n // 2 % 2] for n in range(24)], key_type),
            "value": pa.array([float("nan") if n % 5 == 0 else n / 4 for n in range(24)]),
        }
    )


@pytest.mark.parametrize("by", ["key", "key+time"])
@pytest.mark.parametrize("times", TIMES)
def test_times_of_every_type_give_the_matches_of_the_local_engine(
    spark: SparkSession, times: str, by: str
) -> None:
    text = {
        "date": "PATTERN SEQ(A a, B b, a.key = b.key) WITHIN 4 days",
        "integer": "PATTERN SEQ(A a, B b, a.key = b.key) WITHIN 4",
        "small integer": "PATTERN SEQ(A a, B b, a.key = b.key) WITHIN 4",
    }.get(times, HALF_HOURS)
    length = 3 if "integer" in times else "3 hours"
    assert_same(spark, text, events(TIMES[times]), partition_by=by, slice_length=length)


@pytest.mark.parametrize("keys", KEYS)
def test_keys_of_every_type_find_each_other(spark: SparkSession, keys: str) -> None:
    assert_same(spark, HALF_HOURS, events(keys=keys), partitions=3)


def test_zero_is_one_key_whatever_its_sign(spark: SparkSession) -> None:
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "key": [0.0, -0.0]})
    assert_same(spark, "PATTERN SEQ(A a, B b, a.key = b.key) WITHIN 4", table, partitions=8)


def test_not_a_number_is_no_value(spark: SparkSession) -> None:
    assert_same(spark, "PATTERN SEQ(A a, B b, b.value > a.value, b.value != 3) WITHIN 3 hours", events())


def carried(spark: SparkSession) -> DataFrame:
    """Events with columns that no query can compute with."""
    return frame(spark, events()).select(
        "*",
        F.array(F.col("value"), F.lit(1.0)).alias("array"),
        F.struct(F.col("key"), F.array(F.struct(F.col("ts"))).alias("inner")).alias("nested"),
        F.create_map(F.col("type"), F.col("ts")).alias("map"),
        F.col("key").cast("binary").alias("bytes"),
        F.expr("make_dt_interval(0, 1, 2, 3.5)").alias("span"),
    )


def test_nested_columns_ride_along(spark: SparkSession) -> None:
    df = carried(spark)
    matches = nestream.query(HALF_HOURS).match(df)
    assert matches.schema["a"].dataType == df.schema
    plain = nestream.query(HALF_HOURS).match(df.toArrow()).to_pylist()
    found = matches.toArrow().to_pylist()
    assert found
    assert sorted(map(repr, found)) == sorted(map(repr, plain))


def test_a_column_that_cannot_cross_is_refused_only_where_it_is_shown(spark: SparkSession) -> None:
    df = frame(spark, events()).withColumn("odd", F.expr("make_interval(1, 2, 3)"))
    before = jobs(spark)
    with pytest.raises(nestream.EventError, match=r"column `odd` of type interval cannot be read as Arrow"):
        nestream.query(HALF_HOURS).match(df)
    assert jobs(spark) == before
    assert nestream.query(f"{HALF_HOURS} RETURN a.key AS key").match(df).count() > 0


def test_names_hold_any_character(spark: SparkSession) -> None:
    names = ["when it.was", "what`kind", "the key.of `it`", "v.x"]
    table = events().rename_columns(names)
    text = "PATTERN SEQ(A a, B b, a.key = b.key) WITHIN 2 hours"
    plain = nestream.query(text).match(events().drop_columns(["value"]))
    df = frame(spark, table).withColumnRenamed(names[2], "key")
    found = nestream.query(text).match(df, time=names[0], type=names[1])
    assert found.schema["a"].dataType == df.schema
    assert found.count() == plain.num_rows
    by_time = nestream.query(text).on_spark(
        df, time=names[0], type=names[1], partition_by="key+time", order="arrival"
    )
    assert rows(by_time.toArrow()) == rows(found.toArrow())


def test_the_matches_have_the_types_of_the_events(spark: SparkSession) -> None:
    for keys in KEYS:
        df = frame(spark, events(TIMES["zoned"], keys))
        matches = nestream.query(HALF_HOURS).match(df)
        assert matches.schema["b"].dataType == df.schema
        assert matches.schema["match_start"].dataType == df.schema["ts"].dataType


@pytest.mark.parametrize("times", ["zoned", "without zone"])
def test_returned_expressions_have_the_types_of_their_values(spark: SparkSession, times: str) -> None:
    text = (
        f"{HALF_HOURS} RETURN b.ts - a.ts AS span, a.value + 1 AS more, a.key AS key, a.key = 'x' AS same, "
        "b.ts AS moment, a.type AS kind"
    )
    table = events(TIMES[times])
    df = frame(spark, table)
    types = {field.name: field.dataType for field in nestream.query(text).match(df).schema}
    assert types["span"] == DayTimeIntervalType(0, 3)
    assert types["moment"] == df.schema["ts"].dataType
    assert [types[name].simpleString() for name in ("more", "key", "same", "kind")] == [
        "double",
        "string",
        "boolean",
        "string",
    ]
    assert_same(spark, text, table)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN SEQ(A a, B b, a.kee = b.key) WITHIN 2 hours", "kee"),
        ("PATTERN SEQ(A a, B b, a.key < 3) WITHIN 2 hours", "string"),
        ("PATTERN SEQ(A a, B b, a.array = b.array) WITHIN 2 hours", "array"),
        ("PATTERN SEQ(A a, B b) WITHIN 5", "WITHIN|window|unit"),
    ],
)
def test_a_query_that_does_not_fit_the_columns_is_refused_at_plan_time(
    spark: SparkSession, text: str, message: str
) -> None:
    df = carried(spark)
    before = jobs(spark)
    with pytest.raises(nestream.QueryError, match=message):
        nestream.query(text).match(df)
    assert jobs(spark) == before


def test_events_without_the_columns_for_time_and_type_are_refused_at_plan_time(spark: SparkSession) -> None:
    df = carried(spark)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"time": "when"}, "no column `when` for their time"),
        ({"type": "kind"}, "no column `kind` for their type"),
        ({"time": "array"}, "the time column `array` holds"),
        ({"type": "value"}, "the type column `value` holds"),
    ]
    for options, message in wrong:
        with pytest.raises(nestream.EventError, match=message):
            nestream.query(HALF_HOURS).match(df, **options)


def test_a_partitioning_that_is_not_possible_is_refused(spark: SparkSession) -> None:
    df = carried(spark)
    with pytest.raises(ValueError, match="cannot be partitioned by key, only by: time, single"):
        nestream.query("PATTERN SEQ(A a, B b) WITHIN 2 hours").on_spark(df, partition_by="key")
    with pytest.raises(
        ValueError, match="unknown partitioning 'keys': use one of key, time, key\\+time, single"
    ):
        nestream.query(HALF_HOURS).on_spark(df, partition_by="keys")


def test_backticks_name_a_column_exactly() -> None:
    assert "x``y" in str(named("x`y")) or "x`y" in str(named("x`y"))
