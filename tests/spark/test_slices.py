"""Time slices of a batch: neighbouring ones are matched together, and no match is lost or found twice."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nestream
from nestream.runtime.spark import batch, match
from nestream.runtime.spark.batch import CODE, SIDE, SLICE
from tests.spark.same import frame, rows


def sliced(table: pa.Table, task: batch.Task) -> list[dict[str, Any]]:
    """Each event once for each slice that sees it, as Spark sends it to a partition."""
    plan, found = task.partitioning, []
    for event in table.to_pylist():
        own = event["ts"] // plan.length
        for number in range(
            (event["ts"] - plan.after) // plan.length, (event["ts"] + plan.before) // plan.length + 1
        ):
            carried = {task.carried(name): event[name] for name in task.columns if name != "type"}
            code = task.scope.types.index(event["type"]) if event["type"] in task.scope.types else 99
            side = (own > number) - (own < number)
            found.append({**carried, CODE: code, SLICE: number, SIDE: side})
    found = [row for row in found if row[CODE] != 99]
    return sorted(found, key=lambda row: (row[SLICE], row[task.carried("ts")]))


def batches(events: list[dict[str, Any]], task: batch.Task, chance: Random) -> Iterator[pa.RecordBatch]:
    """The rows of a partition, cut anywhere."""
    carried = [(task.carried(name), pa.int64()) for name in task.columns if name != "type"]
    schema = pa.schema([*carried, (CODE, pa.int16()), (SLICE, pa.int64()), (SIDE, pa.int8())])
    start = 0
    while start < len(events):
        size = chance.randrange(1, 9)
        yield pa.RecordBatch.from_pylist(events[start : start + size], schema)
        start += size


@pytest.mark.parametrize("length", [3, 12, 50])
@pytest.mark.parametrize("query", ["SEQ(A a, !B b, C c) WITHIN 12", "SEQ(A a, C c, !D d) WITHIN 12"])
def test_partitions_of_slices_in_groups_of_any_size_find_every_match_once(
    spark: SparkSession, query: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match, "match_batch", lambda df, task, *others: task)
    for seed in range(10):
        chance = Random(seed)
        times = sorted(chance.randrange(-300, 300) for _ in range(150))
        table = pa.table({"ts": times, "type": [chance.choice("ABCDE") for _ in times]})
        task = nestream.query(query).on_spark(frame(spark, table), slice_length=length)
        monkeypatch.setattr(batch, "ROWS_AT_ONCE", chance.choice((1, 20, 1_000)))
        events = sliced(table, task)
        borders = sorted(chance.randrange(-300, 300) // length for _ in range(3))
        found: list[pa.RecordBatch] = []
        for first, last in zip([-(10**6), *borders], [*borders, 10**6], strict=True):
            partition = [row for row in events if first <= row[SLICE] < last]
            found += batch._partition(task)(batches(partition, task, chance))
        expected = nestream.query(query).match(table)
        assert expected.num_rows > 5
        assert rows(pa.Table.from_batches(found, task.wanted)) == rows(expected)


def test_neighbouring_slices_take_one_run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that is short against the history has thousands of slices, most of them with few events."""
    monkeypatch.setattr(match, "match_batch", lambda df, task, *others: task)
    table = pa.table({"ts": [n * 1_000 for n in range(2_000)], "type": ["A", "B"] * 1_000})
    task = nestream.query("SEQ(A a, B b) WITHIN 10").on_spark(frame(spark, table))
    ((slices, events),) = batch._groups(batches(sliced(table, task), task, Random(1)), task)
    assert slices == range(1_999_000 // 160 + 1)
    assert sum(part.num_rows for part in events) == 2_000


def test_a_window_whose_slices_exceed_64_bits_is_matched(spark: SparkSession) -> None:
    table = pa.table({"ts": [-5 * 10**18, 0, 5 * 10**18], "type": ["A", "B", "B"]})
    found = nestream.query("SEQ(A a, B b) WITHIN 5000000000000000000").match(frame(spark, table)).toArrow()
    assert [match["b"]["ts"] for match in found.to_pylist()] == [0]
