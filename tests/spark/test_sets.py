"""Query sets on Spark, batch and stream: the matches that the set finds in process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nestream
from benchmarks.rule_set import rule_set
from nestream.data.sase import sase
from tests.spark.same import frame, rows
from tests.spark.stream.streams import Folder

START = datetime(2026, 3, 1, tzinfo=UTC)
TEXTS = {
    "flat": "SEQ(A a, B b, a.id = b.id) WITHIN 20 seconds",
    "nested": "SEQ(A a, !SEQ(C c, D d, c.id = d.id = a.id), B b, a.id = b.id) WITHIN 30 seconds",
    "trailing": "SEQ(A a, B b, !(D d, d.id = a.id), a.id = b.id) WITHIN 10 seconds",
    "returned": "SEQ(C c, D d, c.id = d.id) WITHIN 15 seconds RETURN d.x - c.x AS rise",
}
OTHERS = {
    "unkeyed": "SEQ(C c, D d) WITHIN 3 seconds",
    "counted": "SEQ(A a, D d) WITHIN 4 EVENTS",
    "by x": "SEQ(A a, C c, a.x = c.x) WITHIN 20 seconds",
}


def events(count: int) -> pa.Table:
    chance = Random(4)
    return pa.table(
        {
            "ts": pa.array([START + timedelta(seconds=n) for n in range(count)], pa.timestamp("us", "UTC")),
            "type": chance.choices("ABCD", k=count),
            "id": [chance.randrange(4) for _ in range(count)],
            "x": [chance.randrange(6) for _ in range(count)],
        }
    )


def test_a_set_on_spark_finds_what_it_finds_in_process(spark: SparkSession) -> None:
    chosen = nestream.queries({**TEXTS, **OTHERS})
    table = events(300)
    found = chosen.match(frame(spark, table))
    assert found.columns == ["query", "match_start", "match_end", "events", "values"]
    expected = chosen.match(table)
    assert {row["query"] for row in expected.to_pylist()} == {*TEXTS, *OTHERS}
    assert rows(found.toArrow().cast(expected.schema)) == rows(expected)


def test_queries_with_the_same_key_are_run_in_one_pass(spark: SparkSession) -> None:
    plan = nestream.queries(TEXTS).match(frame(spark, events(50)))._jdf.queryExecution().toString()
    assert plan.split("== Physical Plan ==")[1].count("MapInArrow") == 1


def test_a_set_with_hundreds_of_tests_filters_by_type(spark: SparkSession) -> None:
    table = sase(3_000, id_domain=20)
    chosen = nestream.queries(rule_set(100, window=4_000, test="attr2"))
    expected = chosen.match(table)
    assert expected.num_rows > 20
    assert rows(chosen.match(frame(spark, table)).toArrow().cast(expected.schema)) == rows(expected)


@pytest.mark.slow
def test_a_stream_of_a_set_finds_what_it_finds_in_process(spark: SparkSession, tmp_path: Path) -> None:
    table = events(200)
    chosen = nestream.queries(TEXTS)
    folder = Folder(spark, tmp_path)
    for start in range(0, 200, 80):
        folder.add(table.slice(start, 80))
    folder.run(chosen.match(folder.read(table.schema)))
    folder.add(pa.table({**events(1).to_pydict(), "ts": [START + timedelta(days=1)]}).cast(table.schema))
    folder.run(chosen.match(folder.read(table.schema)))
    expected = chosen.match(table)
    assert rows(folder.found().cast(expected.schema)) == rows(expected)


def test_a_limit_is_refused_on_spark(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="q1 has one"):
        nestream.queries(["SEQ(A a, B b) WITHIN 3 seconds LIMIT 1"]).match(frame(spark, events(5)))
