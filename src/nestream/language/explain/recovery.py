"""Leaves the part of a query that cannot be read out, so that the rest is still checked."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

from nestream.language.build_formula import span_of
from nestream.language.explain.situation import Repair, Situation, sign_after
from nestream.model.diagnostics import Diagnostic, Span


def leave_out(situation: Situation) -> Repair:
    """The least part around the place that can be left out whole: an element of an operator, or a clause."""
    for opener in reversed(situation.openers):
        if situation.at(opener) == "(" and situation.is_operator(opener - 1):
            start, end = _element(situation, opener)
            return Repair(start, end, (_placeholder(situation, start),))
    start, end = situation.clause_start, situation.clause_end
    if situation.clause != "PATTERN":
        return Repair(start, end)
    if situation.at(start).type in {"PATTERN", "EVENT"}:
        start += 1
    return Repair(start, end, (_placeholder(situation, start),))


def _placeholder(situation: Situation, start: int) -> Token:
    return sign_after(situation.at(start - 1), "UNREADABLE", "")


def _element(situation: Situation, opener: int) -> tuple[int, int]:
    """The element of an operator's list that the token lies in, or that ends before it."""
    start, depth = opener + 1, 0
    for index in range(opener + 1, len(situation.tokens)):
        token = situation.tokens[index]
        if token in {"(", "["}:
            depth += 1
        elif token in {")", "]"} and depth:
            depth -= 1
        elif depth == 0 and token in {",", ")"}:
            if index >= situation.index:
                return start, index
            start = index + 1
    return start, len(situation.tokens)


def repaired(tokens: Sequence[Token], repair: Repair) -> list[Token]:
    """The tokens with the repair made."""
    return [*tokens[: repair.start], *repair.tokens, *tokens[repair.end :]]


def outside(diagnostics: Sequence[Diagnostic], tokens: Sequence[Token], repair: Repair) -> list[Diagnostic]:
    """The diagnostics that do not touch what the repair replaces: the others may follow from the mistake."""
    if repair.start >= repair.end:
        return list(diagnostics)
    region: Span = span_of(tokens[repair.start]).to(span_of(tokens[repair.end - 1]))
    return [
        diagnostic
        for diagnostic in diagnostics
        if diagnostic.span.end <= region.start or diagnostic.span.start >= region.end
    ]
