"""The variables that a text declares, found among its tokens: the text need not parse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lark import Token

from nestream.language.build import CLAUSES
from nestream.language.build_formula import span_of
from nestream.model.diagnostics import NOWHERE, Span

NAMES = frozenset(("NAME", "QUOTED_NAME"))
_BEFORE_A_COMPONENT = frozenset(
    ("LPAR", "COMMA", "BANG", "NOT", "PATTERN", "EVENT", "COLON", "AND", "OR", "NEXT", "DIRECTLY", "ANY")
)
_AFTER_A_COMPONENT = frozenset(("COMMA", "RPAR", "COLON", "AND", "OR", *CLAUSES))


class Sort(StrEnum):
    """What a variable stands for."""

    EVENT = "event"
    GROUP = "group"
    EXPRESSION = "expression"


@dataclass(frozen=True)
class Variable:
    """A variable: the event types it may have, or the variables inside the expression that it names."""

    name: str
    sort: Sort
    types: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    negated: bool = False
    span: Span = NOWHERE

    @property
    def described(self) -> str:
        """What it is, in a few words: `a group of Failure events`."""
        group = self.sort is Sort.GROUP
        if self.members or self.sort is Sort.EXPRESSION:
            kind = "a group of matches" if group else "an expression"
            return f"{kind} with {', '.join(self.members)}" if self.members else kind
        if not self.types:
            return "a group of events of any type" if group else "an event of any type"
        kinds = " or ".join(self.types)
        return f"a group of {kinds} events" if group else f"an event of type {kinds}"


def name_of(token: Token) -> str:
    """The name that a token writes."""
    return token[1:-1].replace("``", "`") if token.type == "QUOTED_NAME" else str(token)


def declared(tokens: Sequence[Token]) -> Mapping[str, Variable]:
    """The variables by name, in the order of the text; of one that is declared twice the first."""
    reader = _Reader(tokens)
    index = 0
    while index < len(tokens) and (reader.open or tokens[index].type not in CLAUSES):
        index = reader.step(index)  # nothing after the pattern declares
    return reader.found


@dataclass(frozen=True)
class _Bracket:
    """A bracket: how many variables were declared before it, and whether what it holds is negated."""

    declared_before: int
    negated: bool


class _Reader:
    """Goes through the tokens of a pattern and collects the variables."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.found: dict[str, Variable] = {}
        self.open: list[_Bracket] = []

    def step(self, index: int) -> int:
        """Read what begins at an index; the index after it."""
        token = self.tokens[index]
        if token in {"(", "["}:
            operator = index - 1 if self._type(index - 1) in {"SEQ", "AND", "OR"} else index
            self.open.append(_Bracket(len(self.found), self._is_negated(operator)))
        elif token in {")", "]"}:
            return self._closed(index)
        elif token.type == "EXISTS" or token == "∃":
            return self._after_quantifier(index)
        elif token.type == "ANY" or token.type in NAMES:
            return self._primitive(index)
        return index + 1

    def _closed(self, index: int) -> int:
        """A closing bracket, perhaps with the variable of its expression."""
        bracket = self.open.pop() if self.open else _Bracket(len(self.found), False)
        after = self._after_quantity(index + 1)
        repeated = after > index + 1
        if self._type(after) != "EXPRESSION_NAME" and not (repeated and self._type(after) in NAMES):
            return after
        members = tuple(list(self.found)[bracket.declared_before :])
        sort = Sort.GROUP if repeated else Sort.EXPRESSION
        self._declare(after, Variable(name_of(self.tokens[after]), sort, (), members, bracket.negated))
        return after + 1

    def _primitive(self, index: int) -> int:
        """A type, or ANY with its types; and its variable, which is the type where it is left out."""
        before, token = self._type(index - 1), self.tokens[index]
        if before == "DOT" or (before and before not in _BEFORE_A_COMPONENT):
            return index + 1
        types: tuple[str, ...] = (name_of(token),) if token.type in NAMES else ()
        after = index + 1
        if not types and self._type(after) == "LPAR":
            end = next((i for i in range(after, len(self.tokens)) if self.tokens[i] == ")"), len(self.tokens))
            types = tuple(name_of(each) for each in self.tokens[after:end] if each.type in NAMES)
            after = end + 1
        elif self._type(after) in {"DOT", "LPAR"}:  # a condition
            return index + 1
        following = self._after_quantity(after)
        sort = Sort.GROUP if following > after else Sort.EVENT
        negated = self._is_negated(index)
        if self._type(following) in NAMES:
            name = name_of(self.tokens[following])
            self._declare(following, Variable(name, sort, types, (), negated))
            return following + 1
        if token.type in NAMES and self._ends_component(following):
            self._declare(index, Variable(types[0], sort, types, (), negated))
        return following

    def _declare(self, index: int, variable: Variable) -> None:
        negated = variable.negated or any(bracket.negated for bracket in self.open)
        placed = replace(variable, negated=negated, span=span_of(self.tokens[index]))
        self.found.setdefault(variable.name, placed)

    def _after_quantity(self, index: int) -> int:
        """The index after `+`, `*` or `{2,5}`, where one stands."""
        if self._type(index) == "REPEAT":
            return index + 1
        if self._type(index) != "LBRACE":
            return index
        for end in range(index, min(index + 5, len(self.tokens))):
            if self.tokens[end] == "}":
                return end + 1
        return index

    def _after_quantifier(self, index: int) -> int:
        for end in range(index, len(self.tokens)):
            if self.tokens[end] in {":", "."}:
                return end + 1
        return len(self.tokens)

    def _is_negated(self, index: int) -> bool:
        return self._type(index - 1) in {"BANG", "NOT"} or (index > 0 and self.tokens[index - 1] == "¬")

    def _ends_component(self, index: int) -> bool:
        kind = self._type(index)
        return not kind or kind in _AFTER_A_COMPONENT or self.tokens[index] in {"∧", "∨"}

    def _type(self, index: int) -> str:
        return self.tokens[index].type if 0 <= index < len(self.tokens) else ""
