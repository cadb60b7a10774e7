"""Drops the part of a query that cannot be parsed, so that the rest is still checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lark import Token

from nestream.language.ast import Composite, Exists, Negation, Pattern, Primitive, Query, Repeated, parts
from nestream.language.build_formula import span_of
from nestream.language.build_pattern import is_unreadable
from nestream.language.diagnose.situation import Repair, Situation, sign_after
from nestream.model.diagnostics import Diagnostic, Span
from nestream.model.expression import And, Expression, conjuncts


def leave_out(situation: Situation) -> Repair:
    """The smallest part around the place that can be dropped: an element of an operator, or a clause."""
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
    """The element of an operator's list that contains the token, or that ends before it."""
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
    """The tokens after the repair."""
    return [*tokens[: repair.start], *repair.tokens, *tokens[repair.end :]]


def outside(diagnostics: Sequence[Diagnostic], tokens: Sequence[Token], repair: Repair) -> list[Diagnostic]:
    """The diagnostics outside what the repair replaces: the others may follow from the mistake."""
    if repair.start >= repair.end:
        return list(diagnostics)
    region: Span = span_of(tokens[repair.start]).to(span_of(tokens[repair.end - 1]))
    return [
        diagnostic
        for diagnostic in diagnostics
        if diagnostic.span.end <= region.start or diagnostic.span.start >= region.end
    ]


def without_problems(query: Query, problems: Sequence[Diagnostic]) -> Query | None:
    """The query without the formulas that have a problem; None if one of its components has one.

    The placeholder of a formula that could not be parsed would only be reported a second time.
    """
    if any(map(is_unreadable, parts(query.pattern))):
        return None

    def sound(span: Span) -> bool:
        return not any(span.start <= each.span.start and each.span.end <= span.end for each in problems)

    def kept(formulas: tuple[Expression, ...]) -> tuple[Expression, ...]:
        return tuple(formula for formula in formulas if sound(formula.span))

    def checked(pattern: Pattern) -> Pattern:
        match pattern:
            case Primitive(predicates=predicates):
                return replace(pattern, predicates=kept(predicates))
            case Composite(components=components, predicates=predicates):
                inner = tuple(map(checked, components))
                return replace(pattern, components=inner, predicates=kept(predicates))
            case Repeated(body=body) | Negation(body=body) | Exists(body=body):
                return replace(pattern, body=checked(body))

    where = kept(tuple(conjuncts(query.where))) if query.where is not None else ()
    return replace(
        query,
        pattern=checked(query.pattern),
        where=And(where) if len(where) > 1 else where[0] if where else None,
        returns=tuple(item for item in query.returns if sound(item.span)),
        keep=query.keep if query.keep is not None and sound(query.keep.span) else None,
    )
