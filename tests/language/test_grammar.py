"""The grammar file agrees with what the printer knows of it, and is free of conflicts."""

from __future__ import annotations

import logging

import pytest
from lark import Lark, logger
from lark.lexer import PatternStr

from nestream.language.parser import grammar_parser, parse
from nestream.language.printer import print_query
from nestream.model.diagnostics import QueryError
from nestream.model.text import PLAIN_NAME, RESERVED_WORDS, is_reserved, print_name
from nestream.model.time import UNITS


def test_the_reserved_words_are_the_keywords_of_the_grammar() -> None:
    keywords = {
        terminal.name
        for terminal in grammar_parser().terminals
        if isinstance(terminal.pattern, PatternStr) and terminal.pattern.value.isalpha()
    }
    assert keywords == set(RESERVED_WORDS)


def test_a_plain_name_is_that_of_the_grammar() -> None:
    assert grammar_parser().get_terminal("NAME").pattern.value == PLAIN_NAME


@pytest.mark.parametrize("word", RESERVED_WORDS)
def test_a_reserved_word_is_a_name_only_in_backticks(word: str) -> None:
    for spelling in (word, word.lower(), word.title()):
        assert is_reserved(spelling)
        assert print_name(spelling) == f"`{spelling}`"
        query = parse(f"SEQ(`{spelling}` `{spelling}`, B b, `{spelling}`.`{spelling}` = 1)")
        assert parse(print_query(query)) == query
        with pytest.raises(QueryError):
            parse(f"SEQ(A {spelling}, B b)")
        with pytest.raises(QueryError):
            parse(f"SEQ(A a, a.{spelling} = 1)")


@pytest.mark.parametrize("word", [*UNITS, "events", "unbounded", "timestamp", "date", "abs", "coalesce"])
def test_units_and_functions_are_ordinary_names(word: str) -> None:
    assert print_name(word) == word
    query = parse(f"SEQ({word} x, A {word}, x.{word} = 1, {word}.x = 2) RETURN x.y AS {word}")
    assert parse(print_query(query)) == query


def test_the_grammar_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.propagate = True
    try:
        with caplog.at_level(logging.DEBUG):
            Lark(grammar_parser().source_grammar, start="query", parser="lalr", lexer="basic", debug=True)
    finally:
        logger.setLevel(level)
    assert "onflict" not in caplog.text
