"""The dialect is recognised from the text, and can be asked for."""

from __future__ import annotations

import pytest

from nestream.language.ast import Dialect
from nestream.language.parser import parse
from nestream.model.diagnostics import QueryError

RECOGNISED = [
    ("PATTERN SEQ(A a, B b, a.x = b.x)", Dialect.NEEL),
    ("SEQ(A a, !(B b, b.x = a.x))", Dialect.NEEL),
    ("SEQ(A a, B b, a.x + 1 = b.x)", Dialect.NEEL),
    ("SEQ(A a, B b) WHERE a.x = 1 AND [id]", Dialect.NEEL),
    ("SEQ((A a : a.x = 1), B b)", Dialect.NEEL_PLUS),
    ("SEQ(A a, (B b, b.x = a.x + 1))", Dialect.NEEL_PLUS),
    ("SEQ(A a, !(B b, b.x = 1 OR b.x = 2))", Dialect.NEEL_PLUS),
    ("EXISTS a : SEQ(A a, B b)", Dialect.NEEL_PLUS),
    ("EVENT SEQ(A a, B b)", Dialect.SASE),
    ("event SEQ((A a : a.x = 1), B b)", Dialect.SASE),
]


@pytest.mark.parametrize(("text", "dialect"), RECOGNISED)
def test_the_dialect_is_recognised(text: str, dialect: Dialect) -> None:
    query = parse(text)
    assert query.dialect is dialect
    assert query.sase is (dialect is Dialect.SASE)


@pytest.mark.parametrize(("text", "dialect"), RECOGNISED)
def test_the_recognised_dialect_may_be_asked_for(text: str, dialect: Dialect) -> None:
    assert parse(text, dialect).dialect is dialect
    assert parse(text, dialect.value.upper()) == parse(text)


def test_neel_may_be_read_as_neel_plus() -> None:
    assert parse("SEQ(A a, B b)", "neel+").dialect is Dialect.NEEL_PLUS


@pytest.mark.parametrize(
    ("text", "dialect", "message", "where"),
    [
        ("SEQ(A a, B b)", "sase", "the query is not in the SASE dialect", "S"),
        ("PATTERN A a", "sase", "the query is not in the SASE dialect", "P"),
        ("EVENT A a", "neel", "EVENT belongs to the SASE dialect, not to NEEL", "EVENT"),
        ("EVENT A a", "neel+", "EVENT belongs to the SASE dialect, not to NEEL+", "EVENT"),
        ("(A a : a.x = 1)", "neel", "`:` belongs to NEEL+, not to NEEL", ":"),
        ("EXISTS a : A a", "neel", "`EXISTS` belongs to NEEL+, not to NEEL", "EXISTS"),
        ("∃a : A a", "neel", "`∃` belongs to NEEL+, not to NEEL", "∃"),
    ],
)
def test_a_text_of_another_dialect_is_rejected(text: str, dialect: str, message: str, where: str) -> None:
    with pytest.raises(QueryError) as error:
        parse(text, dialect)
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("wrong-dialect", message)
    assert text[diagnostic.span.start : diagnostic.span.end] == where
    assert diagnostic.hint


def test_an_unknown_dialect_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(QueryError) as error:
        parse("A a", "sql")
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "unknown-dialect"
    assert diagnostic.hint == "the dialects are neel, neel+, sase"
