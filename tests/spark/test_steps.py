"""Events of any type, NEXT, DIRECTLY, windows inside a pattern and parameters on Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nestream
from tests.spark.same import assert_same, frame, rows

EVENTS = pa.table(
    {
        "ts": list(range(40)),
        "type": [("A", "B", "C", "D", "odd type")[n * 7 % 5] for n in range(40)],
        "id": [n % 3 for n in range(40)],
    }
)


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, ANY x) WITHIN 4",
        "SEQ(A a, ANY x) WITHIN 4 EVENTS",
        "SEQ(A a, !ANY x, B b) WHERE [id] WITHIN 9",
        "SEQ(A a, NEXT B b) WHERE [id] WITHIN 9",
        "SEQ(A a, DIRECTLY ANY b) WHERE [id] WITHIN 9",
        "SEQ(A a, (AND(B b, C c) WITHIN 3)) WITHIN 12",
        "SEQ(ANY a, ANY b, a.type = b.type) WITHIN 6 RETURN a.type AS kind, b.ts AS at",
    ],
)
def test_a_dataframe_has_the_matches_that_it_has_in_process(spark: SparkSession, text: str) -> None:
    assert_same(spark, text, EVENTS)


@pytest.mark.parametrize(
    ("text", "partitioning"),
    [
        ("SEQ(A a, B b) WHERE [id] WITHIN 9 KEEP FIRST PER a", "by key id"),
        ("SEQ(A a, B b) WHERE [id] WITHIN 9 KEEP LAST PER b.id", "by key id"),
        ("SEQ(A a, B b) WHERE [id] WITHIN 9 KEEP FIRST PER a.id EVERY 12", "by key id"),
        ("SEQ(A a, B b) WHERE [id] WITHIN 9 KEEP DISJOINT", "one partition"),
        ("SEQ(A a, B b, !C c) WITHIN 9 KEEP LONGEST PER a.type", "one partition"),
    ],
)
def test_keep_chooses_the_same_matches_on_spark(spark: SparkSession, text: str, partitioning: str) -> None:
    found = assert_same(spark, text, EVENTS)
    query = nestream.query(text)
    events = frame(spark, EVENTS)
    assert query.count(events) == found.num_rows
    assert query.explain("json", events=events)["spark"]["partitioning"].startswith(partitioning)


def test_a_dataframe_is_matched_with_the_values_of_parameters(spark: SparkSession) -> None:
    values = {"w": 5, "ids": [0, 2]}
    query = nestream.query("SEQ(A a, B b, a.id IN $ids) WITHIN $w", parameters=values)
    found = query.on_spark(frame(spark, EVENTS)).toArrow()
    assert rows(found) == rows(query.match(EVENTS).cast(found.schema))
    assert found.num_rows
