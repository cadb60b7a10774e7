"""Explains habits from SQL: its clauses, comments, NULL comparisons, lists and AS."""

from __future__ import annotations

from collections.abc import Callable

from nestream.language.build_formula import span_of
from nestream.language.diagnose.situation import (
    Explanation,
    Repair,
    Situation,
    explained,
    retyped,
)
from nestream.model.wording import shortened

COMPARATORS = frozenset({"=", "==", "!=", "<>", "≠", "<", "<=", "≤", ">", ">=", "≥"})

_CLAUSES_ELSEWHERE = {
    "PARTITION": "to match the events of each key apart, write `WHERE [id]` before WITHIN",
    "GROUP": "to match the events of each key apart, write `WHERE [id]` before WITHIN; "
    "aggregate the matches after the query",
    "ORDER": "matches are ordered by `match_end`; sort the result if you need another order",
    "FROM": "the events are not part of the query: pass them to `match`",
    "OFFSET": "LIMIT takes one number",
    "AFTER": "all combinations are matches; choose among them with KEEP after RETURN: `KEEP DISJOINT` for "
    "SKIP PAST LAST ROW, `KEEP FIRST PER a` for one match a start",
    "SKIP": "all combinations are matches; choose among them with KEEP after RETURN, as in `KEEP DISJOINT`",
    "MEASURES": "name the columns of a match in RETURN, after WITHIN, as in `RETURN a.id AS id`",
    "DEFINE": "write conditions in WHERE, or with their component: `(A a : a.x > 1)`",
    "SUBSET": "mention the variables one by one",
    "ONE": "every match is one row; choose among the matches with KEEP, as in `KEEP FIRST PER a`",
    "ALL": "every match is one row, with the events of all its variables",
}


def _select_first(at: Situation) -> Explanation | None:
    """`SELECT ... FROM ...`: it was read as a type."""
    if not at.tokens or at.at(0).upper() != "SELECT" or at.at(0).type != "NAME":
        return None
    return explained(
        "sql-clause",
        "a query begins with PATTERN, not SELECT",
        span_of(at.at(0)),
        hint="name the columns in RETURN, after the window",
        suggestion="PATTERN SEQ(A a, B b) WITHIN 10 minutes RETURN a.id AS id",
        final=True,
    )


def _clause_of_sql(at: Situation) -> Explanation | None:
    """`GROUP BY a.id` and the like; after a number the first word was read as a unit."""
    for index in (at.index, at.index - 1):
        word = at.at(index).upper()
        if at.openers or at.at(index).type != "NAME" or word not in _CLAUSES_ELSEWHERE or index == 0:
            continue
        if word in {"ONE", "ALL"} and at.at(index + 1).upper() not in {"ROW", "ROWS"}:
            continue
        shown = f"{word} BY" if at.at(index + 1).upper() == "BY" else word
        if word == "AFTER" and at.at(index + 1).upper() == "MATCH":
            shown = "AFTER MATCH SKIP"
        return explained(
            "sql-clause",
            f"a query has no {shown}",
            span_of(at.at(index)),
            hint=_CLAUSES_ELSEWHERE[word],
            repair=Repair(index, max(index + 1, at.clause_end)),
        )
    return None


