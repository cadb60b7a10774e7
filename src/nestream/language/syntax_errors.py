"""Explains where the parser stopped: what is wrong there, and what to write.

Each explanation is a function that knows one mistake; the first that recognises its own speaks. Those about
words and names come first, for a misspelt keyword looks like many other mistakes.
"""

from __future__ import annotations

from collections.abc import Callable

from lark import Token

from nestream.language.build import CLAUSES
from nestream.language.build_formula import span_of
from nestream.language.literals import shortened
from nestream.language.situation import (
    END,
    OPERATORS,
    PATTERN_KEYWORDS,
    Explanation,
    Repair,
    Situation,
    retyped,
    sign_after,
)
from nestream.language.word_errors import WORD_ERRORS
from nestream.model.diagnostics import Diagnostic

__all__ = ["explain"]

_ORDER = "the order is PATTERN (or EVENT), WHERE, WITHIN, RETURN, LIMIT"


def explain(situation: Situation) -> Explanation:
    """What is wrong at the token that no rule takes."""
    for explanation in (*WORD_ERRORS, *_SYNTAX_ERRORS):
        found = explanation(situation)
        if found is not None:
            return found
    return _unexpected(situation)


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
            hint=f"write the components between the parentheses: `{word.upper()}(A a, B b)`",
        )
        return Explanation(diagnostic, Repair(at.index, at.index, (sign_after(at.before, "UNREADABLE", ""),)))
    message = (
        f"{word.upper()} has an empty list" if at.is_reserved(at.index - 2) else "the parentheses are empty"
    )
    return Explanation(Diagnostic("empty-parentheses", message, span))


def _operator_without_parentheses(at: Situation) -> Explanation | None:
    if at.token == "(" or not (at.before.type == "ANY" or at.is_operator(at.index - 1)):
        return None
    word = at.before.upper()
    components = at.source(at.index, at.clause_end) if not at.openers and at.token.type not in CLAUSES else ""
    return Explanation(
        Diagnostic(
            "operator-without-parentheses",
            f"{word} needs parentheses around its {'types' if word == 'ANY' else 'components'}",
            span_of(at.before),
            suggestion=f"{word}({components})" if 0 < len(components) <= 80 else f"{word}(A a, B b)",
        )
    )


def _clause_inside_parentheses(at: Situation) -> Explanation | None:
    if not at.openers or at.token.type not in {*CLAUSES, *PATTERN_KEYWORDS}:
        return None
    word = at.token.upper()
    return Explanation(
        Diagnostic(
            "clause-inside-parentheses",
            f"{word} stands inside parentheses",
            at.span,
            hint=f"close the parentheses of the pattern before {word}"
            if at.token.type in CLAUSES
            else f"a query inside another is written without {word}",
        ),
        final=True,
    )


def _second_query(at: Situation) -> Explanation | None:
    if at.token.type not in PATTERN_KEYWORDS or at.openers:
        return None
    if at.index and at.before.type not in PATTERN_KEYWORDS and at.before.type not in CLAUSES:
        message, hint = "a second query begins here", "a text holds one query"
        if not any(token.type in PATTERN_KEYWORDS for token in at.tokens[: at.index]):
            message, hint = f"{at.token.upper()} stands after the beginning of the query", _ORDER
        return Explanation(Diagnostic("text-after-end", message, at.span, hint=hint), final=True)
    return None


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
        return Explanation(
            Diagnostic(
                "predicate-outside-pattern",
                "the predicates of a pattern stand inside its parentheses",
                at.span,
                suggestion=inside if len(inside) <= 200 else None,
            ),
            repair,
        )
    return Explanation(
        Diagnostic(
            "components-without-operator",
            "several components need an operator",
            at.span,
            hint="SEQ for one after the other, AND for any order, OR for one of them",
            suggestion=f"SEQ({pattern}, {rest})" if len(pattern) + len(rest) <= 200 else None,
        ),
        repair,
    )


def _comma_in_where(at: Situation) -> Explanation | None:
    if at.token != "," or at.openers or at.clause != "WHERE":
        return None
    return Explanation(
        Diagnostic("comma-in-where", "the formulas of WHERE are joined with AND", at.span, suggestion="AND"),
        Repair(at.index, at.index + 1, (retyped(at.token, "AND", "AND"),)),
    )


