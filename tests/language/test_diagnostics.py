"""Every mistake is explained: its code, its words, its place in the text, and what to write instead."""

from __future__ import annotations

import pytest

import nestream
from nestream.language.parser import parse
from nestream.model.diagnostics import Diagnostic, QueryError
from tests.language.mistakes import cases, described, query_of


def problems_of(text: str) -> list[Diagnostic]:
    with pytest.raises(QueryError) as error:
        parse(text)
    return list(error.value.diagnostics)


@pytest.mark.parametrize("case", cases("mistakes.txt"), ids=query_of)
def test_a_mistake_is_explained(case: str) -> None:
    assert described(query_of(case), "mistakes.txt") == case


@pytest.mark.parametrize("case", cases("habits.txt"), ids=query_of)
def test_a_habit_from_elsewhere_is_explained_once_by_all_that_check_a_query(case: str) -> None:
    assert described(query_of(case), "habits.txt") == case


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("lowr(a.x) = 'a'", "unknown-function"),
        ("now() > a.ts", "unknown-function"),
        ("abs(a.x, 1) = 1", "wrong-argument-count"),
        ("coalesce() = 1", "wrong-argument-count"),
        ("a.x > 5 minuts", "unknown-unit"),
        ("id = 3", "attribute-without-variable"),
        ("[id]", "equivalence-outside-where"),
        ("1 < a.x < 3", "chained-comparison"),
    ],
)
def test_what_the_parser_rejects_in_a_condition_is_not_checked_again(condition: str, code: str) -> None:
    rest = "b.y = 'x' + 1"
    with pytest.raises(QueryError) as problem:
        nestream.query(f"SEQ(A a, B b, {condition}, {rest}) WITHIN 9")
    assert [diagnostic.code for diagnostic in problem.value.diagnostics] == [code, "wrong-type"]


def test_one_problem_does_not_hide_those_of_other_clauses() -> None:
    with pytest.raises(QueryError) as problem:
        nestream.query("SEQ(A a, B b) WHERE lowr(a.x) = 'a' AND a.y = x.y WITHIN 5 minuts RETURN c")
    codes = [diagnostic.code for diagnostic in problem.value.diagnostics]
    assert codes == ["unknown-function", "unknown-variable", "unknown-unit", "cannot-return"]


@pytest.mark.parametrize("text", ["", " \n "])
def test_an_empty_text_is_told_what_a_query_is(text: str) -> None:
    (diagnostic,) = problems_of(text)
    assert (diagnostic.code, diagnostic.message) == ("empty-query", "the query is empty")
    assert diagnostic.suggestion is not None
    assert parse(diagnostic.suggestion)


def test_all_mistakes_of_a_query_are_reported_at_once() -> None:
    text = (
        "PATERN SEQ(A a B b, !(Event e, e.x = 5 minuts), SEQ(), a.x-abs(b.y) > 3, foo(a.x) < 3 < 4, "
        "a.x = , C c, a.limit =< 3) WITHN 0 hours RETURN a b LIMIT x"
    )
    assert [diagnostic.code for diagnostic in problems_of(text)] == [
        "misspelt-keyword",
        "missing-comma",
        "reserved-word",
        "unknown-unit",
        "no-component",
        "hyphen-in-name",
        "unknown-function",
        "chained-comparison",
        "unexpected-token",
        "component-after-predicate",
        "reserved-word",
        "unknown-sign",
        "misspelt-keyword",
        "empty-window",
        "missing-comma",
        "bad-limit",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, a.x = = 3, B b)",
        "SEQ(A a, (B b, b.x = ) , C c)",
        "SEQ(A a, a.x # 3, B b)",
        "A a WHERE x = = 3 WITHIN 1 hour RETURN a",
        "A a WITHIN hours 1 RETURN a",
        "A a A a A a WITHIN 1 hour",
        "SEQ(A a, OR(B b, C c D d E e), !(F f))",
        "SEQ(A a, AND(a.x = 'q', B b), C c, a.x = c.x)",
        "SEQ(A a, B b) WITHIN 1 hour hours RETURN a, b",
        "SEQ(A a, a.x = 10 B, b.x = 2)",
    ],
)
def test_one_mistake_is_one_problem(text: str) -> None:
    found = problems_of(text)
    assert len({diagnostic.span for diagnostic in found}) <= 2
    assert len(found) <= 2


def test_a_rendered_problem_underlines_its_place() -> None:
    with pytest.raises(QueryError) as error:
        parse("PATTERN SEQ(A a, B b,\n  a.x = NULL)\nWITHIN 1 hour")
    assert str(error.value) == (
        "error: a comparison with NULL never holds: test with IS NULL\n"
        "  at line 2, column 3\n"
        "  2 |   a.x = NULL)\n"
        "    |   ^^^^^^^^^^\n"
        "  write: a.x IS NULL"
    )
