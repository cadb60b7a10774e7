"""From text to the syntax tree: `parse` accepts any text and gives a query or a QueryError."""

from __future__ import annotations
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedInput
from nestream.language.ast import Dialect, Query
from nestream.language.build import QueryBuilder
from nestream.model.diagnostics import Diagnostic, QueryError, Span

_builder: ContextVar[QueryBuilder] = ContextVar("builder")


class _Callbacks:
    def __getattr__(self, rule: str) -> Any:
        if rule.startswith("_") or not hasattr(QueryBuilder, rule):
            raise AttributeError(rule)
        return lambda children: getattr(_builder.get(), rule)(children)


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        start="query",
        parser="lalr",
        lexer="basic",
        maybe_placeholders=False,
        keep_all_tokens=True,
        transformer=_Callbacks(),
    )


def parse(text: str, dialect: Dialect | str | None = None) -> Query:
    """The query that a text says."""
    builder = QueryBuilder(text)
    token = _builder.set(builder)
    try:
        query: Query = _parser().parse(text)
    except UnexpectedInput as error:
        raise QueryError(
            [Diagnostic("syntax", "x", Span(error.pos_in_stream or 0, (error.pos_in_stream or 0) + 1))], text
        )
    finally:
        _builder.reset(token)
    if builder.diagnostics:
        raise QueryError(builder.diagnostics, text)
    return query
