"""Parses text to a syntax tree: `parse` returns a query, or raises a QueryError with all its problems.

The grammar is `grammar.lark`; the builder makes the tree during parsing. If no rule accepts a token, the
mistake is explained, the part around it is repaired or dropped, and the text is parsed again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from nestream.language.ast import Dialect, Query
from nestream.language.build import QueryBuilder
from nestream.language.build_formula import Children
from nestream.language.diagnose import explain
from nestream.language.diagnose.recovery import leave_out, outside, repaired, without_problems
from nestream.language.diagnose.situation import END, Situation
from nestream.language.diagnose.words import RESERVED
from nestream.language.tokens import STRANGE, Tokens, tokenize
from nestream.model.diagnostics import Diagnostic, QueryError, Span, in_text_order
from nestream.model.wording import shortened

_MOST_REPAIRS = 20
_MOST_TOKENS_READ_AGAIN = 200_000
_MOST_DIAGNOSTICS = 50

_current_builder: ContextVar[QueryBuilder] = ContextVar("builder")


def parse(text: str, dialect: Dialect | str | None = None) -> Query:
    """Parse a query. The dialect is detected from the text; if you name one, text in another is rejected.

    Raises only QueryError, with every problem found.
    """
    query, problems = read_query(text, dialect)
    if query is None or problems:
        raise QueryError(problems, text)
    return query


def read_query(text: str, dialect: Dialect | str | None = None) -> tuple[Query | None, list[Diagnostic]]:
    """Parse a query and collect its problems; the query is None if they leave no tree to check.

    A tree that needed a repair is not returned: further problems might be about the repair. A tree with
    problems is returned without the formulas that have them, so that nothing is reported twice.
    """
    if not isinstance(text, str):
        message = f"a query must be a string, not {type(text).__name__}"
        raise QueryError([Diagnostic("not-text", message)])
    forced = _known_dialect(dialect)
    read = tokenize(grammar_parser(), text)
    query, builder, diagnostics = _read(text, read)
    if query is None or diagnostics:
        whole = len(diagnostics) == len(builder.diagnostics) and not _codes(diagnostics) & _TOO_MUCH
        checkable = None if query is None or not whole else without_problems(query, diagnostics)
        return checkable, list(_first(diagnostics))
    wrong = _wrong_dialect(query, builder, forced)
    if wrong is not None:
        return query, [wrong]
    return (query if forced is None else replace(query, dialect=forced)), []


_TOO_MUCH = frozenset(("nested-too-deep", "query-too-large", "query-too-long"))
"""Problems that make a tree not worth checking."""


def _codes(diagnostics: Sequence[Diagnostic]) -> frozenset[str]:
    return frozenset(diagnostic.code for diagnostic in diagnostics)


def _is_repeated(found: Diagnostic, before: list[Diagnostic]) -> bool:
    """Whether a reserved word was already reported: a variable of that name is used in several places."""
    return found.code == RESERVED and any(
        (each.code, each.message) == (RESERVED, found.message) for each in before
    )


def _read(text: str, read: Tokens) -> tuple[Query | None, QueryBuilder, list[Diagnostic]]:
    """The query, or None, with all problems: each syntax error is repaired, and parsing starts over."""
    diagnostics, tokens = list(read.diagnostics), read.tokens
    tokens_read = 0
    explained: list[Span] = []
    for _ in range(_MOST_REPAIRS):
        builder = QueryBuilder(text)
        built = _build(tokens, builder)
        if isinstance(built, Query):
            return built, builder, diagnostics + _independent(builder, explained)
        situation = Situation(text, tokens, *built)
        if _is_follow_up(situation, read):
            diagnostics += _independent(builder, explained)
            break
        explanation = None if situation.token.type in {STRANGE, "UNREADABLE"} else explain(situation)
        repair = (explanation and explanation.repair) or leave_out(situation)
        diagnostics += outside(builder.diagnostics, tokens, repair)
        if explanation is not None:
            if not _is_repeated(explanation.diagnostic, diagnostics):
                diagnostics.append(explanation.diagnostic)
            explained.append(explanation.diagnostic.span)
        tokens_read += len(tokens)
        if (explanation is not None and explanation.final) or tokens_read > _MOST_TOKENS_READ_AGAIN:
            break
        tokens = repaired(tokens, repair)
    return None, builder, diagnostics


def _independent(builder: QueryBuilder, explained: Sequence[Span]) -> list[Diagnostic]:
    """What the builder reports, except components after a predicate that has its own explanation."""
    return [
        each
        for each in builder.diagnostics
        if each not in builder.blamed
        or not any(
            span.start < builder.blamed[each].end and builder.blamed[each].start < span.end
            for span in explained
        )
    ]


def _build(tokens: Sequence[Token], builder: QueryBuilder) -> Query | tuple[int, frozenset[str]]:
    """The query; or the index of the rejected token, and the token types that would be accepted."""
    reading = grammar_parser().parse_interactive()
    with building(builder):
        stopped = feed(reading, tokens)
        if stopped is not None:
            return stopped, accepted_by(reading)
        try:
            query: Query = reading.feed_eof(tokens[-1] if tokens else None)  # type: ignore[no-untyped-call]
            return query
        except UnexpectedToken:
            return len(tokens), accepted_by(reading)


@contextmanager
def building(builder: QueryBuilder) -> Iterator[None]:
    """Let a builder make the tree of what is parsed inside."""
    context = _current_builder.set(builder)
    try:
        yield
    finally:
        _current_builder.reset(context)


def feed(reading: InteractiveParser, tokens: Sequence[Token]) -> int | None:
    """Feed the tokens to the parser; return the index of the first rejected one, or None."""
    for index, token in enumerate(tokens):
        try:
            reading.feed_token(token)
        except UnexpectedToken:
            return index
    return None


def accepted_by(reading: InteractiveParser) -> frozenset[str]:
    """The types of the tokens that a rule would take next."""
    return frozenset(reading.accepts())  # type: ignore[no-untyped-call]


def _is_follow_up(situation: Situation, read: Tokens) -> bool:
    """Whether the error may just follow from an unclosed bracket, string or comment."""
    if read.ends_inside:
        return situation.token.type == END or situation.token is read.tokens[-1]
    return read.unbalanced is not None and situation.index >= read.unbalanced


def _first(diagnostics: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
    """The problems in text order; of very many, only the first and the number of the others."""
    ordered = in_text_order(diagnostics)
    if len(ordered) <= _MOST_DIAGNOSTICS:
        return ordered
    more = len(ordered) - _MOST_DIAGNOSTICS
    kept = ordered[:_MOST_DIAGNOSTICS]
    return [*kept, Diagnostic("more-problems", f"and {more:,} more problems", kept[-1].span)]


# ---- the parser ----


class _Callbacks:
    """Passes what is parsed to the builder of the current query."""

    def __getattr__(self, rule: str) -> Callable[[Children], Any]:
        if rule.startswith("_") or not hasattr(QueryBuilder, rule):
            raise AttributeError(rule)
        return lambda children: getattr(_current_builder.get(), rule)(children)


@cache
def grammar_parser() -> Lark:
    """The parser that Lark makes of the grammar."""
    # The basic lexer, not the contextual one: a reserved word is reserved wherever it stands.
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        start="query",
        parser="lalr",
        lexer="basic",
        maybe_placeholders=False,
        keep_all_tokens=True,
        transformer=_Callbacks(),
        cache=_cache_file(),
    )


def _cache_file() -> str | bool:
    """Where Lark caches its parsing tables, which take longer to build than all the rest of a start.

    False without a private folder: tables that others may write are not loaded.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "nestream"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        own = not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
    except (OSError, RuntimeError):
        return False
    return str(folder / f"grammar-{sys.implementation.cache_tag}.tables") if own else False


