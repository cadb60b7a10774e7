"""The format of the cases: what is read is what is written, and an update does no harm."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.corpus.cases import CaseError, read_all, read_file
from tests.corpus.notation import START, NotationError, read_history
from tests.corpus.test_corpus import outcome, rewrite

TEXT = """\
# About these cases.

== a sequence
letters: r=Recycle
query:
    PATTERN SEQ(Recycle r, B b)
    WITHIN 10
# Both of them.
events: r1 b2 b3
expect:
    r1 b2
    r1 b3
events: b1 r2
expect: none
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "some.case"
    path.write_text(TEXT)
    return path


def test_a_file_is_written_as_it_was_read(path: Path) -> None:
    read_file(path).write()
    assert path.read_text() == TEXT


@pytest.mark.parametrize("path", sorted({case.path for case in read_all()}), ids=lambda path: path.stem)
def test_every_file_of_the_corpus_is_in_the_layout_that_an_update_writes(path: Path) -> None:
    before = path.read_text(encoding="utf-8")
    file = read_file(path)
    file.path = path.with_suffix(".never")
    lines = list(file.preface)
    for case in file.cases:
        lines += ["", *case.written()] if lines else list(case.written())
    assert "\n".join(lines).strip("\n") + "\n" == before


def test_an_update_writes_what_the_query_gives(path: Path) -> None:
    path.write_text(TEXT.replace("    r1 b2\n", ""))
    (case,) = read_file(path).cases
    rewrite(case, outcome(case, "reference"))
    assert path.read_text() == TEXT


def test_an_update_never_turns_a_passing_case_into_an_error(path: Path) -> None:
    broken = TEXT.replace("B b)", "B b, a.id = 1)")
    path.write_text(broken)
    (case,) = read_file(path).cases
    with pytest.raises(pytest.fail.Exception, match="gives an error now"):
        rewrite(case, outcome(case, "reference"))
    assert path.read_text() == broken


def test_an_update_fills_in_the_error_of_a_case_without_expectation(path: Path) -> None:
    path.write_text("== rejected\nquery:\n    SEQ(!A a) WITHIN 5\n")
    (case,) = read_file(path).cases
    rewrite(case, outcome(case, "reference"))
    assert path.read_text().splitlines()[-1] == "error: no-positive-component: SEQ(!A a)"


def test_an_event_has_a_type_a_time_and_attributes() -> None:
    (row,) = read_history("Sanitize-Area@3(wID=7, who='J. Doe', hot=true, level=0.5, seen=null)", {}).rows
    assert row == {
        "ts": 3,
        "type": "Sanitize-Area",
        "_event": "Sanitize-Area@3",
        "wID": 7,
        "who": "J. Doe",
        "hot": True,
        "level": 0.5,
        "seen": None,
    }


def test_short_names_stand_for_types_and_times_may_have_units() -> None:
    rows = read_history("a1h30m r2s a2s a2s'", {"r": "Recycle"}).rows
    assert [row["type"] for row in rows] == ["A", "Recycle", "A", "A"]
    assert rows[0]["ts"] == START + timedelta(minutes=90)
    assert [row["_event"] for row in rows] == ["a1h30m", "r2s", "a2s", "a2s'"]


@pytest.mark.parametrize("text", ["a", "a1 ?", "a1 a1", "a1(id)", "1"])
def test_what_is_not_an_event_is_refused(text: str) -> None:
    with pytest.raises(NotationError):
        read_history(text, {})


def test_what_is_not_a_section_is_refused(path: Path) -> None:
    path.write_text("== x\nquery: A a\nresult: a1\n")
    with pytest.raises(CaseError, match="cannot read"):
        read_file(path)
