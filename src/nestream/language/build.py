"""Builds the syntax tree of a query while the parser reads: its clauses, and the query of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lark import Token

from nestream.language.ast import (
    Dialect,
    Query,
    ReturnExpression,
    ReturnVariable,
)
from nestream.language.build_formula import Children, span_of, span_over
from nestream.language.build_pattern import PatternBuilder
from nestream.language.literals import (
    GREATEST_INTEGER,
    UnreadableError,
    duration_value,
    integer_too_large,
    shortened,
)
from nestream.model.diagnostics import Span
from nestream.model.expression import And, Attribute, Equivalence, Expression, Not, Or, walk
from nestream.model.text import print_expression, print_name
from nestream.model.time import UNBOUNDED, Window, WindowKind

CLAUSES = ("WHERE", "WITHIN", "RETURN", "LIMIT")
"""The clauses after the pattern, in their order."""


_ANY_WINDOW = Window(WindowKind.NUMBER, 1)
"""Stands for a window that could not be read: nothing more is said about it."""


@dataclass(frozen=True)
class Clause:
    """A clause that was read: its keyword, its value and its place."""

    keyword: Token
    value: Any
    span: Span


class QueryBuilder(PatternBuilder):
    """The tree of one query, with everything that is wrong with it in `diagnostics`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.event_keyword: Span | None = None

    def where(self, children: Children) -> Clause:
        keyword, formula = children
        self._check_equivalences(formula)
        return Clause(keyword, formula, span_over(children))

    def _check_equivalences(self, formula: Expression) -> None:
        """`[id]` is a condition of its own: it stands alone, or is joined by AND, OR and NOT."""
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

    def window(self, children: Children) -> tuple[Window, Span]:
        span = span_over(children)
        try:
            return _read_window(*children), span
        except UnreadableError as wrong:
            self._report_unreadable(wrong, span)
            return _ANY_WINDOW, span

    def returns(self, children: Children) -> Clause:
        return Clause(children[0], tuple(children[1::2]), span_over(children))

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

    def limit(self, children: Children) -> Clause:
        keyword, number = children
        span = span_of(number)
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
            limit=values["LIMIT"].value if "LIMIT" in values else None,
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
                    hint="the clauses are PATTERN (or EVENT), WHERE, WITHIN, RETURN and LIMIT, in this order",
                )
            latest = max(latest, CLAUSES.index(keyword))
            values.setdefault(keyword, clause)
        return values


def _read_window(size: Token, unit: Token | None = None) -> Window:
    if size.type == "NAME":
        if size.upper() == "UNBOUNDED":
            return UNBOUNDED
        raise UnreadableError(
            "bad-window",
            f"`{shortened(size)}` is not a window",
            "write a duration (`WITHIN 1 hour`), a number (`WITHIN 100`), a count (`WITHIN 100 EVENTS`) "
            "or `WITHIN UNBOUNDED`",
        )
    if unit is not None and unit.upper() not in {"EVENTS", "EVENT"}:
        duration = duration_value(size, unit)
        window = Window(WindowKind.TIME, duration.microseconds)
    else:
        if not size.isdigit():
            what = "a window in events" if unit else "a window without a unit"
            raise UnreadableError(
                "bad-window",
                f"{what} must be a whole number, not {shortened(size)}",
                None if unit else "add a unit to make it a duration, as in `1.5 hours`",
            )
        if len(size.lstrip("0")) > 19 or int(size) > GREATEST_INTEGER:
            raise integer_too_large(size)
        window = Window(WindowKind.EVENTS if unit else WindowKind.NUMBER, int(size))
    if window.size == 0:
        raise UnreadableError(
            "empty-window",
            f"the window `{shortened(str(size))}{f' {unit}' if unit else ''}` is empty",
            "a window must be greater than 0",
        )
    return window
