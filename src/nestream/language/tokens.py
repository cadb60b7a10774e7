"""Splits text into tokens: the limits of a query, characters without a meaning, and brackets.

Everything here is linear in the text and stops early, so that a megabyte of anything is rejected at once.
"""

from __future__ import annotations

import re
import unicodedata

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters
from lark.parsers.lalr_interactive_parser import InteractiveParser

from nestream.language.build_formula import DEEPEST, span_of, too_deep
from nestream.language.misread import read_as_meant
from nestream.language.soft_words import with_soft_words
from nestream.model.diagnostics import Diagnostic, QueryError, Reporting, Span

LONGEST_TEXT = 1_048_576
"""The maximum number of characters in a query."""

MOST_TOKENS = 100_000
"""The maximum number of words and signs in a query."""

STRANGE = "STRANGE"
"""The type of the token for characters without a meaning; no rule of the grammar accepts it."""

_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")
_STRANGE_RUN = re.compile(r"""[^\w\s"'`“‘()\[\]{},.:=<>!+\-*/%≠≤≥∧∨¬∃]+""")
_MOST_STRANGE = 10
_CLOSING = {"(": ")", "[": "]"}
_UNARY = frozenset({"!", "¬", "-"})
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_INSTEAD = {
    "&&": "AND",
    "&": "AND",
    "^": "AND",
    "⋀": "AND",
    "||": "OR",
    "|": "OR",
    "⋁": "OR",
    "~": "NOT",
    "×": "`*`",
    "·": "`*`",
    "÷": "`/`",
    "⩽": "`<=`",
    "⩾": "`>=`",
    **dict.fromkeys("‐‑‒–—―−", "`-`"),
    **dict.fromkeys("´«»„‚‹›", "a straight quote, `'` or `\"`,"),
}
_HINTS = {
    "#": "a comment begins with `//`",
    "$": "a parameter is a `$` and a name, such as `$floor`",
    "@": "write a parameter with a dollar sign, such as `$floor`, and pass its value with the query",
    "?": "a component cannot be optional: write an OR of both patterns; "
    "a parameter is a `$` and a name, such as `$floor`",
}
_QUOTE_IT = "quote a name with characters other than letters, digits, `_` and `-` with backticks"


