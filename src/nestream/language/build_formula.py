"""Builds the formulas of the syntax tree during parsing: one method for each rule of the grammar.

A constant or chain without a meaning is reported and replaced by a harmless one, so that the rest of the
query is still checked. The depth of every part is counted as it is built, without recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeVar

from lark import Token

from nestream.language.literals import (
    GREATEST_INTEGER,
    UnreadableError,
    duration_value,
    integer_too_large,
    name_text,
    number_value,
    quoted_value,
    string_text,
)
from nestream.model.aggregates import AGGREGATES
from nestream.model.diagnostics import Diagnostic, QueryError, Reporting, Span
from nestream.model.expression import (
    PATH_MARK,
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Equivalence,
    Expression,
    In,
    IsNull,
    Literal,
    Negative,
    Not,
    Or,
    Parameter,
    Previous,
    Value,
)
from nestream.model.functions import FUNCTIONS, called_names
from nestream.model.text import print_expression, print_name
from nestream.model.time import Duration
from nestream.model.wording import shortened

DEEPEST = 100
"""The maximum nesting depth of a query."""

_COMPARATORS = {"==": "=", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}

Children = list[Any]
Node = TypeVar("Node")


class Name(NamedTuple):
    """A name and its place."""

    text: str
    span: Span


def span_of(part: Any) -> Span:
    """The place of a token, a name or a node of the tree."""
    if isinstance(part, Token):
        return Span(part.start_pos or 0, part.end_pos or 0)
    span: Span = part.span
    return span


def span_over(parts: Sequence[Any]) -> Span:
    """From the first part to the last."""
    return span_of(parts[0]).to(span_of(parts[-1]))


def too_deep(span: Span) -> Diagnostic:
    """Report a query that is nested too deeply."""
    return Diagnostic(
        "nested-too-deep",
        f"the query is nested more than {DEEPEST} levels deep",
        span,
        detail="every parenthesis, operator, negation, minus sign and arithmetic term adds a level",
        hint="split the query, or nest less deeply",
    )


class FormulaBuilder(Reporting):
    """The formulas and values of one query; their problems are in `diagnostics`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self._depths: dict[int, int] = {}
        self._alive: list[object] = []
        self._lowest_integers: dict[Span, str] = {}
        self._variables: list[str] = []

    def finish(self) -> None:
        """Report what only the whole text decides: 9223372036854775808 is an integer only after a minus."""
        for span, token in self._lowest_integers.items():
            self._report_unreadable(integer_too_large(token), span)
        self._lowest_integers.clear()

    # ---- levels ----

    def depth(self, part: object) -> int:
        """How many levels a part has."""
        return self._depths.get(id(part), 1)

    def nested(self, node: Node, children: Iterable[object], levels: int = 1) -> Node:
        """The node, with its depth recorded: that of its deepest child plus `levels`."""
        depth = levels + max((self.depth(child) for child in children), default=0)
        if depth > DEEPEST:
            raise QueryError([*self.diagnostics, too_deep(span_of(node))], self.text)
        self._depths[id(node)] = depth
        self._alive.append(node)  # so that no other object can have its id
        return node

    # ---- names and constants ----

    def name(self, children: Children) -> Name:
        (token,) = children
        return Name(name_text(token), span_of(token))

    def _report_unreadable(self, wrong: UnreadableError, span: Span) -> None:
        self.report(wrong.code, wrong.message, span, hint=wrong.hint, suggestion=wrong.suggestion)

    def _constant(self, span: Span, read: Callable[[], Value]) -> Literal:
        try:
            return Literal(read(), span)
        except UnreadableError as wrong:
            self._report_unreadable(wrong, span)
            return Literal(0, span)

    def number(self, children: Children) -> Literal:
        span = span_over(children)
        if len(children) == 2:
            number, unit = children
            return self._constant(span, lambda: duration_value(number, unit))
        literal = self._constant(span, lambda: number_value(children[0]))
        if isinstance(literal.value, int) and literal.value > GREATEST_INTEGER:
            self._lowest_integers[span] = str(children[0])
        return literal

    def string(self, children: Children) -> Literal:
        return Literal(string_text(children[0]), span_over(children))

    def timestamp(self, children: Children) -> Literal:
        kind, text, *unit = children
        return self._constant(span_over(children), lambda: quoted_value(kind, string_text(text), *unit))

    def parameter(self, children: Children) -> Parameter:
        return Parameter(children[0][1:], span_over(children))

    def truth(self, children: Children) -> Literal:
        return Literal(children[0].type == "TRUE", span_over(children))

    # ---- values ----

    def attribute(self, children: Children) -> Attribute:
        variable, *inner, name = (child for child in children if isinstance(child, Name))
        for before, part in zip((variable, *inner), inner, strict=False):
            left, _, right = part.text.rpartition("-")
            quoted = self.text[part.span.start : part.span.start + 1] == "`"
            if left and right in self._variables and not quoted:
                self.report(
                    "hyphen-in-name",
                    f"`{shortened(f'{before.text}.{part.text}')}` is read as one name",
                    span_over(children),
                    hint="names may contain hyphens: put spaces around a minus",
                    suggestion=f"{before.text}.{left} - {right}.{name.text}",
                )
        # for a group of matches, the first part after it is their variable; otherwise all are fields of a
        # struct
        path = PATH_MARK.join(part.text for part in (*inner[1:], name))
        return Attribute(variable.text, path, span_over(children), inner[0].text if inner else None)

    def bare_attribute(self, children: Children) -> Attribute:
        (name,) = children
        return Attribute(None, name.text, name.span)

    def call(self, children: Children) -> Expression:
        name, _, *rest = children
        arguments = _without_signs(rest)
        span, function = span_over(children), name.text.lower()
        distinct = isinstance(rest[0], Token) and rest[0].type == "DISTINCT"
        if function in AGGREGATES or function == "prev":
            return self._over_a_group(name, arguments, span, distinct=distinct)
        if distinct:
            self.report(
                "misplaced-distinct",
                "DISTINCT belongs to COUNT",
                span_of(rest[0]),
                "write COUNT(DISTINCT f.x)",
            )
        known = FUNCTIONS.get(function)
        if known is None:
            close = get_close_matches(function, called_names(), n=1)
            self.report(
                "unknown-function",
                f"unknown function `{shortened(name.text)}`",
                name.span,
                hint=f"did you mean `{close[0]}`?"
                if close
                else f"the functions are {', '.join(called_names())}",
            )
        elif len(arguments) < known.least or (known.most is not None and len(arguments) > known.most):
            self.report(
                "wrong-argument-count",
                f"the function `{function}` takes {known.arity}, not {len(arguments)}",
                span,
                hint=f"write `{known.signature}`",
            )
        return self.nested(Call(function, tuple(arguments), span), arguments)

    def _over_a_group(self, name: Name, arguments: Children, span: Span, *, distinct: bool) -> Expression:
        """An aggregate, or PREV in one."""
        function = name.text.lower()
        word = function.upper()
        most = 2 if function == "prev" else 1
        if not 1 <= len(arguments) <= most:
            takes = "one argument or two" if most > 1 else "one argument"
            self.report(
                "wrong-argument-count",
                f"{word} takes {takes}, not {len(arguments)}",
                span,
                hint="write `PREV(f.x)`, or `PREV(f.x, l.x)` with the value for the first"
                if most > 1
                else f"write `{word}({'f' if function == 'count' else 'f.x'})` for a group `f`",
            )
            return Literal(True, span)
        if distinct and function != "count":
            self.report("misplaced-distinct", f"{word} takes no DISTINCT", span, "write COUNT(DISTINCT f.x)")
        if function == "prev":
            return self.nested(Previous(tuple(arguments), span), arguments)
        return self.nested(Aggregate(function, arguments[0], distinct, None, span), arguments)

    def case(self, children: Children) -> Call:
        arguments = _without_signs(children)
        return self.nested(Call("case", tuple(arguments), span_over(children)), arguments)

    def pattern_test(self, children: Children) -> Call:
        operand, *signs, pattern = children
        words = " ".join(sign.lower() for sign in signs)
        return self.nested(Call(words, (operand, pattern), span_over(children)), [operand, pattern], levels=0)

    def parenthesised(self, children: Children) -> Expression:
        _, inner, _ = children
        outer: Expression = replace(inner, span=span_over(children))
        if inner.span in self._lowest_integers:
            self._lowest_integers[outer.span] = self._lowest_integers.pop(inner.span)
        return self.nested(outer, [inner])

    def negative(self, children: Children) -> Expression:
        _, operand = children
        span = span_over(children)
        match operand:
            case Literal(value=Duration(microseconds=size)):
                return self.nested(Literal(Duration(-size), span), [operand])
            case Literal(value=int() | float() as number) if not isinstance(number, bool):
                self._lowest_integers.pop(operand.span, None)
                if number == -GREATEST_INTEGER - 1:
                    self._lowest_integers[span] = str(-number)
                return self.nested(Literal(-number, span), [operand])
        return self.nested(Negative(operand, span), [operand])

    def arithmetic(self, children: Children) -> Arithmetic:
        left, operator, right = children
        return self.nested(Arithmetic(str(operator), left, right, span_over(children)), [left, right])

    # ---- formulas ----

    def comparison(self, children: Children) -> Expression:
        span, operands = span_over(children), tuple(children[0::2])
        operators = [_COMPARATORS.get(sign, str(sign)) for sign in children[1::2]]
        if len(operators) > 1 and set(operators) != {"="}:
            self._report_chain(operators, operands, span)
        return self.nested(Comparison(operators[0], operands, span), operands, levels=0)

    def _report_chain(self, operators: list[str], operands: tuple[Expression, ...], span: Span) -> None:
        pairs = (
            Comparison(operator, operands[index : index + 2]) for index, operator in enumerate(operators)
        )
        self.report(
            "chained-comparison",
            "only `=` can be chained",
            span,
            hint="join comparisons of two values with AND",
            suggestion=print_expression(And(tuple(pairs))) if len(operators) <= 10 else None,
        )

    def membership(self, children: Children) -> In:
        operand, sign, *_ = children
        values = _without_signs(children[1:])
        if children[-1] != ")":
            values = [self.parameter(children[-1:])]
        node = In(operand, tuple(values), sign.type == "NOT", span_over(children))
        return self.nested(node, [operand, *values])

    def between(self, children: Children) -> Between:
        operand, sign = children[:2]
        low, high = children[-3], children[-1]
        node = Between(operand, low, high, sign.type == "NOT", span_over(children))
        return self.nested(node, [operand, low, high], levels=0)

    def is_null(self, children: Children) -> IsNull:
        operand, _, sign, *_ = children
        node = IsNull(operand, sign.type == "NOT", span_over(children))
        return self.nested(node, [operand], levels=0)

    def test(self, children: Children) -> Equivalence:
        path = [child for child in children if isinstance(child, Name)]
        name = Name(PATH_MARK.join(part.text for part in path), path[0].span)
        value = children[-1] if children[-1] is not path[-1] else None
        if value is not None and not isinstance(value, Literal | Parameter):
            self.report(
                "equivalence-value",
                f"`[{shortened(print_name(name.text))} = ...]` takes a constant",
                value.span,
                hint="compare two attributes without brackets",
            )
            value = Literal(0, value.span)
        return Equivalence(name.text, value, span_over(children))

    def equivalence(self, children: Children) -> Expression:
        tests = _without_signs(children)
        span = span_over(children)
        if len(tests) == 1:
            return Equivalence(tests[0].attribute, tests[0].value, span)
        return self.nested(And(tuple(tests), span), tests)  # it may be printed in parentheses

    def inversion(self, children: Children) -> Not:
        _, operand = children
        return self.nested(Not(operand, span_over(children)), [operand])

    def conjunction(self, children: Children) -> And:
        return self._flat(And, children)

    def disjunction(self, children: Children) -> Or:
        return self._flat(Or, children)

    def _flat(self, kind: type[Node], children: Children) -> Node:
        operands: list[Expression] = []
        for child in children[0::2]:
            if isinstance(child, kind):
                operands.extend(child.operands)  # type: ignore[attr-defined]
            else:
                operands.append(child)
        node = kind(tuple(operands), span_over(children))  # type: ignore[call-arg]
        return self.nested(node, children[0::2], levels=0)


def _without_signs(children: Children) -> Children:
    return [child for child in children if not isinstance(child, Token)]
