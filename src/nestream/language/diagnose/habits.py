"""Explains habits from other languages: arrows, brackets, repetition, comparisons in words."""

from __future__ import annotations

import re
from collections.abc import Callable

from nestream.language.build_formula import span_of
from nestream.language.build_pattern import misplaced_repetition
from nestream.language.diagnose.situation import (
    END,
    PATTERN_KEYWORDS,
    Explanation,
    Repair,
    Situation,
    explained,
    retyped,
)
from nestream.language.diagnose.sql import COMPARATORS
from nestream.model.functions import FUNCTIONS
from nestream.model.wording import shortened

_SEQUENCE_WORDS = frozenset({"FOLLOWED", "THEN", "NEXT", "BEFORE", "FOLLOWEDBY"})
_NEGATION_WORDS = frozenset({"NO", "WITHOUT", "NEVER", "NOTFOLLOWEDBY"})


def _comparison_with_a_space(at: Situation) -> Explanation | None:
    """`a.x ! = 1`, `a.x > = 1`."""
    first = at.index if at.token == "!" else at.index - 1
    left, right = at.at(first), at.at(first + 1)
    if END in (left.type, right.type) or left + right not in {"!=", "<=", ">=", "<>", "=="}:
        return None
    message = "a comparison is written without a space inside"
    span = span_of(left).to(span_of(right))
    return explained(
        "unknown-sign",
        message,
        span,
        suggestion=left + right,
        repair=Repair(first, first + 2, (retyped(left, "EQUAL", "="),)),
    )


def _arrow(at: Situation) -> Explanation | None:
    """`A a -> B b`, `A a FOLLOWED BY B b`, `SEQ(A a THEN B b)`."""
    arrow = at.token == "-" and at.after == ">"
    word = at.token.type == "NAME" and at.token.upper() in _SEQUENCE_WORDS
    if not (arrow or word) or at.clause != "PATTERN" or ("COMMA" not in at.accepted and at.openers):
        return None
    shown = "->" if arrow else at.token.upper()
    return explained(
        "unknown-operator",
        f"{shown} is not an operator",
        at.span.to(span_of(at.after)) if arrow else at.span,
        hint="for one component after the other write SEQ, with commas",
        suggestion="SEQ(A a, B b)",
        final=True,
    )


def _query_in_quotes(at: Situation) -> Explanation | None:
    if at.index or at.token.type != "STRING" or len(at.tokens) > 1:
        return None
    message = "the query is in quotes"
    return explained("query-in-quotes", message, at.span, hint="remove them", final=True)


def _sign_after_pattern(at: Situation) -> Explanation | None:
    """`PATTERN: SEQ(...)`."""
    if at.before.type not in PATTERN_KEYWORDS or at.token not in {":", "="}:
        return None
    message = f"{at.before.upper()} takes no `{at.token}`"
    return explained(
        "unexpected-token", message, at.span, hint="remove it", repair=Repair(at.index, at.index + 1)
    )


def _conditions_after_type(at: Situation) -> Explanation | None:
    """`A(x > 1) a`, `A a(a.x > 1)`, `A a [x > 1]`."""
    opener = at.index
    if at.before == ")" and at.is_name(at.index):
        opener = _partner(at, at.index - 1)
        kind = at.at(opener - 1)
        if kind.type != "NAME" or kind.lower() in FUNCTIONS:
            return None
    elif at.token not in {"(", "["} or not (at.is_name(opener - 1) and at.is_name(opener - 2)):
        return None
    if at.at(opener + 1) == "]" or at.at(opener + 1).type == "NUMBER" or at.clause != "PATTERN":
        return None
    return explained(
        "conditions-after-type",
        "the conditions of a component come after a colon, in parentheses around both",
        span_of(at.at(opener - 1)).to(span_of(at.at(opener))),
        suggestion="(A a : a.x > 1)",
    )


def _partner(at: Situation, closing: int) -> int:
    """The index of the bracket that another closes; before the first token if there is none."""
    depth = 0
    for index in range(closing, -1, -1):
        depth += (at.at(index) in {")", "]"}) - (at.at(index) in {"(", "["})
        if depth == 0:
            return index
    return -1