# ---- dialects ----


def _known_dialect(dialect: Dialect | str | None) -> Dialect | None:
    if dialect is None:
        return None
    try:
        return Dialect(dialect.lower() if isinstance(dialect, str) else dialect)
    except ValueError:
        known = ", ".join(known.value for known in Dialect)
        message = f"unknown dialect `{shortened(str(dialect))}`"
        raise QueryError([Diagnostic("unknown-dialect", message, hint=f"the dialects are {known}")]) from None


def _wrong_dialect(query: Query, builder: QueryBuilder, forced: Dialect | None) -> Diagnostic | None:
    """What shows that the text is in another dialect than the chosen one."""
    if forced is None:
        return None
    if forced is Dialect.SASE and not query.sase:
        start = Span(query.span.start, query.span.start + 1)
        hint = "a query in the SASE dialect begins with EVENT"
        return Diagnostic("wrong-dialect", "the query is not in the SASE dialect", start, hint=hint)
    if forced is not Dialect.SASE and builder.event_keyword is not None:
        name = "NEEL" if forced is Dialect.NEEL else "NEEL+"
        message = f"EVENT belongs to the SASE dialect, not to {name}"
        return Diagnostic(
            "wrong-dialect", message, builder.event_keyword, hint="write PATTERN, or choose the dialect sase"
        )
    if forced is Dialect.NEEL and builder.neel_plus_sign is not None:
        sign = builder.neel_plus_sign
        hint = "write `(A a, p)` instead of `(A a : p)`, or choose the dialect neel+"
        if sign.end - sign.start > 1 or builder.text[sign.start] == "∃":
            hint = "leave EXISTS out and name the variables to keep in RETURN, or choose the dialect neel+"
        shown = builder.text[sign.start : sign.end]
        return Diagnostic("wrong-dialect", f"`{shown}` belongs to NEEL+, not to NEEL", sign, hint=hint)
    return None
