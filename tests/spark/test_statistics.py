"""How the split of a batch is chosen: from what Spark knows, and for large batches from their first rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import nestream
from nestream.runtime.spark.statistics import SKEWED, estimated
from tests.spark.same import frame, jobs, rows

QUERY = "SEQ(A a, !D d, B b, C c) WHERE [id] WITHIN 12"
EVENTS = 600


def history(skewed: bool) -> pa.Table:
    """Events of fifty keys; in a skewed history one of them has two thirds of the events."""
    chance = Random(5)
    ids = [7 if skewed and chance.random() < 0.66 else chance.randrange(50) for _ in range(EVENTS)]
    return pa.table(
        {
            "ts": pa.array(range(EVENTS), pa.int64()),
            "type": [chance.choice("ABCDEFGH") for _ in range(EVENTS)],
            "id": pa.array(ids, pa.int64()),
        }
    )


def stored(spark: SparkSession, path: Path, table: pa.Table) -> DataFrame:
    """The events in three files."""
    path.mkdir()
    for number in range(3):
        pq.write_table(table.slice(number * EVENTS // 3, EVENTS // 3), path / f"{number}.parquet")
    return spark.read.parquet(str(path))


@pytest.fixture
def small_tasks(spark: SparkSession) -> Iterator[None]:
    """A session in which a kilobyte is too many for one task."""
    before = spark.conf.get(SKEWED)
    spark.conf.set(SKEWED, "1k")
    yield
    spark.conf.set(SKEWED, str(before))


def split(events: DataFrame, **options: Any) -> tuple[str, str]:
    described = nestream.query(QUERY).explain("json", events=events, **options)["spark"]
    return described["partitioning"], described.get("statistics", "")


@pytest.mark.usefixtures("small_tasks")
def test_a_skewed_key_is_cut_by_time_and_explain_says_why(spark: SparkSession, tmp_path: Path) -> None:
    table = history(skewed=True)
    events = stored(spark, tmp_path / "events", table)
    partitioning, statistics = split(events)
    assert partitioning.startswith("by key id and time, slices of 192 with 12 before and 0 after: ")
    assert partitioning.endswith("the key '7' has too many events for one task")
    assert "of 600 rows sampled, 34% have the key '7'" in statistics  # half of the types matter
    assert SKEWED in statistics
    text = nestream.query(QUERY).explain(events=events)
    assert f"  statistics: {statistics}\n" in text
    found = nestream.query(QUERY).match(events).toArrow()
    expected = nestream.query(QUERY).match(table, strategy="reference")
    assert found.num_rows > 5
    assert rows(found) == rows(expected)


@pytest.mark.usefixtures("small_tasks")
def test_keys_of_one_size_stay_whole_after_a_look(spark: SparkSession, tmp_path: Path) -> None:
    before = jobs(spark)
    partitioning, statistics = split(stored(spark, tmp_path / "events", history(skewed=False)))
    assert jobs(spark) > before
    assert partitioning.startswith("by key id: ")
    assert "rows sampled, 2% have the key" in statistics
    assert "one task takes up to 1.0 KB" in statistics


@pytest.mark.usefixtures("small_tasks")
def test_no_event_is_looked_at_where_that_is_switched_off_or_the_split_is_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    events = stored(spark, tmp_path / "events", history(skewed=True))
    before = jobs(spark)
    partitioning, statistics = split(events, statistics=False)
    assert partitioning.startswith("by key id: ")
    assert statistics.startswith("off, so")
    assert split(events, partition_by="key") == (partitioning, "")
    assert split(events, partition_by="key+time")[0].endswith(": requested")
    matches = nestream.query(QUERY).on_spark(events, statistics=False)
    assert jobs(spark) == before
    assert rows(matches.toArrow()) == rows(nestream.query(QUERY).match(history(skewed=True)))


def test_a_batch_that_is_small_as_a_whole_is_not_looked_at(spark: SparkSession, tmp_path: Path) -> None:
    before = jobs(spark)
    events = stored(spark, tmp_path / "events", history(skewed=True))
    reading = jobs(spark)
    _, statistics = split(events)
    assert jobs(spark) == reading >= before
    assert "so no key has more than 256.0 MB; none were sampled" in statistics


@pytest.mark.usefixtures("small_tasks")
def test_a_join_is_not_run_for_a_look(spark: SparkSession, tmp_path: Path) -> None:
    events = stored(spark, tmp_path / "events", history(skewed=True))
    joined = events.join(events.groupBy("id").count(), "id")
    before = jobs(spark)
    partitioning, statistics = split(joined)
    assert jobs(spark) == before
    assert partitioning.startswith("by key id: ")
    assert "not sampled, because that would run a Join" in statistics


@pytest.mark.usefixtures("small_tasks")
def test_events_of_unknown_size_are_not_looked_at(spark: SparkSession) -> None:
    rows_of_python = spark.createDataFrame([(1, "A", 1)], "ts long, type string, id long")
    before = jobs(spark)
    assert split(rows_of_python)[1].startswith("Spark has no estimate of the size")
    assert jobs(spark) == before


def test_spark_knows_the_size_of_files_and_of_tables(spark: SparkSession, tmp_path: Path) -> None:
    table = history(skewed=False)
    files = estimated(stored(spark, tmp_path / "events", table))
    size = sum(file.stat().st_size for file in (tmp_path / "events").iterdir())
    assert files.costly is None
    assert files.size is not None
    assert files.size == pytest.approx(size, rel=0.01)
    both = estimated(frame(spark, table).unionByName(frame(spark, table)))
    assert both.size is not None
    assert both.size > EVENTS * 2 * 16
    assert both.costly is None


# -- statistics for a strategy -----------------------------------------------------------------------------

SHARED = "OR(SEQ(A a, !B b, C c), SEQ(A x, !D d, C y), SEQ(E e, D d2, C c2)) WITHIN 12"


def test_a_batch_by_a_strategy_of_the_papers_is_planned_for_its_events(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = history(skewed=False)
    events = stored(spark, tmp_path / "events", table)
    query = nestream.query(SHARED)
    expected = rows(query.match(table, strategy="reference"))
    for sample in (None, table.slice(0, 300)):
        found = query.on_spark(events, strategy="flat", sample=sample)
        assert rows(found.toArrow()) == expected
    said = query.explain(events=events, strategy="flat")
    assert "estimated for 600 events: " in said
    assert "  optimizer: each partition is planned for its first events" in said.splitlines()
    assert "estimated for 600 events" not in query.explain(strategy="flat")


def test_statistics_for_a_strategy_may_be_given_as_a_sample(spark: SparkSession) -> None:
    table = history(skewed=False)
    frame_of_none = frame(spark, table.slice(0, 0))
    said = nestream.query(SHARED).explain(events=frame_of_none, strategy="flat", sample=table.slice(0, 300))
    assert "estimated for 300 events: " in said
