"""`nestream run`, in process: what it reads, what it writes, and how it fails."""

import json
import re
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import nestream
from nestream.data import sample, sample_path
from nestream.sink import json_lines
from nestream.strategies import STRATEGIES
from tests.cli.commands import EXAMPLE, call

QUERY = "SEQ(A a, !(B b, b.x = a.x), C c, a.x = c.x) WITHIN 10"
EVENTS = "ts,type,x\n1,A,7\n2,A,8\n3,B,7\n4,C,7\n5,C,8\n6,C,8\n"


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.csv"
    path.write_text(EVENTS)
    return path


def test_matches_are_one_json_object_a_line_in_the_shape_of_the_library(events: Path) -> None:
    result = call("run", QUERY, events)
    assert (result.exit_code, result.stderr) == (0, "")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {
            "a": {"ts": 2, "type": "A", "x": 8},
            "c": {"ts": end, "type": "C", "x": 8},
            "match_start": 2,
            "match_end": end,
        }
        for end in (5, 6)
    ]


def test_the_example_finds_on_the_sample_what_the_library_finds() -> None:
    result = call("run", EXAMPLE, sample_path("hospital"), "--output", "-")
    matches = nestream.query(EXAMPLE.read_text()).match(sample("hospital"))
    expected = "".join(map(json_lines, matches.to_batches()))
    assert result.exit_code == 0
    assert matches.num_rows > 0
    assert result.stdout == expected


