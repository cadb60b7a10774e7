"""Rules that change while a job runs, on real Spark: the matches of an embedded stream, each once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import nestream
from nestream.job import RuleFolder
from tests.job.test_changed_and_killed import change, expected, random_rule
from tests.spark.stream.cases import START
from tests.spark.stream.changing_job import change_job_at_random
from tests.spark.stream.real_rules import RealRules, files
from tests.spark.stream.rules_driver import PLACES
from tests.spark.stream.streams import PATIENCE, Folder
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


def test_a_job_of_your_own_program_takes_changes_and_describes_itself_for_the_console(
    folder: Folder, tmp_path: Path
) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "pair.neel").write_text(PAIR)
    folder.add(events((0, "A", 1), (1, "A", 2), (2, "B", 1)))
    places = [str(folder.path / "in"), str(folder.path / "out")]
    with nestream.job(tmp_path / "job", rules, title="Pairs") as job:
        running = job.stream_files(folder.spark, *places, watermark="0 seconds", files=1)

        def wait_for(reached: Callable[[], bool]) -> None:
            end = time.monotonic() + PATIENCE
            while not reached():
                assert time.monotonic() < end, running.progress
                running.wait(0.05)

        try:
            wait_for(lambda: running.progress.batch == 0)
            RuleFolder(rules).change("add", lambda _: {"quick": QUICK}, lambda *_: None)
            wait_for(lambda: "quick" in running.progress.rules)
            folder.add(events((3, "B", 2), (4, "B", 1)))
            wait_for(lambda: running.progress.batch == 1)
        finally:
            running.stop()
    rows = [row for file in files(folder.path / "out") for row in pq.read_table(file).to_pylist()]
    shown = sorted((row["query"], row["version"], dict(row["values"])["id"]) for row in rows)
    assert shown == [("pair", 1, "1"), ("pair", 1, "1"), ("pair", 1, "2"), ("quick", 2, "2")]
    described = json.loads((tmp_path / "job" / "job.json").read_text())
    assert (described["title"], described["runtime"], described["live_rules"]) == ("Pairs", "spark", True)
    assert [described["events"], described["matches"]] == places
    said = json.loads((tmp_path / "job" / "progress.json").read_text())
    assert (said["state"], said["events"], said["matches"]) == ("stopped", 5, 4)
    assert said["rules"] == {"pair": 1, "quick": 2}


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


class Killed:
    """A driver with rules in a process of its own, its files, and all that it has been fed."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.chance, self.rules = path, Random(seed), path / "rules"
        self._folder = Folder(cast(Any, None), path)  # its files alone: Spark runs in other processes
        self._arrived: list[dict[str, object]] = []
        self.rules.mkdir()
        for name in "pq":
            (self.rules / f"{name}.neel").write_text(random_rule(self.chance, " seconds"))

    def feed(self, count: int) -> None:
        table = arriving(self.chance, len(self._arrived), count)
        self._arrived.extend(table.to_pylist())
        self._folder.add(table)

    def feed_the_end(self) -> None:
        """An event so late that it decides all others."""
        last = {"ts": START + timedelta(days=1), "type": "Z", "id": 0, "n": -1}
        table = pa.Table.from_pylist([last], arriving(self.chance, 0, 1).schema)
        self._arrived.extend(table.to_pylist())
        self._folder.add(table)

    def change(self) -> None:
        change(self.rules, self.chance, " seconds")

    def start(self, how: str) -> subprocess.Popen[bytes]:
        with (self.path / "driver.log").open("ab") as log:
            driver = [sys.executable, "-m", "tests.spark.stream.rules_driver", str(self.path), how]
            return subprocess.Popen(driver, stdout=log, stderr=log, start_new_session=True)

    def run(self) -> bool:
        """Do what is there; false if the driver died."""
        return self.start("once").wait(900) == 0

    @property
    def said(self) -> str:
        return (self.path / "driver.log").read_text()[-3000:]

    @property
    def progress(self) -> dict[str, Any]:
        try:
            read: dict[str, Any] = json.loads((self.path / "check" / "progress.json").read_text())
        except FileNotFoundError:
            return {"events": 0, "version": 0, "changes": []}
        return read

    def has_read_more_than(self, events: int) -> bool:
        read: int = self.progress["events"]
        return read > events

    def is_done(self) -> bool:
        """Whether every event has been read and every change of the rules taken."""
        now, latest = self.progress, RuleFolder(self.rules).history()[-1]
        return (now["events"], now["version"]) == (len(self._arrived), latest.version)

    def check(self, kills: int) -> None:
        """Compare all matches with what the rules have to emit by the driver's log of changes."""
        told, history = self.progress, RuleFolder(self.rules)
        sets = {one.version: history.at(one.version) for one in history.history()}
        wanted = expected(told["changes"], sets, self._arrived, timedelta(seconds=5))
        rows = [row for file in files(self.path / "out") for row in pq.read_table(file).to_pylist()]
        values = [dict(row["values"]) for row in rows]
        shown = Counter(
            (row["query"], row["version"], int(value["first"]), int(value["last"]))
            for row, value in zip(rows, values, strict=True)
        )
        print(f"{len(told['changes'])} changes, {len(rows)} matches")
        assert shown == wanted
        assert told["late"] == 0
        assert sum(wanted.values()) > 10 * kills
        assert len(told["changes"]) >= kills // 4  # of those that were killed only some were committed


@pytest.mark.slow
def test_twenty_kills_during_a_change_of_the_rules_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    job, died = Killed(tmp_path, 1), Counter[str]()
    job.feed(40)
    assert job.run(), job.said
    while died.total() < 20:
        job.feed(30)
        job.change()
        place = PLACES[died.total() % len(PLACES)]
        (tmp_path / "die").write_text(place)
        job.feed(30)
        if not job.run():
            assert not (tmp_path / "die").exists(), job.said
            died[place] += 1
    (tmp_path / "die").unlink(missing_ok=True)
    job.feed_the_end()
    assert job.run(), job.said
    print(f"killed {dict(died)}")
    job.check(20)


@pytest.mark.slow
def test_twenty_kills_at_any_moment_of_a_job_whose_rules_change_lose_nothing(tmp_path: Path) -> None:
    """Rules change and events come while the driver runs; it is killed with all that it has started."""
    job, chance = Killed(tmp_path, 2), Random(3)
    job.feed(40)
    driver = job.start("on")

    def wait_for(reached: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not reached():
            assert driver.poll() is None, job.said
            assert time.monotonic() < end, (job.progress, job.said)
            time.sleep(0.05)

    wait_for(partial(job.has_read_more_than, 0))  # so that it has begun with the first version of the rules
    for _ in range(20):
        before = job.progress["events"]
        for _ in range(3):
            job.feed(20)
            job.change()
            time.sleep(chance.random())
        if chance.random() < 0.8:  # the others are killed while they begin
            wait_for(partial(job.has_read_more_than, before))
        time.sleep(chance.random())
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        driver = job.start("on")
    wait_for(job.is_done)
    job.feed_the_end()
    wait_for(job.is_done)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    job.check(20)
