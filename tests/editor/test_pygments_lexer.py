"""The Pygments lexer: every query of the corpus is coloured, with no error and nothing lost."""

from __future__ import annotations

import tomllib
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest
from pygments.token import Comment, Error, Keyword, Name, Operator, Token, Whitespace

from nestream.editor.pygments_lexer import NeelLexer
from nestream.editor.words import KEYWORDS
from nestream.language.expectation import tokens_of
from nestream.language.parser import read_query
from nestream.model.diagnostics import QueryError
from tests.corpus.cases import read_all

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(chain(ROOT.glob("examples/**/*.neel"), ROOT.glob("src/nestream/hospital/rules/*.neel")))


def pieces(text: str) -> list[tuple[object, str]]:
    """The pieces of a text without white space."""
    found = NeelLexer().get_tokens_unprocessed(text)
    return [(kind, piece) for _, kind, piece in found if kind is not Whitespace]


def is_read(text: str) -> bool:
    """Whether a query has no mistake in its words."""
    try:
        return not read_query(text)[1]
    except QueryError:
        return False


def test_no_query_of_the_corpus_and_no_example_has_an_error_token() -> None:
    texts = [case.query for case in read_all()[::3] if is_read(case.query)]
    assert len(texts) > 100
    for text in (*texts, *(path.read_text() for path in EXAMPLES)):
        found = list(NeelLexer().get_tokens_unprocessed(text))
        assert Error not in [kind for _, kind, _ in found], text
        assert "".join(piece for _, _, piece in found) == text


def test_the_keywords_of_the_corpus_are_those_of_the_parser() -> None:
    for case in read_all()[::5]:
        words = [token for token in tokens_of(case.query) if token.type in _TERMINALS]
        coloured = [piece for kind, piece in pieces(case.query) if _is_keyword(kind, piece)]
        assert coloured == words, case.query


_TERMINALS = {word.accepted_as for word in KEYWORDS.values() if word.terminal != "NAME"}


def _is_keyword(kind: object, piece: str) -> bool:
    if kind is Keyword and KEYWORDS[piece.upper()].terminal == "NAME":
        return False
    return kind in (Keyword, Keyword.Constant, Operator.Word)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SEQ(Next next, Login+ l)", [(Keyword, "SEQ"), (Name.Class, "Next"), (Name.Variable, "next")]),
        ("SEQ(A a, NEXT B b)", [(Keyword, "NEXT"), (Name.Class, "B"), (Name.Variable, "b")]),
        ("-- why\nA a", [(Comment, "-- why"), (Name.Class, "A")]),
        ("a.first = LOWER(b.x)", [(Name, "a"), (Name.Attribute, "first"), (Name.Function, "LOWER")]),
        ("WITHIN 5 minutes", [(Keyword, "WITHIN"), (Keyword.Type, "minutes")]),
        ("WITHIN UNBOUNDED", [(Keyword, "UNBOUNDED")]),
        ("a.x > $floor", [(Name.Variable.Global, "$floor")]),
        ("a.x ; 'never closed", [(Error, ";"), (Error, "'never closed")]),
    ],
)
def test_words_are_coloured_by_what_they_mean(text: str, wanted: list[tuple[object, str]]) -> None:
    found = pieces(text)
    assert [each for each in wanted if each not in found] == []


@pytest.mark.parametrize("text", ["", " \n", "\x00", "'", "`", "/* never closed", "🚑 -- x", "a" * 5])
def test_no_text_is_lost_whatever_it_is(text: str) -> None:
    assert "".join(piece for _, _, piece in NeelLexer().get_tokens_unprocessed(text)) == text


def test_the_entry_point_names_the_lexer() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, name = project["entry-points"]["pygments.lexers"]["neel"].split(":")
    assert getattr(import_module(module), name) is NeelLexer
    assert "neel" in NeelLexer.aliases
    assert list(NeelLexer().get_tokens("A a"))[-1] == (Token.Text.Whitespace, "\n")
