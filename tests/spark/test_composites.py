"""Query sets with INTO on Spark, batch and stream: the matches that the set finds in process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nestream
from tests.spark.same import frame, rows
from tests.spark.stream.streams import Folder

START = datetime(2026, 3, 1, tzinfo=UTC)
KEYED = {
    "top": "SEQ(Pair p, Late l, p.id = l.id) WITHIN 60 seconds",
    "pair": "SEQ(A a, B b, a.id = b.id) WITHIN 10 seconds RETURN a.id AS id, b.x - a.x AS rise INTO Pair",
    "late": "SEQ(Pair p, !(C c, c.id = p.id), p.rise > 0) WITHIN 20 seconds "
    "RETURN p.id AS id, p.ts - p.start AS took INTO Late",
}
UNKEYED = {
    "top": "SEQ(A a, Pair p, !D d, a.ts < p.start) WITHIN 9 seconds",
    "pair": "SEQ(!C c, A a, B b, a.id = b.id) WITHIN 10 seconds RETURN b.x - a.x AS rise INTO Pair",
}
RENAMED = {
    "top": "SEQ(Pair p, C c, p.id = c.id) WITHIN 9 seconds",
    "pair": "SEQ(A a, B b, a.id = b.id) WITHIN 10 seconds RETURN b.x AS id INTO Pair",
}
COUNTED = {
    "top": "SEQ(Pair p, C c) WITHIN 3 EVENTS",
    "pair": "SEQ(A a, B b, a.id = b.id) WITHIN 4 seconds RETURN a.id AS id INTO Pair",
}


def events(count: int) -> pa.Table:
    chance = Random(5)
    return pa.table(
        {
            "ts": pa.array([START + timedelta(seconds=n) for n in range(count)], pa.timestamp("us", "UTC")),
            "type": chance.choices("ABCD", k=count),
            "id": [chance.randrange(4) for _ in range(count)],
            "x": [chance.randrange(6) for _ in range(count)],
        }
    )


@pytest.mark.parametrize(
    ("texts", "how"),
    [
        (KEYED, {}),
        (KEYED, {"partition_by": "key+time", "slice_length": "30 s"}),
        (UNKEYED, {"slice_length": "15 s"}),
        (RENAMED, {}),
        (COUNTED, {}),
    ],
    ids=["by key", "by key and time", "by time", "another value under the name of the key", "not split"],
)
def test_queries_read_the_matches_of_others_on_spark_as_in_process(
    spark: SparkSession, texts: dict[str, str], how: dict[str, Any]
) -> None:
    chosen = nestream.queries(texts)
    table = events(300)
    expected = chosen.match(table)
    assert {row["query"] for row in expected.to_pylist()} == {*texts}
    found = chosen.match(frame(spark, table), **how)
    assert rows(found.toArrow().cast(expected.schema)) == rows(expected)
    assert chosen.count(frame(spark, table)) == chosen.count(table)


@pytest.mark.parametrize(
    "texts",
    [pytest.param(KEYED, id="keyed"), pytest.param(UNKEYED, id="not split")],
)
@pytest.mark.slow
def test_a_stream_on_spark_hands_matches_on_as_a_table_does(
    spark: SparkSession, tmp_path: Path, texts: dict[str, str]
) -> None:
    table = events(200)
    chosen = nestream.queries(texts)
    folder = Folder(spark, tmp_path)
    for start in range(0, 200, 80):
        folder.add(table.slice(start, 80))
    folder.run(chosen.match(folder.read(table.schema)))
    folder.add(pa.table({**events(1).to_pydict(), "ts": [START + timedelta(days=1)]}).cast(table.schema))
    folder.run(chosen.match(folder.read(table.schema)))
    expected = chosen.match(table)
    assert {row["query"] for row in expected.to_pylist()} == {*texts}
    assert rows(folder.found().cast(expected.schema)) == rows(expected)
