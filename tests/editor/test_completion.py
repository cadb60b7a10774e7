"""Completion: what is offered at each place of a query, most of which do not parse yet."""

from __future__ import annotations

import re
from itertools import takewhile

import pyarrow as pa
import pytest

import nestream
from nestream.editor.catalog import schema_of
from nestream.editor.completion import Completion, complete
from nestream.editor.declared import declared, name_of
from nestream.editor.words import KEYWORDS
from nestream.language.expectation import tokens_of
from nestream.language.parser import grammar_parser, read_query
from nestream.model.functions import called_names
from nestream.model.text import RESERVED_WORDS
from tests.corpus.cases import read_all

EVENTS = pa.table(
    {
        "ts": [1, 2, 3],
        "type": ["Recycle", "Washing", "Break Room"],
        "id": [7, 7, None],
        "minutes": [None, 3, None],
        "ins-type": ["knife", None, None],
        "order": pa.array([{"id": 1, "to": {"city": "Ulm"}}, None, None]),
    }
)
SCHEMA = schema_of(EVENTS)


def offered(marked: str, schema: nestream.Schema | None = SCHEMA) -> list[Completion]:
    """What is offered at the mark `|`."""
    before, _, after = marked.partition("|")
    return complete(before + after, len(before), schema)


def labels(marked: str, schema: nestream.Schema | None = SCHEMA) -> list[str]:
    """The labels of what is offered."""
    return [each.label for each in offered(marked, schema)]


@pytest.mark.parametrize(
    ("marked", "wanted"),
    [
        ("|", ["Break Room", "Recycle", "Washing", "PATTERN", "SEQ", "EXISTS"]),
        ("SEQ(|", ["Recycle", "SEQ", "NOT", "ANY"]),
        ("SEQ(Recycle r, !|", ["Recycle", "Washing", "SEQ"]),
        ("SEQ(Recycle r, NEXT |", ["Recycle", "ANY"]),
        ("SEQ(Recycle r, |", ["Washing", "r", "NEXT", "DIRECTLY", "lower"]),
        ("SEQ(ANY(Recycle, |", ["Recycle", "Washing"]),
        ("SEQ(A a, B b) |", ["WHERE", "WITHIN", "RETURN", "KEEP", "LIMIT"]),
        ("SEQ(A a, B b) WITHIN |", ["UNBOUNDED"]),
        ("SEQ(A a, B b) WITHIN 5 |", ["EVENTS", "hours", "minutes", "RETURN"]),
        ("SEQ(A a, B b) WITHIN 1 |", ["hour", "minute", "s"]),
        ("SEQ(A a, B b) WHERE |", ["a", "b", "abs", "COUNT", "NOT", "TRUE"]),
        ("SEQ(A a, B b) WHERE a.x |", ["AND", "IN", "BETWEEN", "IS", "LIKE", "WITHIN"]),
        ("SEQ(A a, B b) WHERE a.x IS |", ["NULL", "NOT"]),
        ("SEQ(A a, B b) KEEP |", ["FIRST", "DISJOINT"]),
        ("SEQ(A a, B b) KEEP FIRST |", ["PER", "EVERY", "LIMIT"]),
        ("A a WHERE CASE |", ["WHEN"]),
        ("A a WHERE CASE WHEN a.x = 1 THEN a.y |", ["ELSE", "END", "WHEN"]),
        ("A+ a WHERE COUNT(|", ["DISTINCT", "a"]),
        ("SEQ(A a, B b) WITHIN 5 RETURN a.x AS x |", ["INTO", "LIMIT"]),
        ("EXISTS | : SEQ(A a, B b)", ["a", "b"]),
        ("SEQ(Recycle r, Washing w) WHERE [|", ["id"]),
    ],
)
def test_what_the_grammar_accepts_at_a_place_is_offered(marked: str, wanted: list[str]) -> None:
    assert set(wanted) <= set(labels(marked))


@pytest.mark.parametrize(
    ("marked", "wanted"),
    [
        ("SE|", ["SEQ"]),
        ("SEQ(Re|", ["Recycle", "replace"]),
        ("SEQ(A a, B b) wi|", ["WITHIN"]),
        ("SEQ(A a, B b) WITHIN 5 mi|", ["minutes"]),
        ("SEQ(Recycle r, Washing w, r.|)", ["ts", "type", "id", "ins-type", "order"]),
        ("SEQ(Recycle r, Washing w, w.|) WITHIN 5", ["ts", "type", "id", "minutes"]),
        ("SEQ(Recycle r, Washing w, w.mi|) WITHIN 5", ["minutes"]),
        ("Recycle r WHERE r.order.|", ["id", "to"]),
        ("Recycle r WHERE r.order.to.|", ["city"]),
        ("Recycle r WHERE r.id.|", []),
        ("SEQ(Recycle r, Washing w) s WHERE s.|", ["r", "w", "ts", "te"]),
        ("SEQ(Recycle r, Washing w) s WHERE s.w.mi|", ["minutes"]),
        ("A a WHERE a.x > $fl| AND a.y < $floor", ["$floor"]),
        ("SEQ(`Br|", ["Break Room"]),
    ],
)
def test_the_word_at_the_cursor_selects_what_is_offered(marked: str, wanted: list[str]) -> None:
    assert labels(marked) == wanted


