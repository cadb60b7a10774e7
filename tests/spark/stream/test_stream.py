"""Streams on Spark: random micro-batches and restarts, timers, late and malformed events, wrong use."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import nestream
from tests.property.cases import Case
from tests.spark.same import rows
from tests.spark.stream.cases import START, lateness, later_events, stream_cases
from tests.spark.stream.streams import Folder

SEED = 52
CASES = 60
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("type", pa.string()), ("id", pa.int64())])
KEYED = "SEQ(A a, B b) WHERE a.id = b.id WITHIN 10 seconds"


def events(*entries: tuple[float | None, str | None, int]) -> pa.Table:
    """Events at seconds after the start."""
    moments = [
        {"ts": None if ts is None else START + timedelta(seconds=ts), "type": kind, "id": key}
        for ts, kind, key in entries
    ]
    return pa.Table.from_pylist(moments, SCHEMA)


def ids(table: pa.Table, *variables: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name]["id"] for name in variables) for row in table.to_pylist())


def check(folder: Folder, case: Case) -> None:
    """Run a case in random micro-batches, with a new query from the same checkpoint now and then."""
    chance = Random(case.seed)
    query = nestream.query(case.text)
    delay = f"{lateness(case.table) // timedelta(milliseconds=1)} milliseconds"
    parts, done = [], 0
    while done < case.table.num_rows:
        size = chance.choice((2, 3, 5, 8))
        parts.append(case.table.slice(done, size))
        done += size
    restart = chance.randrange(len(parts))
    for number, part in enumerate([*parts, later_events(case.table)]):
        folder.add(part)
        if number == restart:
            folder.run(query.on_spark(folder.read(case.table.schema, delay), order=case.order))
    folder.run(query.on_spark(folder.read(case.table.schema, delay), order=case.order))
    expected = query.match(case.table, order=case.order, strategy="reference")
    assert rows(folder.found().cast(expected.schema)) == rows(expected), str(case)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(CASES))
def test_random_micro_batches_and_a_restart_give_the_matches_of_the_reference(
    folder: Folder, number: int
) -> None:
    check(folder, next(islice(_with_matches(), number, None)))


def _with_matches() -> Any:
    for case in stream_cases(SEED):
        if nestream.query(case.text).match(case.table, order=case.order).num_rows:
            yield case


def test_a_trailing_negation_is_decided_by_time_alone(folder: Folder) -> None:
    text = "SEQ(A a, !B b) WHERE a.id = b.id WITHIN 10 seconds"
    parts = [events((0, "A", 1), (1, "A", 2), (2, "B", 2)), events((30, "Z", 0))]
    assert ids(folder.matches(text, parts), "a") == [(1,)]


def test_groups_aggregates_and_keep_on_a_stream_are_those_of_the_reference(folder: Folder) -> None:
    text = """SEQ(A a, B{2,} b, C c) WHERE [id] AND MAX(b.ts - PREV(b.ts)) <= 3 seconds WITHIN 10 seconds
        RETURN a.id AS id, b, COUNT(b) AS n, LAST(b.ts) AS latest KEEP LAST PER a"""
    parts = [
        events((0, "A", 1), (1, "B", 1), (1, "A", 2), (2, "B", 2), (3, "B", 1), (4, "C", 1), (5, "B", 2)),
        events((6, "C", 2), (6, "B", 1), (8, "C", 1), (9, "B", 2), (9.5, "C", 2), (90, "Z", 0)),
    ]
    expected = nestream.query(text).match(pa.concat_tables(parts), strategy="reference")
    assert expected.column("n").to_pylist() == [2, 3]
    assert rows(folder.matches(text, parts).cast(expected.schema)) == rows(expected)


def test_late_and_malformed_events_are_given_with_the_reason_and_counted(folder: Folder) -> None:
    for part in (
        events((0, "A", 1), (100, "A", 2)),
        events((50, "B", 3), (101, "B", 2), (None, "A", 4), (102, None, 5)),
        events((300, "Z", 0)),
    ):
        folder.add(part)
    outcomes = nestream.query(KEYED).outcomes(folder.read(SCHEMA, "10 seconds"))
    progress = folder.run(outcomes)
    found = folder.found().to_pylist()
    assert [row["match"]["b"]["id"] for row in found if row["outcome"] == "match"] == [2]
    assert [(row["event"]["id"], row["reason"]) for row in found if row["outcome"] == "late"] == [
        (3, "before the watermark")
    ]
    malformed = {row["event"]["id"]: row["reason"] for row in found if row["outcome"] == "malformed"}
    assert malformed == {4: "no time: `ts` is NULL", 5: "no type: `type` is NULL"}
    counts = [entry.observedMetrics["nestream"].asDict() for entry in progress]
    assert sum(count["late"] for count in counts) == 1
    assert sum(count["malformed"] for count in counts) == 2
    assert sum(count["matches"] for count in counts) == 1


@pytest.mark.slow
def test_a_changed_query_is_refused_on_an_old_checkpoint(folder: Folder) -> None:
    folder.add(events((0, "A", 1)))
    folder.run(nestream.query(KEYED).match(folder.read(SCHEMA)))
    folder.add(events((1, "B", 1)))
    changed = nestream.query(KEYED.replace("10", "20"))
    with pytest.raises(StreamingQueryException, match="the checkpoint belongs to another query"):
        folder.run(changed.match(folder.read(SCHEMA)))
    folder.add(events((50, "Z", 1)))
    folder.run(nestream.query(KEYED).match(folder.read(SCHEMA)))
    assert ids(folder.found(), "a", "b") == [(1, 1)]


def test_a_stream_limited_to_some_matches_gives_no_more(folder: Folder) -> None:
    parts = [events((0, "A", 1), (1, "B", 1), (2, "B", 1)), events((3, "B", 1)), events((50, "Z", 0))]
    assert folder.matches(f"{KEYED} LIMIT 2", parts).num_rows == 2


def test_a_stream_without_watermark_is_refused_with_the_line_to_write(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'A' AS type", "1 AS id")
    with pytest.raises(nestream.EventError, match=r'withWatermark\("ts", "10 seconds"\)'):
        nestream.query(KEYED).match(stream)
    numbers = stream.selectExpr("unix_millis(ts) AS ts", "type", "id")
    with pytest.raises(nestream.EventError, match="watermarks only on timestamps"):
        nestream.query(KEYED.replace("seconds", "")).match(numbers)


def test_another_state_store_is_refused_with_the_line_to_write(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'A' AS type", "1 AS id")
    key = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(key, None)
    spark.conf.set(key, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(nestream.EventError, match=r"spark\.conf\.set"):
            nestream.query(KEYED).match(stream.withWatermark("ts", "1 second"))
    finally:
        if before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, before)


def test_streams_by_type_are_matched_together(folder: Folder, tmp_path: Any) -> None:
    other = Folder(folder.spark, tmp_path / "other")
    other.path.mkdir()
    folder.add(events((0, "", 1), (50, "", 0)))
    other.add(events((1, "", 1), (50, "", 0)))
    matches = nestream.query(KEYED).match({"A": folder.read(SCHEMA), "B": other.read(SCHEMA)})
    folder.run(matches)
    assert ids(folder.found(), "a", "b") == [(1, 1)]
