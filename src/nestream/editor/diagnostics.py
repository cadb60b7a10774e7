"""What is wrong with a query, as `nestream check` reports it, and the change that fixes it.

An editor asks after every key, so parameters need no values here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from nestream.editor.declared import declared
from nestream.language.build_formula import span_of
from nestream.language.diagnose.words import RESERVED
from nestream.language.expectation import tokens_of
from nestream.model.diagnostics import Diagnostic, Severity, in_text_order
from nestream.model.schema import Schema
from nestream.model.text import in_backticks
from nestream.model.unseen import sentences
from nestream.query import diagnosed

_PROPOSED = re.compile(r"did you mean (?:[`']([^`']+)[`']|(\w+))\?")
_NAMED = re.compile(r"`([^`]+)`|'([^']+)'")


@dataclass(frozen=True)
class Fix:
    """A change of the text: `insert` in place of `[start, end)`. `title` says what it does."""

    title: str
    start: int
    end: int
    insert: str


def diagnose(text: str, schema: Schema | None = None) -> Sequence[Diagnostic]:
    """The errors and warnings of a query, in the order of the text; none for an empty text.

    With a schema, attributes and their types are checked too, and a type that no event has is a warning.
    """
    if not text.strip():
        return ()
    # `nestream check` does not guess either which type has which attribute.
    found = diagnosed(text, None if schema is None else replace(schema, types={}))
    if schema is None or any(each.is_error for each in found):
        return found
    return in_text_order([*found, *_unseen(text, schema)])


def fixes(text: str, diagnostic: Diagnostic, schema: Schema | None = None) -> list[Fix]:
    """The first change that a diagnostic proposes and that leaves fewer errors than there were, if any."""
    before = _errors(text, schema)
    unseen = diagnostic.severity is Severity.WARNING
    for start, end, insert in _proposed(text, diagnostic):
        left = _errors(text[:start] + insert + text[end:], schema)
        if len(left) < len(before) or (unseen and len(left) == len(before)):
            shown = insert if diagnostic.code != RESERVED else str(diagnostic.suggestion)
            shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
            return [Fix(f"Write {in_backticks(shown)}", start, end, insert)]
    return []


def _errors(text: str, schema: Schema | None) -> list[Diagnostic]:
    return [each for each in diagnose(text, schema) if each.is_error]


def _proposed(text: str, diagnostic: Diagnostic) -> Iterator[tuple[int, int, str]]:
    """Where the suggestion might belong: in place of all that is underlined, or of the word that is named."""
    span = diagnostic.span
    if diagnostic.code == RESERVED:
        yield _quoted_everywhere(text, diagnostic)
    close = _PROPOSED.search(f"{diagnostic.message} {diagnostic.hint or ''}")
    meant = [diagnostic.suggestion, (close[1] or close[2]) if close else None]
    for insert in filter(None, meant):
        yield span.start, span.end, insert
        for named in _NAMED.finditer(diagnostic.message):
            word = re.escape(named[1] or named[2])
            for found in re.compile(rf"(?<![\w-]){word}(?![\w-])").finditer(text, span.start, span.end):
                yield found.start(), found.end(), insert


def _quoted_everywhere(text: str, diagnostic: Diagnostic) -> tuple[int, int, str]:
    """A reserved word in backticks at each place where it is a name: a variable is used more than once."""
    span = diagnostic.span
    word, tokens = text[span.start : span.end], [*tokens_of(text)]
    places = [span]
    for token, following in pairwise([*tokens, None]):
        place = span_of(token)
        if token == word and following == "." and place.start > span.start:
            places.append(place)
    ends = [span.start, *(place.end for place in places)]
    parts = [text[end : place.start] + f"`{word}`" for end, place in zip(ends, places, strict=False)]
    return span.start, places[-1].end, "".join(parts)


def _unseen(text: str, schema: Schema) -> Iterator[Diagnostic]:
    """A warning for each type that is most likely misspelt."""
    tokens = tokens_of(text)
    variables = declared(tokens).values()
    wanted = {kind for variable in variables for kind in variable.types}
    for kind in wanted - schema.types.keys():
        message = f"no event has type {kind!r}"
        places = [span_of(token) for token in tokens if token.strip("`") == kind]
        for sentence, place in zip(sentences(wanted, [kind], schema.types), places, strict=False):
            hint = sentence.removeprefix(f"{message}; ")
            yield Diagnostic("unseen-type", message, place, Severity.WARNING, hint=hint)
