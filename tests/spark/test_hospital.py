"""The hospital on a real Spark stream: it finds what was planted, and the demo runs by one command."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nestream
from nestream.cli.progress import ProgressFile
from nestream.hospital import RULES
from nestream.hospital.compliance import Compliance
from nestream.hospital.job import WATERMARK, Settings, prepare
from nestream.hospital.score import Score, matches, planted_matches, scores
from nestream.hospital.writer import EventFiles
from tests.cli.commands import PROGRAM, call
from tests.hospital.detection import moments
from tests.spark.stream.streams import wait_for_end

FIRST_MOMENT = 1_700_000_000
PATIENCE = 300


@pytest.fixture
def kept_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """The session of all the tests, which a command must not stop."""
    monkeypatch.setattr(spark, "stop", lambda: None)
    return spark


def test_a_stream_of_the_rule_set_finds_exactly_what_was_planted(spark: SparkSession, tmp_path: Path) -> None:
    job = prepare(tmp_path / "job", Settings(seed=9, violations=0.4))
    simulated = moments(4_000, 9, violations=0.4)
    files = EventFiles(job)
    parts = [simulated[begin : begin + 1_500] for begin in range(0, len(simulated), 1_500)]
    for part in parts:
        end = part[-1].event["ts"] + timedelta(seconds=2)
        files.write(part, end if part is parts[-1] else None)
    for number, file in enumerate(sorted(job.events.iterdir())):
        os.utime(file, (FIRST_MOMENT + number, FIRST_MOMENT + number))  # the source takes files by that
    running = nestream.queries(job.rules).stream_files(
        spark,
        str(job.events),
        str(job.matches),
        checkpoint=str(job.matches / "_checkpoint"),
        watermark=WATERMARK,
        late=str(job.late),
        output="json",
        once=True,
        files=1,
    )
    running.on_batch = ProgressFile(job.progress)
    wait_for_end(running)
    result = scores(job)
    assert sum(planted_matches(job).values()) > 100
    assert all(score.found for score in result)
    assert [(score.missed, score.false) for score in result] == [(0, 0)] * 6
    lines = [json.loads(line) for line in job.progress.read_text().splitlines()]
    assert [line["batch"] for line in lines] == list(range(len(lines)))
    assert len(lines) >= len(parts)
    assert lines[-1]["events"] == 4_001
    written = list(matches(job))
    assert lines[-1]["matches"] == len(written)
    at_once = nestream.queries(job.rules).match([moment.event for part in parts for moment in part])
    assert Compliance(written).by("room") == Compliance(at_once.to_pylist()).by("room")
    assert Compliance(written).paths == Compliance(at_once.to_pylist()).paths
    assert lines[-1]["late"] == lines[-1]["malformed"] == 0
    assert {
        "batch",
        "at",
        "events",
        "matches",
        "late",
        "malformed",
        "watermark",
        "lag",
        "state_bytes",
        "rate",
        "leaves",
    } <= set(lines[-1])


def test_the_demo_finds_all_it_planted_and_goes_on_from_there(
    kept_session: SparkSession, tmp_path: Path
) -> None:
    command = ["demo", "hospital", "--folder", str(tmp_path / "job"), "--duration", "2", "--no-console"]
    first = call(*command, "--speed", "300", "--workers", "30", "--violations", "0.5", "--seed", "3")
    assert first.exit_code == 0, first.stderr
    assert "precision 1.000, recall 1.000" in first.stdout
    again = call(*command, "--speed", "300")
    assert again.exit_code == 0, again.stderr
    assert "precision 1.000, recall 1.000" in again.stdout
    job = prepare(tmp_path / "job", Settings(3, 30, 150, 0.5))
    assert total(scores(job)) == (sum(planted_matches(job).values()), 0, 0)
    assert events_of(again.stdout) > events_of(first.stdout) > 500


def test_a_match_that_was_not_planted_ends_the_demo_with_an_error(
    kept_session: SparkSession, tmp_path: Path
) -> None:
    """The comparison at the end is a real one: a rule that says something else is told of."""
    mine = shutil.copytree(RULES, tmp_path / "mine")
    rule = mine / "hygiene-before-entering.neel"
    rule.write_text(rule.read_text().replace("1 minute", "2 seconds"))
    settings = Settings(seed=3, workers=30, instruments=150, violations=0.5)
    job = prepare(tmp_path / "job", settings, rules=mine)
    result = call(
        "demo", "hospital", "--folder", job.folder, "--duration", "1", "--speed", "300", "--no-console"
    )
    assert result.exit_code == 1, result.stderr
    by_rule = {score.rule: score for score in scores(job)}
    assert by_rule["hygiene-before-entering"].false > 0
    assert by_rule["break-without-washing"].false == 0
    rule = job.rules / rule.name
    rule.write_text(rule.read_text().replace("2 seconds", "3 seconds"))
    changed = call("demo", "hospital", "--folder", job.folder, "--duration", "1", "--no-console")
    assert changed.exit_code == 1
    assert "are not the ones this run was started with" in changed.stderr
    assert "--rules and --fresh" in changed.stderr


def total(result: list[Score]) -> tuple[int, ...]:
    return tuple(sum(getattr(score, name) for score in result) for name in ("found", "missed", "false"))


def events_of(printed: str) -> int:
    verdict = next(line for line in printed.splitlines() if "precision" in line)
    return int(verdict.split()[0].replace(",", ""))


@pytest.mark.slow
def test_ctrl_c_stops_the_demo_cleanly_and_the_same_command_goes_on(tmp_path: Path) -> None:
    job = tmp_path / "job"
    command = [PROGRAM, "demo", "hospital", "--folder", job, "--master", "local[2]", "--no-console"]
    command += ["--speed", "60"]
    with (tmp_path / "said").open("w+") as said:
        running = subprocess.Popen(
            [str(part) for part in command],
            stdout=said,
            stderr=said,
            env=os.environ | {"NO_COLOR": "1"},
            start_new_session=True,
        )
        end = time.monotonic() + PATIENCE
        while not (job / "matches" / "_checkpoint" / "nestream").is_dir():
            assert running.poll() is None, (tmp_path / "said").read_text()
            assert time.monotonic() < end, (tmp_path / "said").read_text()
            time.sleep(0.1)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does, to all the processes in front
        assert running.wait(PATIENCE) == 0, (tmp_path / "said").read_text()
    told = (tmp_path / "said").read_text()
    assert "run the same command to continue" in told
    assert "Traceback" not in told
    command += ["--duration", "5"]
    finished = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert "precision 1.000, recall 1.000" in finished.stdout