def _missing_and(at: Situation) -> Explanation | None:
    """`a.x = 1 b.x = 2`: the variable was read as a unit."""
    if at.token != "." or at.before.type != "NAME" or at.at(at.index - 2).type != "NUMBER":
        return None
    if not at.is_name(at.index + 1):
        return None
    joint = "a comma or AND" if at.openers else "AND"
    return explained(
        "missing-comma",
        f"{joint} is missing before `{at.before}.{at.after}`",
        span_of(at.at(at.index - 2)).to(span_of(at.after)),
        repair=Repair(at.index - 1, at.index - 1, (retyped(at.before, "AND", "AND"),)),
    )


_COMPARISON_WORDS = {"EQUALS": "=", "EQ": "=", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


def _comparison_in_words(at: Situation) -> Explanation | None:
    """`a.x equals 1`, `a.x := 1`, `a x = 1`, `a->x = 1`."""
    sign = _COMPARISON_WORDS.get(at.token.upper())
    if sign is not None and at.at(at.index - 2) == ".":
        message = f"unknown comparison `{shortened(at.token)}`"
        repair = Repair(at.index, at.index + 1, (retyped(at.token, "EQUAL", "="),))
        return explained("unknown-sign", message, at.span, suggestion=sign, repair=repair)
    if at.token == ":" and at.after == "=":
        span = at.span.to(span_of(at.after))
        repair = Repair(at.index, at.index + 1)
        return explained("unknown-sign", "unknown comparison `:=`", span, suggestion="=", repair=repair)
    if at.token == ">" and at.before == "-" and at.is_name(at.index - 2) and at.is_name(at.index + 1):
        variable, name = at.index - 2, at.index + 1
    elif at.openers and at.token in COMPARATORS and at.is_name(at.index - 1) and at.is_name(at.index - 2):
        variable, name = at.index - 2, at.index - 1
    else:
        return None
    return explained(
        "unexpected-token",
        "an attribute comes after a dot",
        span_of(at.at(variable)).to(span_of(at.at(name))),
        suggestion=f"{at.at(variable)}.{at.at(name)}",
    )


def _negation_word(at: Situation) -> Explanation | None:
    """`SEQ(A a, NO B b, C c)`: it was read as a type, and the type as its variable."""
    kind = at.at(at.index - 2)
    if not at.is_name(at.index) or not at.is_name(at.index - 1) or kind.upper() not in _NEGATION_WORDS:
        return None
    return explained(
        "misspelt-keyword",
        f"unknown word `{shortened(kind)}`",
        span_of(kind),
        hint="write `!` or NOT before what must not occur",
        suggestion=f"!{at.before} {at.token}",
        repair=Repair(at.index - 2, at.index - 1, (retyped(kind, "NOT", "NOT"),)),
    )


def _repetition(at: Situation) -> Explanation | None:
    """`A+ a`, `A a[]`, and `a['x']` for an attribute."""
    if (
        at.token in {"+", "*"}
        and at.is_name(at.index - 1)
        and at.is_name(at.index + 1)
        and at.clause == "PATTERN"
    ):
        return Explanation(misplaced_repetition(span_of(at.before).to(span_of(at.after))))
    if at.token != "[" or not at.is_name(at.index - 1) or at.clause != "PATTERN":
        return None
    if at.after == "]" or at.after.type == "NUMBER":
        return Explanation(misplaced_repetition(span_of(at.before).to(at.span)))
    name = at.after[1:-1] if at.after.type == "STRING" else str(at.after)
    plain = re.fullmatch(r"\w+", name) and at.at(at.index + 2) == "]"
    return explained(
        "unexpected-token",
        "unexpected `[`",
        at.span,
        hint="an attribute is written after a dot",
        suggestion=f"{at.before}.{name}" if plain else None,
    )


def _variables_in_any(at: Situation) -> Explanation | None:
    """`ANY(B b, C c)`: the variable follows the parentheses."""
    if not at.openers or at.at(at.openers[-1] - 1).type != "ANY" or not at.is_name(at.index):
        return None
    if not at.is_name(at.index - 1):
        return None
    return explained(
        "variable-in-any",
        "ANY takes types; one variable follows the parentheses",
        span_of(at.before).to(at.span),
        suggestion="ANY(A, B) x",
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
    return explained(
        "bad-exists",
        "EXISTS takes variables and a pattern",
        span_of(at.at(starts[-1])),
        hint=f"{hint}; for an event that must not occur write `!A a`" if negated else hint,
        suggestion="EXISTS b : SEQ(A a, B b)",
    )


def _bad_keep(at: Situation) -> Explanation | None:
    """`KEEP 3`, `KEEP ONE PER a`, `KEEP FIRST BY a`."""
    if at.before.type == "KEEP":
        return explained(
            "bad-keep",
            "KEEP takes FIRST, LAST, LONGEST, SHORTEST or DISJOINT",
            span_of(at.before) if at.token.type == END else at.span,
            hint="PER with what matches agree on may follow, and after FIRST also EVERY with a duration",
            suggestion="KEEP FIRST PER a EVERY 1 hour",
            repair=Repair(at.index - 1, max(at.index, at.clause_end)),
        )
    if at.before.type == "KEPT" and at.token.upper() in {"BY", "FOR", "OF", "EACH", "ON"}:
        return explained(
            "bad-keep",
            "what matches agree on comes after PER",
            at.span,
            suggestion="PER",
            repair=Repair(at.index, at.index + 1, (retyped(at.token, "PER", "PER"),)),
        )
    return None


def _bad_into(at: Situation) -> Explanation | None:
    """`WITHIN 5 INTO V`, `RETURN INTO V`, `RETURN a.x AS x INTO`."""
    if at.before.type == "INTO":
        return explained(
            "bad-into",
            "INTO takes the type of the events that the matches become",
            span_of(at.before) if at.token.type == END else at.span,
            suggestion="RETURN a.id AS id INTO Alarm",
            final=True,
        )
    word = at.at(at.index - 1) if at.is_name(at.index) else at.token
    if at.openers or word.upper() != "INTO" or at.clause == "PATTERN" or not at.is_name(at.index):
        return None
    return explained(
        "bad-into",
        "INTO comes after the values of RETURN, which become attributes",
        span_of(word) if word is not at.token else at.span,
        suggestion="RETURN a.id AS id INTO Alarm",
        final=True,
    )


def _bad_step(at: Situation) -> Explanation | None:
    """`NEXT(B b)`, `NEXT SEQ(B b, C c)`: the word was read as a type."""
    place = at.index - 1
    if at.openers and at.is_name(at.index) and at.is_name(at.index - 1):
        place = at.openers[-1] - 1  # NEXT(B b) was read as a call
    elif at.token != "(" and at.token.type not in {"SEQ", "AND", "OR"}:
        return None
    word = at.at(place).upper()
    if word not in {"NEXT", "DIRECTLY"} or at.clause != "PATTERN":
        return None
    return explained(
        "bad-step",
        f"{word} comes before a type and a variable",
        span_of(at.at(place)),
        hint="write it before an event of a SEQ",
        suggestion=f"SEQ(A a, {word} B b)",
        repair=Repair(place, place + 1),
    )


def _parameter_with_colon(at: Situation) -> Explanation | None:
    """`a.x = :id`."""
    if at.token != ":" or at.before not in COMPARATORS or not at.is_name(at.index + 1):
        return None
    span = at.span.to(span_of(at.after))
    return explained(
        "unexpected-token",
        "a parameter begins with a dollar sign",
        span,
        suggestion=f"${at.after}",
        repair=Repair(at.index, at.index + 1),
    )


HABITS: tuple[Callable[[Situation], Explanation | None], ...] = (
    _query_in_quotes,
    _bad_keep,
    _bad_into,
    _bad_step,
    _parameter_with_colon,
    _sign_after_pattern,
    _comparison_with_a_space,
    _arrow,
    _negation_word,
    _conditions_after_type,
    _missing_and,
    _comparison_in_words,
    _repetition,
    _variables_in_any,
    _exists_without_variables,
)
"""Tried early: each looks for signs that have no other meaning in that place."""
