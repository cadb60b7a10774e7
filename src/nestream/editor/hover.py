"""Hover: what the word at a place of a query is, as a few lines of Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lark import Token

from nestream.editor.catalog import Catalog
from nestream.editor.declared import NAMES, Variable, declared, name_of
from nestream.editor.words import KEYWORDS, called
from nestream.language.build_formula import span_of
from nestream.language.expectation import tokens_of
from nestream.model.diagnostics import Span
from nestream.model.schema import Schema
from nestream.model.text import in_backticks, print_name
from nestream.model.time import UNITS, Duration


@dataclass(frozen=True)
class Hover:
    """A text in Markdown on the piece `span` of the query."""

    text: str
    span: Span


def hover(text: str, offset: int, schema: Schema | None = None) -> Hover | None:
    """What the word at an offset is: keyword, function, variable, attribute, type, unit or parameter.

    None where there is nothing to say. The text need not parse.

    >>> from nestream.editor.hover import hover
    >>> print(hover("SEQ(Recycle r, Operating o) WHERE r.id = o.id WITHIN 1 hour", 34).text)
    `r`: an event of type Recycle
    """
    tokens = tokens_of(text)
    for index, token in enumerate(tokens):
        span = span_of(token)
        if span.start <= offset < span.end or (offset == span.end and _is_word(token)):
            after = tokens[index + 1] if index + 1 < len(tokens) else None
            if (
                offset == span.end
                and after is not None
                and span_of(after).start == offset
                and _is_word(after)
            ):
                continue
            catalog = Catalog.of(text, tokens, declared(tokens), schema)
            said = _said(tokens, index, catalog)
            return Hover(said, span) if said else None
    return None


def _is_word(token: Token) -> bool:
    return token.type in NAMES or token.type == "PARAMETER" or token.isalpha()


def _said(tokens: Sequence[Token], index: int, catalog: Catalog) -> str | None:
    token = tokens[index]
    before = tokens[index - 1] if index else None
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    word = KEYWORDS.get(token.upper())
    if token.type == "PARAMETER":
        return f"`{token}`: a parameter. Pass its value with the query."
    if word is not None and word.accepted_as == token.type and word.terminal != "NAME":
        return _example(f"**{word.name}**: {word.text}", word.example)
    if token.type not in NAMES and token.type != "EXPRESSION_NAME":
        return None
    name = name_of(token)
    if before == ".":
        return _attribute(tokens, index, catalog)
    if before is not None and before.type == "NUMBER" and name.lower() in UNITS:
        return f"**{name}**: a unit of time, {Duration(UNITS[name.lower()])}"
    call = called().get(name.lower()) if after == "(" else None
    if call is not None:
        text = f"`{call.signature}`: {call.text}" if call.text else f"`{call.signature}`"
        return _example(text, call.example)
    if name in catalog.variables and (after == "." or not _is_type(token, after, catalog)):
        return _variable(catalog.variables[name], catalog)
    if name in catalog.event_types():
        return _type(name, catalog)
    if word is not None and word.terminal == "NAME":
        return _example(f"**{word.name}**: {word.text}", word.example)
    return None


def _is_type(token: Token, after: Token | None, catalog: Catalog) -> bool:
    """Whether a name that is a variable too is written as a type: before its variable, or with none."""
    own = catalog.variables[name_of(token)]
    return own.span != span_of(token) and after is not None and after.type in NAMES


def _variable(variable: Variable, catalog: Catalog) -> str:
    text = f"{in_backticks(print_name(variable.name))}: {variable.described}"
    if variable.negated:
        text += ", negated: no such event may occur"
    return text + _attributes(catalog.attributes([variable.name]) if catalog.schema else {})


def _type(name: str, catalog: Catalog) -> str:
    known = catalog.schema is None or name in catalog.schema.types
    text = f"{in_backticks(print_name(name))}: an event type" + ("" if known else " that no event has")
    return text + _attributes(catalog.of_type(name) if known and catalog.schema else {})


def _attribute(tokens: Sequence[Token], index: int, catalog: Catalog) -> str | None:
    path = [name_of(tokens[index])]
    while index > 1 and tokens[index - 1] == "." and tokens[index - 2].type in NAMES:
        index -= 2
        path.insert(0, name_of(tokens[index]))
    inside = catalog.variables.get(path[0])
    if len(path) == 2 and inside is not None and path[1] in inside.members:
        return _variable(catalog.variables[path[1]], catalog)
    kind = catalog.kind(path)
    shown = ".".join(map(print_name, path))
    if kind is None:
        return None if catalog.schema is None else f"`{shown}`: no such attribute"
    return f"`{shown}`: {'an attribute' if kind == 'unknown' else kind}"


def _attributes(found: dict[str, str]) -> str:
    if not found:
        return ""
    lines = [f"- {in_backticks(print_name(name))}: {kind}" for name, kind in found.items()]
    return "\n\n" + "\n".join(lines)


def _example(text: str, example: str) -> str:
    return f"{text}\n\n```neel\n{example}\n```" if example else text