@pytest.mark.parametrize(
    "marked",
    [
        "A a WHERE a.name = 'Re|",
        "A a WHERE a.name = 'Re|' AND a.x = 1",
        "A a // WI|",
        "A a /* WI| */ WITHIN 5",
        "A a -- WI|",
        "A a WITHIN 5 RETURN a.x AS |",
        "A a WITHIN 5|",
        "Recycle |",
    ],
)
def test_nothing_but_keywords_is_offered_in_strings_comments_numbers_and_for_new_names(marked: str) -> None:
    assert [each for each in offered(marked) if each.kind != "keyword"] == []


@pytest.mark.parametrize(
    ("marked", "wanted"),
    [
        ("SEQ(A a, ?? x, B b, |", ["Recycle", "a", "b"]),
        ("A a WHERE a.x = = |", ["a", "abs"]),
        ("A a WHERE a.x === 1 AND |", ["a"]),
        ("SELECT * FROM Recycle r WHERE r.|", ["id"]),
        ("SEQ(A a, B b WHERE a.x = |", ["a", "b"]),
        ("SEQ((((A a, |", ["Recycle"]),
        (
            "SEQ(Recycle r, | , !(Washing w, w.id = r.id), Operating o",
            ["Recycle", "Operating", "r", "w", "o"],
        ),
    ],
)
def test_a_mistake_elsewhere_does_not_take_completion_away(marked: str, wanted: list[str]) -> None:
    assert set(wanted) <= set(labels(marked))


def test_a_name_that_needs_backticks_is_inserted_with_them_and_replaces_the_whole_word() -> None:
    [found] = offered("SEQ(Bre|akfast b)")
    assert (found.insert, found.start, found.end) == ("`Break Room`", 4, 13)


def test_a_function_is_inserted_with_parentheses_and_the_cursor_between_them() -> None:
    [found] = offered("A a WHERE low|")
    assert (found.insert, found.insert[: found.cursor]) == ("lower()", "lower(")
    assert found.detail == "lower(text)"
    assert found.text == "in lower case"


def test_clauses_are_offered_in_their_order_and_once() -> None:
    assert set(labels("A a WITHIN 5 RETURN a |")) & {"WHERE", "WITHIN", "RETURN"} == set()
    assert {"KEEP", "LIMIT"} <= set(labels("A a WITHIN 5 RETURN a |"))


def test_without_a_schema_the_text_tells_types_and_attributes() -> None:
    text = "// types: Shelf(id, shelf) Counter(id)\nSEQ(Shelf s, !(Counter c, c.till = 1), Exit e) WHERE "
    assert labels(text + "s.|", None) == ["id", "shelf", "ts", "type"]
    assert labels(text + "c.|", None) == ["id", "till", "ts", "type"]
    assert labels("// types: Shelf(id)\nSEQ(Sh|", None) == ["Shelf"]


def test_functions_of_your_own_are_offered() -> None:
    nestream.function("doubled", lambda number: number, returns="integer")
    assert labels("A a WHERE doub|") == ["doubled"]


def test_every_function_of_the_registry_is_offered() -> None:
    assert set(called_names()) <= set(labels("A a WHERE |"))


def test_every_keyword_of_the_grammar_has_a_sentence() -> None:
    declared = re.findall(r"^%declare (.*)$", grammar_parser().source_grammar, re.MULTILINE)
    soft = {name for line in declared for name in line.split()} - {"UNREADABLE", "EXPRESSION_NAME", "REPEAT"}
    assert {name for name, word in KEYWORDS.items() if not word.soft} == set(RESERVED_WORDS)
    assert {word.accepted_as for word in KEYWORDS.values() if word.soft} - {"NAME"} == soft
    assert all(word.text.endswith(".") and name in word.example for name, word in KEYWORDS.items())


def test_the_examples_of_keywords_are_queries_or_parts_of_one() -> None:
    for word in KEYWORDS.values():
        clauses = "SEQ(A a, A+ f, O o, B b) "
        tried = [word.example, clauses + word.example, clauses + "WITHIN 5 " + word.example]
        tried += [f"{clauses}WHERE {word.example}", f"{clauses}WHERE a.x = {word.example}"]
        tried += [f"{clauses}WHERE {word.example} > 1", f"SEQ(A a, {word.example}, B b)"]
        assert any(_reads(text) for text in tried), word.example


def _reads(text: str) -> bool:
    return not read_query(text)[1]


def test_each_keyword_of_the_corpus_is_offered_after_its_first_letter() -> None:
    checked = 0
    for case in read_all()[::15]:
        for token in tokens_of(case.query) if not read_query(case.query)[1] else ():
            word = KEYWORDS.get(token.upper())
            if word is None or word.accepted_as != token.type:
                continue
            before = case.query[: (token.start_pos or 0) + 1]
            assert word.name in [each.label for each in complete(before, len(before))], before
            checked += 1
    assert checked > 100


def test_each_variable_of_the_corpus_is_declared_and_offered_in_conditions() -> None:
    checked = 0
    for case in read_all()[::10]:
        try:
            query = nestream.query(case.query)
        except nestream.QueryError:
            continue
        tokens = tokens_of(case.query)
        pattern = takewhile(lambda token: token.type != "RETURN", tokens)
        written = {name_of(token) for token in pattern}  # only the output has the names A_1, A_2 of A and A
        assert query.target_variables & written <= set(declared(tokens)), case.query
        checked += 1
    assert checked > 20
