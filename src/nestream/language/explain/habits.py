"""Explains habits from other languages: SQL's clauses and NULL, arrows, AS, brackets, repetition."""

from __future__ import annotations

import re
from collections.abc import Callable

from nestream.language.build_formula import span_of
from nestream.language.build_pattern import no_repetition
from nestream.language.explain.situation import (
    END,
    Explanation,
    Repair,
    Situation,
    retyped,
)
from nestream.language.literals import shortened
from nestream.model.diagnostics import Diagnostic

_COMPARATORS = frozenset({"=", "==", "!=", "<>", "≠", "<", "<=", "≤", ">", ">=", "≥"})

_CLAUSES_ELSEWHERE = {
    "PARTITION": "to match the events of each key apart, write `WHERE [id]` before WITHIN",
    "GROUP": "to match the events of each key apart, write `WHERE [id]` before WITHIN; "
    "aggregate the matches after the query",
    "ORDER": "matches are ordered by `match_end`; sort the result if you need another order",
    "FROM": "the events are not part of the query: pass them to `match`",
    "OFFSET": "LIMIT takes one number",
}
_SEQUENCE_WORDS = frozenset({"FOLLOWED", "THEN", "NEXT", "BEFORE", "FOLLOWEDBY"})
_NEGATION_WORDS = frozenset({"NO", "WITHOUT", "NEVER", "NOTFOLLOWEDBY"})


def _select_first(at: Situation) -> Explanation | None:
    """`SELECT ... FROM ...`: it was read as a type."""
    if not at.tokens or at.at(0).upper() != "SELECT" or at.at(0).type != "NAME":
        return None
    return Explanation(
        Diagnostic(
            "sql-clause",
            "a query begins with PATTERN, not SELECT",
            span_of(at.at(0)),
            hint="name the columns in RETURN, after the window",
            suggestion="PATTERN SEQ(A a, B b) WITHIN 10 minutes RETURN a.id AS id",
        ),
        final=True,
    )


def _clause_of_sql(at: Situation) -> Explanation | None:
    """`GROUP BY a.id` and the like; after a number the first word was read as a unit."""
    for index in (at.index, at.index - 1):
        word = at.at(index).upper()
        if at.openers or at.at(index).type != "NAME" or word not in _CLAUSES_ELSEWHERE or index == 0:
            continue
        shown = f"{word} BY" if at.at(index + 1).upper() == "BY" else word
        return Explanation(
            Diagnostic(
                "sql-clause",
                f"a query has no {shown}",
                span_of(at.at(index)),
                hint=_CLAUSES_ELSEWHERE[word],
            ),
            Repair(index, max(index + 1, at.clause_end)),
        )
    return None


def _compared_with_null(at: Situation) -> Explanation | None:
    """`a.x = NULL`, which would never hold."""
    if at.token.type != "NULL" or at.before not in _COMPARATORS:
        return None
    positive = at.before in {"=", "=="}
    start = max(index for index in range(at.index) if index == 0 or _begins_operand(at, index))
    operand = at.source(start, at.index - 1)
    written = f"{operand} IS {'' if positive else 'NOT '}NULL"
    return Explanation(
        Diagnostic(
            "null-comparison",
            f"a comparison with NULL never holds: test with IS {'' if positive else 'NOT '}NULL",
            span_of(at.at(start)).to(at.span),
            suggestion=written if operand and len(written) <= 80 else None,
        ),
        Repair(at.index, at.index + 1, (retyped(at.token, "NUMBER", "0"),)),
    )


def _begins_operand(at: Situation, index: int) -> bool:
    before = at.at(index - 1)
    return before in {"(", ",", ":"} or before.type in {"AND", "OR", "NOT", "WHERE", "RETURN"}


def _is_something(at: Situation) -> Explanation | None:
    if at.before.type not in {"IS", "NOT"} or at.token.type not in {"NUMBER", "STRING", "TRUE", "FALSE"}:
        return None
    negated = at.before.type == "NOT"
    if negated and at.at(at.index - 2).type != "IS":
        return None
    sign = "!=" if negated else "="
    hint = f"IS tests for NULL alone; compare with `{sign}`"
    message = f"unexpected `{shortened(at.token)}` after {at.before.upper()}"
    return Explanation(Diagnostic("unexpected-token", message, at.span, hint=hint))


