"""Random queries over random histories, and the corpus, on Spark: the matches of the reference."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nestream
from nestream.runtime.spark.partitioning import choose
from tests.corpus.cases import Case as CorpusCase
from tests.corpus.cases import read_all
from tests.corpus.notation import read_history
from tests.property.cases import random_case
from tests.property.harness import assert_same_matches
from tests.property.runners import Run
from tests.spark.same import frame, rows

SEED = 20
CASES = 24
MANY = 600
CORPUS = [case for case in read_all() if case.runs and case.one("error") is None]


def on_spark(spark: SparkSession, used: list[str] | None = None) -> Run:
    """Runs a query on Spark, split in a way that the seed chooses among those that are possible."""

    def run(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
        chance = Random(seed)
        query = nestream.query(text)
        length = chance.choice((1, 3, 10, 100))
        strategy = chance.choice(("auto", "auto", "nested", "flat", "views-passive", "views-balanced"))
        split = chance.choice(list(_possible(query, table, order, strategy)))
        if used is not None:
            used.append(split)
        matches = query.on_spark(
            frame(spark, table),
            order=order,
            partition_by=split,
            partitions=chance.choice((1, 3, 8)),
            slice_length=length,
            strategy=strategy,
        )
        wanted = query.match(table.slice(0, 0), order=order).schema
        return matches.toArrow().cast(wanted)

    return run


def _possible(query: nestream.Query, table: pa.Table, order: str, strategy: str) -> Iterator[str]:
    run = query.prepare(table, order=order, strategy=strategy)
    program = run.compiled().program
    for kind in ("key", "time", "key+time", "single"):
        try:
            yield choose(program, kind).kind
        except ValueError:
            continue


def check(spark: SparkSession, numbers: range) -> list[str]:
    used: list[str] = []
    for index in numbers:
        case = random_case(SEED, index)
        assert_same_matches(
            case.text, case.table, on_spark(spark, used), order=case.order, seed=case.seed, name=case.name
        )
    return used


def test_random_queries_give_the_matches_of_the_reference(spark: SparkSession) -> None:
    used = check(spark, range(CASES))
    assert {"time", "single"} <= set(used)


@pytest.mark.slow
def test_many_random_queries_give_the_matches_of_the_reference(spark: SparkSession) -> None:
    assert set(check(spark, range(CASES, MANY))) == {"key", "time", "key+time", "single"}


def run_corpus(spark: SparkSession, cases: list[CorpusCase]) -> None:
    for case in cases:
        query = nestream.query(case.query, case.one("dialect"))
        options: dict[str, Any] = {"order": case.one("order") or "time", "types": case.types}
        options["time"], options["type"] = case.columns
        for events, _ in case.runs:
            table = read_history(events.text, case.letters, case.columns).table()
            expected = query.match(table, strategy="reference", **options)
            found = query.match(frame(spark, table), **options).toArrow()
            if query.plan.limit is None:
                assert rows(found) == rows(expected.cast(found.schema)), f"{case.name}: {events.text}"
            else:
                assert found.column("match_end").equals(
                    expected.column("match_end").cast(found.schema.field("match_end").type)
                ), f"{case.name}: {events.text}"


def test_a_part_of_the_corpus_gives_the_same_on_spark(spark: SparkSession) -> None:
    run_corpus(spark, CORPUS[5 :: len(CORPUS) // 12])


@pytest.mark.slow
def test_the_corpus_gives_the_same_on_spark(spark: SparkSession) -> None:
    run_corpus(spark, CORPUS)
