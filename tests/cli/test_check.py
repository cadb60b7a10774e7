"""`nestream check` and `nestream explain`."""

import json
from pathlib import Path

import pytest

import nestream
from nestream.data import sample_path
from tests.cli.commands import EXAMPLE, call, on_terminal, program

GOOD = "SEQ(A a, !B b, C c, a.x = c.x) WITHIN 10"
UNBOUNDED = "SEQ(A a, B b) WITHIN UNBOUNDED"
BAD = "SEQ(A a, B b, a.x = z.x, b.y = q.y) WITHIN 10"


def test_an_accepted_query_exits_with_0_and_names_its_spelling() -> None:
    result = call("check", GOOD)
    assert (result.exit_code, result.stdout) == (0, "accepted as NEEL\n")


def test_a_warning_is_shown_and_does_not_reject() -> None:
    result = call("check", UNBOUNDED)
    assert result.exit_code == 0
    assert "warning:" in result.stdout
    assert "^^^^" in result.stdout
    assert result.stdout.endswith("accepted as NEEL, 1 warning\n")


def test_every_problem_is_shown_with_its_place_underlined() -> None:
    result = call("check", BAD)
    assert result.exit_code == 1
    assert result.stdout.count("error:") == 2
    assert result.stdout.count(f"1 | {BAD}\n") == 2
    assert "    |                     ^" in result.stdout
    assert result.stdout.endswith("rejected: 2 errors\n")


def test_a_query_file_is_read_and_its_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "query.neel"
    path.write_text("\ufeff// a comment\nSEQ(A a,\n    B b, a.x = z.x)\nWITHIN 10\n", encoding="utf-8")
    result = call("check", path)
    assert result.exit_code == 1
    assert "at line 3, column" in result.stdout


def test_the_example_is_accepted_with_the_columns_of_the_sample() -> None:
    assert call("check", EXAMPLE, "--events", sample_path("hospital")).exit_code == 0


def test_an_unknown_attribute_is_found_when_the_events_are_known() -> None:
    text = "SEQ(Recycle r, Operating o, r.idd = o.id) WITHIN 1 hour"
    assert call("check", text).exit_code == 0
    result = call("check", text, "--events", sample_path("hospital"))
    assert result.exit_code == 1
    assert "did you mean `r.id`" in result.stdout