def _predicate_first(at: Situation) -> Explanation | None:
    """`(a.x = 1, A a)`: after a comma, what seemed a parenthesised formula is a group."""
    if at.token != "," or not at.openers or at.at(at.openers[-1]) != "(" or not at.is_list(at.openers[-1]):
        return None
    if "COMMA" in at.accepted or at.before in {",", "("} or at.is_operator(at.openers[-1] - 1):
        return None
    predicate = at.source(at.openers[-1] + 1, at.index)
    return Explanation(
        Diagnostic(
            "predicate-before-component",
            f"the parentheses begin with the predicate `{shortened(predicate)}`",
            span_of(at.at(at.openers[-1] + 1)).to(span_of(at.before)),
            hint="the component comes first, then its predicates, as in `(A a, a.x = 1)`; "
            "a list of predicates has no parentheses of its own",
        )
    )


def _formula_as_pattern(at: Situation) -> Explanation | None:
    """`PATTERN a.x = 1`: a formula where the pattern should be."""
    start = at.clause_start + (at.at(at.clause_start).type in PATTERN_KEYWORDS)
    if at.openers or at.clause != "PATTERN" or at.token != "." or at.index != start + 1:
        return None
    return Explanation(
        Diagnostic(
            "predicate-outside-pattern",
            "a query begins with a pattern, not with a predicate",
            span_of(at.before).to(at.span),
            hint="write the predicate with a component, as in `(A a, a.x = 1)`, or in WHERE",
        )
    )


def _window(at: Situation) -> Explanation | None:
    if at.clause != "WITHIN" or at.openers:
        return None
    if at.before.type == "WITHIN" and at.token == "-":
        return Explanation(
            Diagnostic("empty-window", "a window is greater than 0", at.span, hint="remove the minus")
        )
    if at.token.type == "NUMBER" and at.before.type == "NAME":
        return Explanation(
            Diagnostic(
                "bad-window",
                "a window is one number with one unit",
                at.span,
                hint="write it in the smaller unit, as in `90 minutes`, or with a fraction: `1.5 hours`",
            )
        )
    if at.token.type == "EVENT" and at.before.type == "NUMBER":
        return Explanation(
            Diagnostic("bad-window", "a count window is in EVENTS", at.span, suggestion="EVENTS"),
            Repair(at.index, at.index + 1, (retyped(at.token, "NAME", "EVENTS"),)),
        )
    return None


def _return_all(at: Situation) -> Explanation | None:
    if at.token != "*" or at.before.type != "RETURN":
        return None
    hint = "leave RETURN out to get all variables"
    return Explanation(
        Diagnostic("unexpected-token", "RETURN takes variables and expressions", at.span, hint=hint)
    )


def _limit(at: Situation) -> Explanation | None:
    if at.before.type != "LIMIT" or at.token.type == END:
        return None
    message = f"LIMIT takes a whole number, not `{shortened(at.token)}`"
    return Explanation(Diagnostic("bad-limit", message, at.span, suggestion="LIMIT 10"))


_DOUBLED = {"=<": "<=", "=>": ">=", "===": "=", "=!": "!=", "!==": "!=", "<==": "<=", ">==": ">="}


def _odd_sign(at: Situation) -> Explanation | None:
    """`=<`, `===`: two signs side by side that look like one."""
    together = at.before + at.token
    meant = _DOUBLED.get(together)
    if meant is None or at.before.end_pos != at.token.start_pos:
        return None
    span = span_of(at.before).to(at.span)
    sign = Token("EQUAL" if meant == "=" else at.before.type, meant, span.start, end_pos=span.end)
    return Explanation(
        Diagnostic("unknown-sign", f"unknown comparison `{together}`", span, suggestion=meant),
        Repair(at.index - 1, at.index + 1, (sign,)),
    )


def _decimal_point(at: Situation) -> Explanation | None:
    """`.5` and `5.`: a number has digits on both sides of its point."""
    if at.token != "." or "NUMBER" not in {at.before.type, at.after.type}:
        return None
    number = f"0.{at.after}" if at.after.type == "NUMBER" else f"{at.before}.0"
    span = at.span.to(span_of(at.after if at.after.type == "NUMBER" else at.before))
    message = "a number has digits on both sides of its decimal point"
    return Explanation(Diagnostic("bad-number", message, span, suggestion=number))


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
        return Explanation(
            Diagnostic("missing-comma", "a comma is missing in RETURN", span, hint=hint), comma
        )
    names = [index for index in range(at.index - 2, at.index + 1) if at.is_name(index)]
    if len(names) == 3 and at.at(at.index - 3) in {"(", ","}:
        first, second, third = (at.at(index) for index in names)
        return Explanation(
            Diagnostic(
                "missing-comma",
                f"unexpected `{shortened(third)}` after the component `{shortened(f'{first} {second}')}`",
                at.span,
                hint=f"put a comma between two components: `{shortened(f'{first} {second}, {third}')}`; "
                f"a name with a space is written in backticks: `` `{shortened(f'{first} {second}')}` ``",
            ),
            comma,
        )
    if at.before == ")" and at.is_name(at.index) and at.after in {",", ")"}:
        return Explanation(
            Diagnostic(
                "missing-comma",
                f"unexpected name `{shortened(at.token)}` after `)`",
                at.span,
                hint="a component after it needs a comma before it; only a type has a variable, "
                "an operator has none",
            ),
            comma,
        )
    formula = "PLUS" in at.accepted
    return Explanation(
        Diagnostic(
            "missing-comma",
            f"a comma{' or AND' if formula else ''} is missing before `{shortened(at.token)}`",
            span,
            hint="the elements of a list are separated by commas",
        ),
        comma,
    )


