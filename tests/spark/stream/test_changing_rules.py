"""Rules that change while a job on Spark runs, simulated: the matches of an embedded stream, little state."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

import nestream
from nestream.model.schema import Schema
from nestream.runtime.spark.stream_bucket import KEPT
from nestream.runtime.spark.stream_commit import Commits
from nestream.runtime.spark.stream_rules import FixedQueries
from tests.job.test_live_rules import Rules
from tests.spark.stream.cases import SECOND
from tests.spark.stream.changing_job import SimulatedRules, change_job_at_random
from tests.spark.stream.simulated_job import SimulatedJob
from tests.spark.stream.test_operator import events

pytestmark = pytest.mark.filterwarnings("ignore::nestream.UnseenTypeWarning")
PAIR = "SEQ(A a, B b, a.id = b.id) WITHIN 10 seconds RETURN a.id AS id"
QUICK = "SEQ(A a, B b, a.id = b.id, b.ts - a.ts < 3 seconds) WITHIN 10 seconds RETURN a.id AS id"
ALONE = "SEQ(A a, !(C c, c.id = a.id), B b, a.id = b.id) WITHIN 10 seconds RETURN a.id AS id"
UNSPLIT = "SEQ(A a, B b) WITHIN 10 seconds RETURN a.id AS id"


def job_of(path: Path, *, buckets: int = 3, delay: int = 0, **texts: str) -> SimulatedRules:
    return SimulatedRules(Rules(**texts), events().schema, path, buckets=buckets, delay=delay)


def run(job: SimulatedJob, *rows: tuple[Any, Any, Any]) -> None:
    """One micro-batch."""
    job.run(events(*rows))
    job.number += 1


def found(job: SimulatedJob) -> list[tuple[str, int, str]]:
    return sorted(
        (row["query"], row["version"], dict(row["values"])["id"]) for row in job.matches.to_pylist()
    )


@pytest.mark.parametrize("seed", range(6))
def test_rules_of_a_job_emit_what_they_have_to_whatever_changes_around_them(
    tmp_path: Path, seed: int
) -> None:
    running = change_job_at_random(Random(seed), tmp_path)
    assert running.found == running.expected()
    if running.is_same:
        assert running.found == running.embedded


@pytest.mark.slow
def test_many_jobs_with_random_changes_find_what_embedded_streams_do(tmp_path: Path) -> None:
    same = split = stints = 0
    for seed in range(1000, 1400):
        running = change_job_at_random(Random(seed), tmp_path / str(seed), parts=4)
        assert running.found == running.expected(), seed
        if running.is_same:
            assert running.found == running.embedded, seed
        same, split = same + running.is_same, split + (len(running.job.numbers) > 1)
        stints += len(running.stints)
    print(f"{stints} rules came; {same} jobs saw what a stream saw, {split} were split by key")
    assert min(same, split) > 100


def test_a_match_names_the_version_of_its_rule_and_a_new_rule_sees_the_events_held(tmp_path: Path) -> None:
    job = job_of(tmp_path, pair=PAIR)
    run(job, (0, "A", 1), (1, "A", 2), (2, "B", 1))
    job.rules.change(quick=QUICK)
    run(job, (3, "B", 2), (4, "B", 1))
    job.rules.change(pair=ALONE)
    run(job, (5, "B", 1), (20, "A", 3), (21, "B", 3))
    assert found(job) == [
        ("pair", 1, "1"),
        ("pair", 1, "1"),
        ("pair", 1, "2"),
        ("pair", 3, "3"),
        ("quick", 2, "2"),
        ("quick", 2, "3"),
    ]
    progress = job.job.progress
    assert (progress.version, progress.rules) == (3, {"pair": 3, "quick": 2})
    assert [(one["version"], one["events"], list(one["joined"])) for one in progress.changes] == [
        (2, 3, ["quick"]),
        (3, 5, ["pair"]),
    ]
    assert progress.seconds_by_rule.keys() == {"pair", "quick"}
    assert min(progress.seconds_by_rule.values()) > 0


def test_a_change_is_committed_before_the_next_micro_batch(tmp_path: Path) -> None:
    job = job_of(tmp_path, pair=PAIR)
    run(job, (0, "A", 1))
    job.rules.change(pair=None, quick=QUICK)
    job.job.look()
    job.rules.change(pair=PAIR, quick=None)
    job.rules.now = type(job.rules.now)(2, job.rules.now.rules)  # as if nothing had changed since
    KEPT._buckets.clear()
    job.start()
    assert job.job.progress.rules == {"quick": 2}
    assert [one["version"] for one in job.job.progress.changes] == [2]
    assert job.job._last is not None
    assert job.job._last.number == 0


def test_a_rule_that_is_removed_leaves_nothing_behind_in_the_state(tmp_path: Path) -> None:
    long = "SEQ(C a, D b, a.id = b.id) WITHIN 1000 hours KEEP FIRST PER a.id"
    job = job_of(tmp_path, pair=PAIR, long=long)
    run(job, *((n, "CA"[n % 10 == 0], n % 7) for n in range(500)))
    assert job.job.progress.state_rows > 400
    job.rules.change(long=None)
    job.job.look()
    assert job.job.progress.state_rows < 10
    kept = [path.read_bytes() for path in job.state_files]
    assert kept
    assert not any(b"long" in data for data in kept)
    run(job, (500, "B", 0))
    assert found(job) == [("pair", 1, "0")] * found(job).count(("pair", 1, "0"))


def test_a_rule_that_does_not_fit_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    job = job_of(tmp_path, pair=PAIR)
    run(job, (0, "A", 1))
    job.rules.change(
        pair="SEQ(A a",
        quick=QUICK,
        text="SEQ(A a, B b, a.id = b.id, a.id = 'x') WITHIN 5 seconds",
        unknown="SEQ(A a, B b, a.id = b.id, a.nothing = 1) WITHIN 5 seconds",
        unsplit=UNSPLIT,
    )
    run(job, (1, "B", 1))
    assert found(job) == [("pair", 1, "1"), ("quick", 2, "1")]
    refused = job.job.progress.refused
    assert sorted(refused) == ["pair", "text", "unknown", "unsplit"]
    assert "`nothing`" in refused["unknown"]
    assert "splits its events by `id`" in refused["unsplit"]
    assert "--partitions 1" in refused["unsplit"]
    job.start()
    run(job, (2, "B", 1))
    assert job.job.progress.refused == refused
    assert len(found(job)) == 4


def test_a_job_with_one_partition_takes_rules_with_any_key(tmp_path: Path) -> None:
    job = job_of(tmp_path, buckets=1, pair=PAIR)
    run(job, (0, "A", 1), (1, "A", 2))
    job.rules.change(unsplit=UNSPLIT, counted="SEQ(A a, B b) WITHIN 2 EVENTS RETURN a.id AS id")
    run(job, (2, "B", 1), (3, "Z", 1), (4, "A", 3), (5, "Z", 4), (6, "B", 5), (7, "A", 6), (8, "B", 7))
    assert job.job.progress.rules == {"counted": 2, "pair": 1, "unsplit": 2}
    assert job.job.progress.refused == {}
    by_rule = job.job.progress.by_rule
    assert by_rule == {"pair": 1, "unsplit": 2 + 3 + 4, "counted": 1}


def test_a_rule_with_a_window_of_events_sees_only_what_comes_where_events_may_be_gone(tmp_path: Path) -> None:
    counted = "SEQ(A a, B b) WITHIN 3 EVENTS RETURN a.id AS id"
    job = job_of(tmp_path, counted=counted)
    run(job, *((n, "AZ"[n % 2], n) for n in range(20)))
    job.rules.change(more=counted.replace("3", "15"))
    job.job.look()
    [since] = job.job.progress.changes[-1]["joined"].values()
    assert since.startswith("2024-03-01T00:00:19.000001")
    run(job, (20, "A", 20), (21, "Z", 21), (22, "B", 22))
    assert job.job.progress.by_rule == {"counted": 1, "more": 1}


def test_a_rule_that_reads_what_was_left_behind_sees_only_later_events(tmp_path: Path) -> None:
    """With a watermark, events wait; those that no rule read were not even kept waiting."""
    job = job_of(tmp_path, delay=5 * SECOND, pair=PAIR)
    run(job, (0, "A", 1), (1, "C", 1), (4, "A", 2), (4, "C", 2))
    job.rules.change(alone=ALONE)
    run(job, (5, "B", 1), (5, "B", 2), (6, "A", 3), (7, "B", 3), (30, "Z", 0))
    assert found(job) == [("alone", 2, "3"), ("pair", 1, "1"), ("pair", 1, "2"), ("pair", 1, "3")]


def test_a_change_of_comments_alone_brings_a_version_and_disturbs_nothing(tmp_path: Path) -> None:
    job = job_of(tmp_path, pair=PAIR, quick=QUICK)
    run(job, (0, "A", 1))
    before = job.state_files
    job.rules.change(pair=f"-- as before\n{PAIR}")
    job.job.look()
    assert job.state_files == before
    run(job, (1, "B", 1))
    assert found(job) == [("pair", 2, "1"), ("quick", 1, "1")]


def test_a_driver_that_dies_between_the_decision_and_its_commit_decides_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(tmp_path, pair=PAIR)
    run(job, (0, "A", 1))
    job.rules.change(quick=QUICK)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    for place in ("add", "_kept"):
        with monkeypatch.context() as patched:
            if place == "add":
                patched.setattr(Commits, "add", die)
            else:
                patched.setattr(type(job.job), "_results", die)
            with pytest.raises(KeyboardInterrupt):
                job.run(events((1, "B", 1)))
        KEPT._buckets.clear()
        job.start()
        assert job.job.progress.rules == {"pair": 1}
    run(job, (1, "B", 1))
    assert found(job) == [("pair", 1, "1"), ("quick", 2, "1")]
    assert [one["version"] for one in job.job.progress.changes] == [2]


def test_a_damaged_file_of_rules_is_refused_by_its_name(tmp_path: Path) -> None:
    job = job_of(tmp_path, pair=PAIR)
    run(job, (0, "A", 1))
    job.job.close()
    [file] = (tmp_path / "check" / "nestream").glob("rules-*")
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    with pytest.raises(nestream.EventError, match=rf"the file of rules .*{file.name} is damaged"):
        job.start()
    file.unlink()
    with pytest.raises(nestream.EventError, match=rf"{file.name} is missing"):
        job.start()


def test_a_checkpoint_of_a_set_that_could_not_change_goes_on_with_rules_that_can(tmp_path: Path) -> None:
    fixed = SimulatedJob.__new__(SimulatedJob)
    rules = nestream.queries({"alone": ALONE, "pair": PAIR})
    known = Schema.of(events().schema, "ts", "type")
    fixed.limit = None
    fixed.queries = lambda _: FixedQueries(rules.compiled(known), rules.identity("time", "auto"))
    fixed._begin(events().schema, tmp_path, 0, 3)
    run(fixed, (0, "A", 1), (1, "C", 1), (1, "A", 2))
    fixed.job.close()
    KEPT._buckets.clear()
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    job = job_of(tmp_path, pair=PAIR, alone=ALONE)
    job.number = 1
    run(job, (2, "B", 1), (2, "B", 2))
    assert found(job) == [("alone", 1, "2"), ("pair", 1, "1"), ("pair", 1, "2")]


def test_columns_that_only_composite_events_have_come_and_go_with_their_rules(tmp_path: Path) -> None:
    made = "SEQ(A a, B b, a.id = b.id) WITHIN 10 seconds RETURN a.id AS id, a.id + 1 AS next INTO Pair"
    reader = "SEQ(Pair p, C c, p.id = c.id) WITHIN 10 seconds"
    job = job_of(tmp_path, made=made)
    run(job, (0, "A", 1), (1, "B", 1))
    job.rules.change(reader=reader)
    run(job, (2, "A", 1), (3, "B", 1), (4, "C", 1), (5, "Z", 1))
    job.rules.change(reader=None, pair=PAIR)
    run(job, (6, "A", 2), (7, "B", 2), (9, "Z", 2))
    tables = [pq.read_table(path).to_pylist() for path in sorted((tmp_path / "out").iterdir())]
    names = [[(row["query"], row["version"]) for row in rows] for rows in tables]
    assert [sorted(one) for one in names] == [
        [("made", 1)],
        [("made", 1), ("made", 1), ("reader", 2), ("reader", 2)],
        [("made", 1), ("pair", 3)],
    ]
    read = [row["events"][0]["event"]["next"] for row in tables[1] if row["query"] == "reader"]
    assert read == [2, 2]