def _list_without_parentheses(at: Situation) -> Explanation | None:
    """`a.x IN [1, 2]`, `a.x IN 1, 2`, `a.x BETWEEN (1, 2)`."""
    if at.before.type == "IN" and at.token not in {"(", ",", ")"}:
        message, suggestion = "IN takes a list in parentheses", "IN (1, 2)"
        return Explanation(Diagnostic("unexpected-token", message, at.span, suggestion=suggestion))
    inside = bool(at.openers) and at.at(at.openers[-1] - 1).type == "BETWEEN" and at.token == ","
    if inside or (at.accepted and "AND" in at.accepted and _between_lacks_and(at)):
        message, suggestion = "BETWEEN takes two values with AND between them", "BETWEEN 1 AND 2"
        return Explanation(Diagnostic("unexpected-token", message, at.span, suggestion=suggestion))
    return None


def _between_lacks_and(at: Situation) -> bool:
    return "OR" not in at.accepted and "COMMA" not in at.accepted and "RPAR" not in at.accepted


def _comparison_with_a_space(at: Situation) -> Explanation | None:
    """`a.x ! = 1`, `a.x > = 1`."""
    first = at.index if at.token == "!" else at.index - 1
    left, right = at.at(first), at.at(first + 1)
    if END in (left.type, right.type) or left + right not in {"!=", "<=", ">=", "<>", "=="}:
        return None
    message = "a comparison is written without a space inside"
    span = span_of(left).to(span_of(right))
    return Explanation(
        Diagnostic("unknown-sign", message, span, suggestion=left + right),
        Repair(first, first + 2, (retyped(left, "EQUAL", "="),)),
    )


def _as_before_a_variable(at: Situation) -> Explanation | None:
    """`SEQ(A AS a, B b)`, `SEQ(A a, B b) AS m`."""
    if at.token.type != "AS" or at.clause != "PATTERN" or not at.is_name(at.index + 1):
        return None
    if at.is_name(at.index - 1) and at.at(at.index - 2) in {"(", ",", "!", ""}:
        return Explanation(
            Diagnostic(
                "as-in-pattern",
                "a variable follows its type without AS",
                at.span,
                suggestion=f"{at.before} {at.after}",
            ),
            Repair(at.index, at.index + 1),
        )
    if at.before == ")":
        return Explanation(
            Diagnostic(
                "as-in-pattern",
                "only a type has a variable, an operator has none",
                at.span.to(span_of(at.after)),
                hint=f"remove `AS {at.after}`",
            ),
            Repair(at.index, at.index + 2),
        )
    return None


def _arrow(at: Situation) -> Explanation | None:
    """`A a -> B b`, `A a FOLLOWED BY B b`, `SEQ(A a THEN B b)`."""
    arrow = at.token == "-" and at.after == ">"
    word = at.token.type == "NAME" and at.token.upper() in _SEQUENCE_WORDS
    if not (arrow or word) or at.clause != "PATTERN" or ("COMMA" not in at.accepted and at.openers):
        return None
    shown = "->" if arrow else at.token.upper()
    return Explanation(
        Diagnostic(
            "unknown-operator",
            f"{shown} is not an operator",
            at.span.to(span_of(at.after)) if arrow else at.span,
            hint="for one component after the other write SEQ, with commas",
            suggestion="SEQ(A a, B b)",
        ),
        final=True,
    )


def _comment_of_sql(at: Situation) -> Explanation | None:
    if at.token != "-" or at.after != "-" or at.after.start_pos != at.token.end_pos:
        return None
    span = at.span.to(span_of(at.after))
    message = "a comment begins with `//`, not `--`"
    return Explanation(Diagnostic("unknown-comment", message, span, suggestion="//"), final=True)


def _negation_word(at: Situation) -> Explanation | None:
    """`SEQ(A a, NO B b, C c)`: it was read as a type, and the type as its variable."""
    kind = at.at(at.index - 2)
    if not at.is_name(at.index) or not at.is_name(at.index - 1) or kind.upper() not in _NEGATION_WORDS:
        return None
    return Explanation(
        Diagnostic(
            "misspelt-keyword",
            f"unknown word `{shortened(kind)}`",
            span_of(kind),
            hint="write `!` or NOT before what must not occur",
            suggestion=f"!{at.before} {at.token}",
        ),
        Repair(at.index - 2, at.index - 1, (retyped(kind, "NOT", "NOT"),)),
    )


