"""What could stand at the end of a text that is still being written, read from the grammar itself.

A word such as KEEP or NEXT is a keyword only because of what follows it. At the end of a text nothing follows
yet, so the text is read with several continuations, and each of them is a possible reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lark import Token

from nestream.language.build import QueryBuilder
from nestream.language.build_formula import span_of
from nestream.language.diagnose import explain
from nestream.language.diagnose.recovery import leave_out, repaired
from nestream.language.diagnose.situation import Situation
from nestream.language.parser import accepted_by, building, feed, grammar_parser
from nestream.language.tokens import STRANGE, tokenize
from nestream.model.diagnostics import QueryError

_CONTINUATIONS = (" x x", " FIRST", " WHEN x")
"""Two names, for the soft words before a component or a value; what follows KEEP; what follows CASE."""
_MOST_REPAIRS = 10
_MOST_TOKENS = 2_000
"""Longer texts are not read: completion answers at every key."""


@dataclass(frozen=True)
class Reading:
    """One way to read a text: its tokens, and the terminals of the grammar that could come next.

    `accepted` is empty where the text has a mistake that no repair gets past.
    """

    tokens: Sequence[Token]
    accepted: frozenset[str]


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, soft words with their types; none for a text that breaks a limit."""
    try:
        return tokenize(grammar_parser(), text).tokens
    except QueryError:
        return []


def readings(text: str) -> list[Reading]:
    """The ways to read a text up to its end, where more is to follow."""
    found: list[Reading] = []
    for continuation in _CONTINUATIONS:
        tokens = [token for token in tokens_of(text + continuation) if span_of(token).start < len(text)]
        reading = Reading(tokens, _accepted_after(text, tokens))
        if reading not in found:
            found.append(reading)
    return found


def _accepted_after(text: str, tokens: list[Token]) -> frozenset[str]:
    """The terminals that may follow; mistakes before the end are repaired as the parser does."""
    if len(tokens) > _MOST_TOKENS:
        return frozenset()
    for _ in range(_MOST_REPAIRS):
        stopped, accepted = _fed(text, tokens)
        if stopped == len(tokens):
            return accepted
        situation = Situation(text, tokens, stopped, accepted)
        known = None if situation.token.type in {STRANGE, "UNREADABLE"} else explain(situation).repair
        repair = known or leave_out(situation)
        if repair.end >= len(tokens):  # the place itself would be gone
            return frozenset()
        tokens = repaired(tokens, repair)
    return frozenset()


def _fed(text: str, tokens: Sequence[Token]) -> tuple[int, frozenset[str]]:
    """The index of the token that no rule takes, or their number, and what could stand there."""
    reading = grammar_parser().parse_interactive()
    with building(QueryBuilder(text)):
        stopped = feed(reading, tokens)
        return len(tokens) if stopped is None else stopped, accepted_by(reading)
