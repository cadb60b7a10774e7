"""Streams of `nestream stream`, simulated: the matches of the reference whatever fails, and little state."""

from __future__ import annotations

import errno
import tempfile
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import nestream
from nestream.runtime.spark.stream_bucket import KEPT
from nestream.runtime.spark.stream_commit import Commits, check_logs
from nestream.runtime.spark.stream_place import Place
from nestream.runtime.state import StateError
from tests.spark.same import rows
from tests.spark.stream.cases import SECOND, check_cases, lateness, later_events
from tests.spark.stream.simulated_job import SimulatedJob
from tests.spark.stream.test_operator import events

SEED = 77
CASES = 100
MANY = 5_000
KEYED = "SEQ(A a, B b) WHERE a.id = b.id WITHIN 10 seconds"


def simulated(text: str, table: pa.Table, *, order: str, seed: int, strategy: str = "auto") -> pa.Table:
    """Runs a query over random micro-batches, with failures, restarts and events as late as they may be."""
    chance = Random(seed)
    delay = lateness(table) // timedelta(microseconds=1)
    with tempfile.TemporaryDirectory() as folder:
        job = SimulatedJob(
            text,
            table.schema,
            Path(folder),
            order=order,
            buckets=chance.choice((1, 2, 5)),
            delay=delay,
            strategy=strategy,
        )
        done = 0
        while done < table.num_rows:
            size = chance.choice((1, 1, 2, 3, 5, 100))
            job.batch(table.slice(done, size), chance)
            done += size
        if chance.random() < 0.5:
            job.job.finish(flush=True)
        else:
            job.batch(later_events(table), chance)
        assert not job.late
        return job.matches


def test_random_micro_batches_with_failures_give_the_matches_of_the_reference() -> None:
    check_cases(simulated, SEED, 0, CASES)


@pytest.mark.parametrize("strategy", ["flat", "views-balanced"])
def test_random_micro_batches_give_the_matches_of_the_reference_by_the_strategies_of_the_papers(
    strategy: str,
) -> None:
    check_cases(partial(simulated, strategy=strategy), SEED, 5 * CASES, 20)


@pytest.mark.slow
def test_many_random_micro_batches_give_the_matches_of_the_reference() -> None:
    check_cases(simulated, SEED, 10 * CASES, MANY)


def test_a_match_comes_in_the_micro_batch_that_passes_the_watermark(tmp_path: Path) -> None:
    job = SimulatedJob(KEYED, events().schema, tmp_path, delay=2 * SECOND)
    job.run(events((0, "A", 1), (1, "B", 1), (2.9, "Z", 1)))
    assert job.matches.num_rows == 0
    job.number += 1
    job.run(events((3, "Z", 1)))
    assert job.matches.num_rows == 1


def test_an_event_before_the_watermark_of_earlier_micro_batches_is_late_and_one_at_it_is_not(
    tmp_path: Path,
) -> None:
    job = SimulatedJob("SEQ(A a, B b) WITHIN 100 seconds", events().schema, tmp_path, delay=10 * SECOND)
    job.run(events((30, "A", 1), (5, "A", 4)))
    job.number += 1
    job.run(events((19.999, "A", 2), (20, "A", 3), (31, "B", 1)))
    assert [(event["id"], event["reason"]) for event in job.late] == [(2, "before the watermark")]


def test_a_key_that_no_event_can_meet_any_more_leaves_no_state(tmp_path: Path) -> None:
    job = SimulatedJob(KEYED, events().schema, tmp_path)
    job.run(events((0, "A", 1), (1, "A", 2)))
    assert job.state_files
    job.number += 1
    job.run(events((100, "Z", 1)))
    job.number += 1
    job.run(events((200, "Z", 1)))
    assert job.state_files == []
    assert job.job.progress.state_rows == job.job.progress.state_bytes == 0


def test_what_keep_has_chosen_is_remembered_when_no_event_is_held_any_more(tmp_path: Path) -> None:
    job = SimulatedJob(f"{KEYED} KEEP FIRST PER a.id", events().schema, tmp_path)
    for part in (
        events((0, "A", 1), (1, "B", 1)),
        events((100, "Z", 1)),
        events((200, "A", 1), (201, "B", 1), (202, "A", 2), (203, "B", 2)),
        events((300, "Z", 1)),
    ):
        job.run(part)
        job.number += 1
    assert [match["a"]["id"] for match in job.matches.to_pylist()] == [1, 2]


def test_state_stays_within_a_few_files_over_many_micro_batches(tmp_path: Path) -> None:
    job = SimulatedJob(
        "SEQ(A a, B b, C c) WHERE [id] WITHIN 100 seconds", events().schema, tmp_path, buckets=1
    )
    most = 0
    for n in range(600):
        job.run(events((n, "A", n % 3)))
        job.number += 1
        most = max(most, len(list((tmp_path / "check" / "nestream").iterdir())))
    assert most <= 50
    assert job.job.progress.state_rows <= 200


