"""A folder of queries on the command line: checked, explained and run in one pass."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.commands import call

EVENTS = "ts,type,x\n1,A,7\n2,A,8\n3,B,7\n4,C,7\n5,C,8\n6,C,8\n"


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.csv"
    path.write_text(EVENTS)
    return path


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "clean.neel").write_text("SEQ(A a, !(B b, b.x = a.x), C c, a.x = c.x) WITHIN 10")
    (folder / "any.neel").write_text("SEQ(A a, C c, a.x = c.x) WITHIN 10 RETURN a.x AS who")
    (folder / "never.neel").write_text("SEQ(C c, A a) WITHIN 10")
    return folder


def test_every_match_has_the_name_of_its_query(rules: Path, events: Path) -> None:
    result = call("run", rules, events)
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["query"] for row in rows] == ["any"] * 3 + ["clean"] * 2
    assert rows[0] == {
        "query": "any",
        "match_start": 1,
        "match_end": 4,
        "events": [],
        "values": {"who": "7"},
    }
    assert [entry["variable"] for entry in rows[-1]["events"]] == ["a", "c"]
    assert rows[-1]["events"][0]["event"] == {"ts": 2, "type": "A", "x": 8}


def test_a_table_lists_the_events_of_each_match(rules: Path, events: Path) -> None:
    result = call("run", rules, events, "--format", "table")
    assert result.exit_code == 0
    assert "a A #1 2 x=8" in result.stdout
    assert "who" in result.stdout


def test_each_query_can_have_a_file_of_its_own(rules: Path, events: Path, tmp_path: Path) -> None:
    result = call("run", rules, events, "--each", tmp_path / "found")
    assert result.exit_code == 0
    found = {path.stem: pq.read_table(path) for path in (tmp_path / "found").iterdir()}
    assert {name: table.num_rows for name, table in found.items()} == {"any": 3, "clean": 2, "never": 0}
    assert found["any"].column("who").to_pylist() == [7, 8, 8]


def test_a_file_for_each_needs_a_folder_of_queries(events: Path, tmp_path: Path) -> None:
    result = call("run", "SEQ(A a, C c) WITHIN 3", events, "--each", tmp_path / "found")
    assert result.exit_code == 2
    assert "needs a folder of queries" in result.stderr


def test_a_file_for_each_does_not_go_with_one_output(rules: Path, events: Path, tmp_path: Path) -> None:
    result = call("run", rules, events, "--each", tmp_path / "found", "--output", tmp_path / "all.parquet")
    assert result.exit_code == 2


def test_every_query_of_a_folder_is_checked(rules: Path, events: Path) -> None:
    assert call("check", rules).exit_code == 0
    (rules / "broken.neel").write_text("SEQ(A a, B b")
    (rules / "stranger.neel").write_text("SEQ(A a, B b, a.size = b.size) WITHIN 3")
    result = call("check", rules, "--events", events, "--format", "json")
    assert result.exit_code == 1
    answers = json.loads(result.stdout)
    assert {name for name, answer in answers.items() if not answer["ok"]} == {"broken", "stranger"}


def test_a_folder_is_explained(rules: Path) -> None:
    result = call("explain", rules)
    assert result.exit_code == 0
    assert result.stdout.startswith("3 queries, 7 leaves, 3 after sharing\nany:\n  Match")


def test_a_folder_without_queries_is_told(tmp_path: Path, events: Path) -> None:
    for command in (("run", tmp_path, events), ("check", tmp_path), ("explain", tmp_path)):
        result = call(*command)
        assert result.exit_code == 2
        assert ".neel file" in result.stderr
