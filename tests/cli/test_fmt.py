"""`nestream fmt`."""

from pathlib import Path

import pytest

import nestream
from tests.cli.commands import call

TEXT = "seq( A a,B b , a.x=b.x ) within 10"
WANTED = nestream.query(TEXT).formatted + "\n"


def test_a_text_is_printed_in_the_canonical_layout() -> None:
    result = call("fmt", TEXT)
    assert (result.exit_code, result.stdout, result.stderr) == (0, WANTED, "")


def test_without_write_a_file_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.neel"
    path.write_text(TEXT)
    assert call("fmt", path).stdout == WANTED
    assert path.read_text() == TEXT


def test_write_rewrites_the_files_that_change_and_leaves_nothing_else_behind(tmp_path: Path) -> None:
    paths = [tmp_path / "a.neel", tmp_path / "b.neel"]
    paths[0].write_text(TEXT)
    paths[1].write_text(WANTED)
    result = call("fmt", "--write", *paths)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"{paths[0]} formatted\n")
    assert [path.read_text() for path in paths] == [WANTED, WANTED]
    assert sorted(tmp_path.iterdir()) == paths


def test_check_exits_with_1_if_a_file_would_change_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.neel"
    path.write_text(TEXT)
    result = call("fmt", "--check", path)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"{path} is not formatted\n")
    assert path.read_text() == TEXT
    path.write_text(WANTED)
    assert call("fmt", "--check", path).exit_code == 0


def test_a_rejected_file_is_reported_and_the_others_are_still_rewritten(tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.neel", tmp_path / "good.neel"
    bad.write_text("SEQ(A a")
    good.write_text(TEXT)
    result = call("fmt", "--write", bad, good)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{bad}:\nerror:")
    assert (bad.read_text(), good.read_text()) == ("SEQ(A a", WANTED)


def test_comments_before_the_query_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.neel"
    path.write_text(f"/* who\n and why */\n// really\n-- truly\n{TEXT}")
    assert call("fmt", "--write", path).exit_code == 0
    assert path.read_text() == f"/* who\n and why */\n// really\n-- truly\n{WANTED}"
    assert call("fmt", "--check", path).exit_code == 0


@pytest.mark.parametrize("comment", ["// first", "-- first", "/* first */"])
def test_a_file_with_comments_inside_the_query_is_left_alone(tmp_path: Path, comment: str) -> None:
    path = tmp_path / "a.neel"
    text = f"SEQ(A a, {comment}\n B b) WITHIN 10"
    path.write_text(text)
    result = call("fmt", "--write", path)
    assert result.exit_code == 1
    assert "comments" in result.stderr
    assert path.read_text() == text


def test_slashes_in_a_string_are_no_comment(tmp_path: Path) -> None:
    path = tmp_path / "a.neel"
    path.write_text('SEQ(A a, B b, a.x = "http://x", b.y = "/* */") WITHIN 10')
    assert call("fmt", "--write", path).exit_code == 0
    assert '"http://x"' in path.read_text()


def test_write_needs_files_and_excludes_check(tmp_path: Path) -> None:
    assert call("fmt", "--write", TEXT).exit_code == 2
    path = tmp_path / "a.neel"
    path.write_text(TEXT)
    assert call("fmt", "--write", "--check", path).exit_code == 2


def test_a_query_with_parameters_is_formatted_without_their_values() -> None:
    result = call("fmt", "seq(A a, B b, b.x > $floor) within $length")
    assert result.exit_code == 0
    assert result.stdout == "PATTERN SEQ(A a, B b, b.x > $floor)\nWITHIN $length\n"