def _compared_with_null(at: Situation) -> Explanation | None:
    """`a.x = NULL`, which would never hold."""
    if at.token.type != "NULL" or at.before not in COMPARATORS:
        return None
    positive = at.before in {"=", "=="}
    start = max(index for index in range(at.index) if index == 0 or _begins_operand(at, index))
    operand = at.source(start, at.index - 1)
    written = f"{operand} IS {'' if positive else 'NOT '}NULL"
    return explained(
        "null-comparison",
        f"a comparison with NULL never holds: test with IS {'' if positive else 'NOT '}NULL",
        span_of(at.at(start)).to(at.span),
        suggestion=written if operand and len(written) <= 80 else None,
        repair=Repair(at.index, at.index + 1, (retyped(at.token, "NUMBER", "0"),)),
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
    return explained("unexpected-token", message, at.span, hint=hint)


def _list_without_parentheses(at: Situation) -> Explanation | None:
    """`a.x IN [1, 2]`, `a.x IN 1, 2`, `a.x BETWEEN (1, 2)`."""
    if at.before.type == "IN" and at.token not in {"(", ",", ")"}:
        message, suggestion = "IN takes a list in parentheses", "IN (1, 2)"
        return explained("unexpected-token", message, at.span, suggestion=suggestion)
    inside = bool(at.openers) and at.at(at.openers[-1] - 1).type == "BETWEEN" and at.token == ","
    if inside or (at.accepted and "AND" in at.accepted and _between_lacks_and(at)):
        message, suggestion = "BETWEEN takes two values with AND between them", "BETWEEN 1 AND 2"
        return explained("unexpected-token", message, at.span, suggestion=suggestion)
    return None


def _between_lacks_and(at: Situation) -> bool:
    return "OR" not in at.accepted and "COMMA" not in at.accepted and "RPAR" not in at.accepted


def _as_before_a_variable(at: Situation) -> Explanation | None:
    """`SEQ(A AS a, B b)`, `SEQ(A a, B b) AS m`."""
    if at.token.type != "AS" or at.clause != "PATTERN" or not at.is_name(at.index + 1):
        return None
    if at.is_name(at.index - 1) and at.at(at.index - 2) in {"(", ",", "!", ""}:
        return explained(
            "as-in-pattern",
            "a variable follows its type without AS",
            at.span,
            suggestion=f"{at.before} {at.after}",
            repair=Repair(at.index, at.index + 1),
        )
    if at.before == ")":
        return explained(
            "as-in-pattern",
            "the variable of an expression follows it without AS",
            at.span.to(span_of(at.after)),
            suggestion=f"{at.after}",
            repair=Repair(at.index, at.index + 2),
        )
    return None


def _comment_of_sql(at: Situation) -> Explanation | None:
    if at.token != "-" or at.after != "-" or at.after.start_pos != at.token.end_pos:
        return None
    span = at.span.to(span_of(at.after))
    message = "a comment begins with `//`, or with `--` and a space"
    return explained("unknown-comment", message, span, suggestion="-- ", final=True)


def _return_list(at: Situation) -> Explanation | None:
    """`RETURN (a, b)`, `RETURN DISTINCT a`."""
    if at.clause != "RETURN":
        return None
    if at.token == "," and at.openers and at.at(at.openers[-1] - 1).type == "RETURN":
        message, place = "RETURN takes its list without parentheses", span_of(at.at(at.openers[-1]))
        return explained("unexpected-token", message, place, hint="remove them")
    if at.is_name(at.index) and at.before.upper() == "DISTINCT" and at.at(at.index - 2).type == "RETURN":
        hint = "remove it: RETURN with variables alone returns each combination once"
        place = span_of(at.before)
        return explained(
            "sql-clause", "RETURN has no DISTINCT", place, hint=hint, repair=Repair(at.index - 1, at.index)
        )
    return None


def _match_recognize(at: Situation) -> Explanation | None:
    """`MATCH_RECOGNIZE (...)`, around the pattern or before it."""
    place = next((n for n in range(len(at.tokens)) if at.at(n).upper() == "MATCH_RECOGNIZE"), None)
    if place is None:
        return None
    return explained(
        "sql-clause",
        "a query is a pattern, without MATCH_RECOGNIZE around it",
        span_of(at.at(place)),
        hint="write WHERE for DEFINE, RETURN for MEASURES and KEEP for AFTER MATCH SKIP",
        suggestion="PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10 minutes RETURN a.id AS id KEEP DISJOINT",
        final=True,
    )


_OF_FLINK = {
    "ONEORMORE": "`A+ a` in a SEQ",
    "TIMES": "`A{3} a` in a SEQ",
    "TIMESORMORE": "`A{3,} a` in a SEQ",
    "OPTIONAL": "an OR of the patterns with it and without it",
    "FOLLOWEDBYANY": "`SEQ(A a, B b)`, which allows anything between",
    "FOLLOWEDBY": "`SEQ(A a, NEXT B b)`",
    "NEXT": "`SEQ(A a, DIRECTLY B b)`",
    "NOTNEXT": "`SEQ(A a, !B b, C c)`",
    "NOTFOLLOWEDBY": "`SEQ(A a, !B b, C c)`",
    "CONSECUTIVE": "`DIRECTLY B b` in a SEQ",
    "ALLOWCOMBINATIONS": "nothing: all combinations are matches",
    "GREEDY": "nothing: a repetition takes all there is",
    "UNTIL": "`SEQ(A a, !B b, C c)`",
    "BEGIN": "PATTERN and the components in a SEQ",
}
"""The calls of Flink's pattern API, in upper case, and what to write instead."""


def _call_of_flink(at: Situation) -> Explanation | None:
    """`Pattern.begin("a").next("b").oneOrMore()`: the calls are tokens after dots and before parentheses."""
    for index in range(1, len(at.tokens) - 1):
        word = at.at(index)
        called = at.at(index - 1) == "." and at.at(index + 1) == "("
        if word.type not in {"NAME", "NEXT"} or not called or word.upper() not in _OF_FLINK:
            continue
        return explained(
            "other-language",
            f"`{word}` is a call of Flink's pattern API",
            span_of(word),
            hint=f"write {_OF_FLINK[word.upper()]}",
            final=True,
        )
    return None


SQL_HABITS: tuple[Callable[[Situation], Explanation | None], ...] = (
    _match_recognize,
    _call_of_flink,
    _select_first,
    _clause_of_sql,
    _compared_with_null,
    _is_something,
    _list_without_parentheses,
    _as_before_a_variable,
    _comment_of_sql,
    _return_list,
)
