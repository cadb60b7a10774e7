"""Jobs that are described by whoever runs them: `nestream stream --job`, and `nestream.job` in a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nestream
from nestream.console import Job, JobError
from nestream.console.watch import Watch
from tests.cli.commands import call
from tests.console.payments import RULES, Payments
from tests.console.pipeline import wait

EVENTS: list[dict[str, Any]] = [
    {"ts": 1, "type": "Login", "user": "u1"},
    {"ts": 2, "type": "Payment", "user": "u1", "amount": 950.0},
    {"ts": 3, "type": "Payment", "user": "u2", "amount": 990.0},
]
LARGE = "SEQ(!(Login l, l.user = p.user), Payment p, p.amount > 900) WITHIN 60"


def opened(folder: Path) -> tuple[Watch, dict[str, Any]]:
    """What the console sees of a job, and what it tells at its first look."""
    watch = Watch(Job.read(folder))
    return watch, watch.look()[0]


def test_a_stream_with_a_job_folder_can_be_opened_as_it_is(tmp_path: Path) -> None:
    payments = Payments(tmp_path)
    payments.go_on()
    payments.large("u99", city="Gent")
    places = ["--from", str(payments.events), "--job", str(payments.job)]
    done = call("stream", str(tmp_path / "rules"), "--local", "--once", *places)
    assert done.exit_code == 0, done.output
    watch, message = opened(payments.job)
    assert len(message["matches"]) == payments.committed() > 0
    assert {one["query"] for one in message["matches"]} <= set(RULES)
    assert watch.live.events_in == 302
    assert message["health"]["state"] == "finished"
    assert (watch.problems, message["health"]["missing"]) == ({}, [])


def test_a_query_that_is_text_is_a_rule_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    places = ["--from", str(tmp_path / "events.jsonl"), "--job", str(tmp_path / "job")]
    assert call("stream", LARGE, "--local", "--flush", *places).exit_code == 0
    watch, message = opened(tmp_path / "job")
    (one,) = message["matches"]
    assert (one["query"], watch.live.rules["query"].text) == ("query", LARGE)
    assert one["events"][0]["event"]["user"] == "u2"


def test_a_stream_that_fails_says_so_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"ts": 1, "type": "Payment", "amount": "much"}\n')
    places = ["--from", str(tmp_path / "nowhere.jsonl"), "--job", str(tmp_path / "job")]
    failed = call("stream", LARGE, "--local", "--once", *places)
    assert failed.exit_code == 1
    _, message = opened(tmp_path / "job")
    assert message["health"]["state"] == "failed"
    assert "nowhere.jsonl" in message["health"]["why"]


def test_a_folder_that_cannot_be_written_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("")
    places = ["--from", str(tmp_path / "events.jsonl"), "--job", str(tmp_path / "events.jsonl" / "job")]
    refused = call("stream", LARGE, "--local", "--once", *places)
    assert refused.exit_code == 1
    assert "cannot write" in refused.output
    assert "Traceback" not in refused.output


def test_a_program_attaches_the_console_to_its_own_stream(tmp_path: Path) -> None:
    job = nestream.job(tmp_path / "job", {"large": LARGE}, entity="user", facets=["user"])
    stream = job.stream()
    found = [match for event in EVENTS for match in stream.push(event)] + stream.finish()
    assert [match["query"] for match in found] == ["large"]
    wait(lambda: Path(tmp_path / "job" / "matches").is_dir(), 60)
    job.close()
    watch, message = opened(tmp_path / "job")
    (one,) = message["matches"]
    assert (one["query"], one["entities"]) == ("large", ["u2"])
    assert watch.live.events_in == 3
    assert (message["health"]["state"], message["progress"]["events"]) == ("finished", 3)
    assert watch.live.statistics()["facets"]["user"]["values"] == {"u2": 1}


def test_a_program_that_is_started_again_goes_on_in_its_folder(tmp_path: Path) -> None:
    for _ in range(2):
        with nestream.job(tmp_path / "job", nestream.query(LARGE)) as job:
            stream = job.stream()
            stream.push_batch(EVENTS)
            stream.finish_batch()
    _, message = opened(tmp_path / "job")
    assert len(message["matches"]) == 2


def test_a_program_that_fails_says_so_in_its_folder(tmp_path: Path) -> None:
    def fail() -> None:
        with nestream.job(tmp_path / "job", {"large": LARGE}) as job:
            job.stream().push(EVENTS[0])
            raise ZeroDivisionError("no such number")

    with pytest.raises(ZeroDivisionError):
        fail()
    _, message = opened(tmp_path / "job")
    assert (message["health"]["state"], message["health"]["why"]) == ("failed", "no such number")


def test_a_stream_that_cannot_be_started_has_failed(tmp_path: Path) -> None:
    job = nestream.job(tmp_path / "job", {"large": LARGE})
    with pytest.raises(ValueError, match="lateness"):
        job.stream(lateness="soon")
    _, message = opened(tmp_path / "job")
    assert message["health"]["state"] == "failed"
    assert "lateness" in message["health"]["why"]


def test_a_console_that_is_opened_before_the_places_are_named_follows_them_then(tmp_path: Path) -> None:
    with nestream.job(tmp_path / "job", {"large": LARGE}) as job:
        watch, message = opened(tmp_path / "job")
        assert message["matches"] == []
        stream = job.stream()
        stream.push_batch(EVENTS)
        stream.finish_batch()
    watch.look_aside()
    message, _, _ = watch.look()
    assert [one["query"] for one in message["matches"]] == ["large"]
    assert watch.live.events_in == 3
    described = watch.described()
    assert described is not None
    assert described["where"]["matches"] == "matches"


def test_rules_that_are_nowhere_are_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"there is no file or folder .*\n.*hint"):
        nestream.job(tmp_path / "job", tmp_path / "nowhere")


class Query:
    """A query of Spark by the attributes that are public."""

    isActive = True  # noqa: N815 - Spark's own names
    recentProgress: list[dict[str, Any]] = []  # noqa: N815, RUF012
    problem: Exception | None = None

    def exception(self) -> Exception | None:
        return self.problem


def report(batch: int, **counts: int) -> dict[str, Any]:
    """What Spark says of a micro-batch."""
    return {
        "runId": "a",
        "batchId": batch,
        "timestamp": "2026-11-16T08:00:00.000Z",
        "batchDuration": 250,
        "numInputRows": 10,
        "processedRowsPerSecond": 40.0,
        "eventTime": {"watermark": "2026-11-16T07:59:50.000Z"},
        "stateOperators": [{"numRowsTotal": 3, "memoryUsedBytes": 100}],
        "observedMetrics": {"nestream": counts} if counts else {},
    }


def test_the_progress_of_a_query_on_spark_is_counted_once(tmp_path: Path) -> None:
    query = Query()
    query.recentProgress = [report(0, events=9, matches=2, late=1, malformed=0)]
    with nestream.job(tmp_path / "job", {"large": LARGE}, query, matches=tmp_path / "out") as job:
        wait(lambda: job.progress.batches == 1, 60)
        query.recentProgress = [*query.recentProgress, report(1)]
        wait(lambda: job.progress.batches == 2, 60)
        assert (job.progress.events, job.progress.matches, job.progress.late) == (19, 2, 1)
        assert (job.progress.batch_seconds, job.progress.state_bytes) == (0.25, 100)
        query.problem, query.isActive = RuntimeError("no such topic"), False
        wait(lambda: job.progress.state == "failed", 60)
    _, message = opened(tmp_path / "job")
    assert (message["health"]["state"], message["health"]["why"]) == ("failed", "no such topic")
    assert json.loads((tmp_path / "job" / "job.json").read_text())["runtime"] == "spark"
