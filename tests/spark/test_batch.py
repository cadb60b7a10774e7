"""A query over a batch DataFrame: what comes out, when anything runs, and how the events are split."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import nestream
from nestream.runtime.spark import batch, match
from tests.spark.same import assert_same, frame, jobs, rows

KEYED = "PATTERN SEQ(A a, !SEQ(B b, C c, b.id = c.id = a.id), D d, a.id = d.id) WITHIN 40"
UNKEYED = "PATTERN SEQ(A a, !B b, C c, a.id < c.id) WITHIN 12"


def history(size: int = 300, ids: int = 4, seed: int = 1, step: int = 3) -> pa.Table:
    chance = random.Random(seed)
    ts, rows = 0, []
    for n in range(size):
        ts += chance.randrange(step)
        rows.append({"ts": ts, "type": chance.choice("ABCDE"), "id": chance.randrange(ids), "n": n})
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize("partitions", [1, 3, 8])
@pytest.mark.parametrize("by", ["key", "time", "key+time", "single"])
def test_a_keyed_query_gives_the_same_however_it_is_split(
    spark: SparkSession, by: str, partitions: int
) -> None:
    assert_same(spark, KEYED, history(), partition_by=by, partitions=partitions, slice_length=100)


@pytest.mark.parametrize("length", [1, 7, 40, 1000])
def test_time_slices_of_any_length_give_the_same(spark: SparkSession, length: int) -> None:
    assert_same(spark, UNKEYED, history(), slice_length=length)


@pytest.mark.parametrize("length", ["30 minutes", timedelta(minutes=30), 1_800_000_000])
def test_the_length_of_a_time_slice_is_written_as_any_duration(spark: SparkSession, length: Any) -> None:
    table = history()
    minutes = [datetime(2026, 1, 1) + timedelta(minutes=ts) for ts in table.column("ts").to_pylist()]
    table = table.set_column(0, "ts", pa.array(minutes, pa.timestamp("us")))
    text = "PATTERN SEQ(A a, !B b, C c, a.id < c.id) WITHIN 12 minutes"
    assert_same(spark, text, table, slice_length=length)
    explained = nestream.query(text).explain(events=frame(spark, table), slice_length=length)
    assert "slices of 1800000000 " in explained
    both = nestream.queries({"one": text, "two": text})
    expected = 2 * nestream.query(text).count(table)
    assert both.match(frame(spark, table), slice_length=length).count() == expected


@pytest.mark.parametrize("wrong", ["5", "soon", 0, -1, 0.5, True, timedelta(-1), "1 hour"])
def test_a_wrong_length_of_a_time_slice_is_refused(spark: SparkSession, wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="slice_length"):
        nestream.query(UNKEYED).on_spark(frame(spark, history()), slice_length=wrong)


def test_a_stream_refuses_the_length_of_a_time_slice(spark: SparkSession) -> None:
    events = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'A' AS type")
    events = events.withWatermark("ts", "1 second")
    query, both = nestream.query("A a"), nestream.queries({"one": "A a", "two": "A a"})
    for ask in (query.on_spark, both.on_spark, lambda df, **how: query.explain(events=df, **how)):
        with pytest.raises(ValueError, match="a stream is not cut into time slices"):
            ask(events, slice_length="1 hour")


@pytest.mark.parametrize("by", ["key", "time", "key+time"])
def test_a_trailing_negation_is_decided_at_the_end_of_the_data(spark: SparkSession, by: str) -> None:
    text = "PATTERN SEQ(A a, B b, !C c) WHERE [id] WITHIN 30"
    table = history()
    found = assert_same(spark, text, table, partition_by=by, slice_length=50)
    last = max(table.column("ts").to_pylist())
    assert max(found.column("match_start").to_pylist()) + 30 > last


def test_the_type_itself_may_be_the_key(spark: SparkSession) -> None:
    text = "PATTERN SEQ(A a, A b, a.type = b.type) WITHIN 10"
    assert_same(spark, text, history(), partition_by="key")


def test_a_skewed_key_is_split_by_time(spark: SparkSession) -> None:
    table = history(ids=1)
    query = nestream.query(KEYED)
    matches = query.on_spark(frame(spark, table), partition_by="key+time", partitions=4, slice_length=50)
    used = matches.select(F.spark_partition_id().alias("partition")).distinct().count()
    assert used > 1
    assert rows(matches.toArrow()) == rows(query.match(table))


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b, C c) WITHIN 5 events",
        "PATTERN SEQ(A a, !B b, C c, a.id = c.id) WITHIN 8 events",
        "PATTERN SEQ(A a, B b, !C c) WITHIN 4 events",
    ],
)
def test_count_windows_count_all_the_events(spark: SparkSession, text: str) -> None:
    assert_same(spark, text, history())


@pytest.mark.parametrize("by", ["key", "time", "single"])
def test_events_of_equal_time_follow_each_other_as_they_arrive(spark: SparkSession, by: str) -> None:
    text = "PATTERN SEQ(A a, !B b, C c) WHERE [id] WITHIN 6"
    table = history(step=2)
    same = assert_same(spark, text, table, order="arrival", partition_by=by, slice_length=20)
    assert same.num_rows != nestream.query(text).match(table).num_rows


def test_a_query_without_window_and_key_runs_in_one_partition(spark: SparkSession) -> None:
    assert_same(spark, "PATTERN SEQ(A a, !B b, C c, a.id != c.id) WITHIN UNBOUNDED", history(60))


@pytest.mark.parametrize("text", [KEYED, UNKEYED, "PATTERN SEQ(A a, B b) WITHIN 5 events"])
def test_no_events_give_no_matches(spark: SparkSession, text: str) -> None:
    assert_same(spark, text, history().slice(0, 0), least=0)


def test_a_projection_gives_each_match_once(spark: SparkSession) -> None:
    for text in (
        "EXISTS b : SEQ(A a, B b, C c, a.id = b.id = c.id) WITHIN 40",
        "PATTERN SEQ(A a, B b, C c) WITHIN 15 RETURN a",
    ):
        found = assert_same(spark, text, history())
        assert max(rows(found).values()) == 1


def test_a_limit_gives_the_matches_that_end_first(spark: SparkSession) -> None:
    table = history()
    everything = nestream.query(KEYED).match(table)
    found = nestream.query(f"{KEYED} LIMIT 5").match(frame(spark, table)).toArrow()
    assert found.column("match_end").to_pylist() == everything.column("match_end").to_pylist()[:5]
    assert not rows(found) - rows(everything)


def test_a_chain_of_transformations_takes_a_query(spark: SparkSession) -> None:
    table = history()
    found = frame(spark, table).transform(nestream.matching(KEYED)).filter("a.id = 2").toArrow()
    assert rows(found) == rows(nestream.query(KEYED).match(table.filter(pa.compute.field("id") == 2)))


def test_dataframes_come_by_type(spark: SparkSession) -> None:
    table = history()
    parts = {name: table.filter(pa.compute.field("type") == name).drop_columns(["type"]) for name in "ABCD"}
    parts["D"] = parts["D"].append_column("only", pa.array(range(parts["D"].num_rows)))
    found = nestream.query(KEYED).match({name: frame(spark, part) for name, part in parts.items()})
    assert found.select("d.*").columns == ["ts", "id", "n", "type", "only"]
    assert rows(found.toArrow()) == rows(nestream.query(KEYED).match(parts))


def test_nothing_runs_before_the_matches_are_used(spark: SparkSession) -> None:
    events = frame(spark, history())
    before = jobs(spark)
    for text in (KEYED, UNKEYED, f"{KEYED} LIMIT 3", "PATTERN SEQ(A a, B b) WITHIN 5 events"):
        matches = nestream.query(text).match(events)
        assert matches.schema["match_end"].dataType == events.schema["ts"].dataType
        nestream.query(text).explain(events=events)
    assert jobs(spark) == before
    matches.count()
    assert jobs(spark) > before


def test_rows_without_key_are_in_no_match_of_a_key(spark: SparkSession) -> None:
    table = history()
    missing = pa.Table.from_pylist([{"ts": 5, "type": "A", "id": None, "n": -3}], schema=table.schema)
    for text in (KEYED, UNKEYED):
        assert_same(spark, text, pa.concat_tables([table, missing]))


@pytest.mark.parametrize(
    "text",
    [KEYED, "PATTERN SEQ(A a, B b, !C c) WHERE [id] WITHIN 30", "PATTERN SEQ(A a, B b) WITHIN 5 events"],
)
def test_a_large_partition_is_matched_in_parts(
    spark: SparkSession, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = history(step=2)  # some events have equal times, also across the parts
    monkeypatch.setattr(batch, "ROWS_AT_ONCE", 20)
    monkeypatch.setattr(match, "match_batch", lambda df, task, *others: task)
    task = nestream.query(text).on_spark(frame(spark, table))
    codes = [
        (*task.scope.types, "").index(t) if t in task.scope.types else len(task.scope.types)
        for t in table.column("type").to_pylist()
    ]
    carried = table.select([name for name in task.columns if name != "type"])
    carried = carried.rename_columns([task.carried(name) for name in carried.column_names])
    carried = carried.append_column(batch.CODE, pa.array(codes, pa.int16()))
    parts = list(batch._partition(task)(iter(carried.to_batches(max_chunksize=7))))
    assert len(parts) > 3
    assert rows(pa.Table.from_batches(parts)) == rows(nestream.query(text).match(table))
