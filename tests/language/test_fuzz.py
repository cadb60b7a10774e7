"""Any text at all gives a query or a QueryError, whose places lie in the text."""

from __future__ import annotations

import re
from contextlib import suppress
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nestream
from nestream.language.parser import parse
from nestream.language.printer import print_query
from nestream.model.diagnostics import QueryError
from nestream.model.text import RESERVED_WORDS
from tests.corpus.cases import read_all
from tests.generators.language import random_query

generous = settings(max_examples=300, deadline=5000, suppress_health_check=list(HealthCheck))

_SIGNS = "( ) [ ] , . : ! ¬ = == != <> < <= > >= ≠ + - * / % ∧ ∨ ∃ ' \" ` “ /* */ // # ; { && -1 .5 1e400"
_WORDS = (
    "A a B b a.x b.x x-y a.x-b 1 2.5 hours EVENTS 's' TIMESTAMP abs( foo( SEQ( OR( !( PATERN WITHN UNBOUNDED"
)
SIGNS = [*_SIGNS.split(), "\n"]
WORDS = [*RESERVED_WORDS, *_WORDS.split(), "99999999999999999999", "10 minutes", "`q r`", '"t"']


def check(text: str) -> None:
    """Reads the text; what is wrong must be said well, and what is right must be printable."""
    with suppress(QueryError):  # the checks after the parser, too, give nothing else
        nestream.query(text)
    try:
        query = parse(text)
    except QueryError as error:
        rejected = error
    else:
        assert parse(print_query(query)) == query
        return
    assert rejected.diagnostics
    for diagnostic in rejected.diagnostics:
        assert re.fullmatch("[a-z]+(-[a-z]+)*", diagnostic.code)
        assert diagnostic.message
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
    assert str(rejected)
    assert rejected.as_dicts()


@generous
@given(st.text())
def test_random_text_is_answered(text: str) -> None:
    check(text)


@generous
@given(st.text(st.sampled_from("AaBb.x,()!:='\"`[]-+ 1\n#"), max_size=40))
def test_random_signs_are_answered(text: str) -> None:
    check(text)


@generous
@given(st.lists(st.sampled_from(SIGNS + WORDS), max_size=30).map(" ".join))
def test_a_soup_of_words_is_answered(text: str) -> None:
    check(text)


def test_a_misspelled_variable_anywhere_in_a_query_is_answered() -> None:
    for case in read_all():
        for mention in re.finditer(r"[A-Za-z_]\w*(?=\.)", case.query):
            before, after = case.query[: mention.start()], case.query[mention.end() :]
            with suppress(QueryError):
                nestream.query(f"{before}zz{after}", case.one("dialect"))


def soup(random: Random) -> str:
    pieces = random.choices(WORDS + SIGNS[:24], k=random.randint(1, 25))
    return random.choice(["", "PATTERN ", "SEQ(A a, "]) + random.choice([" ", "", ", "]).join(pieces)


def mutated(random: Random) -> str:
    text = print_query(random_query(random.randrange(10**6)))
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(text) + 1)
        until = min(len(text), at + random.randint(0, 6))
        match random.randrange(4):
            case 0:
                text = text[:at] + text[until:]
            case 1:
                text = text[:at] + random.choice(SIGNS + WORDS) + text[at:]
            case 2:
                text = text[:at] + text[until : until + 8] + text[at:]
            case _:
                text = (
                    text[:at]
                    + chr(random.choice([0x20, 0x28, 0x29, 0x2C, 0xE9, 0x1F600, 0xFF]))
                    + text[until:]
                )
    return text


@pytest.mark.parametrize("block", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_thousands_of_mutated_queries_are_answered(block: int) -> None:
    random = Random(block)
    for _ in range(500):
        check(mutated(random))
        check(soup(random))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_very_many_mutated_queries_are_answered(block: int) -> None:
    random = Random(1000 + block)
    for _ in range(10_000):
        check(mutated(random))
        check(soup(random))