def _after_the_end(at: Situation) -> Explanation | None:
    if at.openers or END not in at.accepted or at.token.type == END:
        return None
    hint = f"only WHERE, WITHIN, RETURN or LIMIT can follow; {_ORDER}" if at.clause == "PATTERN" else _ORDER
    if at.clause == "PATTERN" and at.before == ")" and at.is_name(at.index):
        hint = "only a type has a variable, an operator has none"
    message = f"unexpected {_shown(at.token)} after the end of the {_part(at)}"
    return Explanation(Diagnostic("text-after-end", message, at.span, hint=hint))


def _part(at: Situation) -> str:
    return "pattern" if at.clause == "PATTERN" else f"{at.clause} clause"


def _ends_early(at: Situation) -> Explanation | None:
    if at.token.type != END and at.token.type not in CLAUSES:
        return None
    if at.openers or END in at.accepted:
        return None
    missing = _expected(at)
    if at.before.type in CLAUSES or at.before.type in PATTERN_KEYWORDS or at.before.type == END:
        word = at.before.upper() or "the query"
        message = f"{word} has no {_CONTENT.get(at.before.type, 'pattern')}"
        span = span_of(at.before) if at.before.type != END else at.span
        return Explanation(Diagnostic("incomplete", message, span, hint=missing))
    message = f"the {_part(at)} ends after {_shown(at.before)}"
    return Explanation(Diagnostic("incomplete", message, span_of(at.before), hint=missing))


_CONTENT = {"WHERE": "formula", "WITHIN": "window", "RETURN": "item", "LIMIT": "number"}


def _unexpected(at: Situation) -> Explanation:
    return Explanation(
        Diagnostic("unexpected-token", f"unexpected {_shown(at.token)}", at.span, hint=_expected(at))
    )


def _shown(token: Token) -> str:
    return "end of the query" if token.type == END else f"`{shortened(token)}`"


def _expected(at: Situation) -> str | None:
    """What could stand at the place, in words."""
    if at.before.type == "WITHIN":
        return "a window is expected: `1 hours`, `100`, `100 EVENTS` or `UNBOUNDED`"
    if at.before == ".":
        return "a name is expected after the dot"
    if "SEQ" in at.accepted:
        return (
            "a component or a predicate is expected here"
            if "NUMBER" in at.accepted
            else "a component is expected here, as in `A a` or `SEQ(A a, B b)`"
        )
    if "NUMBER" in at.accepted:
        formula = "NOT" in at.accepted
        return "a formula is expected here, as in `a.x = 1`" if formula else "a value is expected here"
    if "NAME" in at.accepted:
        return "a name is expected here"
    words = sorted(kind for kind in at.accepted if kind in OPERATORS or kind in _WORDS)
    return f"expected {' or '.join(_WORDS.get(word, word) for word in words)}" if words else None


_WORDS = {
    "AND": "AND",
    "OR": "OR",
    "AS": "AS",
    "IN": "IN",
    "BETWEEN": "BETWEEN",
    "NULL": "NULL",
    "COMMA": "`,`",
    "COLON": "`:`",
    "RPAR": "`)`",
    "LPAR": "`(`",
    "RSQB": "`]`",
    "EQUAL": "`=`",
}

_SYNTAX_ERRORS: tuple[Callable[[Situation], Explanation | None], ...] = (
    _empty_parentheses,
    _operator_without_parentheses,
    _clause_inside_parentheses,
    _window,
    _second_query,
    _list_at_top,
    _comma_in_where,
    _predicate_first,
    _formula_as_pattern,
    _return_all,
    _limit,
    _odd_sign,
    _decimal_point,
    _missing_comma,
    _after_the_end,
    _ends_early,
)
