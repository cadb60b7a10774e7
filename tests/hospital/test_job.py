"""The job folder: what is written where, that a run goes on, and which folders are refused."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import nestream
from nestream.hospital.bundled import RULES, is_rule, rule_files
from nestream.hospital.floor import FLOOR
from nestream.hospital.job import WATERMARK_SECONDS, Job, JobError, Settings, held, prepare, settings_of
from nestream.hospital.score import found_matches, planted_matches, scores
from nestream.hospital.writer import HEARTBEAT, EventFiles, last_moment, write_events
from tests.cli.commands import call
from tests.hospital.detection import moments, planted

SMALL = Settings(seed=5, workers=6, instruments=30, violations=0.5)
FAST = 100_000.0


class After:
    """A wish to stop that comes after so many looks, of a quarter of an hour each at the speed of FAST."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def wait(self, timeout: float | None = None) -> bool:
        self.looks -= 1
        time.sleep(0.01)
        return self.looks < 0


def written(job: Job) -> list[dict[str, Any]]:
    files = sorted(job.events.glob("part-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def simulated(job: Job, events: int) -> Any:
    settings = job.settings
    return moments(
        events,
        settings.seed,
        workers=settings.workers,
        instruments=settings.instruments,
        violations=settings.violations,
    )


def check_whole(job: Job) -> int:
    """All events from the first on are there once, in order, and the truth is theirs; how many."""
    events = [event for event in written(job) if event["type"] != HEARTBEAT]
    expected = simulated(job, len(events))
    assert [event["event"] for event in events] == list(range(1, len(events) + 1))
    for event, moment in zip(events, expected, strict=True):
        assert event == {**moment.event, "ts": moment.event["ts"].isoformat(timespec="milliseconds") + "Z"}
    assert planted_matches(job) == planted(expected)
    return len(events)


def test_a_new_job_has_its_description_its_rules_and_its_floor_plan(tmp_path: Path) -> None:
    job = prepare(tmp_path / "job", SMALL, trigger=0.5)
    about = json.loads((job.folder / "job.json").read_text())
    assert {"title": "hospital", "time": "ts", "type": "type", "trigger": 0.5}.items() <= about.items()
    for name in ("rules", "plan"):
        assert (job.folder / about[name]).exists()
    assert {path.name: path.read_text() for path in job.rules.iterdir()} == {
        path.name: path.read_text() for path in RULES.iterdir()
    }
    plan = json.loads((job.folder / "floor.json").read_text())
    assert {room["name"] for room in plan["rooms"]} == set(FLOOR.named)
    assert set(plan["rooms"][0]) == {"name", "kind", "x", "y", "w", "h"}
    assert settings_of(job.folder) == SMALL


def test_the_example_folder_is_the_rules_of_the_package() -> None:
    example = Path(__file__).parents[2] / "examples" / "hospital"
    assert {path.name: path.read_text() for path in example.glob("*")} == {
        path.name: path.read_text() for path in RULES.glob("*")
    }
    for file in RULES.glob("*.neel"):
        first, second = file.read_text().splitlines()[:2]
        assert first.startswith("// title: ")
        severe = second in ("// severity: high", "// severity: medium", "// severity: low")
        assert severe == is_rule(file.read_text())
        assert nestream.query(file.read_text()).warnings == ()
    assert call("fmt", "--check", *RULES.glob("*.neel")).exit_code == 0


def test_files_are_complete_and_numbered_and_the_truth_stands_beside_them(tmp_path: Path) -> None:
    job = prepare(tmp_path / "job", SMALL)
    write_events(job, FAST, After(5))
    names = [path.name for path in sorted(job.events.iterdir())]
    assert names == [f"part-{n:08}.jsonl" for n in range(7)]
    assert check_whole(job) > 20
    first = [json.loads(line) for line in (job.events / names[0]).read_text().splitlines()]
    assert all(any(event[column] is not None for event in first) for column in first[0])
    events = written(job)
    assert all(one["ts"] <= other["ts"] for one, other in pairwise(events))
    assert events[-1]["type"] == HEARTBEAT
    assert last_moment(job) is not None


def test_a_run_goes_on_after_the_last_event_and_mends_its_truth(tmp_path: Path) -> None:
    job = prepare(tmp_path / "job", SMALL)
    write_events(job, FAST, After(8))
    before = check_whole(job)
    job.truth.write_text(
        "".join(job.truth.read_text().splitlines(keepends=True)[:-2])
    )  # as a crash leaves it
    (job.events / ".part-00000099.jsonl").write_text('{"event": 1')
    again = prepare(tmp_path / "job", SMALL)
    assert EventFiles(again).last_event == before
    write_events(again, FAST, After(8))
    assert check_whole(again) > before


def test_events_of_a_later_run_are_never_before_the_watermark_of_the_earlier(tmp_path: Path) -> None:
    job = prepare(tmp_path / "job", SMALL)
    write_events(job, FAST, After(3))
    end = last_moment(job)
    files = len(list(job.events.iterdir()))
    write_events(job, FAST, After(1))
    later = sorted(job.events.iterdir())[files]
    first = json.loads(later.read_text().splitlines()[0])
    assert end is not None
    assert datetime.fromisoformat(first["ts"]) >= end - timedelta(seconds=WATERMARK_SECONDS)


def test_a_duration_ends_the_writer(tmp_path: Path) -> None:
    job = prepare(tmp_path / "job", SMALL)
    write_events(job, FAST, After(10**9), duration=0.0)
    assert len(list(job.events.iterdir())) == 2


def test_other_settings_are_refused_and_a_fresh_start_takes_them(tmp_path: Path) -> None:
    job = prepare(tmp_path / "job", SMALL)
    write_events(job, FAST, After(2))
    (job.folder / "notes.txt").write_text("mine")
    other = replace(SMALL, seed=6)
    with pytest.raises(JobError, match=r"(?s)other settings: seed 5, not 6.*hint.*--fresh"):
        prepare(tmp_path / "job", other)
    anew = prepare(tmp_path / "job", other, fresh=True)
    assert settings_of(anew.folder) == other
    assert list(anew.events.iterdir()) == []
    assert not anew.truth.exists()
    assert (job.folder / "notes.txt").read_text() == "mine"


def test_other_rules_take_the_place_of_the_bundled_ones_in_a_new_job_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    with pytest.raises(JobError, match=r"(?s)no \.neel file.*hint"):
        prepare(tmp_path / "job", SMALL, rules=mine)
    (mine / "one.neel").write_text("SEQ(Recycle r, Operating o, r.id = o.id) WITHIN 1 hour")
    job = prepare(tmp_path / "job", SMALL, rules=mine)
    assert [path.name for path in job.rules.iterdir()] == ["one.neel"]
    assert prepare(tmp_path / "job", SMALL, rules=mine) == prepare(tmp_path / "job", SMALL)
    (mine / "one.neel").write_text("SEQ(Recycle r, Operating o, r.id = o.id) WITHIN 2 hours")
    with pytest.raises(JobError, match=r"(?s)other rules.*--fresh"):
        prepare(tmp_path / "job", SMALL, rules=mine)
    prepare(tmp_path / "job", SMALL, rules=mine, fresh=True)
    assert (job.rules / "one.neel").read_text() == (mine / "one.neel").read_text()


def test_a_first_start_that_was_stopped_half_way_is_begun_again(tmp_path: Path) -> None:
    prepare(tmp_path, SMALL)
    (tmp_path / "job.json").rename(tmp_path / ".job.json")
    job = prepare(tmp_path, SMALL)
    assert settings_of(tmp_path) == SMALL
    assert rule_files(job.rules) == rule_files()


def test_a_folder_with_other_things_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("chapter 1")
    for fresh in (False, True):
        with pytest.raises(JobError, match=r"(?s)has files but is not a job.*hint"):
            prepare(tmp_path, SMALL, fresh=fresh)
    (tmp_path / "job.json").write_text('{"name": "another"}')
    for fresh in (False, True):
        with pytest.raises(JobError, match="does not describe a hospital"):
            prepare(tmp_path, SMALL, fresh=fresh)
    assert (tmp_path / "thesis.txt").read_text() == "chapter 1"


def test_a_folder_is_for_one_demo_at_a_time(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(JobError, match=r"(?s)already running in .*hint"), held(tmp_path):
        pass
    with held(tmp_path):
        pass


def sink(job: Job, name: str, matches: list[tuple[str, list[int]]]) -> None:
    """Write a file of matches as a stream does."""
    job.matches.mkdir(parents=True, exist_ok=True)
    with (job.matches / name).open("w") as lines:
        for query, numbers in matches:
            found = [{"variable": f"v{n}", "event": {"event": n}} for n in numbers]
            lines.write(json.dumps({"query": query, "events": found}) + "\n")


def test_only_the_matches_of_committed_micro_batches_count(tmp_path: Path) -> None:
    job = prepare(tmp_path / "job", SMALL)
    assert not found_matches(job)
    sink(job, "part-00000000.json", [("x", [1])])
    sink(job, "part-00000002.json", [("x", [2])])
    sink(job, ".part-00000003.json.1a2b3c4d", [("x", [3])])
    assert found_matches(job) == {("x", (1,)): 1, ("x", (2,)): 1}


def test_a_score_tells_what_was_found_missed_and_false(tmp_path: Path) -> None:
    job = prepare(tmp_path / "job", SMALL)
    truth = [{"query": "break-without-washing", "events": [n, n + 1, n + 2]} for n in (1, 10, 20, 20)]
    job.truth.write_text("".join(json.dumps(one) + "\n" for one in truth))
    name = "break-without-washing"
    found = [(name, [1, 2, 3]), (name, [1, 2, 3]), (name, [20, 21, 22]), ("other", [7])]
    sink(job, "part-00000000.json", found)
    by_rule = {score.rule: score for score in scores(job)}
    assert (by_rule[name].found, by_rule[name].missed, by_rule[name].false) == (2, 2, 1)
    assert (by_rule[name].precision, by_rule[name].recall) == (2 / 3, 0.5)
    assert (by_rule["other"].found, by_rule["other"].false, by_rule["other"].precision) == (0, 1, 0.0)
    assert by_rule["unfinished-instrument"].recall == 1.0
