"""Explains mistakes in the lists of a pattern: commas, parentheses, predicates out of place."""

from __future__ import annotations

from collections.abc import Callable

from nestream.language.build import CLAUSES
from nestream.language.build_formula import span_of
from nestream.language.diagnose.situation import (
    PATTERN_KEYWORDS,
    Explanation,
    Repair,
    Situation,
    explained,
    retyped,
    sign_after,
)
from nestream.model.diagnostics import Diagnostic
from nestream.model.wording import shortened


def _empty_parentheses(at: Situation) -> Explanation | None:
    if at.token != ")" or at.before != "(":
        return None
    word = at.at(at.index - 2)
    span = span_of(at.before).to(at.span)
    if at.is_operator(at.index - 2):
        diagnostic = Diagnostic(
            "no-component",
            f"{word.upper()} has no component",
            span_of(word).to(at.span),
            hint=f"write its components in the parentheses, as in `{word.upper()}(A a, B b)`",
        )
        return Explanation(diagnostic, Repair(at.index, at.index, (sign_after(at.before, "UNREADABLE", ""),)))
    message = (
        f"{word.upper()} has an empty list" if at.is_reserved(at.index - 2) else "the parentheses are empty"
    )
    return explained("empty-parentheses", message, span)


def _operator_without_parentheses(at: Situation) -> Explanation | None:
    if at.token == "(" or not (at.before.type == "ANY" or at.is_operator(at.index - 1)):
        return None
    word = at.before.upper()
    components = at.source(at.index, at.clause_end) if not at.openers and at.token.type not in CLAUSES else ""
    components = components.strip("[]<>{}")
    shown = 0 < len(components) <= 80
    return explained(
        "operator-without-parentheses",
        f"{word} needs parentheses around its {'types' if word == 'ANY' else 'components'}",
        span_of(at.before),
        hint=None if shown else f"as in `{'ANY(A, B) x' if word == 'ANY' else f'{word}(A a, B b)'}`",
        suggestion=f"{word}({components})" if shown else None,
    )


def _list_at_top(at: Situation) -> Explanation | None:
    """`A a, B b` or `SEQ(A a), a.x = 1`: a list outside an operator's parentheses."""
    if at.token != "," or at.openers or at.clause != "PATTERN":
        return None
    start = at.clause_start + (at.at(at.clause_start).type in PATTERN_KEYWORDS)
    end = at.clause_end
    pattern, rest = at.source(start, at.index), at.source(at.index + 1, end)
    repair = Repair(at.index, end)
    if at.at(at.index + 2) == "." or not at.is_name(at.index + 1):
        inside = f"{pattern[:-1]}, {rest})" if pattern.endswith(")") else f"({pattern}, {rest})"
        return explained(
            "predicate-outside-pattern",
            "write the conditions of a pattern inside its parentheses",
            at.span,
            suggestion=inside if len(inside) <= 200 else None,
            repair=repair,
        )
    return explained(
        "components-without-operator",
        "several components need an operator",
        at.span,
        hint="write SEQ for one after the other, AND for any order, OR for one of them",
        suggestion=f"SEQ({pattern}, {rest})" if len(pattern) + len(rest) <= 200 else None,
        repair=repair,
    )


def _predicate_first(at: Situation) -> Explanation | None:
    """`(a.x = 1, A a)`: after a comma, what seemed a parenthesised formula is a group."""
    if at.token != "," or not at.openers or at.at(at.openers[-1]) != "(" or not at.is_list(at.openers[-1]):
        return None
    if "COMMA" in at.accepted or at.before in {",", "("} or at.is_operator(at.openers[-1] - 1):
        return None
    predicate = at.source(at.openers[-1] + 1, at.index)
    return explained(
        "predicate-before-component",
        f"the parentheses begin with the condition `{shortened(predicate)}`",
        span_of(at.at(at.openers[-1] + 1)).to(span_of(at.before)),
        hint="write the component first, then its conditions, as in `(A a, a.x = 1)`; "
        "conditions alone need no parentheses",
    )


def _formula_as_pattern(at: Situation) -> Explanation | None:
    """`PATTERN a.x = 1`: a formula where the pattern should be."""
    start = at.clause_start + (at.at(at.clause_start).type in PATTERN_KEYWORDS)
    if at.openers or at.clause != "PATTERN" or at.token != "." or at.index != start + 1:
        return None
    return explained(
        "predicate-outside-pattern",
        "a query begins with a pattern, not with a condition",
        span_of(at.before).to(at.span),
        hint="write the condition with its component, as in `(A a, a.x = 1)`, or in WHERE",
    )


_BEGINS_AN_ELEMENT = frozenset(
    {"NAME", "QUOTED_NAME", "NUMBER", "STRING", "LPAR", "BANG", "NOT", "ANY", "SEQ"}
)


def _missing_comma(at: Situation) -> Explanation | None:
    begins = at.token.type in _BEGINS_AN_ELEMENT or at.token == "¬" or at.is_operator(at.index)
    if not begins or "COMMA" not in at.accepted:
        return None
    comma = Repair(at.index, at.index, (sign_after(at.before, "COMMA", ","),))
    span = span_of(at.before).to(at.span)
    if not at.openers:
        if at.clause != "RETURN":
            return None
        hint = f"put a comma between the items: `{at.before}, {at.token}`"
        return explained("missing-comma", "a comma is missing in RETURN", span, hint=hint, repair=comma)
    if all(at.is_name(index) for index in range(at.index - 2, at.index)) and at.is_name(at.index):
        return _third_name(at, comma)
    if at.before == ")" and at.is_name(at.index) and at.after in {",", ")"}:
        return explained(
            "missing-comma",
            f"unexpected name `{shortened(at.token)}` after `)`",
            at.span,
            hint="put a comma between two components; a variable is one name; "
            "for one of several types write `ANY(A, B) x`",
            repair=comma,
        )
    formula = "PLUS" in at.accepted
    hint = "separate the elements of a list with commas"
    if at.is_name(at.index - 1) and at.is_name(at.index) and at.after != ".":
        hint += "; quote a name with a space with backticks"
    return explained(
        "missing-comma",
        f"a comma{' or AND' if formula else ''} is missing before `{shortened(at.token)}`",
        span,
        hint=hint,
        repair=comma,
    )


def _third_name(at: Situation, comma: Repair) -> Explanation:
    """`A a B b` lacks a comma; `Operating Room o` is a type with a space in its name."""
    kind, word, third = at.at(at.index - 2), at.before, at.token
    quoted = f"`{kind} {word}`"
    spaced = at.after in {",", ")", ":"} and kind.type == word.type == "NAME"
    return explained(
        "missing-comma",
        f"unexpected `{shortened(third)}` after the component `{shortened(f'{kind} {word}')}`",
        at.span,
        hint="quote a name with a space with backticks; put a comma between two components"
        if spaced
        else "put a comma between two components; quote a name with a space with backticks",
        suggestion=f"{quoted} {third}" if spaced else f"{kind} {word}, {third} {at.after}".rstrip(),
        repair=Repair(at.index - 2, at.index, (retyped(kind, "QUOTED_NAME", quoted),)) if spaced else comma,
    )


LIST_ERRORS: tuple[Callable[[Situation], Explanation | None], ...] = (
    _empty_parentheses,
    _operator_without_parentheses,
    _list_at_top,
    _predicate_first,
    _formula_as_pattern,
    _missing_comma,
)
