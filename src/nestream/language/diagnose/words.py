"""Explains mistakes in words: misspelt keywords and operators, reserved words as names, hyphens for minus."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from difflib import get_close_matches

from nestream.language.build import CLAUSES
from nestream.language.build_formula import span_of
from nestream.language.diagnose.situation import (
    PATTERN_KEYWORDS,
    Explanation,
    Repair,
    Situation,
    explained,
    retyped,
)
from nestream.model.functions import FUNCTIONS, called_names
from nestream.model.text import print_name
from nestream.model.wording import shortened

RESERVED = "reserved-word"
"""The code of the error for a keyword where a name is needed."""
_OPERATOR_WORDS = {
    "SEQ": "SEQ",
    "SEQUENCE": "SEQ",
    "FOLLOWED": "SEQ",
    "THEN": "SEQ",
    "AND": "AND",
    "ALL": "AND",
    "OR": "OR",
    "ANY": "ANY",
    "EXISTS": "EXISTS",
}


_CLAUSES_ELSEWHERE = {
    "HAVING": "WHERE",
    "SELECT": "RETURN",
    "IN": "WITHIN",
    "DURING": "WITHIN",
    "WINDOW": "WITHIN",
}


def _close(word: str, words: Iterable[str], cutoff: float = 0.7) -> str | None:
    found = get_close_matches(word[:40].upper(), list(words), n=1, cutoff=cutoff)
    return found[0] if found else None


def _misspelt(at: Situation, index: int, meant: str, message: str | None = None) -> Explanation:
    token = at.at(index)
    return explained(
        "misspelt-keyword",
        message or f"unknown word `{shortened(token)}`",
        span_of(token),
        hint=f"did you mean {meant}?{_lookalikes(token)}",
        suggestion=meant,
        repair=Repair(index, index + 1, (retyped(token, meant),)),
    )


def _lookalikes(word: str) -> str:
    """The letters of a word that only look like those of a keyword, by name."""
    strange = [letter for letter in word[:40] if not letter.isascii()]
    names = [f"{letter} is {unicodedata.name(letter, 'unknown')}" for letter in strange]
    return f" ({', '.join(names)})" if names else ""


def _named_query(at: Situation) -> Explanation | None:
    """`Q1 = PATTERN ...`, as papers number their queries."""
    if at.index not in {1, 2} or at.at(1) not in {"=", ":", "=="} or not at.is_name(0):
        return None
    if at.at(2).type not in {"PATTERN", "EVENT", "SEQ", "AND", "OR", "EXISTS"}:
        return None
    span = span_of(at.at(0)).to(span_of(at.at(1)))
    return explained(
        "named-query", "a query has no name", span, hint=f"remove `{at.source(0, 2)}`", repair=Repair(0, 2)
    )


def _misspelt_pattern(at: Situation) -> Explanation | None:
    """`PATERN SEQ(...)`: it was read as a type, and what follows as its variable."""
    if at.index not in {1, 2, 3} or at.at(0).type != "NAME" or at.openers:
        return None
    meant = _close(at.at(0), PATTERN_KEYWORDS)
    if meant:
        return _misspelt(at, 0, meant)
    if at.index == 1 and at.is_operator(1) | (at.token.type in {"SEQ", "EXISTS"}):
        return _misspelt(at, 0, "PATTERN", f"a query begins with PATTERN, not {shortened(at.at(0))}")
    return None


def _misspelt_clause(at: Situation) -> Explanation | None:
    """`WITHN 1 hour` after the pattern; after `A` alone, or after a number, it was read as a name."""
    if at.openers:
        return None
    for index in (at.index, at.index - 1):
        if index == 0 or not (at.at(index).type == "NAME" or _is_in_for_within(at, index)):
            continue
        word = at.at(index).upper()
        if word in _CLAUSES_ELSEWHERE:
            return _misspelt(at, index, _CLAUSES_ELSEWHERE[word], f"a query has no {word} clause")
        if meant := _close(word, CLAUSES):
            return _misspelt(at, index, meant)
    return None


def _is_in_for_within(at: Situation, index: int) -> bool:
    """`SEQ(A a, B b) IN 5 minutes`."""
    return at.at(index).type == "IN" and at.clause == "PATTERN" and at.at(index + 1).type == "NUMBER"


def _misspelt_word(at: Situation) -> Explanation | None:
    """`a.x BETWEN 1 AND 2`, `a.x = 1 ADN a.y = 2`."""
    for index in (at.index, at.index - 1):
        if at.at(index).type != "NAME" or index == 0:
            continue
        meant = _close(at.at(index), ["AND", "BETWEEN", "NULL", "NOT", "WITHIN"], cutoff=0.6)
        in_formula = at.at(index - 1).type in {"NUMBER", "STRING"} or at.at(index - 2) == "."
        if meant and meant != "WITHIN" and (in_formula or at.at(index - 1).type in {"IS", "NOT"}):
            return _misspelt(at, index, meant)
    return None


def _misspelt_operator(at: Situation) -> Explanation | None:
    """`SQE(A a, B b)`: it was read as a type, or as the call of a function."""
    index = at.index - 1 if at.token == "(" else at.openers[-1] - 1 if at.openers else -1
    if index < 0 or at.at(index).type != "NAME" or at.at(index).lower() in FUNCTIONS:
        return None
    if at.token != "(" and not (at.is_name(at.index) or at.token in {"!", "¬"}):
        return None
    if "-" in at.at(index):
        return None
    word = at.at(index)
    close = _close(word, _OPERATOR_WORDS, cutoff=0.6)
    if close:
        return _misspelt(at, index, _OPERATOR_WORDS[close])
    return explained(
        "unknown-operator",
        f"unknown operator `{shortened(word)}`",
        span_of(word),
        hint=f"the operators are SEQ, AND, OR, ANY and EXISTS; the functions are {', '.join(called_names())}",
    )


def _hyphen(at: Situation) -> Explanation | None:
    """`a.x-b.y`, `a.x-abs(b.y)`: the hyphen is a part of the name."""
    name = at.before
    if at.token not in {".", "("} or name.type != "NAME" or "-" not in name or at.at(at.index - 2) != ".":
        return None
    left, _, right = name.rpartition("-")
    if not right[0].isalpha() and right[0] != "_":
        return None
    middle = (name.start_pos or 0) + len(left)
    end = at.at(at.index + 1) if at.token == "." else at.token
    start = at.at(at.index - 3)
    written = f"{start}.{left} - {right}{at.token}{end if at.token == '.' else ''}"
    whole = f"{start}.{print_name(name)}"
    signs = (
        retyped(name, "NAME", left),
        retyped(name, "MINUS", "-"),
        retyped(name, "NAME", right),
    )
    for sign, (begin, length) in zip(
        signs, ((middle - len(left), len(left)), (middle, 1), (middle + 1, len(right))), strict=True
    ):
        sign.start_pos, sign.end_pos = begin, begin + length
    return explained(
        "hyphen-in-name",
        f"`{shortened(whole)}` is read as one name",
        span_of(start).to(span_of(end)),
        hint="names may contain hyphens: put spaces around a minus",
        suggestion=f"{written}…)" if at.token == "(" else written,
        repair=Repair(at.index - 1, at.index, signs),
    )


_FOLLOWS_A_NAME = frozenset({",", ")", ".", ":", "=", "]"})


def _reserved_word(at: Situation) -> Explanation | None:
    """`SEQ(Event e, B b)`, `a.limit = 3`: a keyword where a name is needed."""
    if at.is_reserved(at.index) and "NAME" in at.accepted and at.token.type not in {"NULL", "TRUE", "FALSE"}:
        needed = "." in {at.before, at.after} or at.before.type in {"AS", "EXISTS"}
        if at.is_name(at.index + 1) and (at.is_name(at.index + 2) or at.at(at.index + 2) == "."):
            return None  # `SEQ(A a, PATTERN B b)`, `SEQ(A a, WHERE a.x = 1)`: the keyword is meant
        if needed or (at.openers and (at.is_name(at.index + 1) or at.after in _FOLLOWS_A_NAME)):
            return _as_name(at, at.index)
    swallowed = at.before.type in {"IS", "IN", "BETWEEN"} and at.token in {",", ")"}
    if swallowed and at.is_name(at.index - 2) and at.at(at.index - 3) in {"(", ","}:
        return _as_name(at, at.index - 1)
    return None


def _as_name(at: Situation, index: int) -> Explanation:
    token = at.at(index)
    return explained(
        RESERVED,
        f"{token.upper()} is a reserved word",
        span_of(token),
        hint="quote it with backticks to use it as a name",
        suggestion=f"`{token}`",
        repair=Repair(index, index + 1, (retyped(token, "QUOTED_NAME", f"`{token}`"),)),
    )


WORD_ERRORS: tuple[Callable[[Situation], Explanation | None], ...] = (
    _named_query,
    _hyphen,
    _misspelt_pattern,
    _misspelt_clause,
    _misspelt_operator,
    _misspelt_word,
    _reserved_word,
)