class Tokens(Reporting):
    """The tokens of a query, with the problems in the tokens themselves.

    `unbalanced` is the index of the first bracket without a partner, or None. `ends_inside` says that the
    text ends in a string, a name in backticks or a comment, which hides what follows.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[Token] = []
        self.unbalanced: int | None = None
        self.ends_inside = False


def tokenize(parser: Lark, text: str) -> Tokens:
    """The tokens of a text; raises a QueryError if it exceeds a limit."""
    _check_text(text)
    result = Tokens()
    reading = parser.parse_interactive(text)
    while not result.ends_inside:
        try:
            _read(reading, text, result)
            break
        except UnexpectedCharacters as error:
            _report_strange(reading, text, error.pos_in_stream or 0, result)
    # The soft words come first: LIKE after a string is not a name, so the string is not one either.
    result.tokens, misread = read_as_meant(with_soft_words(result.tokens), text)
    result.diagnostics += misread
    if not result.ends_inside:
        _check_brackets(result)
    return result


def _check_text(text: str) -> None:
    if len(text) > LONGEST_TEXT:
        message = f"the query has {len(text):,} characters; the limit is {LONGEST_TEXT:,}"
        raise QueryError([Diagnostic("query-too-long", message, Span(0, 0))], "")
    strange = _NOT_TEXT.search(text)
    if strange is not None:
        # The text is not shown: what is not text cannot be printed.
        code = ord(strange.group())
        message = f"the query is not text: it contains the character U+{code:04X} at offset {strange.start()}"
        raise QueryError([Diagnostic("not-text", message, Span(strange.start(), strange.end()))], "")
    if not text.strip():
        raise QueryError(
            [
                Diagnostic(
                    "empty-query",
                    "the query is empty",
                    Span(0, 0),
                    hint="write a pattern and a window",
                    suggestion="PATTERN SEQ(A a, B b) WITHIN 10 minutes",
                )
            ],
            text,
        )


def _read(reading: InteractiveParser, text: str, result: Tokens) -> None:
    """Read on to the end of the text, or to a character that begins no token."""
    depth = sum((token in _CLOSING) - (token in {")", "]"}) for token in result.tokens)
    unary = 0
    for token in reading.lexer_thread.lex(reading.parser_state):  # type: ignore[no-untyped-call]
        if token in _CLOSING:
            depth += 1
        elif token in {")", "]"}:
            depth -= 1
        unary = unary + 1 if token in _UNARY or token.type == "NOT" else 0
        if depth > DEEPEST or unary > DEEPEST:
            raise QueryError([too_deep(span_of(token))], text)
        if len(result.tokens) == MOST_TOKENS:
            message = f"the query has more than {MOST_TOKENS:,} words and signs"
            raise QueryError([Diagnostic("query-too-large", message, span_of(token))], text)
        if token == "*" and result.tokens and result.tokens[-1] == "/":
            opening = result.tokens[-1]
            if opening.end_pos == token.start_pos:
                result.tokens.pop()
                _ends_inside(
                    result, text, span_of(opening).start, "comment", "/*", "write `*/` where the comment ends"
                )
                return
        result.tokens.append(token)


def _report_strange(reading: InteractiveParser, text: str, start: int, result: Tokens) -> None:
    character = text[start]
    if character in _QUOTES:
        close = _QUOTES[character]
        if _read_apostrophe(reading, text, start, result):
            return
        hint = f"close it with {close}; write {close * 2} for {close} inside"
        _ends_inside(result, text, start, "string", character, hint)
        return
    if character == "`":
        if text.startswith("``", start):
            hint = "write a name between the backticks"
            span = Span(start, start + 2)
            result.report("empty-name", "the name in backticks is empty", span, hint)
            _skip(reading, text, span, result)
            return
        _ends_inside(result, text, start, "name", "`", "close it with `; write `` for ` inside")
        return
    run = _STRANGE_RUN.match(text, start)
    span = Span(start, run.end() if run else start + 1)
    shown = text[span.start : span.end][:20]
    what = "character" if len(shown) == 1 else "characters"
    hint = _instead_of(shown, text[span.end :])
    result.report("unknown-character", f"unknown {what} `{shown}`", span, hint)
    _skip(reading, text, span, result)
    if len(result.diagnostics) == _MOST_STRANGE:
        result.ends_inside = True


def _read_apostrophe(reading: InteractiveParser, text: str, start: int, result: Tokens) -> bool:
    """Whether an unclosed quote ends a string with a quote inside, as in `'it's'`, which is read as one."""
    if len(result.tokens) < 2:
        return False
    string, rest = result.tokens[-2:]
    begin, quote = span_of(string).start, text[start]
    if string.type != "STRING" or string[0] != quote or span_of(string).end != span_of(rest).start:
        return False
    span = Span(begin, start + 1)
    inside = text[begin + 1 : start]
    whole = f"{quote}{inside.replace(quote, quote * 2)}{quote}"
    message, hint = "the string ends at the quote inside it", "double the quote"
    result.report("quote-in-string", message, span, hint, whole)
    del result.tokens[-2:]
    _skip(reading, text, Span(start, start + 1), result)
    result.tokens[-1] = Token("STRING", whole, begin, end_pos=start + 1)
    return True


def _instead_of(shown: str, rest: str) -> str:
    """What to write instead of characters without a meaning."""
    if shown in _INSTEAD:
        return f"write {_INSTEAD[shown]} instead"
    if shown == ";":
        return "separate the elements of a list with commas" if rest.strip() else "a query ends without `;`"
    plain = unicodedata.normalize("NFKC", shown)
    if plain != shown and plain.isascii():
        return f"it looks like `{plain}` but is another character: write `{plain}`"
    return _HINTS.get(shown, _QUOTE_IT)


def _skip(reading: InteractiveParser, text: str, span: Span, result: Tokens) -> None:
    """Replace the characters by one token, and read on after them."""
    skipped = text[span.start : span.end]
    result.tokens.append(Token(STRANGE, skipped, span.start, end_pos=span.end))
    state = reading.lexer_thread.state
    assert state is not None, "the text was given to the parser"
    state.line_ctr.feed(skipped)


def _ends_inside(result: Tokens, text: str, start: int, kind: str, sign: str, hint: str) -> None:
    result.report(f"unclosed-{kind}", f"this {kind} is never closed", Span(start, start + len(sign)), hint)
    result.tokens.append(Token(STRANGE, text[start:], start, end_pos=len(text)))
    result.ends_inside = True


def _check_brackets(result: Tokens) -> None:
    """Report every bracket without a partner."""
    opened: list[int] = []
    wrong: list[int] = []
    for index, token in enumerate(result.tokens):
        if token in _CLOSING:
            opened.append(index)
        elif token in {")", "]"}:
            if opened and _CLOSING[result.tokens[opened[-1]]] == token:
                opened.pop()
            elif any(_CLOSING[result.tokens[earlier]] == token for earlier in opened):
                while _CLOSING[result.tokens[opened[-1]]] != token:
                    wrong.append(opened.pop())
                opened.pop()
            else:
                wrong.append(index)
    wrong = sorted([*wrong, *opened])
    if wrong:
        result.unbalanced = wrong[0]
    for index in wrong[:5]:
        result.diagnostics.append(_unbalanced(result.tokens, index))


def _unbalanced(tokens: list[Token], index: int) -> Diagnostic:
    token = tokens[index]
    if token not in _CLOSING:
        opening = next(opening for opening, closing in _CLOSING.items() if closing == token)
        return Diagnostic(
            "unexpected-parenthesis",
            f"the `{token}` closes nothing",
            span_of(token),
            hint=f"remove it, or write the `{opening}` that it closes",
        )
    closing = _CLOSING[token]
    clause = next(
        (later for later in tokens[index:] if later.type in {"WHERE", "WITHIN", "RETURN", "LIMIT"}), None
    )
    place = f"before {clause.upper()}" if clause is not None else "where its list ends"
    before = tokens[index - 1] if index else None
    opener = (
        f"{before.upper()}(" if before is not None and before.type in {"SEQ", "AND", "OR", "ANY"} else token
    )
    return Diagnostic(
        "unclosed-parenthesis",
        f"the `{opener}` is never closed",
        span_of(token),
        hint=f"write `{closing}` {place}",
    )
