"""`nestream rules` as people use it, and what a stream of the folder makes of it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.commands import call
from tests.cli.test_stream_local import EVENTS, QUERY, line

USED = "SEQ(Recycle r, Operating o, r.id = o.id) WITHIN 1 hour RETURN o.id AS tool"


def versions(path: Path) -> dict[str, int]:
    rows = json.loads(call("rules", path, "list", "--format", "json").stdout)
    return {row["rule"]: row["version"] for row in rows}


def test_rules_are_added_replaced_removed_and_brought_back(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    (tmp_path / "used.neel").write_text(USED)
    assert call("rules", rules, "add", "dirty", QUERY).stdout == "version 1: add dirty\n"
    assert call("rules", rules, "add", tmp_path / "used.neel").stdout == "version 2: add used\n"
    assert call("rules", rules, "replace", "used", QUERY).exit_code == 0
    assert versions(rules) == {"dirty": 1, "used": 3}
    assert call("rules", rules, "remove", "dirty").exit_code == 0
    assert call("rules", rules, "rollback", "2").stdout == "version 5: rollback 2\n"
    assert versions(rules) == {"dirty": 5, "used": 5}
    assert (rules / "used.neel").read_text() == USED + "\n"
    past = call("rules", rules, "history").stdout.splitlines()
    assert [text.split("  ")[0] for text in past] == ["v1", "v2", "v3", "v4", "v5"]
    assert past[3].endswith("remove dirty  -dirty")
    assert "nothing to change" in call("rules", rules, "rollback", "2").stdout


def test_a_rule_with_a_mistake_is_refused_with_its_diagnostic_and_nothing_changes(tmp_path: Path) -> None:
    call("rules", tmp_path, "add", "dirty", QUERY)
    for action in (["add", "bad"], ["replace", "dirty"]):
        said = call("rules", tmp_path, *action, "SEQ(A a, B b, z.id = 1) WITHIN 5")
        assert said.exit_code == 1
        assert f"query {action[1]}:\nerror: unknown variable `z`" in said.stderr
        assert "at line 1, column 15" in said.stderr
    limited = call("rules", tmp_path, "add", "few", f"{QUERY} LIMIT 3")
    assert limited.exit_code == 1
    assert "does not support LIMIT" in limited.stderr
    assert versions(tmp_path) == {"dirty": 1}
    assert len(list(tmp_path.glob("*.neel"))) == 1


def test_list_marks_the_rules_that_cannot_run(tmp_path: Path) -> None:
    call("rules", tmp_path, "add", "dirty", QUERY)
    (tmp_path / "each.neel").write_text("SEQ(Recycle r")
    (tmp_path / "few.neel").write_text(f"{QUERY} LIMIT 3")
    (tmp_path / "given.neel").write_text("SEQ(Recycle r, r.id = $tool) WITHIN 1 hour")
    shown = {text.split()[0]: text for text in call("rules", tmp_path, "list").stdout.splitlines()}
    assert shown["each"].endswith("cannot run: the `SEQ(` is never closed")
    assert "does not support LIMIT" in shown["few"]
    assert "cannot run" not in shown["dirty"] + shown["given"]
    listed = json.loads(call("rules", tmp_path, "list", "--format", "json").stdout)
    assert {row["rule"]: row["problem"] is None for row in listed} == {
        "dirty": True,
        "each": False,
        "few": False,
        "given": True,
    }


def test_rules_that_make_a_cycle_are_refused(tmp_path: Path) -> None:
    call("rules", tmp_path, "add", "one", "SEQ(B b, C c) WITHIN 5 RETURN b.id AS id INTO A")
    said = call("rules", tmp_path, "add", "two", "SEQ(A a, C c) WITHIN 5 RETURN a.id AS id INTO B")
    assert said.exit_code == 1
    assert "depend on its own matches" in said.stderr


def test_a_rule_cannot_be_removed_where_there_are_none(tmp_path: Path) -> None:
    said = call("rules", tmp_path, "remove", "x")
    assert said.exit_code == 1
    assert said.stderr == "error: there is no rule x\n  hint: there are no rules\n"


def test_mistakes_in_the_command_say_what_to_write(tmp_path: Path) -> None:
    call("rules", tmp_path, "add", "dirty", QUERY)
    wrong: list[tuple[list[str], str, int]] = [
        (["add", "dirty", QUERY], "a rule dirty already", 1),
        (["replace", "drty", QUERY], "did you mean dirty?", 1),
        (["remove", "other"], "the rules are dirty", 1),
        (["remove", "dirty"], "at least one rule", 1),
        (["rollback", "7"], "no version 7; there are 1 to 1", 1),
        (["rollback", "first"], "not the number of a version", 2),
        (["add", QUERY], "needs a name", 2),
        (["add", "a/b", QUERY], "cannot be the name of a rule", 2),
        (["remove"], "nestream rules RULES remove NAME...", 2),
        (["history", "1"], "nestream rules RULES history", 2),
    ]
    for arguments, message, code in wrong:
        said = call("rules", tmp_path, *arguments)
        assert said.exit_code == code, arguments
        assert message in " ".join(said.stderr.replace("│", " ").split()), arguments
    assert call("rules", tmp_path / "nowhere").exit_code == 2
    assert versions(tmp_path) == {"dirty": 1}


def test_a_stream_that_goes_on_takes_the_changes_and_refuses_a_rule_with_a_mistake(tmp_path: Path) -> None:
    rules, events, matches = tmp_path / "rules", tmp_path / "events.jsonl", tmp_path / "matches.jsonl"
    call("rules", rules, "add", "dirty", f"{QUERY} RETURN o.id AS tool")
    events.write_text(EVENTS)
    arguments: list[str | Path] = ["stream", rules, "--local", "--once", "--from", events, "--to", matches]
    assert call(*arguments).exit_code == 0
    call("rules", rules, "add", "used", USED)
    (rules / "bad.neel").write_text("SEQ(Recycle r")
    with events.open("a") as file:
        file.write(line(4, "Operating", 8))
    said = call(*arguments)
    assert said.exit_code == 0
    assert "rules version 3: used added; it sees events since 2026-01-05 07:03:00.000Z" in said.stderr
    assert "rules version 3: bad refused\n  error: the `SEQ(` is never closed" in said.stderr
    found = [json.loads(text) for text in matches.read_text().splitlines()]
    assert [(one["query"], one["version"], one["values"]["tool"]) for one in found] == [
        ("dirty", 1, "7"),
        ("used", 2, "8"),
    ]
    matches.unlink()
    for path in (tmp_path / "matches.jsonl.checkpoint").iterdir():
        path.unlink()
    assert call(*arguments).exit_code == 1  # at the first start a mistake is an error


def test_a_value_of_set_may_be_for_a_rule_that_comes_later(tmp_path: Path) -> None:
    rules, events, matches = tmp_path / "rules", tmp_path / "events.jsonl", tmp_path / "matches.jsonl"
    call("rules", rules, "add", "used", USED.replace("1 hour", "$window"), "--set", "window=1 hour")
    events.write_text(EVENTS)
    arguments: list[str | Path] = ["stream", rules, "--local", "--once", "--from", events, "--to", matches]
    assert call(*arguments, "--set", "window=1 hour").exit_code == 0
    call("rules", rules, "replace", "used", USED)
    assert call(*arguments, "--set", "window=1 hour").exit_code == 0
    assert (
        "no query has a parameter"
        in call("stream", rules, "--local", "--once", "--from", events, "--set", "x=1").stderr
    )