def _repetition(at: Situation) -> Explanation | None:
    """`A+ a`, `A a[]`, and `a['x']` for an attribute."""
    if (
        at.token in {"+", "*"}
        and at.is_name(at.index - 1)
        and at.is_name(at.index + 1)
        and at.clause == "PATTERN"
    ):
        return Explanation(no_repetition(span_of(at.before).to(span_of(at.after))))
    if at.token != "[" or not at.is_name(at.index - 1) or at.clause != "PATTERN":
        return None
    if at.after == "]" or at.after.type == "NUMBER":
        return Explanation(no_repetition(span_of(at.before).to(at.span)))
    name = at.after[1:-1] if at.after.type == "STRING" else str(at.after)
    plain = re.fullmatch(r"\w+", name) and at.at(at.index + 2) == "]"
    return Explanation(
        Diagnostic(
            "unexpected-token",
            "unexpected `[`",
            at.span,
            hint="an attribute is written after a dot",
            suggestion=f"{at.before}.{name}" if plain else None,
        )
    )


def _second_dot(at: Situation) -> Explanation | None:
    """`a.b.c`, and `[a.x]`."""
    if at.token != "." or not at.is_name(at.index - 1) or "-" in at.before:
        return None
    if at.openers and at.at(at.openers[-1]) == "[":
        return Explanation(
            Diagnostic(
                "unexpected-token",
                "brackets take attributes without variables",
                span_of(at.before).to(span_of(at.after)),
                hint="all events agree on the attribute",
                suggestion=f"[{at.after}]",
            )
        )
    if at.at(at.index - 2) != "." or not at.is_name(at.index - 3) or not at.is_name(at.index + 1):
        return None
    return Explanation(
        Diagnostic(
            "unexpected-token",
            "an attribute has no fields",
            span_of(at.at(at.index - 3)).to(span_of(at.after)),
            hint="make the field a column of its own; quote a column with a dot in its name with backticks",
            suggestion=f"{at.at(at.index - 3)}.`{at.before}.{at.after}`",
        )
    )


def _variables_in_any(at: Situation) -> Explanation | None:
    """`ANY(B b, C c)`: the variable follows the parentheses."""
    if not at.openers or at.at(at.openers[-1] - 1).type != "ANY" or not at.is_name(at.index):
        return None
    if not at.is_name(at.index - 1):
        return None
    return Explanation(
        Diagnostic(
            "variable-in-any",
            "ANY takes types; one variable follows the parentheses",
            span_of(at.before).to(at.span),
            suggestion="ANY(A, B) x",
        )
    )


def _exists_without_variables(at: Situation) -> Explanation | None:
    """`!EXISTS B b`, `EXISTS (SEQ(A a, B b))`, `EXISTS a SEQ(A a, B b)`."""
    starts = [index for index in range(at.index) if at.at(index).type == "EXISTS" or at.at(index) == "∃"]
    if not starts or ("COLON" not in at.accepted and starts[-1] != at.index - 1):
        return None
    if any(at.at(index) in {":", "(", "."} for index in range(starts[-1], at.index)):
        return None
    negated = at.at(starts[-1] - 1) in {"!", "¬"} or at.at(starts[-1] - 1).type == "NOT"
    hint = "write the variables to leave out, a colon, and the pattern"
    return Explanation(
        Diagnostic(
            "bad-exists",
            "EXISTS takes variables and a pattern",
            span_of(at.at(starts[-1])),
            hint=f"{hint}; for an event that must not occur write `!A a`" if negated else hint,
            suggestion="EXISTS b : SEQ(A a, B b)",
        )
    )


HABITS: tuple[Callable[[Situation], Explanation | None], ...] = (
    _select_first,
    _clause_of_sql,
    _compared_with_null,
    _is_something,
    _list_without_parentheses,
    _comparison_with_a_space,
    _as_before_a_variable,
    _comment_of_sql,
    _arrow,
    _negation_word,
    _repetition,
    _second_dot,
    _variables_in_any,
    _exists_without_variables,
)
"""Asked early: each looks for signs that have no other meaning in the place where it looks."""
