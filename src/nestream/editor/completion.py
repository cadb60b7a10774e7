"""Completion: what could be written at a place of a query, which need not parse yet.

The grammar says which words may follow; the schema and the text say which types, variables and attributes
there are.

>>> from nestream.editor.completion import complete
>>> text = "SEQ(Recycle r, Operating o) WHERE r.id = o.id WI"
>>> [each.label for each in complete(text, len(text))]
['WITHIN']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lark import Token

from nestream.editor.catalog import Catalog
from nestream.editor.declared import NAMES, declared, name_of
from nestream.editor.words import KEYWORDS, UNITS, called
from nestream.language.build import CLAUSES
from nestream.language.build_formula import span_of
from nestream.language.expectation import Reading, readings, tokens_of
from nestream.language.tokens import STRANGE
from nestream.model.diagnostics import Span
from nestream.model.schema import Schema
from nestream.model.text import PLAIN_NAME, print_name
from nestream.model.time import counted


class Kind(StrEnum):
    """What a completion is."""

    KEYWORD = "keyword"
    TYPE = "type"
    VARIABLE = "variable"
    ATTRIBUTE = "attribute"
    FUNCTION = "function"
    UNIT = "unit"
    PARAMETER = "parameter"


@dataclass(frozen=True)
class Completion:
    """One proposal: write `insert` in place of the characters `[start, end)`.

    `cursor` is where the cursor belongs afterwards, counted from the start of `insert`: between the
    parentheses of a function, at the end of anything else. `detail` is a few words, `text` a sentence.
    """

    label: str
    kind: Kind
    insert: str
    start: int
    end: int
    cursor: int
    detail: str = ""
    text: str = ""


@dataclass(frozen=True)
class _Proposal:
    """A completion without its place."""

    label: str
    kind: Kind
    insert: str
    detail: str = ""
    text: str = ""


_WORD = re.compile(r"`(?:[^`]|``)*`?|\$\w*|\w+(?:-\w+)*-?")
_HIDDEN = re.compile(
    r"/\*.*?(?:\*/|\Z)|//[^\n]*|--(?=\s|\Z)[^\n]*"
    r"|'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z)|“[^”]*(?:”|\Z)|‘[^’]*(?:’|\Z)|`[^`]*(?:`|\Z)",
    re.DOTALL,
)
_COMMENTS_AND_STRINGS = ("/", "-", "'", '"', "“", "‘")
_SAFE_ELEMENT = frozenset(("LPAR", "COMMA", "BANG", "NOT"))
_NEW_NAME = frozenset(("AS", "INTO"))


def complete(text: str, offset: int, schema: Schema | None = None) -> list[Completion]:
    """What could be written at an offset of a text, the likeliest first.

    Of the word at the offset only the part before it counts, and the whole word is replaced. `schema` knows
    the types and attributes of the events; without one the text itself is searched for them.
    """
    offset = max(0, min(offset, len(text)))
    if _is_hidden(text, offset):
        return []
    span = _word_at(text, offset)
    before, typed = text[: span.start], text[span.start : offset]
    if typed[:1].isdigit():
        return []
    tokens = _tokens_around(before, text[span.end :])
    catalog = Catalog.of(text, tokens, declared(tokens), schema)
    proposals = _proposals(text, before, typed, catalog)
    return [
        Completion(
            label=each.label,
            kind=each.kind,
            insert=each.insert,
            start=span.start,
            end=span.end,
            cursor=len(each.insert) - each.insert.endswith("()"),
            detail=each.detail,
            text=each.text,
        )
        for each in _distinct(proposals)
        if each.label.lower().startswith(typed.lower().strip("`"))
    ]


def _tokens_around(before: str, after: str) -> list[Token]:
    """The tokens of the text without the word at the offset, and without a soft word that waits for it."""
    tokens = [each for each in tokens_of(f"{before} {after}") if each.type != STRANGE]
    last = sum(span_of(each).start < len(before) for each in tokens) - 1
    if last >= 0 and tokens[last].type == "NAME" and tokens[last].upper() in KEYWORDS:
        del tokens[last]
    return tokens


def _distinct(proposals: Iterable[_Proposal]) -> Iterator[_Proposal]:
    seen: set[str] = set()
    for proposal in proposals:
        if proposal.insert not in seen:
            seen.add(proposal.insert)
            yield proposal


def _is_hidden(text: str, offset: int) -> bool:
    """Whether the offset lies in a comment or a string."""
    for found in _HIDDEN.finditer(text):
        if found.start() >= offset:
            return False
        closed = found[0][-1:] in "/'\"”’" and len(found[0]) > 1 and not found[0].startswith(("//", "--"))
        inside = offset < found.end() or (offset == found.end() and not closed)
        if inside and found[0].startswith(_COMMENTS_AND_STRINGS):
            return True
    return False


def _word_at(text: str, offset: int) -> Span:
    """The word that the offset touches; nothing at the offset where there is none."""
    for found in _WORD.finditer(text):
        if found.start() < offset <= found.end():
            whole = found[0].startswith("`") and not found[0].endswith("`", 1)
            return Span(found.start(), offset if whole else found.end())
        if found.start() >= offset:
            break
    return Span(offset, offset)


def _proposals(text: str, before: str, typed: str, catalog: Catalog) -> Iterator[_Proposal]:
    if typed.startswith("$"):
        names = dict.fromkeys(re.findall(rf"\$({PLAIN_NAME})", text))
        yield from (
            _Proposal(f"${name}", Kind.PARAMETER, f"${name}") for name in names if f"${name}" != typed
        )
        return
    found = readings(before)
    for reading in sorted(found, key=_ends_in_a_name):  # a soft word that is read as one comes first
        yield from _of_reading(reading, catalog)


def _ends_in_a_name(reading: Reading) -> bool:
    return bool(reading.tokens) and reading.tokens[-1].type in {*NAMES, "EXPRESSION_NAME"}


def _of_reading(reading: Reading, catalog: Catalog) -> Iterator[_Proposal]:
    tokens, accepted = reading.tokens, reading.accepted
    last = tokens[-1] if tokens else None
    kind = last.type if last is not None else ""
    if kind == "DOT" and "SEQ" not in accepted:
        path = _path(tokens)
        if path:
            yield from _names(catalog.attributes(path), Kind.ATTRIBUTE)
        return
    if kind in _NEW_NAME:
        return
    if not accepted:
        yield from _roughly(tokens, catalog)
        return
    if kind == "NUMBER":
        if "NAME" in accepted:
            yield from _units(tokens)
    elif kind == "WITHIN":
        yield _keyword("UNBOUNDED")
    elif "NAME" in accepted:
        yield from _at_a_name(tokens, accepted, catalog)
    yield from _keywords(tokens, accepted)


def _at_a_name(tokens: Sequence[Token], accepted: frozenset[str], catalog: Catalog) -> Iterator[_Proposal]:
    """Types, variables, functions or attributes: whatever a name can be here."""
    if "SEQ" in accepted:
        yield from _types(catalog)
    if "NUMBER" in accepted:
        yield from _variables(catalog)
        yield from _calls()
    if "SEQ" in accepted or "NUMBER" in accepted:
        return
    last = tokens[-1].type
    opener = _opener(tokens)
    if last in {"NEXT", "DIRECTLY"}:
        yield from _types(catalog)
    elif opener == "[" and last in {"LSQB", "COMMA"}:
        yield from _names(catalog.shared(), Kind.ATTRIBUTE)
    elif last == "EXISTS" or (last == "COMMA" and opener != "ANY("):
        yield from _variables(catalog)
    elif opener == "ANY(" and last in {"LPAR", "COMMA"}:
        yield from _types(catalog)


def _roughly(tokens: Sequence[Token], catalog: Catalog) -> Iterator[_Proposal]:
    """Where the grammar cannot say what comes, after a mistake: what the last word suggests."""
    last = tokens[-1].type if tokens else ""
    in_pattern = _clauses_left(tokens) == list(CLAUSES)
    if last in _SAFE_ELEMENT and in_pattern:
        yield from _types(catalog)
    if last not in NAMES and last not in {"NUMBER", "STRING", "RPAR", "RSQB"}:
        yield from _variables(catalog)
        yield from _calls()
    else:
        yield from map(_keyword, (*_clauses_left(tokens), "AND", "OR"))


def _path(tokens: Sequence[Token]) -> list[str]:
    """The names before the dot at the end: `a.order.` has two."""
    path: list[str] = []
    for dot, name in zip(tokens[::-1][::2], tokens[::-1][1::2], strict=False):
        if dot != "." or name.type not in NAMES:
            break
        path.insert(0, name_of(name))
    return path


def _opener(tokens: Sequence[Token]) -> str:
    """The bracket that is open at the end, `ANY(` for that of ANY."""
    depth = 0
    for place in range(len(tokens) - 1, -1, -1):
        if tokens[place] in {")", "]"}:
            depth += 1
        elif tokens[place] in {"(", "["}:
            if not depth:
                return "ANY(" if place and tokens[place - 1].type == "ANY" else str(tokens[place])
            depth -= 1
    return ""


def _clauses_left(tokens: Sequence[Token]) -> list[str]:
    """The clauses that may follow those that were written."""
    written, depth = -1, 0
    for token in tokens:
        depth += (token in {"(", "["}) - (token in {")", "]"})
        if not depth and token.type in CLAUSES:  # inside, a WITHIN belongs to an expression
            written = max(written, CLAUSES.index(token.type))
    return list(CLAUSES[written + 1 :])


def _keywords(tokens: Sequence[Token], accepted: frozenset[str]) -> Iterator[_Proposal]:
    clauses = _clauses_left(tokens)
    counts = bool(tokens) and tokens[-1].type in {"NUMBER", "PARAMETER"}
    for name, word in KEYWORDS.items():
        terminal = word.accepted_as
        if terminal == "NAME" or terminal not in accepted:
            continue
        if (name in CLAUSES and name not in clauses and not _opener(tokens)) or (name == "EVENT" and counts):
            continue
        yield _keyword(name)


def _keyword(name: str) -> _Proposal:
    word = KEYWORDS[name]
    return _Proposal(name, Kind.KEYWORD, name, word.example, word.text)


def _units(tokens: Sequence[Token]) -> Iterator[_Proposal]:
    if len(tokens) > 1 and tokens[-2].type == "WITHIN":
        yield _keyword("EVENTS")
    for unit in reversed(UNITS):
        written = counted(1, unit).split()[1] if tokens[-1] == "1" else unit
        yield _Proposal(written, Kind.UNIT, written, "a unit of time")


def _types(catalog: Catalog) -> Iterator[_Proposal]:
    for name in catalog.event_types():
        attributes = catalog.schema.types.get(name, ()) if catalog.schema is not None else ()
        yield _Proposal(name, Kind.TYPE, print_name(name), "event type", ", ".join(sorted(attributes)))


def _variables(catalog: Catalog) -> Iterator[_Proposal]:
    for name, variable in catalog.variables.items():
        if not variable.negated:
            yield _Proposal(name, Kind.VARIABLE, print_name(name), variable.described)
    for name, variable in catalog.variables.items():
        if variable.negated:
            yield _Proposal(name, Kind.VARIABLE, print_name(name), f"{variable.described}, negated")


def _names(found: dict[str, str], kind: Kind) -> Iterator[_Proposal]:
    yield from (_Proposal(name, kind, print_name(name), detail) for name, detail in found.items())


def _calls() -> Iterator[_Proposal]:
    for each in called().values():
        yield _Proposal(each.name, Kind.FUNCTION, f"{each.name}()", each.signature, each.text)
