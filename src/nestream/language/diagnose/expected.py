"""Explains odd signs, a query that ends too early, and in general what is expected at a place."""

from __future__ import annotations

from collections.abc import Callable

from lark import Token

from nestream.language.build import CLAUSES
from nestream.language.build_formula import span_of
from nestream.language.diagnose.situation import (
    END,
    PATTERN_KEYWORDS,
    Explanation,
    Repair,
    Situation,
    explained,
    shown,
)

_DOUBLED = {"=<": "<=", "=>": ">=", "===": "=", "=!": "!=", "!==": "!=", "<==": "<=", ">==": ">="}


def _odd_sign(at: Situation) -> Explanation | None:
    """`=<`, `===`: two signs side by side that look like one."""
    together = at.before + at.token
    meant = _DOUBLED.get(together)
    if meant is None or at.before.end_pos != at.token.start_pos:
        return None
    span = span_of(at.before).to(at.span)
    sign = Token("EQUAL" if meant == "=" else at.before.type, meant, span.start, end_pos=span.end)
    return explained(
        "unknown-sign",
        f"unknown comparison `{together}`",
        span,
        suggestion=meant,
        repair=Repair(at.index - 1, at.index + 1, (sign,)),
    )


def _decimal_point(at: Situation) -> Explanation | None:
    """`.5` and `5.`: a number has digits on both sides of its point."""
    if at.token != "." or "NUMBER" not in {at.before.type, at.after.type}:
        return None
    number = f"0.{at.after}" if at.after.type == "NUMBER" else f"{at.before}.0"
    span = at.span.to(span_of(at.after if at.after.type == "NUMBER" else at.before))
    message = "a decimal point needs digits on both sides"
    return explained("bad-number", message, span, suggestion=number)


_CONTENT = {
    "WHERE": "condition",
    "WITHIN": "window",
    "RETURN": "variable or expression",
    "LIMIT": "number",
}

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


def _ends_early(at: Situation) -> Explanation | None:
    if at.token.type != END and at.token.type not in CLAUSES:
        return None
    if at.openers or END in at.accepted:
        return None
    missing = _expected(at)
    if at.before.type in CLAUSES or at.before.type in PATTERN_KEYWORDS or at.before.type == END:
        word = at.before.upper() or "the query"
        message = f"{word} needs a {_CONTENT.get(at.before.type, 'pattern')}"
        span = span_of(at.before) if at.before.type != END else at.span
        return explained("incomplete", message, span, hint=missing)
    message = f"the {at.part} ends after {shown(at.before)}"
    return explained("incomplete", message, span_of(at.before), hint=missing)


def unexpected(at: Situation) -> Explanation:
    """Report a token that no explanation knows."""
    return explained("unexpected-token", f"unexpected {shown(at.token)}", at.span, hint=_expected(at))


def _expected(at: Situation) -> str | None:
    """What is expected at the place, in words."""
    if at.before.type == "WITHIN":
        return "write a window: `1 hour`, `100`, `100 EVENTS` or `UNBOUNDED`"
    if at.before == ".":
        return "write an attribute after the dot"
    if "SEQ" in at.accepted:
        return (
            "expected a component or a condition"
            if "NUMBER" in at.accepted
            else "expected a component, such as `A a` or `SEQ(A a, B b)`"
        )
    if "NUMBER" in at.accepted:
        formula = "NOT" in at.accepted
        if at.before.type == "RETURN":
            return "expected a variable or a named expression, such as `a.x AS x`"
        if not formula or at.clause == "RETURN":
            return "expected a value"
        return "expected a condition, such as `a.x = 1`"
    if "EQUAL" in at.accepted and "PLUS" in at.accepted:
        return "expected a comparison, an operator, a comma or `)`"
    if "NAME" in at.accepted:
        return "expected a name"
    words = [word for kind, word in _WORDS.items() if kind in at.accepted]
    return f"expected {_alternatives(words)}" if words else None


def _alternatives(words: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


SIGN_ERRORS: tuple[Callable[[Situation], Explanation | None], ...] = (_odd_sign, _decimal_point)

ENDING_ERRORS: tuple[Callable[[Situation], Explanation | None], ...] = (_ends_early,)
