"""The limits of a query are told, and a megabyte of anything is answered soon."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from nestream.language.parser import parse
from nestream.language.printer import print_query
from nestream.model.diagnostics import QueryError

MEGABYTE = 1_048_576


def code_of(text: str) -> str:
    """The code of the first problem, or `ok`."""
    try:
        parse(text)
    except QueryError as error:
        return error.diagnostics[0].code
    return "ok"


def test_a_text_of_the_greatest_length_is_read() -> None:
    assert code_of("A a" + " " * (MEGABYTE - 3)) == "ok"


def test_a_longer_text_is_too_long() -> None:
    with pytest.raises(QueryError) as error:
        parse("A a" + " " * (MEGABYTE - 2))
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "query-too-long"
    assert diagnostic.message == "the query has 1,048,577 characters; the limit is 1,048,576"


DEEP: dict[str, Callable[[int], str]] = {
    "groups": lambda n: "(" * n + "A a" + ")" * n,
    "operators": lambda n: "SEQ(" * n + "A a" + ")" * n,
    "negations": lambda n: "!" * n + "A a",
    "words of negation": lambda n: "NOT " * n + "A a",
    "negated groups": lambda n: "!(" * (n // 2) + "A a" + ")" * (n // 2),
    "formulas": lambda n: "A a WHERE " + "(" * n + "x" + ")" * n,
    "inversions": lambda n: "A a WHERE " + "NOT " * n + "x",
    "minus signs": lambda n: "A a WHERE " + "-" * n + "x",
    "numbers with minus signs": lambda n: "A a WHERE x = " + "- " * n + "1",
    "sums": lambda n: "A a WHERE x" + " + 1" * n,
    "products": lambda n: "A a WHERE x" + " * 1" * n,
    "calls": lambda n: "A a WHERE " + "abs(" * n + "x" + ")" * n,
    "lists": lambda n: "A a WHERE " + "1 IN (" * n + "x" + ")" * n,
    "projections": lambda n: "EXISTS x : " * n + "A a",
    "sums of sums": lambda n: "A a WHERE " + "(1 + 1 + " * (n // 2) + "x" + ")" * (n // 2),
}


@pytest.mark.parametrize("kind", DEEP)
def test_a_hundred_levels_are_the_limit(kind: str) -> None:
    make = DEEP[kind]
    text = make(99)
    query = parse(text)
    assert parse(print_query(query)) == query
    assert code_of(make(102)) == "nested-too-deep"
    assert code_of(make(10_000)) == "nested-too-deep"


def test_infix_and_colon_count_as_the_levels_that_they_are_printed_with() -> None:
    for levels in range(20, 60):
        text = "(" * levels + "A a" + " OR B b : a.x = 1)" * levels
        code = code_of(text)
        assert code == "ok" or (code == "nested-too-deep" and levels > 30)
        if code == "ok":
            query = parse(text)
            assert parse(print_query(query)) == query


def test_a_flat_chain_of_words_may_be_long() -> None:
    assert code_of("A a WHERE " + " AND ".join(["x = 1"] * 5000)) == "ok"
    assert code_of("A a WHERE " + " OR ".join(["x = 1"] * 5000)) == "ok"
    assert code_of("A a WHERE " + " = ".join(["x"] * 5000)) == "ok"
    assert code_of(" OR ".join(["A"] * 5000)) == "ok"


def test_ten_thousand_components_and_predicates_are_the_limit() -> None:
    assert code_of("SEQ(" + "A," * 5000 + "a.x=1," * 4999 + ")") == "ok"
    with pytest.raises(QueryError) as error:
        parse("SEQ(" + "A," * 5000 + "a.x=1," * 5000 + ")")
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "too-many-parts"
    assert diagnostic.message == "the query has more than 10,000 components and predicates"


def test_a_hundred_thousand_words_and_signs_are_the_limit() -> None:
    assert code_of("A a WHERE x IN (" + "1," * 49_000 + "1)") == "ok"
    assert code_of("A a WHERE x IN (" + "1," * 51_000 + "1)") == "query-too-large"


@pytest.mark.parametrize("text", ["A\x00", "\x00", "A a WHERE x = '\x00'", "A \ud800", "'\udfff'"])
def test_what_is_not_text_is_rejected(text: str) -> None:
    with pytest.raises(QueryError) as error:
        parse(text)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "not-text"
    str(error.value).encode()


def test_an_object_that_is_no_text_is_rejected() -> None:
    with pytest.raises(QueryError, match="a query must be a string, not bytes"):
        parse(b"A a")  # type: ignore[arg-type]


_SIGNS = (
    "( ) [ ! A, a. SEQ( SEQ(A, () (,) ' '' \" “ ` `` `a /* */ // / # a; \x01 é 😀 1 1. 1e -1 a- <> = == :"
)
_PHRASES = "- |NOT |A |a.b |A a, |A OR |AND |# |1 |EXISTS x : |WITHIN 1 |PATTERN |x IN (1,|1 foo,|f(1),"
PIECES = [
    *_SIGNS.split(),
    *_PHRASES.split("|"),
    *("\n", " ", "A a B b, ", "[id] ∧ ", "\\", "1 +", "BETWEEN 1 AND ", "IS NOT ", "TIMESTAMP '' "),
]
STARTS = ["", "SEQ(", "A a WHERE ", "A a WHERE x IN (", "SEQ(A a, a.x = '", "A a RETURN ", "A a WITHIN "]


@pytest.mark.parametrize("piece", PIECES[::3])
def test_a_megabyte_is_answered_within_seconds_of_work(piece: str) -> None:
    text = ("SEQ(" + piece * (MEGABYTE // len(piece)))[:MEGABYTE]
    began = time.process_time()
    code_of(text)
    assert time.process_time() - began < 8


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("start", STARTS)
def test_a_megabyte_after_any_start_is_answered_within_seconds_of_work(start: str, piece: str) -> None:
    text = (start + piece * (MEGABYTE // len(piece)))[: MEGABYTE - 1] + ")"
    began = time.process_time()
    code_of(text)
    assert time.process_time() - began < 8


def test_very_many_problems_are_cut_and_counted() -> None:
    with pytest.raises(QueryError) as error:
        parse("A a WHERE x IN (" + "1 foo," * 1000 + "1)")
    assert len(error.value.diagnostics) == 51
    assert error.value.diagnostics[-1].message == "and 950 more problems"
