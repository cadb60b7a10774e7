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


def test_fields_of_structs_are_read_filtered_and_split_by_on_spark(spark: SparkSession) -> None:
    order = pa.struct([("id", pa.int64()), ("to", pa.struct([("city", pa.string())]))])
    orders = [
        None if n % 11 == 0 else {"id": None if n % 7 == 0 else n % 3, "to": {"city": "abc"[n % 3]}}
        for n in range(40)
    ]
    events = EVENTS.append_column("order", pa.array(orders, order))
    for text in (
        "SEQ(A a, B b) WHERE [order.id] WITHIN 20",
        "SEQ(A a, B b, a.order.to.city = 'a') WITHIN 9 RETURN a.order.to.city AS city, b.order AS whole",
        "SEQ(A a, B b, a.order.id = b.order.id) WITHIN 20 KEEP FIRST PER a",
    ):
        assert_same(spark, text, events)
    told = nestream.query("SEQ(A a, B b) WHERE [order.id] WITHIN 9").explain(events=frame(spark, events))
    assert "by key order.id" in told


def test_a_dataframe_is_matched_with_the_values_of_parameters(spark: SparkSession) -> None:
    values = {"w": 5, "ids": [0, 2]}
    query = nestream.query("SEQ(A a, B b, a.id IN $ids) WITHIN $w", parameters=values)
    found = query.on_spark(frame(spark, EVENTS)).toArrow()
    assert rows(found) == rows(query.match(EVENTS).cast(found.schema))
    assert found.num_rows
