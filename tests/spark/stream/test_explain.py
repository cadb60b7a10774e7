"""What `explain` says of a stream: its buckets, watermark and state, and when matches are given."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

import nestream
from tests.spark.same import jobs


def stream(spark: SparkSession, delay: str | None = "10 seconds") -> DataFrame:
    rate = spark.readStream.format("rate").load()
    events = rate.selectExpr("timestamp AS ts", "'A' AS type", "value AS id", "value AS x", "value AS wide")
    return events if delay is None else events.withWatermark("ts", delay)


def section(text: str) -> list[str]:
    return text[text.index("Spark stream") :].splitlines()


def test_a_stream_by_key_is_explained_without_a_job(spark: SparkSession) -> None:
    query = nestream.query(
        "SEQ(A a, B b, !C c) WHERE [id] AND a.x > 3 WITHIN 2 minutes RETURN a.id AS id, b.ts AS at"
    )
    before = jobs(spark)
    said = query.explain(events=stream(spark))
    assert jobs(spark) == before
    assert section(said) == [
        "Spark stream",
        "  by key id: every event of a match and of its negations has the same value",
        "  buckets: 3",
        "  watermark: 10 s behind the greatest `ts` of earlier micro-batches; an event before it is late",
        "  reads: ts, type, id, x (not wide)",
        "  filters: A (x > 3) or B or C",
        "  state: the events of the last 2 minutes before the watermark, and those waiting for the "
        "watermark; Arrow in RocksDB",
        "  emits: a match once the watermark is 2 minutes after its first event, by a timer",
    ]


def test_the_number_of_buckets_and_the_split_can_be_overridden(spark: SparkSession) -> None:
    query = nestream.query("SEQ(A a, B b) WHERE [id] WITHIN 1 hour")
    assert query.explain("json", events=stream(spark), partitions=8)["spark"]["buckets"] == 8
    single = query.explain("json", events=stream(spark), partition_by="single")["spark"]
    assert single["partitioning"].startswith("one partition: ")
    assert (single["streaming"], single["buckets"]) == (True, 1)
    with pytest.raises(ValueError, match="a stream cannot be partitioned by time"):
        query.explain(events=stream(spark), partition_by="time")


@pytest.mark.parametrize(
    ("text", "state", "emits"),
    [
        (
            "SEQ(A a, B b) WITHIN 5 s",
            "the events of the last 5 s before the watermark,",
            "a match once the watermark has reached its last event",
        ),
        (
            "SEQ(!C c, A a, B b, !D d) WHERE [id] WITHIN 5 s",
            "the events of the last 10 s before the watermark,",
            "a match once the watermark is 5 s after its first event, by a timer",
        ),
        (
            "SEQ(A a, B b) WITHIN 6 EVENTS",
            "the events of the last 5 positions,",
            "a match once the watermark has reached its last event",
        ),
        (
            "SEQ(A a, B b) WHERE [id] WITHIN UNBOUNDED",
            "every event, forever, because the query has no window,",
            "a match once the watermark has reached its last event",
        ),
        (
            "EXISTS a : SEQ(A a, B b) WITHIN 5 s",
            "the events of the last 5 s before the watermark, the matches emitted from them,",
            "a match once the watermark has reached its last event",
        ),
    ],
)
def test_state_and_the_moment_of_a_match_follow_from_the_query(
    spark: SparkSession, text: str, state: str, emits: str
) -> None:
    described = nestream.query(text).explain("json", events=stream(spark))["spark"]
    assert described["state"].startswith(state)
    assert described["emits"] == [emits]


def test_a_stream_without_watermark_is_refused_as_by_match(spark: SparkSession) -> None:
    with pytest.raises(nestream.EventError, match=r'withWatermark\("ts", "10 seconds"\)'):
        nestream.query("SEQ(A a, B b) WITHIN 5 s").explain(events=stream(spark, None))


def test_a_strategy_that_is_planned_by_statistics_says_so(spark: SparkSession) -> None:
    query = nestream.query("OR(SEQ(A a, !B b, C c), SEQ(A x, !D d, C y)) WHERE a.id = c.id WITHIN 5 s")
    before = jobs(spark)
    said = query.explain(events=stream(spark), strategy="flat")
    assert jobs(spark) == before
    assert "Sharing: 2 expressions in" in said
    assert any(line.startswith("  optimizer: each bucket is replanned at a micro") for line in section(said))
    assert "optimizer" not in query.explain(events=stream(spark))
