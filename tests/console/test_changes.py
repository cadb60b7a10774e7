"""Drafts and deployment: what is kept, what the job gets, and that nothing is overwritten unseen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import nestream
from nestream.console import Job
from nestream.console.rules import JobRules
from nestream.job import RuleFolder
from tests.console.pipeline import wait
from tests.console.served import RULE, Console, JobFolder, event, match, serving

LAXER = RULE.replace("!(Washing w, w.id = r.id), ", "")
OTHER = "PATTERN SEQ(Washing w, Washing v, w.id = v.id)\nWITHIN 1 hour\n"


def live_folder(path: Path, **about: Any) -> JobFolder:
    """A job that takes changes of its rules."""
    folder = JobFolder(path)
    described = json.loads((path / "job.json").read_text())
    (path / "job.json").write_text(json.dumps({**described, "live_rules": True, **about}))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    made = live_folder(tmp_path_factory.mktemp("changes") / "job")
    made.events(
        event(1, "Recycle", id=7),
        event(2, "Operating", id=7),
        event(3, "Recycle", id=8),
        event(4, "Washing", id=8),
        event(5, "Operating", id=8),
        event(60, "Hall"),
    )
    made.matches(match("dirty", r=event(1, "Recycle", id=7), o=event(2, "Operating", id=7)))
    return made


@pytest.fixture(scope="module")
def console(folder: JobFolder) -> Iterator[Console]:
    with serving(folder.path) as running:
        yield running


@pytest.fixture
def client(console: Console) -> Iterator[httpx.Client]:
    with console.client() as opened:
        wait(lambda: opened.get("/api/counters").json()["matches"] == 1, 120)
        yield opened


def ask(client: httpx.Client, path: str, **body: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.post(f"/api/{path}", json=body).json()
    return answer


def seen(client: httpx.Client) -> dict[str, Any]:
    """What a page knows of the job."""
    found: dict[str, Any] = client.get("/api/snapshot").json()["data"]
    return found


def test_a_draft_is_kept_beside_the_job_with_its_title_and_outlives_the_server(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "job")
    text = "// title: Washed twice\n" + OTHER
    with serving(folder.path) as console, console.client() as client:
        saved = ask(client, "draft/save", name="twice", text=text, revision=0, base=None)
        assert (saved["draft"]["title"], saved["draft"]["revision"]) == ("Washed twice", 1)
    with serving(folder.path) as console, console.client() as client:
        (draft,) = seen(client)["job"]["drafts"]
        assert (draft["name"], draft["text"], draft["title"]) == ("twice", text, "Washed twice")
        (folder.path / "drafts" / "broken.json").write_text("[")
        wait(lambda: "broken.json is not a draft" in seen(client)["problems"].get("drafts", ""), 60)


def test_two_pages_do_not_overwrite_each_others_draft_unseen(client: httpx.Client) -> None:
    first = ask(client, "draft/save", name="mine", text=OTHER, revision=0, base=None)
    assert ask(client, "draft/save", name="mine", text=RULE, revision=1, base=None)["ok"] is True
    late = ask(client, "draft/save", name="mine", text=LAXER, revision=first["draft"]["revision"], base=None)
    assert late["ok"] is False
    assert (late["conflict"]["text"], late["conflict"]["revision"]) == (RULE, 2)
    assert ask(client, "draft/discard", name="mine", revision=1)["ok"] is False
    assert ask(client, "draft/discard", name="mine", revision=2)["ok"] is True
    assert seen(client)["job"]["drafts"] == []
    # A page that still shows the discarded draft must not take the next one for it.
    again = ask(client, "draft/save", name="mine", text=LAXER, revision=0, base=None)["draft"]
    assert again["revision"] == 3
    assert ask(client, "draft/discard", name="mine", revision=2)["ok"] is False
    assert ask(client, "draft/discard", name="mine", revision=3)["ok"] is True


@pytest.mark.parametrize("name", ["", "../job", "a/b", ".hidden", "_x", "a\nb", "n" * 201, 7, None])
@pytest.mark.parametrize("path", ["draft/save", "draft/discard", "deploy"])
def test_a_name_that_is_no_file_of_the_rules_is_refused(
    client: httpx.Client, folder: JobFolder, path: str, name: Any
) -> None:
    body = {"name": name, "text": RULE, "revision": 0, "base": None, "before": None}
    answer = client.post(f"/api/{path}", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert sorted(one.name for one in (folder.path / "rules").glob("*.neel")) == ["dirty.neel"]


def test_a_trial_says_how_a_draft_differs_from_the_deployed_rule_and_is_no_match_of_the_job(
    client: httpx.Client,
) -> None:
    before = seen(client)
    assert ask(client, "trial", name="dirty", text=LAXER, before=True)["ok"] is True
    wait(lambda: seen(client)["trials"][0]["counts"].get("both") == 1, 120)
    (trial,) = seen(client)["trials"]
    assert (trial["counts"], trial["title"]) == ({"new": 1, "gone": 0, "both": 1}, "Used without washing")
    listed = ask(client, "trial/matches", name="dirty")
    assert [part["event"]["id"] for row in listed["new"] for part in row["events"]] == [8, 8]
    assert listed["gone"] == []
    after = seen(client)
    assert after["matches"] == before["matches"]
    assert after["statistics"] == before["statistics"]
    assert ask(client, "trial/stop", name="dirty")["ok"] is True


def test_a_trial_ends_when_the_draft_and_the_deployed_rule_have_found_enough(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nestream.console.trial.MOST_MATCHES", 2)  # the draft has two, the deployed rule one
    assert ask(client, "trial", name="dirty", text=LAXER, before=True)["ok"] is True
    wait(lambda: seen(client)["trials"][0]["stopped"] is not None, 120)
    (trial,) = seen(client)["trials"]
    assert trial["stopped"] == "the draft and the deployed rule have found 3 matches"
    assert trial["counts"] == {"new": 1, "gone": 0, "both": 1}
    assert ask(client, "trial/stop", name="dirty")["ok"] is True


def test_what_is_deployed_is_the_rule_of_the_folder_with_a_version_and_can_be_rolled_back(
    client: httpx.Client, folder: JobFolder
) -> None:
    ask(client, "draft/save", name="dirty", text=LAXER, revision=0, base=RULE)
    refused = ask(client, "deploy", name="dirty", text="SEQ(", before=RULE)
    assert (refused["ok"], refused["diagnostics"][0]["code"]) == (False, "unclosed-parenthesis")
    assert ask(client, "deploy", name="dirty", text=LAXER, before=RULE) == {"ok": True, "version": 2}
    job = seen(client)["job"]
    assert (job["drafts"], job["rules"][0]["text"], job["rules"][0]["version"]) == ([], LAXER, 2)
    kept = RuleFolder(folder.path / "rules")
    assert (kept.read(None).texts, kept.history()[-1].what) == ({"dirty": LAXER}, "replace dirty (console)")
    assert ask(client, "deploy", name="twice", text=OTHER, before=None)["version"] == 3
    known = ask(client, "version", version=1)["changes"]
    assert known == {"dirty": {"now": LAXER, "then": RULE}, "twice": {"now": OTHER, "then": None}}
    late = ask(client, "rollback", version=1, newest=2)
    assert (late["ok"], "newer version" in late["error"]) == (False, True)
    assert ask(client, "rollback", version=1, newest=3) == {"ok": True, "version": 4}
    assert [one["version"] for one in seen(client)["job"]["versions"]] == [4, 3, 2, 1]
    assert {rule["name"]: rule["text"] for rule in seen(client)["job"]["rules"]} == {"dirty": RULE}


def test_a_rule_that_was_changed_by_hand_is_reported_and_not_overwritten_unseen(tmp_path: Path) -> None:
    folder = live_folder(tmp_path / "job")
    path = folder.path / "rules" / "dirty.neel"
    by_hand = LAXER + "// a remark\n"
    with serving(folder.path) as console, console.client() as client:
        assert ask(client, "deploy", name="dirty", text=LAXER, before=RULE)["version"] == 2
        path.write_text(by_hand)
        wait(lambda: "by hand" in str(seen(client)["job"]["rules"][0]["note"]), 60)
        late = ask(client, "deploy", name="dirty", text=RULE, before=LAXER)
        assert (late["ok"], late["conflict"]["text"]) == (False, by_hand)
        assert path.read_text() == by_hand
        noted = (
            "The file dirty.neel was changed by hand: version "  # the change that was refused has noted it
        )
        wait(lambda: str(seen(client)["job"]["rules"][0]["note"]).startswith(noted), 60)
        assert ask(client, "deploy", name="dirty", text=RULE, before=by_hand)["ok"] is True
        assert seen(client)["job"]["rules"][0]["note"] is None


def test_a_job_whose_rules_stay_says_so_and_takes_none(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "job")
    rules = JobRules(Job.read(folder.path))
    assert rules.refusal is not None
    assert rules.refusal.startswith("The job runs the rules that it was started with")
    described = json.loads((folder.path / "job.json").read_text())
    (folder.path / "job.json").write_text(json.dumps({**described, "rules": "rules/dirty.neel"}))
    with serving(folder.path) as console, console.client() as client:
        assert "The job runs one query" in seen(client)["job"]["refusal"]
        answer = client.post("/api/deploy", json={"name": "dirty", "text": LAXER, "before": RULE})
        assert (answer.status_code, "The job runs one query" in answer.json()["error"]) == (400, True)
        assert client.post("/api/rollback", json={"version": 1, "newest": 1}).status_code == 400
    assert (folder.path / "rules" / "dirty.neel").read_text() == RULE


def test_a_job_that_is_started_after_its_console_takes_changes_from_then_on(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "job")
    rules = JobRules(Job.read(folder.path))
    rules.look()
    assert rules.refusal is not None
    described = json.loads((folder.path / "job.json").read_text())
    (folder.path / "job.json").write_text(json.dumps({**described, "live_rules": True}))
    assert rules.look() is True
    assert rules.refusal is None
    assert rules.look() is False


def test_a_program_with_a_folder_of_rules_takes_what_is_deployed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nestream.watched.TICK", 0.05)
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "pair.neel").write_text("SEQ(A a, B b, a.id = b.id) WITHIN 10\n")
    with nestream.job(tmp_path / "job", rules) as job:
        stream = job.stream()
        assert Job.read(tmp_path / "job").about.live_rules
        console = JobRules(Job.read(tmp_path / "job"))
        before = console.texts()["pair"]
        assert console.deploy("pair", "SEQ(A a, C c, a.id = c.id) WITHIN 10\n", before, {}).version == 2
        now = 0

        def is_taken() -> bool:
            nonlocal now
            now += 100
            stream.push({"ts": now, "type": "A", "id": now})
            return bool(stream.push({"ts": now + 1, "type": "C", "id": now}))

        wait(is_taken, 60)
        assert (job.progress.version, job.progress.rules) == (2, {"pair": 2})
    rows = [
        json.loads(line) for path in (tmp_path / "job" / "matches").glob("part-*") for line in path.open()
    ]
    assert {(row["query"], row["version"]) for row in rows} == {("pair", 2)}
    with nestream.job(tmp_path / "job", {"pair": before}):
        assert not Job.read(tmp_path / "job").about.live_rules


def test_a_rule_with_line_ends_of_windows_keeps_no_other_from_being_deployed(tmp_path: Path) -> None:
    folder = live_folder(tmp_path / "job")
    text = OTHER.replace("\n", "\r\n").encode("utf-8-sig")
    (folder.path / "rules" / "other.neel").write_bytes(text)
    with serving(folder.path) as console, console.client() as client:
        wait(lambda: len(seen(client)["job"]["rules"]) == 2, 60)
        answer = ask(client, "deploy", name="dirty", text=LAXER, before=RULE)
        assert answer["ok"] is True, answer


def test_a_draft_that_was_saved_after_the_one_deployed_stays(tmp_path: Path) -> None:
    folder = live_folder(tmp_path / "job")
    with serving(folder.path) as console, console.client() as client:
        first = ask(client, "draft/save", name="dirty", text=LAXER, revision=0, base=RULE)["draft"]
        newer = {"name": "dirty", "text": OTHER, "revision": first["revision"], "base": RULE}
        second = ask(client, "draft/save", **newer)["draft"]
        deployed = {"name": "dirty", "text": LAXER, "before": RULE, "revision": first["revision"]}
        assert ask(client, "deploy", **deployed)["ok"] is True
        (left,) = seen(client)["job"]["drafts"]
        assert (left["text"], left["revision"]) == (OTHER, second["revision"])
