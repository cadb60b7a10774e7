"""The diagnostics of an editor are those of `nestream check`, and their fixes put the query right."""

from __future__ import annotations

import pytest

import nestream
from nestream.editor.diagnostics import diagnose, fixes
from nestream.editor.formatting import layout, loses_comments
from nestream.language.comments import COMMENT, QUOTED_NAME, STRING
from nestream.language.parser import grammar_parser
from tests.corpus.cases import read_all
from tests.editor.test_completion import SCHEMA


def test_the_diagnostics_are_those_of_check_for_every_query_of_the_corpus() -> None:
    rejected = 0
    for case in read_all()[::4]:
        try:
            expected = nestream.query(case.query).warnings
        except nestream.QueryError as error:
            expected = tuple(error.diagnostics)
            rejected += 1
        if not any(each.code == "missing-parameter" for each in expected):
            assert tuple(diagnose(case.query)) == tuple(expected), case.query
    assert rejected >= 10


def test_with_a_schema_attributes_and_their_types_are_checked() -> None:
    [found] = diagnose("SEQ(Recycle r, Washing w) WHERE r.idd = w.id WITHIN 5", SCHEMA)
    assert found.code == "unknown-attribute"
    [found] = diagnose("Recycle r WHERE r.id = 'a'", SCHEMA)
    assert found.code == "wrong-type"


def test_an_attribute_that_is_null_for_a_type_is_no_error() -> None:
    assert diagnose("Recycle r WHERE r.minutes = 3", SCHEMA) == ()


def test_a_type_that_no_event_has_is_a_warning_with_a_fix() -> None:
    text = "SEQ(Recycel r, Washing w) WITHIN 5"
    [found] = diagnose(text, SCHEMA)
    assert (found.code, found.severity, text[found.span.start : found.span.end]) == (
        "unseen-type",
        "warning",
        "Recycel",
    )
    assert _fixed(text, found, SCHEMA) == "SEQ(Recycle r, Washing w) WITHIN 5"


def test_a_parameter_needs_no_value_and_hides_no_other_mistake() -> None:
    assert diagnose("SEQ(A a, B b) WHERE a.name = $name AND b.x IN $list WITHIN $length LIMIT $n") == ()
    assert diagnose("Recycle r WHERE r.`ins-type` = $name", SCHEMA) == ()
    [found] = diagnose("SEQ(A a, B b) WHERE c.x = $floor WITHIN 5")
    assert found.code == "unknown-variable"


def test_an_empty_text_has_no_diagnostics() -> None:
    assert diagnose(" \n") == ()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SEQ(A a, B b) WITHIN 1 huor", "SEQ(A a, B b) WITHIN 1 hour"),
        ("SEQ(Login log, B b) WHERE lag.x = b.x WITHIN 5", "SEQ(Login log, B b) WHERE log.x = b.x WITHIN 5"),
        ("A a WHERE lowwer(a.x) = 'b'", "A a WHERE lower(a.x) = 'b'"),
        ("A a WHERE a.x === 1", "A a WHERE a.x = 1"),
        (
            "SEQ(A a, B b) WHERE a.t > 2026-01-31 WITHIN 5",
            "SEQ(A a, B b) WHERE a.t > DATE '2026-01-31' WITHIN 5",
        ),
        ("SEQ(3ds c, B b) WITHIN 5", "SEQ(`3ds` c, B b) WITHIN 5"),
        ("SEQ(A a, B b) WHEER a.x = 1 WITHIN 5", "SEQ(A a, B b) WHERE a.x = 1 WITHIN 5"),
    ],
)
def test_the_fix_of_a_misspelling_puts_it_right(text: str, wanted: str) -> None:
    found = [each for each in diagnose(text) if each.is_error]
    assert _fixed(text, found[0]) == wanted


@pytest.mark.parametrize(
    "text", ["SEQ(A in, B b, in.x = b.x, b.y > in.y) WITHIN 5", "SEQ(A in, B b) WHERE in.x > b.x WITHIN 5"]
)
def test_one_fix_quotes_a_reserved_word_wherever_it_is_a_name(text: str) -> None:
    [found] = diagnose(text)
    [fix] = fixes(text, found)
    assert fix.title == "Write `in`"
    quoted = _fixed(text, found)
    assert quoted == text.replace(" in", " `in`")
    assert not diagnose(quoted)


@pytest.mark.parametrize("condition", ["r.idd = w.id", "[idd]", "[idd = 7]"])
def test_the_fix_of_a_misspelt_attribute_comes_from_the_schema(condition: str) -> None:
    text = f"SEQ(Recycle r, Washing w) WHERE {condition} WITHIN 5"
    [found] = diagnose(text, SCHEMA)
    assert _fixed(text, found, SCHEMA) == text.replace("idd", "id")


def test_a_suggestion_that_would_leave_as_many_errors_is_not_offered() -> None:
    text = "SEQ(A a, !B b, C c, b.id = a.id) WITHIN 10"
    [found] = diagnose(text)
    assert found.suggestion == "!(B b, b.id = a.id)"
    assert fixes(text, found) == []


def _fixed(text: str, found: nestream.Diagnostic, schema: nestream.Schema | None = None) -> str | None:
    for fix in fixes(text, found, schema):
        return text[: fix.start] + fix.insert + text[fix.end :]
    return None


def test_comments_strings_and_quoted_names_are_those_of_the_grammar() -> None:
    for name, expression in (("COMMENT", COMMENT), ("STRING", STRING), ("QUOTED_NAME", QUOTED_NAME)):
        known = grammar_parser().get_terminal(name).pattern.value
        plain = [
            text.replace("\\/", "/").replace('\\"', '"').replace("\\n", "\n") for text in (known, expression)
        ]
        assert plain[0] == plain[1]


def test_the_layout_keeps_the_comments_before_the_query_and_says_which_it_would_lose() -> None:
    text = "-- first\n/* second */\nseq(A a,B b) within 5"
    assert layout(text) == "-- first\n/* second */\nPATTERN SEQ(A a, B b)\nWITHIN 5\n"
    assert not loses_comments(text)
    assert loses_comments("seq(A a, -- here\n B b) within 5")
    assert not loses_comments("A a WHERE a.x = '-- no comment'")