def test_matches_are_ordered_by_their_end_then_by_the_positions_of_their_events(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n3,B\n1,A\n2,A\n3,B\n1,A\n4,B\n")
    result = call("run", "SEQ(A a, B b) WITHIN 10", path)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    ends = [(row["match_end"], row["match_start"]) for row in rows]
    assert len(ends) == 9
    assert ends == sorted(ends)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_the_suffix_of_the_output_tells_its_format(suffix: str, events: Path, tmp_path: Path) -> None:
    path = tmp_path / f"matches.{suffix}"
    result = call("run", QUERY, events, "--output", path)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    if suffix == "jsonl":
        ends = [json.loads(line)["match_end"] for line in path.read_text().splitlines()]
    else:
        table = pq.read_table(path) if suffix == "parquet" else pacsv.read_csv(path)
        ends = table.column("match_end").to_pylist()
    assert ends == [5, 6]


def test_the_format_can_be_given_where_the_suffix_tells_nothing(events: Path, tmp_path: Path) -> None:
    path = tmp_path / "matches.txt"
    assert call("run", QUERY, events, "--output", path).exit_code == 2
    assert call("run", QUERY, events, "--output", path, "--format", "csv").exit_code == 0
    assert path.read_text().startswith("a.ts,a.type,a.x,c.ts")


def test_a_query_without_matches_writes_nothing_and_exits_with_0(events: Path) -> None:
    result = call("run", "SEQ(C c, A a) WITHIN 10", events)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_limit_keeps_the_first_matches(events: Path) -> None:
    assert json.loads(call("run", QUERY, events, "--limit", "1").stdout)["match_end"] == 5
    assert call("run", QUERY, events, "--limit", "0").stdout == ""
    assert call("run", QUERY, events, "--limit", "-1").exit_code == 2


def test_events_with_equal_times_follow_each_other_by_arrival_only(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"ts": 1, "type": "A"}\n{"ts": 1, "type": "B"}\n')
    arguments = ["run", "SEQ(A a, B b) WITHIN 10", str(path)]
    assert call(*arguments).stdout == ""
    assert len(call(*arguments, "--order", "arrival").stdout.splitlines()) == 1


def test_the_columns_of_time_and_type_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "trades.csv"
    path.write_text("when,ticker\n2026-01-05T09:30:00,DELL\n2026-01-05T09:31:00,MSFT\n")
    query = "SEQ(DELL d, MSFT m) WITHIN 1 minute RETURN d.ts AS first, m.type AS second"
    result = call("run", query, path, "--time", "when", "--type", "ticker")
    match = json.loads(result.stdout)
    assert (match["first"], match["second"]) == ("2026-01-05T09:30:00", "MSFT")


def test_standard_input_needs_a_format() -> None:
    result = call("run", QUERY, "-", "--input-format", "csv", input=EVENTS)
    assert len(result.stdout.splitlines()) == 2
    result = call("run", QUERY, "-", input=EVENTS)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--input-format" in result.stderr


def test_dead_letters_are_reported_in_one_line_with_how_to_keep_them(events: Path) -> None:
    events.write_text(EVENTS + "soon,A,1\n7,A\n")
    result = call("run", QUERY, events)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("2 dead letters from ")
    assert "line 8" in line
    assert line.endswith("--dead-letter FILE")


def test_dead_letters_are_kept_where_that_is_asked(events: Path, tmp_path: Path) -> None:
    events.write_text(EVENTS + "soon,A,1\n")
    kept = tmp_path / "dead.jsonl"
    result = call("run", QUERY, events, "--dead-letter", kept)
    (line,) = result.stderr.splitlines()
    assert line.startswith("1 dead letter from ")
    assert line.endswith(str(kept))
    assert json.loads(kept.read_text())["line"] == 8


def test_a_table_can_be_asked_for_and_comes_with_a_summary_on_stderr(events: Path) -> None:
    result = call("run", QUERY, events, "--format", "table")
    assert [word in result.stdout for word in ("a", "c", "x=8")] == [True] * 3
    assert result.stderr.startswith("6 events, 2 matches, 0 dead letters, ")
    assert "{" not in result.stdout


def test_a_table_shows_unbound_variables_values_and_types_that_differ(events: Path) -> None:
    query = "SEQ(A a, OR(B b, C c)) WITHIN 10 RETURN a, b, c"
    table = call("run", query, events, "--format", "table").stdout
    assert "│ -" in table
    mixed = call(
        "run", "SEQ(A a, ANY(B, C) z) WITHIN 10 RETURN z.x * 2 AS twice, z", events, "--format", "table"
    )
    assert "twice" in mixed.stdout
    assert "match_end" in mixed.stdout
    assert re.search(r"B #\d+ 3", mixed.stdout)


def test_a_table_shows_the_numbers_that_why_takes_and_nothing_else_has_them(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n" + "".join(f"{n},{kind}\n" for n, kind in enumerate("XABBBBBBBC")))
    query = "SEQ(A a, B+ b, (SEQ(C c)) s) WITHIN 100"
    table = call("run", query, path, "--format", "table").stdout
    assert "#1 1" in table
    assert "B #2 2" in table
    assert "and 2 more" in table
    assert "number of the row" not in table
    assert call("why", query, path, "--events", "#1,#9").exit_code == 0
    assert "number of the row" not in call("run", query, path).stdout


def test_a_long_table_is_cut_and_the_summary_says_so() -> None:
    query = "SEQ(Recycle r, Washing w) WITHIN 1 hour"
    result = call("run", query, sample_path("hospital"), "--format", "table")
    assert "showing 20 of " in result.stderr
    assert result.stdout.count("\n├") == 20


def test_an_attribute_that_the_events_do_not_have_is_shown_as_check_shows_it(events: Path) -> None:
    query = "SEQ(A a, C c, a.xx = c.x) WITHIN 10"
    result = call("run", query, events)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "did you mean `a.x`" in result.stderr
    assert "^^^^" in result.stderr


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (None, [], "no such file"),
        ("", [], "is empty"),
        ("time,type\n1,A\n", [], "--time"),
        ("ts,kind\n1,A\n", [], "--type"),
        ("ts,type\n1,A\n", ["--dead-letter", "x" * 300], "cannot write the dead letters"),
    ],
)
def test_unreadable_data_exits_with_1_and_says_why(
    content: str | None, arguments: list[str], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "events.csv"
    if content is not None:
        path.write_text(content + "x\n" * (words == "cannot write the dead letters"))
    result = call("run", QUERY, path, *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert words in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--strategy", "guess"],
        ["--order", "size"],
        ["--format", "xml"],
        ["--format", "table", "--output", "x.csv"],
        ["--output", "nowhere/x.csv"],
        ["--no-such-option"],
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str], events: Path) -> None:
    result = call("run", QUERY, events, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")


def test_the_events_are_never_overwritten(events: Path) -> None:
    assert call("run", QUERY, events, "--output", events).exit_code == 2
    assert events.read_text() == EVENTS


def test_the_strategies_give_the_same_answer(events: Path) -> None:
    answers = {call("run", QUERY, events, "--strategy", name).stdout for name in STRATEGIES}
    assert len(answers) == 1


def test_a_strategy_that_does_not_cover_the_query_is_an_error_with_a_hint(events: Path) -> None:
    for arguments in (["--strategy", "nested"], ["--without", "bounds"]):
        result = call("run", "SEQ(A+ a, B b) WITHIN 10", events, *arguments)
        assert result.exit_code == 1
        assert result.stderr.startswith("error: groups do not run with "), result.stderr
        assert "hint: use strategy auto" in result.stderr


def test_techniques_are_switched_off_by_name(events: Path) -> None:
    query = "SEQ(Wash w, !SEQ(Check c, Check d), Use u) WITHIN 9"
    explained = call("explain", query, "--without", "bounds").stdout
    assert "bounds are switched off" in explained
    assert "bounds are switched off" not in call("explain", query).stdout
    plain = call("run", QUERY, events).stdout
    assert call("run", QUERY, events, "--without", "bounds", "--without", "push_in").stdout == plain
    for command in (("explain", query), ("run", QUERY, events)):
        result = call(*command, "--without", "bouns")
        assert result.exit_code == 2
        assert "push_in" in result.stderr


@pytest.mark.parametrize("value", ["twelve", "-", "1e"])
def test_a_column_that_one_value_makes_text_is_reported_if_the_query_computes_with_it(
    tmp_path: Path, value: str
) -> None:
    path = tmp_path / "payments.csv"
    rows = [f"{n},Payment,{n}.5,x{n}" for n in range(40)]
    path.write_text("\n".join(["ts,type,amount,code", *rows, f"40,Payment,{value},7"]) + "\n")
    told = f"note: column `amount` is text, because '{value}' is not a number"
    for command in ("run", "why"):
        picked = ["--events", "0"] if command == "why" else []
        wrong = call(command, "(Payment p : p.amount > 5)", path, *picked)
        assert wrong.exit_code == 1
        assert told in " ".join(wrong.stderr.split())
        assert "cannot compare a string with an integer" in wrong.stderr
    assert told in call("run", "SEQ(Payment p, Payment q, p.amount = q.amount) WITHIN 5", path).stderr
    assert "note" not in call("run", "(Payment p : p.code = 'x1')", path).stderr
