"""Finds words that the lexer misreads: names that begin with a digit, quoted names, and unquoted dates.

Each is reported, and then read as intended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from lark import Token

from nestream.language.build_formula import span_of
from nestream.model.diagnostics import Diagnostic, Span
from nestream.model.text import print_name
from nestream.model.time import UNITS

_NUMBERED_NAME = re.compile(r"[0-9]\w*(?:-\w+)*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?![\w.-])")
_NAMES = frozenset({"NAME", "QUOTED_NAME"})
_BEGIN_A_COMPONENT = frozenset({"LPAR", "COMMA", "BANG", "NOT", "PATTERN", "EVENT", "__START"})
_BEFORE_A_NAME = frozenset({"AS", "EXISTS"})
_START = Token("__START", "")


def read_as_meant(tokens: Sequence[Token], text: str) -> tuple[list[Token], list[Diagnostic]]:
    """The tokens with each such word as one token, and the reports."""
    found: list[Token] = []
    problems: list[Diagnostic] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        before = found[-1] if found else _START
        named = before == "." and len(found) > 1 and found[-2].type in _NAMES
        named = named or before.type in _BEFORE_A_NAME
        meant = None
        if token.type == "NUMBER":
            meant = _date(token, text) or _numbered_name(tokens, index, before, named, text)
        elif token.type == "STRING":
            meant = _quoted_name(tokens, index, before, named)
        if meant is None:
            found.append(token)
            index += 1
            continue
        replacement, problem = meant
        found += replacement
        problems.append(problem)
        end = span_of(replacement[-1]).end
        while index < len(tokens) and span_of(tokens[index]).start < end:
            index += 1
    return found, problems


def _date(token: Token, text: str) -> tuple[list[Token], Diagnostic] | None:
    """`2026-01-31`, which would be the number 1994."""
    start = span_of(token).start
    date = _DATE.match(text, start)
    if date is None:
        return None
    span = Span(start, date.end())
    problem = Diagnostic(
        "bad-timestamp",
        f"the date {date[0]} needs DATE and quotes",
        span,
        hint="without them it is a subtraction",
        suggestion=f"DATE '{date[0]}'",
    )
    return [_token("NAME", "DATE", start, start), _token("STRING", f"'{date[0]}'", start, span.end)], problem


def _numbered_name(
    tokens: Sequence[Token], index: int, before: Token, named: bool, text: str
) -> tuple[list[Token], Diagnostic] | None:
    """`3ds_challenge c`, `A 1a`, `a.2nd`: these only look like a number and a unit."""
    start = span_of(tokens[index]).start
    word = _NUMBERED_NAME.match(text, start)
    assert word is not None, "a number begins with a digit"
    last = index
    while last + 1 < len(tokens) and span_of(tokens[last + 1]).start < word.end():
        last += 1
    if span_of(tokens[last]).end != word.end():
        return None
    after = tokens[last + 1] if last + 1 < len(tokens) else _START
    if not named:
        if last == index or (before.type not in _BEGIN_A_COMPONENT and before.type not in _NAMES):
            return None
        beside_a_name = after.type in _NAMES or before.type in _NAMES or (after == "." and "-" not in word[0])
        if not beside_a_name and (after not in {",", ")", ":"} or _is_like_a_unit(tokens[index + 1])):
            return None
    problem = Diagnostic(
        "name-begins-with-digit",
        f"the name `{word[0]}` begins with a digit",
        Span(start, word.end()),
        hint="quote it with backticks",
        suggestion=print_name(word[0]),
    )
    return [_token("QUOTED_NAME", print_name(word[0]), start, word.end())], problem


def _is_like_a_unit(token: Token) -> bool:
    return token.type != "NAME" or bool(get_close_matches(token.lower(), UNITS, n=1))


def _quoted_name(
    tokens: Sequence[Token], index: int, before: Token, named: bool
) -> tuple[list[Token], Diagnostic] | None:
    """`"Break Room" b`, `'a'.x`: a string where only a name can be."""
    token = tokens[index]
    after = tokens[index + 1] if index + 1 < len(tokens) else _START
    begins = before.type in _BEGIN_A_COMPONENT and after.type in _NAMES
    if not (begins or after == "." or named) or not token[1:-1]:
        return None
    name = "`" + token[1:-1].replace("`", "``") + "`"
    span = span_of(token)
    problem = Diagnostic(
        "name-in-quotes",
        f"{token} is a string, but a name is needed here",
        span,
        hint="quote names with backticks",
        suggestion=print_name(token[1:-1]),
    )
    return [_token("QUOTED_NAME", name, span.start, span.end)], problem


def _token(kind: str, value: str, start: int, end: int) -> Token:
    return Token(kind, value, start, end_pos=end)
