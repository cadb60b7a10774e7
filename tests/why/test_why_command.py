"""`nestream why`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.commands import call, on_terminal, program, without_colours

QUERY = "SEQ(A a, !B b, C c, a.id = c.id) WITHIN 10"


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.csv"
    path.write_text("ts,type,id,event\n1,A,1,x\n2,C,1,y\n3,B,1,z\n4,C,2,v\n", encoding="utf-8")
    return path


def test_a_match_exits_with_0_and_others_with_1(events: Path) -> None:
    result = call("why", QUERY, events, "--events", "0,1")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "a match")
    result = call("why", QUERY, events, "--events", "0,3")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (1, "no match: 2 obstacles")
    assert "predicate: a.id = c.id: 1 ≠ 2" in result.stdout
    assert "negation: !B b" in result.stdout
    assert result.stderr == ""


def test_json_is_for_programs(events: Path) -> None:
    result = call("why", QUERY, events, "--events", "a=0,c=3", "--format", "json")
    told = json.loads(result.stdout)
    assert (result.exit_code, told["matched"]) == (1, False)
    assert told["alternatives"][0]["assignment"] == {"a": 0, "c": 3}
    assert [obstacle["kind"] for obstacle in told["alternatives"][0]["obstacles"]] == [
        "predicate",
        "negation",
    ]
    start, end = told["alternatives"][0]["obstacles"][1]["span"]
    assert QUERY[start:end] == "!B b"


def test_events_are_picked_by_a_column(events: Path) -> None:
    assert call("why", QUERY, events, "--by", "event", "--events", "x,y").exit_code == 0
    assert call("why", QUERY, events, "--by", "event", "--events", "c=y").exit_code == 0
    result = call("why", QUERY, events, "--by", "event", "--events", "w")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no event has event = w" in result.stderr


@pytest.mark.parametrize(
    ("picked", "message"),
    [
        ("0,x", "'x' is not a row number"),
        (",", "at least one"),
        ("a=0,1", "name a variable for every event, or for none"),
        ("a=0,a=1", "it names a variable twice"),
        ("-1", "'-1' is not a row number"),
    ],
)
def test_wrong_usage_exits_with_2(events: Path, picked: str, message: str) -> None:
    result = call("why", QUERY, events, f"--events={picked}")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_a_row_that_there_is_not_is_an_error(events: Path) -> None:
    result = call("why", QUERY, events, "--events", "9")
    assert result.exit_code == 1
    assert "no event 9: the 4 events are numbered from 0 to 3" in result.stderr


def test_a_folder_is_no_query(events: Path) -> None:
    assert call("why", events.parent, events, "--events", "0").exit_code == 2


def test_order_and_columns_are_those_of_run(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"at": 1, "kind": "A"}\n{"at": 1, "kind": "C"}\n', encoding="utf-8")
    asked = ("why", "SEQ(A a, C c) WITHIN 5", path, "--events", "0,1", "--time", "at", "--type", "kind")
    assert call(*asked).exit_code == 1
    assert call(*asked, "--order", "arrival").exit_code == 0


def test_a_terminal_shows_the_same_in_colours(events: Path) -> None:
    code, _, screen = on_terminal(["why", QUERY, events, "--events", "0,3"])
    assert code == 1
    assert "\x1b[" in screen
    assert "predicate: a.id = c.id: 1 ≠ 2" in without_colours(screen)


def test_times_finer_than_a_microsecond_are_explained_though_the_program_loads_no_pandas(
    tmp_path: Path,
) -> None:
    at = pa.array([1, 30_000_000_001, 60_000_000_003], pa.timestamp("ns", "UTC"))
    events = pa.table({"ts": at, "type": ["A", "B", "C"], "due": at})
    pq.write_table(events, tmp_path / "events.parquet")
    done = program(
        "why",
        "SEQ(A a, !(B b, b.due > a.due), C c) WITHIN 1 hour",
        tmp_path / "events.parquet",
        "--events",
        "0,2",
    )
    assert done.returncode == 1, done.stderr
    assert "* #0  1970-01-01 00:00:00.000000001Z  A  due=1970-01-01T00:00:00.000000001Z" in done.stdout
    assert "b = #1 (B at 00:00:30.000000001Z)" in done.stdout
