"""What Spark does before anything crosses to Python, seen in Spark's own plan over Parquet."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import nestream
from tests.spark.same import rows

TEXT = (
    "PATTERN SEQ(A a, !(B b, b.id = a.id, b.name IN ('p', 'q')), C c, a.id = c.id, a.x > 3, "
    "c.x BETWEEN 2 AND 9) WITHIN 10 RETURN a.id AS id"
)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    size = 500
    return pa.table(
        {
            "ts": range(size),
            "type": ["ABCD"[n * 7 % 4] for n in range(size)],
            "id": [n * n % 3 for n in range(size)],
            "x": [n % 11 for n in range(size)],
            "name": ["pqrs"[n % 4] for n in range(size)],
            "wide": ["never read"] * size,
        }
    )


@pytest.fixture(scope="module")
def events(spark: SparkSession, table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path: Path = tmp_path_factory.mktemp("events") / "events.parquet"
    pq.write_table(table, path)
    return spark.read.parquet(str(path))


def scan(matches: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    """The scan in Spark's plan, in one line."""
    matches.explain()
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "FileScan" in line)
    return line


def test_types_and_single_event_tests_are_pushed_into_the_scan(
    events: DataFrame, table: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    matches = nestream.query(TEXT).match(events)
    pushed = re.search(r"PushedFilters: \[(.*)\], ReadSchema", scan(matches, capsys))
    assert pushed is not None
    for condition in (
        "EqualTo(type,A)",
        "GreaterThan(x,3)",
        "In(name, [p,q])",
        "GreaterThanOrEqual(x,2)",
        "LessThanOrEqual(x,9)",
        "IsNotNull(id)",
        "IsNull(ts)",
    ):
        assert condition in pushed[1]
    assert rows(matches.toArrow()) == rows(nestream.query(TEXT).match(table))


def test_only_the_columns_that_the_query_uses_are_read(
    events: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    line = scan(nestream.query(TEXT).match(events), capsys)
    read = re.search(r"ReadSchema: struct<(.*)>", line)
    assert read is not None
    assert {column.split(":")[0] for column in read[1].split(",")} == {"ts", "type", "id", "x", "name"}


def test_types_cross_as_small_numbers(events: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    nestream.query(TEXT).match(events).explain()
    plan = capsys.readouterr().out
    assert re.search(r"CASE WHEN \(type#\d+ = A\) THEN 0", plan)
    assert "smallint" in plan or "as small" in plan or "END AS nestream type" in plan


def test_explain_says_how_the_events_are_split_read_and_filtered(events: DataFrame) -> None:
    text = nestream.query(TEXT).explain(events=events)
    assert "Spark\n  by key id: every event of a match and of its negations has the same value\n" in text
    assert "  reads: ts, type, id, x, name (not wide)\n" in text
    assert '  filters: A (x > 3) or C (x BETWEEN 2 AND 9) or B (name IN ("p", "q"))' in text
    described = nestream.query(TEXT).explain("json", events=events, partition_by="key+time", partitions=7)
    assert described["spark"]["partitions"] == 7
    assert described["spark"]["partitioning"].startswith("by key id and time, slices of 160 with 10 before")


def test_explain_takes_dataframes_alone() -> None:
    with pytest.raises(TypeError, match="a Spark DataFrame"):
        nestream.query(TEXT).explain(events=[{"ts": 1}])
