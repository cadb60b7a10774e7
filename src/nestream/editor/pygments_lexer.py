"""A Pygments lexer for queries, registered as `neel`: documentation, notebooks and terminals colour with it.

It asks the parser's own tokens, so a soft word such as NEXT or FIRST is a keyword only where it is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from lark import Token
from pygments.lexer import Lexer
from pygments.token import (
    Comment,
    Error,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
    _TokenType,
)

from nestream.editor.declared import NAMES
from nestream.editor.words import KEYWORDS, called
from nestream.language.build_formula import span_of
from nestream.language.comments import COMMENT
from nestream.language.expectation import tokens_of
from nestream.language.tokens import STRANGE
from nestream.model.time import UNITS

_BETWEEN = re.compile(rf"(?P<comment>{COMMENT})|(?P<space>[\s\ufeff]+)|(?P<other>.)", re.DOTALL)
_WORDS = {word.accepted_as: word for word in KEYWORDS.values() if word.terminal != "NAME"}
_CONSTANTS = frozenset(("NULL", "TRUE", "FALSE"))
_OPERATORS = frozenset(("AND", "OR", "NOT", "IN", "BETWEEN", "IS", "LIKE", "MATCHES"))
_PUNCTUATION = frozenset("()[]{},.:")


class NeelLexer(Lexer):  # type: ignore[misc]  # Pygments has no types
    """Queries of nestream."""

    name = "NEEL"
    aliases: ClassVar[list[str]] = ["neel", "nestream"]
    filenames: ClassVar[list[str]] = ["*.neel"]
    mimetypes: ClassVar[list[str]] = ["text/x-neel"]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, _TokenType, str]]:
        """The pieces of a text with their kinds; all of the text, whatever it is."""
        tokens = [token for token in tokens_of(text) if span_of(token).start < span_of(token).end]
        at = 0
        for index, token in enumerate(tokens):
            span = span_of(token)
            if span.start < at:
                continue
            yield from _between(text, at, span.start)
            kind = Error if token.type == STRANGE else _kind(tokens, index)
            yield span.start, kind, text[span.start : span.end]
            at = span.end
        yield from _between(text, at, len(text))

    @staticmethod
    def analyse_text(text: str) -> float:
        """How likely a text is a query."""
        return 0.3 if re.match(r"\s*(?:PATTERN|EVENT)\s+(?:SEQ|AND|OR|EXISTS)\b", text) else 0.0


def _between(text: str, start: int, end: int) -> Iterator[tuple[int, _TokenType, str]]:
    """White space and comments between tokens; anything else is an error."""
    kinds = {"comment": Comment, "space": Whitespace, "other": Error}
    for found in _BETWEEN.finditer(text, start, end):
        yield found.start(), kinds[found.lastgroup or "other"], found[0]


def _kind(tokens: list[Token], index: int) -> Any:
    """The kind of a token, which the tokens beside it may decide."""
    token = tokens[index]
    kind = token.type
    if kind in _WORDS:
        if kind in _CONSTANTS:
            return Keyword.Constant
        return Operator.Word if kind in _OPERATORS else Keyword
    if kind == "NUMBER":
        return Number.Integer if token.isdigit() else Number.Float
    if kind == "STRING":
        return String
    if kind == "PARAMETER":
        return Name.Variable.Global
    if kind in NAMES or kind == "EXPRESSION_NAME":
        return _name(tokens, index)
    return Punctuation if token in _PUNCTUATION else Operator


def _name(tokens: list[Token], index: int) -> Any:
    token = tokens[index]
    before = tokens[index - 1] if index else None
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if token.type == "NAME":
        if before is not None and before.type in {"NUMBER", "STRING"} and token.lower() in UNITS:
            return Keyword.Type
        word = KEYWORDS.get(token.upper())
        if word is not None and word.terminal == "NAME" and _is_word(before, after):
            return Keyword
        if after == "(" and before != "." and token.lower() in called():
            return Name.Function
    if before == ".":
        return Name.Attribute
    repeats = after is not None and (after.type == "REPEAT" or after == "{")
    if repeats or (after is not None and (after.type in NAMES)):
        return Name.Class
    return Name.Variable if before is not None and before.type in NAMES else Name


def _is_word(before: Token | None, after: Token | None) -> bool:
    """Whether UNBOUNDED, EVENTS, TIMESTAMP and the like stand where they mean something."""
    return (before is not None and before.type in {"WITHIN", "NUMBER"}) or (
        after is not None and after.type == "STRING"
    )
