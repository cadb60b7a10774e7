"""The TextMate grammar knows the words of the language, and colours the corpus as the parser reads it."""

from __future__ import annotations

import json
import re

import pytest

from nestream.editor.words import KEYWORDS, called
from nestream.language.expectation import tokens_of
from nestream.language.parser import read_query
from nestream.model.diagnostics import QueryError
from nestream.model.text import RESERVED_WORDS
from tests.corpus.cases import read_all
from tests.editor.textmate import FILE, SCOPES, SOFT, grammar, scopes, words_of, written

_KEYWORD = (
    "keyword.control",
    "keyword.operator.pattern",
    "keyword.operator.word",
    "constant.language.neel",
    "storage",
)
_TERMINALS = {word.accepted_as for word in KEYWORDS.values() if word.terminal != "NAME"}


def test_the_file_is_the_grammar_that_the_words_of_the_language_make() -> None:
    assert FILE.read_text(encoding="utf-8") == written(), "run python -m tests.editor.textmate"


def test_every_keyword_and_every_function_has_a_rule() -> None:
    assert {word for words in SCOPES.values() for word in words} == set(RESERVED_WORDS)
    soft = {word for rules in SOFT.values() for _, words in rules for word in words}
    assert soft == {name for name, word in KEYWORDS.items() if word.soft}
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    assert words_of(kept) == set(KEYWORDS)
    functions = [rule["match"] for rule in kept["patterns"] if "support.function" in rule.get("name", "")]
    assert {name for text in functions for name in re.findall(r"\w+", text)} >= set(called())


def test_the_corpus_is_coloured_as_the_parser_reads_it() -> None:
    made = grammar()
    texts = [case.query for case in read_all()[::3]]
    checked = 0
    for text in texts:
        try:
            if read_query(text)[1]:
                continue
        except QueryError:
            continue
        found = scopes(made, text)
        for token in tokens_of(text):
            start, end = token.start_pos or 0, token.end_pos or 0
            scope = found.get(start, "")
            assert {found.get(place, "") for place in range(start, end)} == {scope}, (text, token)
            assert scope.startswith(_KEYWORD) == (token.type in _TERMINALS), (text, token, scope)
            assert scope.startswith("string") == (token.type == "STRING"), (text, token, scope)
            if token.type == "NUMBER":
                assert scope in {"constant.numeric.neel", "keyword.operator.quantity.neel"}, (text, token)
            checked += 1
    assert checked > 1500


@pytest.mark.parametrize(
    ("text", "place", "scope"),
    [
        ("/* SEQ\nSEQ */ SEQ(A a)", 7, "comment.block.neel"),
        ("/* SEQ\nSEQ */ SEQ(A a)", 14, "keyword.operator.pattern.neel"),
        ("a.x = 'it''s AND' AND", 14, "string.quoted.single.neel"),
        ("a.x = 'it''s AND' AND", 18, "keyword.operator.pattern.neel"),
        ("SEQ(Recycle r, B b)", 4, "entity.name.type.neel"),
        ("SEQ(Recycle r, B b)", 12, "variable.other.declaration.neel"),
        ("lower(a.x)", 0, "support.function.neel"),
        ("lower(a.x)", 8, "variable.other.property.neel"),
        ("WITHIN 5 minutes", 9, "keyword.other.unit.neel"),
        ("a--b", 1, "keyword.operator.arithmetic.neel"),
    ],
)
def test_comments_strings_and_names_have_their_scopes(text: str, place: int, scope: str) -> None:
    assert scopes(grammar(), text).get(place, "") == scope