def test_the_columns_of_time_and_type_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("at,kind,x\n1,A,2\n")
    assert call("check", GOOD, "--events", path, "--time", "at", "--type", "kind").exit_code == 0
    result = call("check", GOOD, "--events", path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--time" in result.stderr


@pytest.mark.parametrize("text", [GOOD, UNBOUNDED, BAD, "SEQ(A a", "( )"])
def test_the_answer_as_json_holds_the_diagnostics_of_the_library(text: str) -> None:
    result = call("check", text, "--format", "json")
    answer = json.loads(result.stdout)
    assert list(answer) == ["ok", "dialect", "diagnostics"]
    try:
        expected = nestream.QueryError(nestream.query(text).warnings, text).as_dicts()
        assert answer["ok"]
        assert answer["dialect"] == "neel"
    except nestream.QueryError as error:
        expected = error.as_dicts()
        assert not answer["ok"]
    assert answer["diagnostics"] == expected
    assert result.exit_code == (0 if answer["ok"] else 1)


def test_the_dialect_can_be_forced() -> None:
    text = "EVENT SEQ(A a, B b) WHERE [x] WITHIN 10"
    assert json.loads(call("check", text, "--format", "json").stdout)["dialect"] == "sase"
    forced = call("check", text, "--dialect", "neel", "--format", "json")
    assert forced.exit_code == 1
    assert json.loads(forced.stdout)["dialect"] == "neel"
    assert call("check", text, "--dialect", "klingon").exit_code == 2


@pytest.mark.parametrize(("argument", "words"), [("nosuch.neel", "no file 'nosuch.neel'"), ("", "empty")])
def test_what_is_neither_a_file_nor_a_text_is_wrong_usage(argument: str, words: str) -> None:
    result = call("check", argument)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert result.stdout == ""


def test_a_folder_and_a_binary_file_are_no_queries(tmp_path: Path) -> None:
    assert call("check", tmp_path).exit_code == 2
    path = tmp_path / "query.neel"
    path.write_bytes(b"SEQ(\xff)")
    result = call("check", path)
    assert result.exit_code == 2
    assert "UTF-8" in result.stderr


@pytest.mark.parametrize("text", ["(" * 10_000, "SEQ(A a, " * 20_000, "\0 \0", "SEQ(A a)\x1b[31m"])
def test_strange_text_is_rejected_without_a_traceback(text: str) -> None:
    result = call("check", text)
    assert result.exit_code == 1
    assert "rejected" in result.stdout


def test_a_text_that_is_not_utf_8_is_wrong_usage() -> None:
    result = program("check", "SEQ(A \udcff)")
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr


def test_diagnostics_are_coloured_on_a_terminal_and_plain_in_a_pipe() -> None:
    code, _, screen = on_terminal(["check", BAD])
    assert code == 1
    assert "\x1b[1;31merror:" in screen
    piped = program("check", BAD)
    assert piped.returncode == 1
    assert "\x1b" not in piped.stdout + piped.stderr


def test_explain_prints_the_plan_as_text_and_as_json() -> None:
    plan = nestream.query(GOOD)
    assert call("explain", GOOD).stdout == plan.explain() + "\n"
    assert json.loads(call("explain", GOOD, "--format", "json").stdout) == plan.explain(format="json")


def test_explain_tells_how_a_plan_is_rewritten_where_asked() -> None:
    nested = "SEQ(A a, !SEQ(B b, C c), D d) WITHIN 10"
    plan = nestream.query(nested)
    shown = call("explain", nested, "--verbose").stdout
    assert shown == plan.explain(verbose=True) + "\n"
    assert shown.startswith(plan.explain() + "\nRewriting\n")
    assert "\nRewriting\n  negation over a sequence\n" in shown
    rewriting = json.loads(call("explain", nested, "--verbose", "--format", "json").stdout)["rewriting"]
    assert rewriting == plan.explain(format="json", verbose=True)["rewriting"]
    assert [step["rule"] for step in rewriting["steps"]] == [
        "negation over a sequence",
        "distribute over a sequence",
        "projection",
    ]
    assert (rewriting["form"], rewriting["kept"]) == ("disjunctive normal form", [])
    assert rewriting["expressions"] == [
        "SEQ(A a, !C c, D d)",
        "Proj[a, d] SEQ(A a, !B b, C c, D d)",
    ]
    assert rewriting["root"]["components"][1]["body"]["components"][1]["node"] == "Witness"


def test_explain_of_a_rejected_query_prints_diagnostics_on_stderr() -> None:
    result = call("explain", BAD)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("error:") == 2


def test_explain_checks_the_query_against_events() -> None:
    assert call("explain", EXAMPLE, "--events", sample_path("hospital")).exit_code == 0
    assert call("explain", EXAMPLE, "--events", sample_path("stock")).exit_code == 1


def test_set_gives_parameters_their_values(tmp_path: Path) -> None:
    text = "SEQ(A a, B b, b.x > $floor) WITHIN $length"
    assert call("check", text, "--set", "floor=1", "--set", "length=5").exit_code == 0
    missing = call("check", text, "--set", "floor=1")
    assert missing.exit_code == 1
    assert "the parameter `$length` has no value" in missing.stdout
    assert call("check", text, "--set", "floor").exit_code == 2
    assert call("check", text, "--set", "floor=1", "--set", "floor=2").exit_code == 2


def test_a_folder_of_queries_takes_the_values_of_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "one.neel").write_text("A a WHERE x > $low", encoding="utf-8")
    (tmp_path / "two.neel").write_text("A a WHERE x > $high", encoding="utf-8")
    assert call("check", tmp_path, "--set", "low=1", "--set", "high=5").exit_code == 0


def test_the_queries_of_a_folder_may_read_the_events_that_others_make(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    made = "SEQ(A a, B b) WITHIN 10 RETURN a.x AS rise INTO Rise"
    (rules / "made.neel").write_text(made, encoding="utf-8")
    (rules / "top.neel").write_text("SEQ(Rise r, B b, r.rise = b.x) WITHIN 10", encoding="utf-8")
    events = tmp_path / "events.csv"
    events.write_text("ts,type,x\n1,A,1\n2,B,2\n", encoding="utf-8")
    assert call("check", str(rules), "--events", str(events)).exit_code == 0
    (rules / "top.neel").write_text("SEQ(Rise r, B b) WITHIN 10 RETURN r.ryse AS x INTO A", encoding="utf-8")
    result = call("check", str(rules), "--events", str(events))
    assert (result.exit_code, "query made makes Rise, query top makes A" in result.stdout) == (1, True)
