"""`nestream demo hospital` without Spark: its options, its folder, and what it says where it cannot run."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer

from nestream.cli.arguments import seconds
from nestream.cli.demo import SPEED, chosen, default_folder
from nestream.cli.demo_run import summary_table, verdict
from nestream.cli.progress import ProgressFile
from nestream.hospital.job import Settings, held, prepare
from nestream.hospital.score import Score
from nestream.hospital.simulator import RATE_PER_WORKER
from nestream.job import Progress
from tests.cli.commands import call

NOTHING: dict[str, Any] = dict.fromkeys(("there", "seed", "workers", "violations", "speed", "rate"))


def test_a_rate_decides_the_workers_or_with_workers_the_speed() -> None:
    assert chosen(**NOTHING) == (Settings(), SPEED)
    settings, speed = chosen(**NOTHING | {"rate": 10_000, "speed": 60})
    assert speed == 60
    assert settings.workers * RATE_PER_WORKER * 60 == pytest.approx(10_000, rel=0.01)
    assert settings.instruments == 5 * settings.workers
    settings, speed = chosen(**NOTHING | {"rate": 10_000, "workers": 100})
    assert settings.workers == 100
    assert speed * 100 * RATE_PER_WORKER == pytest.approx(10_000)
    with pytest.raises(typer.BadParameter, match="leave out one"):
        chosen(**NOTHING | {"rate": 1, "workers": 1, "speed": 1})


def test_what_is_not_told_is_that_of_the_run_that_is_there() -> None:
    there = Settings(seed=4, workers=7, instruments=3, violations=0.3)
    assert chosen(**NOTHING | {"there": there}) == (there, SPEED)
    assert chosen(**NOTHING | {"there": there, "seed": 5})[0] == Settings(5, 7, 3, 0.3)


def test_the_folder_is_in_the_users_folder_for_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "nestream" / "hospital"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert default_folder() == Path.home() / ".local" / "state" / "nestream" / "hospital"


def test_a_folder_that_cannot_be_used_is_refused_with_a_hint(tmp_path: Path) -> None:
    prepare(tmp_path / "job", Settings(seed=1))
    refused = call("demo", "hospital", "--folder", tmp_path / "job", "--seed", "2", "--no-console")
    assert refused.exit_code == 1
    assert "seed 1, not 2" in refused.stderr
    assert "--fresh" in refused.stderr
    (tmp_path / "file.txt").touch()
    refused = call("demo", "hospital", "--folder", tmp_path, "--no-console")
    assert refused.exit_code == 1
    assert "is not a job" in refused.stderr
    with held(tmp_path / "job"):
        refused = call("demo", "hospital", "--folder", tmp_path / "job", "--no-console")
    assert refused.exit_code == 1
    assert "already" in refused.stderr


def test_three_numbers_of_which_two_decide_the_third_are_refused() -> None:
    refused = call("demo", "hospital", "--speed", "2", "--workers", "3", "--events-per-second", "4")
    assert refused.exit_code == 2
    assert "--events-per-second" in refused.stderr


@pytest.mark.parametrize(("written", "meant"), [("90", 90), ("1.5", 1.5), ("5 minutes", 300), ("1 h", 3600)])
def test_the_time_to_stop_after_is_a_duration_or_a_number_of_seconds(written: str, meant: float) -> None:
    assert seconds(written) == meant


@pytest.mark.parametrize("wrong", ["-1", "soon", "", "5 parsecs", "nan", "-1 s", "9" * 400])
def test_a_wrong_time_to_stop_after_is_refused_before_anything_is_made(tmp_path: Path, wrong: str) -> None:
    refused = call("demo", "hospital", "--folder", tmp_path / "job", f"--duration={wrong}")
    assert refused.exit_code == 2
    assert "--duration" in refused.stderr
    assert not (tmp_path / "job").exists()


def test_the_summary_counts_over_all_rules() -> None:
    result = [Score("a", found=8, missed=2, false=0), Score("b", found=1_000, missed=0, false=1_000)]
    assert summary_table(result).row_count == 2
    assert verdict(12_345, result) == "12,345 events, 2,008 matches: precision 0.502, recall 0.998"


def test_a_progress_file_goes_on_from_the_totals_of_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    moment = datetime(2026, 1, 5, 8, tzinfo=UTC)
    done = Progress(events=10, matches=2, late=1, batch=0, at=moment, watermark=moment, lag=0.0, rate=5.0)
    ProgressFile(path)(done)
    with path.open("a") as file:
        file.write('{"batch": 1, "eve')  # the program ended here
    file_again = ProgressFile(path)
    file_again(Progress(events=5, matches=1, batch=2, at=moment, watermark=moment, lag=99.0))
    first, _, last = path.read_text().splitlines()
    assert json.loads(first)["watermark"] == "2026-01-05T08:00:00+00:00"
    read = json.loads(last)
    assert (read["batch"], read["events"], read["matches"], read["late"]) == (2, 15, 3, 1)
    assert (read["lag"], read["leaves"]) == (99.0, None)


def test_a_progress_file_in_no_folder_is_refused_before_the_stream_is_started(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    command = ["stream", "SEQ(A a, B b) WITHIN 5 seconds", "--from", source, "--to", tmp_path / "out"]
    refused = call(*map(str, command), "--progress", tmp_path / "none" / "progress.jsonl")
    assert refused.exit_code == 2
    assert "there is no folder" in refused.stderr
    refused = call(*map(str, command), "--progress", tmp_path)
    assert refused.exit_code == 2
    assert "is a folder" in " ".join(refused.stderr.replace("│", " ").split())
