"""The description of a job: what is read of it, and what is said where it is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nestream.console import Job, JobError
from nestream.job.folder import JobFolder as RunFolder
from tests.console.served import JobFolder

ROOM = {"name": "OR-1", "kind": "operating", "x": 0, "y": 0, "w": 10, "h": 8}
FLOOR: dict[str, Any] = {"title": "Floor", "width": 20, "height": 10, "rooms": [ROOM]}


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path / "job", **FLOOR)


def test_a_rules_first_lines_give_its_title_and_severity(folder: JobFolder) -> None:
    (folder.path / "rules" / "broken.neel").write_text("SEQ(A a,")
    rules = Job.read(folder.path).read_rules()
    assert (rules["dirty"].title, rules["dirty"].severity) == ("Used without washing", "high")
    assert (rules["broken"].title, rules["broken"].severity) == ("broken", "medium")
    assert rules["broken"].problem is not None


def test_a_rule_that_is_too_large_keeps_its_place_and_says_so(folder: JobFolder) -> None:
    (folder.path / "rules" / "large.neel").write_text("SEQ(A a) WITHIN 5 " + " " * (1 << 20))
    problem = Job.read(folder.path).read_rules()["large"].problem
    assert problem is not None
    assert "larger than 1 MB" in problem


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"title": 7}, r"title is 7\n.*hint: write a text"),
        ({"matches": ["a"]}, r"matches is .*\n.*hint"),
        ({"facets": "user"}, r'facets is "user"\n.*hint: write a list of texts'),
        ({"facets": ["user", 7]}, r"facets is .*\n.*hint"),
        ({"titles": ["dirty"]}, r"titles is .*\n.*hint: write texts by rule"),
        ({"severities": {"dirty": "urgent"}}, r"the severity of 'dirty' is 'urgent'\n.*hint: write high"),
        ({"spark": "localhost:4040"}, r"spark is .*\n.*hint: write an address"),
        ({"plan": "nowhere.json"}, r"there is no file .*nowhere\.json"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_in_a_sentence(
    folder: JobFolder, wrong: dict[str, Any], said: str
) -> None:
    about = json.loads((folder.path / "job.json").read_text())
    (folder.path / "job.json").write_text(json.dumps({**about, **wrong}))
    with pytest.raises(JobError, match=said):
        Job.read(folder.path)


def test_a_key_that_nobody_reads_is_noted_with_what_may_be_meant(folder: JobFolder) -> None:
    about = json.loads((folder.path / "job.json").read_text())
    (folder.path / "job.json").write_text(json.dumps({**about, "titels": {"dirty": "x"}}))
    (note,) = Job.read(folder.path).about.notes
    assert "`titels`" in note
    assert "did you mean `titles`" in note


def test_job_json_names_rules_and_rates_them_over_their_own_lines(folder: JobFolder) -> None:
    about = json.loads((folder.path / "job.json").read_text())
    more = {"titles": {"dirty": "Unwashed"}, "severities": {"dirty": "low"}}
    (folder.path / "job.json").write_text(json.dumps({**about, **more}))
    rule = Job.read(folder.path).read_rules()["dirty"]
    assert (rule.title, rule.severity) == ("Unwashed", "low")


def test_a_run_keeps_what_a_person_wrote_into_job_json(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(
        '{"title": "Mine", "facets": ["user"], "note": 1, "spark": "http://a"}'
    )
    RunFolder(tmp_path).describe(matches=tmp_path / "out", events="kafka://a/b", spark=None)
    written = json.loads((tmp_path / "job.json").read_text())
    assert written == {
        "title": "Mine",
        "facets": ["user"],
        "note": 1,
        "matches": "out",
        "events": "kafka://a/b",
        "progress": "progress.json",
    }


def test_a_folder_that_is_no_job_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"no job\.json.*\n.*hint"):
        Job.read(tmp_path)


def test_a_floor_is_read_with_its_rooms_as_numbers(folder: JobFolder) -> None:
    floor = Job.read(folder.path).plan
    assert floor is not None
    assert floor["rooms"] == [{**ROOM, "x": 0.0, "y": 0.0, "w": 10.0, "h": 8.0}]


@pytest.mark.parametrize(
    "wrong",
    [
        {"rooms": 5},
        {"rooms": None},
        {"rooms": {"name": "OR-1"}},
        {"rooms": ["OR-1"]},
        {"rooms": [ROOM, None]},
        {"rooms": [{**ROOM, "x": "left"}]},
        {"rooms": [{**ROOM, "w": None}]},
        {"rooms": [{**ROOM, "w": True}]},
        {"rooms": [{**ROOM, "h": float("nan")}]},
        {"rooms": [{**ROOM, "y": 10**400}]},
        {"width": [1]},
        {"height": float("inf")},
    ],
)
def test_a_floor_that_cannot_be_drawn_is_refused_with_a_hint(
    folder: JobFolder, wrong: dict[str, Any]
) -> None:
    (folder.path / "floor.json").write_text(json.dumps({**FLOOR, **wrong}))
    with pytest.raises(JobError, match=r"floor\.json.*\n.*hint"):
        Job.read(folder.path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", r"floor\.json is not a JSON object\n.*hint"),
        ("{", r"floor\.json cannot be read"),
        ("[" * 100_000, r"floor\.json cannot be read"),
        ('{"title": "' + "x" * (1 << 20) + '"}', r"floor\.json cannot be read: it is larger than 1 MB"),
    ],
    ids=["a list", "cut off", "too deep", "too large"],
)
def test_a_floor_that_is_no_json_object_is_refused(folder: JobFolder, text: str, said: str) -> None:
    (folder.path / "floor.json").write_text(text)
    with pytest.raises(JobError, match=said):
        Job.read(folder.path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"trigger": "soon"},
        {"trigger": 10**400},
        {"trigger": float("nan")},
        {"trigger": -1},
        {"trigger": "5 parsecs"},
        {"watermark": 10},
        {"watermark": "late"},
        {"watermark": "9" * 400 + " days"},
    ],
)
def test_a_job_with_a_wrong_time_is_refused_with_a_hint(folder: JobFolder, wrong: dict[str, Any]) -> None:
    about = json.loads((folder.path / "job.json").read_text())
    (folder.path / "job.json").write_text(json.dumps({**about, **wrong}))
    with pytest.raises(JobError, match=r"job\.json.*\n.*hint"):
        Job.read(folder.path)


def test_the_times_of_a_job_are_durations_of_the_language(folder: JobFolder) -> None:
    about = json.loads((folder.path / "job.json").read_text())
    written = {**about, "trigger": "500 ms", "watermark": "1.5 min"}
    (folder.path / "job.json").write_text(json.dumps(written))
    job = Job.read(folder.path)
    assert (job.about.trigger, job.about.lateness, job.about.watermark) == (0.5, 90, "1.5 min")
