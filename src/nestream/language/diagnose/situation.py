"""Describes where the parser stopped: the tokens around the place, its clause and its brackets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from lark import Token

from nestream.language.build import CLAUSES
from nestream.language.build_formula import span_of
from nestream.model.diagnostics import Diagnostic, Span
from nestream.model.text import RESERVED_WORDS
from nestream.model.wording import shortened

END = "$END"
PATTERN_KEYWORDS = frozenset({"PATTERN", "EVENT"})
OPERATORS = frozenset({"SEQ", "AND", "OR"})
_ENDS_AN_OPERAND = frozenset(
    {"NAME", "QUOTED_NAME", "NUMBER", "STRING", "RPAR", "RSQB", "NULL", "TRUE", "FALSE"}
)


@dataclass(frozen=True)
class Repair:
    """What to parse in place of the tokens `[start, end)`, so that the rest can be checked."""

    start: int
    end: int
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """What is wrong, and how to continue: with a repair, without the element, or not at all."""

    diagnostic: Diagnostic
    repair: Repair | None = None
    final: bool = False


def explained(
    code: str,
    message: str,
    span: Span,
    *,
    hint: str | None = None,
    suggestion: str | None = None,
    repair: Repair | None = None,
    final: bool = False,
) -> Explanation:
    """The explanation with a diagnostic of these parts."""
    problem = Diagnostic(code, message, span, hint=hint, suggestion=suggestion)
    return Explanation(problem, repair, final)


@dataclass(frozen=True)
class Situation:
    """The token that no rule accepts, and its surroundings. `accepted` are the token types expected here."""

    text: str
    tokens: Sequence[Token]
    index: int
    accepted: Collection[str]

    @cached_property
    def token(self) -> Token:
        """The rejected token; one of type END after the last."""
        return self.at(self.index)

    def at(self, index: int) -> Token:
        """The token at an index; beyond both ends, one of type END."""
        if 0 <= index < len(self.tokens):
            return self.tokens[index]
        place = span_of(self.tokens[-1]).end if index > 0 and self.tokens else 0
        return Token(END, "", place, end_pos=place)

    @property
    def before(self) -> Token:
        """The token before the rejected one."""
        return self.at(self.index - 1)

    @property
    def after(self) -> Token:
        """The token after the rejected one."""
        return self.at(self.index + 1)

    @property
    def span(self) -> Span:
        """The place of the rejected token."""
        return span_of(self.token)

    @cached_property
    def openers(self) -> tuple[int, ...]:
        """The open brackets at the token, outermost first."""
        opened: list[int] = []
        for index, token in enumerate(self.tokens[: self.index]):
            if token in {"(", "["}:
                opened.append(index)
            elif token in {")", "]"} and opened:
                opened.pop()
        return tuple(opened)

    @cached_property
    def clause_start(self) -> int:
        """The index of the keyword of the token's clause, or of the one before; 0 for a bare pattern."""
        limit = self.openers[0] if self.openers else self.index
        for index in range(limit - 1, -1, -1):
            if self.tokens[index].type in PATTERN_KEYWORDS or self.tokens[index].type in CLAUSES:
                return index
        return 0

    @property
    def clause(self) -> str:
        """The keyword of the clause; PATTERN also if the keyword is omitted."""
        kind = self.at(self.clause_start).type
        return kind if kind in CLAUSES else "PATTERN"

    @property
    def part(self) -> str:
        """The clause in words."""
        return "pattern" if self.clause == "PATTERN" else f"{self.clause} clause"

    @cached_property
    def clause_end(self) -> int:
        """The index of the next clause's keyword, or the number of tokens."""
        depth = len(self.openers)
        for index in range(self.index, len(self.tokens)):
            token = self.tokens[index]
            if token in {"(", "["}:
                depth += 1
            elif token in {")", "]"}:
                depth -= 1
            elif depth <= 0 and token.type in CLAUSES:
                return index
        return len(self.tokens)

    def is_list(self, opener: int) -> bool:
        """Whether a bracket contains components: that of an operator, or of a group."""
        before = self.at(opener - 1)
        return (
            self.is_operator(opener - 1)
            or before in {"(", ",", "!", "¬", ":"}
            or before.type
            in {
                END,
                "PATTERN",
                "EVENT",
                "NOT",
            }
        )

    def is_operator(self, index: int) -> bool:
        """Whether the token is SEQ, or AND or OR before its components and not between two of them."""
        token = self.at(index)
        return token.type in OPERATORS and self.at(index - 1).type not in _ENDS_AN_OPERAND

    def is_name(self, index: int) -> bool:
        """Whether the token is a name."""
        return self.at(index).type in {"NAME", "QUOTED_NAME"}

    def is_reserved(self, index: int) -> bool:
        """Whether the token is a keyword."""
        return self.at(index).type in RESERVED_WORDS

    def source(self, start: int, end: int) -> str:
        """The text of the tokens `[start, end)`, on one line."""
        if end <= start:
            return ""
        span = span_of(self.tokens[start]).to(span_of(self.tokens[end - 1]))
        return " ".join(self.text[span.start : span.end].split())


def shown(token: Token) -> str:
    """The token as a message shows it."""
    return "end of the query" if token.type == END else f"`{shortened(token)}`"


def retyped(token: Token, kind: str, value: str | None = None) -> Token:
    """The token with another type, at the same place."""
    return Token(kind, token.value if value is None else value, token.start_pos, end_pos=token.end_pos)


def sign_after(token: Token, kind: str, value: str) -> Token:
    """A token that is not in the text, placed at the end of another."""
    return Token(kind, value, token.end_pos, end_pos=token.end_pos)
