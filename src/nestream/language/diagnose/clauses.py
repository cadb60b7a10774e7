"""Explains mistakes in the clauses of a query: WITHIN, RETURN and LIMIT, and text outside a clause."""

from __future__ import annotations

import re
from collections.abc import Callable

from nestream.language.build import CLAUSES
from nestream.language.build_formula import span_of
from nestream.language.diagnose.situation import (
    END,
    PATTERN_KEYWORDS,
    Explanation,
    Repair,
    Situation,
    explained,
    retyped,
    shown,
)
from nestream.model.time import UNITS
from nestream.model.wording import shortened

_ORDER = "the clauses are PATTERN (or EVENT), WHERE, WITHIN, RETURN, KEEP and LIMIT, in this order"
_LENGTH = re.compile(r"([0-9]+(?:\.[0-9]+)?)['\"]?\s*([A-Za-z]+)")


def _clause_inside_parentheses(at: Situation) -> Explanation | None:
    if not at.openers or at.token.type not in {*CLAUSES, *PATTERN_KEYWORDS}:
        return None
    word = at.token.upper()
    if word == "WITHIN" and at.before == ")":
        return explained(
            "clause-inside-parentheses",
            "an expression with its own window needs parentheses",
            at.span,
            suggestion="(SEQ(A a, B b) WITHIN 10 s)",
            final=True,
        )
    return explained(
        "clause-inside-parentheses",
        f"{word} is inside the parentheses",
        at.span,
        hint=f"close the parentheses of the pattern before {word}"
        if at.token.type in CLAUSES
        else f"nest a pattern without {word}",
        final=True,
    )


def _clause_before_pattern(at: Situation) -> Explanation | None:
    if at.index or at.token.type not in CLAUSES:
        return None
    message = f"{at.token.upper()} comes before the pattern"
    return explained("clause-order", message, at.span, hint=_ORDER, final=True)


def _window(at: Situation) -> Explanation | None:
    if at.clause != "WITHIN" or at.openers:
        return None
    if at.before.type == "WITHIN" and at.token == "-":
        message = "a window must be greater than 0"
        return explained("empty-window", message, at.span, hint="remove the minus")
    first = at.at(at.clause_start + 1)
    if first.type not in {"NUMBER", END, *CLAUSES} and first.upper() != "UNBOUNDED":
        return _not_a_window(at)
    if at.token.type == "NUMBER" and at.before.type == "NAME":
        return explained(
            "bad-window",
            "a window is one number with one unit",
            at.span,
            hint="write it in the smaller unit, as in `90 minutes`, or as a fraction: `1.5 hours`",
        )
    return None


def _not_a_window(at: Situation) -> Explanation:
    """`WITHIN (5 minutes)`, `WITHIN INTERVAL '5' MINUTE`, `WITHIN five minutes`."""
    begin, end = at.clause_start + 1, at.clause_end
    written = at.source(begin, end)
    length = _LENGTH.search(written)
    known = length is not None and length[2].lower() in UNITS
    return explained(
        "bad-window",
        f"`{shortened(written)}` is not a window",
        span_of(at.at(begin)).to(span_of(at.at(end - 1))),
        hint=None if known else "a window is `1 hour`, `100`, `100 EVENTS` or `UNBOUNDED`",
        suggestion=f"WITHIN {length[1]} {length[2]}" if length and known else None,
        repair=Repair(at.clause_start, end),
    )


def _second_query(at: Situation) -> Explanation | None:
    if at.token.type not in PATTERN_KEYWORDS or at.openers:
        return None
    if at.index and at.before.type not in PATTERN_KEYWORDS and at.before.type not in CLAUSES:
        message, hint = "a second query begins here", "write one query; run several as a query set"
        if not any(token.type in PATTERN_KEYWORDS for token in at.tokens[: at.index]):
            message, hint = f"{at.token.upper()} is not at the beginning of the query", _ORDER
        return explained("text-after-end", message, at.span, hint=hint, final=True)
    return None


def _comma_in_where(at: Situation) -> Explanation | None:
    if at.token != "," or at.openers or at.clause != "WHERE":
        return None
    return explained(
        "comma-in-where",
        "join the conditions of WHERE with AND",
        at.span,
        suggestion="AND",
        repair=Repair(at.index, at.index + 1, (retyped(at.token, "AND", "AND"),)),
    )


def _return_all(at: Situation) -> Explanation | None:
    if at.token != "*" or at.before.type != "RETURN":
        return None
    hint = "leave RETURN out to return all variables"
    return explained(
        "unexpected-token", "RETURN takes variables and named expressions, not `*`", at.span, hint=hint
    )


def _limit(at: Situation) -> Explanation | None:
    if at.before.type != "LIMIT" or at.token.type == END:
        return None
    message = f"LIMIT takes a whole number, not `{shortened(at.token)}`"
    return explained("bad-limit", message, at.span, suggestion="LIMIT 10")


def _after_the_end(at: Situation) -> Explanation | None:
    if at.openers or END not in at.accepted or at.token.type == END:
        return None
    hint = _ORDER
    if at.clause == "PATTERN" and at.before == ")" and at.is_name(at.index):
        hint = "a variable is one name, after the closing parenthesis"
    if at.token.type in {"AND", "OR"} and at.clause != "PATTERN":
        hint = "write conditions in WHERE, before WITHIN"
    if at.token == ".":
        hint = "remove it"
    if at.token == ",":
        hint = (
            "LIMIT takes one number"
            if at.clause == "LIMIT"
            else "remove it: clauses have no comma between them"
        )
    message = f"unexpected {shown(at.token)} after the end of the {at.part}"
    return explained("text-after-end", message, at.span, hint=hint)


CLAUSE_ERRORS: tuple[Callable[[Situation], Explanation | None], ...] = (
    _clause_inside_parentheses,
    _clause_before_pattern,
    _window,
    _second_query,
    _comma_in_where,
    _return_all,
    _limit,
)

TRAILING_ERRORS: tuple[Callable[[Situation], Explanation | None], ...] = (_after_the_end,)
"""Tried last: where a query could end, almost any mistake looks like text after its end."""