class Killed(BaseException):
    """The driver is no more."""


HISTORY = (
    events((0, "A", 1), (1, "A", 2), (2, "B", 2), (3, "A", 3)),
    events((2, "B", 1), (6, "B", 3), (1, "B", 9)),
    events((8, "A", 1), (9, "B", 1), (2, "A", 5), (40, "Z", 0)),
)


def test_a_driver_killed_before_and_after_any_file_operation_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = 0
    fatal: int | None = None

    def counted(name: str) -> None:
        whole = getattr(Place, name)

        def operation(self: Place, *words: Any) -> Any:
            nonlocal operations
            operations += 1
            if operations == fatal:
                raise Killed
            result = whole(self, *words)
            operations += 1
            if operations == fatal:
                raise Killed
            return result

        monkeypatch.setattr(Place, name, operation)

    for name in ("writing", "move", "remove"):
        counted(name)

    def run(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
        """All micro-batches, started again where the driver was killed; how often it was."""
        nonlocal operations
        operations, kills = 0, 0
        path.mkdir()
        job: SimulatedJob | None = None
        number = 0
        while number < len(HISTORY):
            try:
                if job is None:
                    job = SimulatedJob(KEYED, events().schema, path, delay=3 * SECOND)
                    job.number = number
                job.run(HISTORY[number])
                number += 1
                job.number += 1
            except Killed:
                kills += 1
                KEPT._buckets.clear()
                if job is not None:
                    job.job.close()
                job = None
        assert job is not None
        for folder in ("out", "late", "check", "check/nestream"):
            assert not list((path / folder).glob(".*")), "nothing is left half done"
        return job.matches.to_pylist(), job.late, kills

    expected, late, _ = run(tmp_path / "whole")
    total = operations
    taken = pa.concat_tables(HISTORY).filter(pc.field("id") != 5)
    assert sorted(map(repr, expected)) == sorted(
        map(repr, nestream.query(KEYED).match(taken, strategy="reference").to_pylist())
    )
    assert [event["id"] for event in late] == [5]
    for fatal in range(1, total + 1):
        found = run(tmp_path / str(fatal))
        assert (sorted(map(repr, found[0])), found[1]) == (sorted(map(repr, expected)), late), fatal
        assert found[2] == 1, fatal
    assert total > 30


@pytest.mark.parametrize("damage", ["cut", "changed", "removed"])
def test_a_damaged_state_file_is_refused_with_its_name(tmp_path: Path, damage: str) -> None:
    job = SimulatedJob(KEYED, events().schema, tmp_path)
    job.run(HISTORY[0])
    job.number += 1
    file = job.state_files[0]
    data = file.read_bytes()
    if damage == "removed":
        file.unlink()
    else:
        file.write_bytes(data[:-30] if damage == "cut" else data[:-30] + bytes(30))
    KEPT._buckets.clear()
    job.start()
    with pytest.raises(StateError, match=rf"the state file \S*{file.name} is (missing|damaged)"):
        job.run(HISTORY[1])


@pytest.mark.parametrize("full", ["state-", ".commit-", ".part-"])
def test_a_full_disk_fails_the_micro_batch_and_with_room_again_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    job = SimulatedJob(KEYED, events().schema, tmp_path, delay=3 * SECOND)
    job.run(HISTORY[0])
    job.number += 1

    def opened(path: str, mode: str) -> Any:
        if Path(path).name.startswith(full):
            raise OSError(errno.ENOSPC, "No space left on device")
        return open(path, mode)

    monkeypatch.setattr("nestream.runtime.spark.stream_place.open", opened, raising=False)
    with pytest.raises(nestream.EventError, match=rf"cannot write \S*{full}\S*: no space left on device"):
        job.run(HISTORY[1])
    monkeypatch.undo()
    job.start()
    for part in HISTORY[1:]:
        job.run(part)
        job.number += 1
    expected = nestream.query(KEYED).match(pa.concat_tables(HISTORY).filter(pc.field("id") != 5))
    assert rows(job.matches) == rows(expected.cast(job.matches.schema))
    assert [event["id"] for event in job.late] == [5]


def test_a_damaged_commit_is_refused_with_its_name(tmp_path: Path) -> None:
    job = SimulatedJob(KEYED, events().schema, tmp_path)
    job.run(HISTORY[0])
    (commit,) = (tmp_path / "check" / "nestream").glob("commit-*")
    commit.write_text(commit.read_text().replace('"matches"', '"Matches"', 1))
    with pytest.raises(nestream.EventError, match=rf"the commit \S*{commit.name} is damaged"):
        job.start()


@pytest.mark.parametrize("log", ["offsets", "commits", "sources/0"])
def test_a_damaged_log_of_spark_is_refused_with_its_name(tmp_path: Path, log: str) -> None:
    check_logs(str(tmp_path))
    (tmp_path / log).mkdir(parents=True)
    whole = 'v1\n{"nextBatchWatermarkMs":0}'
    for number in range(11):
        (tmp_path / log / str(number)).write_text(whole if number == 10 else "")
    (tmp_path / log / ".10.crc").write_text("crc")
    check_logs(str(tmp_path))  # only the last one counts
    for damaged in ("", whole[:-1]):
        (tmp_path / log / "10").write_text(damaged)
        with pytest.raises(
            nestream.EventError, match=rf"the file \S*/{log}/10 of Spark is damaged or cut short"
        ):
            check_logs(str(tmp_path))


def test_state_that_is_behind_sparks_checkpoint_is_refused(tmp_path: Path) -> None:
    job = SimulatedJob(KEYED, events().schema, tmp_path)
    job.number = 7
    with pytest.raises(nestream.EventError, match=r"Spark is at micro-batch 7, and \S* has no state for it"):
        job.run(HISTORY[0])


def test_matches_of_the_last_commit_that_are_gone_are_refused_with_their_name(tmp_path: Path) -> None:
    job = SimulatedJob(KEYED, events().schema, tmp_path)
    job.run(HISTORY[0])
    (tmp_path / "out" / "part-00000000.parquet").unlink()
    with pytest.raises(nestream.EventError, match=r"the file \S*/part-00000000.parquet of .* is missing"):
        job.start()


def test_matches_that_another_program_took_after_they_were_reported_are_not_missed(tmp_path: Path) -> None:
    job = SimulatedJob(KEYED, events().schema, tmp_path)
    job.run(HISTORY[0])
    job.job.tell()
    (tmp_path / "out" / "part-00000000.parquet").unlink()
    job.start()
    assert job.job.progress.matches == 1


def test_a_folder_with_matches_but_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-00000000.parquet").touch()
    with pytest.raises(nestream.EventError, match="has matches, and there is no checkpoint to continue from"):
        SimulatedJob(KEYED, events().schema, tmp_path)


def test_many_matches_are_written_by_the_workers_and_appear_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nestream.runtime.spark.stream_sink.INLINE", 2_000)
    text = "SEQ(A a, B b) WHERE [id] WITHIN 1000 seconds"
    history = [events(*((n, "AB"[n % 2], n % 7) for n in range(begin, begin + 60))) for begin in (0, 60, 120)]
    job = SimulatedJob(text, events().schema, tmp_path)
    for part in history:
        job.batch(part, Random(3))
    expected = nestream.query(text).match(pa.concat_tables(history))
    assert rows(job.matches) == rows(expected.cast(job.matches.schema))
    assert len(list((tmp_path / "out").glob("part-00000002-*.parquet"))) > 1


def test_a_checkpoint_serves_one_job_at_a_time(tmp_path: Path) -> None:
    job = SimulatedJob(KEYED, events().schema, tmp_path)
    job.run(HISTORY[0])
    under_way = tmp_path / "check" / "nestream" / "state-under-way"
    under_way.touch()
    with pytest.raises(nestream.EventError, match=r"^another job uses the checkpoint"):
        Commits(str(tmp_path / "check"))
    assert under_way.exists()
    job.start()
    assert not under_way.exists()


def test_no_more_matches_are_pending_than_the_limit_leaves(tmp_path: Path) -> None:
    text = "SEQ(A a, !B b) WHERE [id] WITHIN 1 minute LIMIT 2"
    job = SimulatedJob(text, events().schema, tmp_path)
    job.run(events((0, "A", 1), (100, "A", 2), (100, "A", 3)))
    job.job.finish(flush=False)
    assert (job.job.progress.matches, job.job.progress.pending) == (1, 1)
    job.job.finish(flush=True)
    assert job.matches.num_rows == 2


def test_a_limit_holds_over_micro_batches_and_restarts(tmp_path: Path) -> None:
    job = SimulatedJob(f"{KEYED} LIMIT 3", events().schema, tmp_path, delay=0)
    for part in HISTORY:
        job.batch(part, Random(1))
        job.start()
    assert job.matches.num_rows == job.job.progress.matches == 3


def test_after_all_time_has_passed_more_events_are_refused(tmp_path: Path) -> None:
    job = SimulatedJob("SEQ(A a, !B b) WHERE [id] WITHIN 1 minute", events().schema, tmp_path)
    job.run(events((0, "A", 1), (1, "A", 2), (2, "B", 2)))
    job.job.finish(flush=False)
    assert job.job.progress.pending == 1
    assert job.matches.num_rows == 0
    job.job.finish(flush=True)
    assert job.matches.num_rows == job.job.progress.matches == 1
    job.start()
    job.job.finish(flush=True)
    assert job.matches.num_rows == 1
    assert job.state_files == []
    job.number += 1
    with pytest.raises(nestream.EventError, match="new events arrived after a run with --flush"):
        job.run(events((3, "A", 1)))
