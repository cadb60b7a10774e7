"""Builds the syntax tree of a query during parsing: its clauses, and the query from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from lark import Token

from nestream.language.ast import (
    Dialect,
    IntoType,
    KeepClause,
    Query,
    ReturnExpression,
    ReturnVariable,
)
from nestream.language.build_formula import Children, span_of, span_over
from nestream.language.build_pattern import PatternBuilder
from nestream.language.literals import GREATEST_INTEGER, integer_too_large
from nestream.model.diagnostics import Span
from nestream.model.expression import (
    And,
    Attribute,
    Equivalence,
    Expression,
    Literal,
    Not,
    Or,
    Parameter,
    walk,
)
from nestream.model.keep import Kept
from nestream.model.text import print_expression, print_name
from nestream.model.wording import listed, shortened

CLAUSES = ("WHERE", "WITHIN", "RETURN", "KEEP", "LIMIT")
"""The clauses after the pattern, in order."""


@dataclass(frozen=True)
class Clause:
    """A parsed clause: its keyword, its value and its place."""

    keyword: Token
    value: Any
    span: Span


class Length(NamedTuple):
    """The duration after EVERY."""

    value: Literal | Parameter
    span: Span


class QueryBuilder(PatternBuilder):
    """The tree of one query; its problems are in `diagnostics`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.event_keyword: Span | None = None
        self.into: IntoType | None = None

    def where(self, children: Children) -> Clause:
        keyword, formula = children
        self._check_equivalences(formula)
        return Clause(keyword, formula, span_over(children))

    def _check_equivalences(self, formula: Expression) -> None:
        """Check that `[id]` is a condition of its own, alone or joined by AND, OR and NOT."""
        match formula:
            case Equivalence():
                return
            case And(operands=operands) | Or(operands=operands):
                for operand in operands:
                    self._check_equivalences(operand)
            case Not(operand=operand):
                self._check_equivalences(operand)
            case _:
                for part in walk(formula):
                    if isinstance(part, Equivalence):
                        message = f"`{shortened(print_expression(part))}` is a condition, not a value"
                        hint = "join it to the other conditions with AND"
                        self.report("equivalence-as-value", message, part.span, hint)

    def within(self, children: Children) -> Clause:
        keyword, (window, span) = children
        return Clause(keyword, window, span_of(keyword).to(span))

    def returns(self, children: Children) -> Clause:
        span = span_over(children)
        if isinstance(children[-2], Token) and children[-2].type == "INTO":
            *children, into, name = children
            self.into = IntoType(name.text, span_of(into).to(name.span))
        return Clause(children[0], tuple(children[1::2]), span)

    def return_item(self, children: Children) -> ReturnVariable | ReturnExpression:
        formula, *named = children
        span = span_over(children)
        if isinstance(formula, Attribute) and formula.variable is None:
            if named:
                self.report(
                    "renamed-variable",
                    f"the variable {print_name(formula.name)} cannot be renamed with AS",
                    span,
                    hint=f"write `{print_name(formula.name)}` alone, or name an attribute, as in "
                    f"`{print_name(formula.name)}.ts AS {print_name(named[1].text)}`",
                )
            return ReturnVariable(formula.name, span)
        self._check_closed(formula, "an expression of RETURN")
        return ReturnExpression(formula, named[1].text if named else None, span)

    def keep(self, children: Children) -> Clause:
        keyword, kind, *rest = children
        span = span_over(children)
        every = next((part.value for part in rest if isinstance(part, Length)), None)
        per: list[str | Expression] = []
        for formula in (part for part in rest if not isinstance(part, Token | Length)):
            if isinstance(formula, Attribute) and formula.variable is None:
                per.append(formula.name)
            else:
                self._check_closed(formula, "PER")
                per.append(formula)
        return Clause(keyword, KeepClause(Kept(kind.upper()), tuple(per), every, span), span)

    def length(self, children: Children) -> Length:
        span = span_over(children)
        match children[0].type:
            case "PARAMETER":
                return Length(self.parameter(children), span)
            case "NUMBER":
                return Length(self.number(children), span)
            case _:
                return Length(self.timestamp(children), span)

    def limit(self, children: Children) -> Clause:
        keyword, number = children
        span = span_of(number)
        if number.type == "PARAMETER":
            return Clause(keyword, self.parameter([number]), span_over(children))
        value = 0
        if not number.isdigit():
            self.report("bad-limit", f"LIMIT takes a whole number, not {shortened(number)}", span)
        elif len(number.lstrip("0")) > 19 or int(number) > GREATEST_INTEGER:
            self._report_unreadable(integer_too_large(number), span)
        else:
            value = int(number)
        return Clause(keyword, value, span_over(children))

    def query(self, children: Children) -> Query:
        span, rest = span_over(children), list(children)
        sase = isinstance(rest[0], Token) and rest[0].type == "EVENT"
        if isinstance(rest[0], Token):
            keyword = rest.pop(0)
            self.event_keyword = span_of(keyword) if sase else None
        pattern, *clauses = rest
        values = self._values(clauses)
        within = values.get("WITHIN")
        self.finish()
        return Query(
            pattern=self._one(pattern),
            where=values["WHERE"].value if "WHERE" in values else None,
            window=within.value if within else None,
            returns=values["RETURN"].value if "RETURN" in values else (),
            into=self.into,
            limit=values["LIMIT"].value if "LIMIT" in values else None,
            keep=values["KEEP"].value if "KEEP" in values else None,
            sase=sase,
            dialect=self._recognised(sase),
            window_span=within.span if within else Span(span.end, span.end),
            span=span,
        )

    def _recognised(self, sase: bool) -> Dialect:
        if sase:
            return Dialect.SASE
        if self.neel_plus_sign is not None or self.formula_on_component:
            return Dialect.NEEL_PLUS
        return Dialect.NEEL

    def _values(self, clauses: list[Clause]) -> dict[str, Clause]:
        """The clauses by their keywords: each once, in the order of the language."""
        values: dict[str, Clause] = {}
        latest = -1
        for clause in clauses:
            keyword = clause.keyword.type
            if keyword in values:
                hint = (
                    "join the conditions with AND"
                    if keyword == "WHERE"
                    else "put all items in one RETURN, with commas"
                    if keyword == "RETURN"
                    else "remove one of them"
                )
                self.report("repeated-clause", f"the query has two {keyword} clauses", clause.span, hint)
            elif CLAUSES.index(keyword) < latest:
                self.report(
                    "clause-order",
                    f"{keyword} comes after {CLAUSES[latest]}",
                    clause.span,
                    hint=f"the clauses are {listed(['PATTERN (or EVENT)', *CLAUSES])}, in this order",
                )
            latest = max(latest, CLAUSES.index(keyword))
            values.setdefault(keyword, clause)
        return values
