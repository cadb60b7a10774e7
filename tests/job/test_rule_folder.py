"""A folder of rules: changes are made as a whole, numbered and kept, whoever dies on the way."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nestream.job import RuleFolder, RulesError, RuleSet

A, B = "SEQ(A a, B b) WITHIN 5\n", "SEQ(A a, C c) WITHIN 5\n"


def put(folder: RuleFolder, what: str, **changes: str | None) -> RuleSet:
    return folder.change(what, lambda known: changes, lambda texts, changed: None)


def files(path: Path) -> dict[str, str]:
    return {file.stem: file.read_text() for file in path.glob("*.neel")}


def test_a_rule_has_the_version_of_the_change_that_brought_its_text(tmp_path: Path) -> None:
    folder = RuleFolder(tmp_path)
    put(folder, "add one", one=A)
    put(folder, "add two", two=A)
    found = put(folder, "replace one", one=B)
    assert {name: rule.version for name, rule in found.rules.items()} == {"one": 3, "two": 2}
    assert RuleFolder(tmp_path).read(None) == found
    assert [(one.version, one.what) for one in folder.history()] == [
        (1, "add one"),
        (2, "add two"),
        (3, "replace one"),
    ]
    assert folder.at(2).texts == {"one": A, "two": A}


def test_going_back_is_a_change_like_any_other(tmp_path: Path) -> None:
    folder = RuleFolder(tmp_path)
    put(folder, "add one", one=A)
    put(folder, "replace one", one=B)
    found = folder.change(
        "rollback 1", lambda known: known.differences(folder.at(1).texts), lambda texts, changed: None
    )
    assert (found.version, found.texts) == (3, {"one": A})
    assert files(tmp_path) == {"one": A}
    with pytest.raises(RulesError, match="no version 9; there are 1 to 3"):
        folder.at(9)


def test_what_must_not_be_leaves_everything_as_it_was(tmp_path: Path) -> None:
    folder = RuleFolder(tmp_path)
    put(folder, "add one", one=A)

    def refuse(texts: object, changed: object) -> None:
        raise RulesError("no")

    with pytest.raises(RulesError, match="no"):
        folder.change("add two", lambda known: {"two": B}, refuse)
    with pytest.raises(RulesError, match="at least one rule"):
        put(folder, "remove one", one=None)
    assert files(tmp_path) == {"one": A}
    assert len(folder.history()) == 1
    assert put(folder, "replace one", one=A).version == 1  # it is the same


@pytest.mark.parametrize("noted", [False, True])
def test_a_change_that_was_cut_off_is_made_as_a_whole_or_not_at_all(tmp_path: Path, noted: bool) -> None:
    folder = RuleFolder(tmp_path)
    put(folder, "add both", one=A, two=A)
    wanted = {"one": B, "two": None}
    (tmp_path / ".nestream" / "change.json").write_text(json.dumps({"version": 2, "rules": wanted}))
    with (tmp_path / ".nestream" / "history.jsonl").open("a") as history:
        line = json.dumps({"version": 2, "time": "2026-01-05", "what": "change", "rules": wanted})
        history.write(line + "\n" if noted else line[:20])
    (tmp_path / "one.neel").write_text(B if noted else A)  # some of the files were written
    found = RuleFolder(tmp_path).read(RuleSet().changed({"one": A, "two": A}))
    assert found.texts == ({"one": B} if noted else {"one": A, "two": A})
    assert files(tmp_path) == found.texts
    assert put(folder, "add three", three=A).version == (3 if noted else 2)
    assert RuleFolder(tmp_path).read(None).version == (3 if noted else 2)


def test_what_was_edited_by_hand_is_taken_when_the_files_have_come_to_rest(tmp_path: Path) -> None:
    (tmp_path / "one.neel").write_text(A)
    folder = RuleFolder(tmp_path)
    known = folder.read(None)
    assert (known.version, folder.history()) == (1, [])
    (tmp_path / "one.neel").write_text("SEQ(A")
    assert folder.read(known) is known
    (tmp_path / "one.neel").write_text(B)
    assert folder.read(known) is known
    found = folder.read(known)
    assert (found.version, found.texts) == (2, {"one": B})
    assert [(one.version, one.what) for one in folder.history()] == [(1, "found"), (2, "edited by hand")]
    assert folder.at(1).texts == {"one": A}
    assert RuleFolder(tmp_path).read(known) == found  # so another job says the same


def test_an_edit_while_the_files_are_read_is_taken_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(RuleFolder(tmp_path), "add one", one=A)
    job = RuleFolder(tmp_path)
    latest = RuleFolder._latest

    def edited_meanwhile(folder: RuleFolder) -> RuleSet | None:
        (tmp_path / "one.neel").write_text(B)
        return latest(folder)

    with monkeypatch.context() as patched:
        patched.setattr(RuleFolder, "_latest", edited_meanwhile)
        found = job.read(None)
    assert found.texts == {"one": A}
    for _ in range(3):
        found = job.read(found)
    assert found.texts == {"one": B}


def test_a_change_by_command_is_taken_at_once(tmp_path: Path) -> None:
    (tmp_path / "one.neel").write_text(A)
    folder = RuleFolder(tmp_path)
    known = folder.read(None)
    changed = put(RuleFolder(tmp_path), "add two", two=B)
    assert folder.read(known) == changed
    assert (changed.version, changed.rules["one"].version) == (2, 1)


def test_a_job_does_not_wait_for_a_change_that_somebody_makes(tmp_path: Path) -> None:
    folder = RuleFolder(tmp_path)
    known = put(folder, "add one", one=A)
    other = RuleFolder(tmp_path)

    def meanwhile(texts: object, changed: object) -> None:
        (tmp_path / "three.neel").write_text(A)
        assert other.read(known) is known
        (tmp_path / "three.neel").unlink()

    changed = folder.change("add two", lambda _: {"two": B}, meanwhile)
    assert other.read(known) == changed


def test_edits_by_hand_are_noted_before_the_next_change(tmp_path: Path) -> None:
    folder = RuleFolder(tmp_path)
    put(folder, "add one", one=A)
    (tmp_path / "one.neel").write_text(B)
    put(folder, "add two", two=A)
    assert [one.what for one in folder.history()] == ["add one", "edited by hand", "add two"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_cannot_be_written_is_read_and_counted_nevertheless(tmp_path: Path) -> None:
    (tmp_path / "one.neel").write_text(A)
    folder = RuleFolder(tmp_path)
    known = folder.read(None)
    (tmp_path / "one.neel").write_text(B)
    tmp_path.chmod(0o500)
    try:
        folder.read(known)
        assert folder.read(known).version == 2
    finally:
        tmp_path.chmod(0o700)


def test_a_history_that_cannot_be_written_does_not_stop_a_job(tmp_path: Path) -> None:
    (tmp_path / "one.neel").write_text(A)
    (tmp_path / ".nestream").write_text("in the way")
    folder = RuleFolder(tmp_path)
    known = folder.read(None)
    (tmp_path / "one.neel").write_text(B)
    folder.read(known)
    assert folder.read(known).version == 2


def test_a_folder_without_rules_and_one_that_is_no_text_say_so(tmp_path: Path) -> None:
    with pytest.raises(RulesError, match=r"no \.neel file"):
        RuleFolder(tmp_path).read(None)
    (tmp_path / "one.neel").write_bytes(b"\xff\xfe")
    with pytest.raises(RulesError, match="UTF-8"):
        RuleFolder(tmp_path).read(None)
    with pytest.raises(RulesError, match=r"cannot read the rules in .*nowhere"):
        RuleFolder(tmp_path / "nowhere").read(None)
