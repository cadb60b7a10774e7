"""Rules that change while a job runs, on real Spark: the matches of an embedded stream, each once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nestream.job import RuleFolder
from tests.job.test_changed_and_killed import change, expected, random_rule
from tests.spark.stream.cases import START
from tests.spark.stream.changing_job import change_job_at_random
from tests.spark.stream.real_rules import RealRules, files
from tests.spark.stream.rules_driver import PLACES
from tests.spark.stream.streams import Folder
from tests.spark.stream.test_changing_rules import ALONE, PAIR, QUICK, UNSPLIT
from tests.spark.stream.test_operator import events

pytestmark = pytest.mark.filterwarnings("ignore::nestream.UnseenTypeWarning")


def found(job: RealRules) -> list[tuple[str, int, str]]:
    return sorted(
        (row["query"], row["version"], dict(row["values"])["id"]) for row in job.matches.to_pylist()
    )


def test_a_job_on_spark_takes_the_changes_of_a_folder_of_rules(folder: Folder, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "pair.neel").write_text(PAIR)
    job = RealRules(RuleFolder(rules, noted=True), folder, events((0, "A", 1), (1, "A", 2), (2, "B", 1)))
    try:
        told: list[object] = []
        job.running.on_change = told.append
        RuleFolder(rules).change("add", lambda _: {"quick": QUICK}, lambda *_: None)
        job.wait_for(lambda: bool(told))  # it changes without an event
        assert job.job.progress.rules == {"pair": 1, "quick": 2}
        job.batch(events((3, "B", 2), (4, "B", 1)))
        RuleFolder(rules).change("replace", lambda _: {"pair": ALONE}, lambda *_: None)
        (rules / "unsplit.neel").write_text(UNSPLIT)
        job.wait_for(lambda: "unsplit" in job.job.progress.refused)
        job.start()
        job.batch(events((5, "B", 1), (20, "A", 3), (21, "B", 3)))
        assert list(job.job.progress.refused) == ["unsplit"]
        assert job.job.progress.rules == {"pair": 3, "quick": 2}
        assert job.job.progress.seconds_by_rule.keys() == {"pair", "quick"}
    finally:
        job.running.stop()
    assert found(job) == [
        ("pair", 1, "1"),
        ("pair", 1, "1"),
        ("pair", 1, "2"),
        ("pair", 3, "3"),
        ("quick", 2, "2"),
        ("quick", 2, "3"),
    ]
    said = json.loads((folder.path / "check" / "progress.json").read_text())
    assert (said["version"], said["rules"], list(said["refused"])) == (
        4,
        {"pair": 3, "quick": 2},
        ["unsplit"],
    )
    assert {one["version"] for one in said["changes"]} | {3} == {2, 3, 4}


def test_a_job_on_spark_whose_rules_change_at_random_finds_what_an_embedded_stream_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    check(spark, tmp_path, 3, sizes=(14,))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 30))
def test_many_jobs_on_spark_whose_rules_change_at_random(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    check(spark, tmp_path, seed, sizes=(5, 9))


def check(spark: SparkSession, path: Path, seed: int, sizes: tuple[int, ...]) -> None:
    running = change_job_at_random(Random(seed), path, sizes=sizes, spark=spark)
    assert running.found == running.expected()
    assert len(running.stints) > len({stint.name for stint in running.stints})
    if running.is_same:
        assert running.found == running.embedded


def arriving(chance: Random, first: int, count: int) -> pa.Table:
    """Events up to four seconds out of order, numbered."""
    schema = pa.schema(
        [("ts", pa.timestamp("us", "UTC")), ("type", pa.string()), ("id", pa.int64()), ("n", pa.int64())]
    )
    moments = [START + timedelta(seconds=n * 0.5 + chance.random() * 4) for n in range(first, first + count)]
    return pa.Table.from_pylist(
        [
            {"ts": ts, "type": chance.choice("ABC"), "id": chance.randrange(5), "n": n}
            for n, ts in enumerate(moments, first)
        ],
        schema,
    )


def survive(path: Path, seed: int, kills: int) -> None:
    """Change the rules, let the driver die over it, again and again; compare with its log of changes."""
    chance, rules = Random(seed), path / "rules"
    folder = Folder(cast(Any, None), path)  # its files alone: Spark runs in other processes
    rules.mkdir()
    for name in "pq":
        (rules / f"{name}.neel").write_text(random_rule(chance, " seconds"))
    arrived: list[dict[str, object]] = []
    died: Counter[str] = Counter()

    def feed(count: int) -> None:
        table = arriving(chance, len(arrived), count)
        arrived.extend(table.to_pylist())
        folder.add(table)

    def start() -> int:
        with (path / "driver.log").open("ab") as log:
            driver = [sys.executable, "-m", "tests.spark.stream.rules_driver", str(path)]
            return subprocess.Popen(driver, stdout=log, stderr=log, start_new_session=True).wait(900)

    feed(40)
    assert start() == 0, (path / "driver.log").read_text()[-3000:]
    while died.total() < kills:
        feed(30)
        change(rules, chance, " seconds")
        place = PLACES[died.total() % len(PLACES)]
        (path / "die").write_text(place)
        feed(30)
        if start() != 0:
            assert not (path / "die").exists(), (path / "driver.log").read_text()[-3000:]
            died[place] += 1
    (path / "die").unlink(missing_ok=True)
    arrived.append({"ts": START + timedelta(days=1), "type": "Z", "id": 0, "n": -1})
    folder.add(pa.Table.from_pylist(arrived[-1:], arriving(chance, 0, 1).schema))
    assert start() == 0, (path / "driver.log").read_text()[-3000:]
    told, history = json.loads((path / "check" / "progress.json").read_text()), RuleFolder(rules)
    sets = {one.version: history.at(one.version) for one in history.history()}
    wanted = expected(told["changes"], sets, arrived, timedelta(seconds=5))
    rows = [row for file in files(path / "out") for row in pq.read_table(file).to_pylist()]
    values = [dict(row["values"]) for row in rows]
    shown = Counter(
        (row["query"], row["version"], int(value["first"]), int(value["last"]))
        for row, value in zip(rows, values, strict=True)
    )
    print(f"killed {dict(died)}, {len(told['changes'])} changes, {len(rows)} matches")
    assert shown == wanted
    assert told["late"] == 0
    assert sum(wanted.values()) > 10 * kills
    assert len(told["changes"]) >= kills // 2


@pytest.mark.slow
def test_twenty_kills_while_the_rules_change_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    survive(tmp_path, 1, 20)
