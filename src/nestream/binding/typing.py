"""Checks the types of a plan's expressions, against a schema where one is known.

In the SASE spelling a predicate on an attribute that the event's type does not have is true; that is written
into the predicates here, so that nothing after binding needs to know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from itertools import pairwise

from nestream.binding.zones import in_their_zones
from nestream.logical.nodes import Component, Leaf, Negation, Node, Plan, Proj, Witness, leaves
from nestream.model.diagnostics import Diagnostic
from nestream.model.expression import (
    FUNCTIONS,
    TYPE_ATTRIBUTE,
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
    attributes,
)
from nestream.model.output import ValueColumn
from nestream.model.schema import Kind, Schema
from nestream.model.text import print_expression
from nestream.model.time import Duration, WindowKind

_KINDS: dict[type, Kind] = {
    bool: Kind.BOOLEAN,
    int: Kind.INTEGER,
    float: Kind.FLOAT,
    str: Kind.STRING,
    Duration: Kind.DURATION,
}
_ORDERED = frozenset((Kind.INTEGER, Kind.FLOAT, Kind.STRING, Kind.TIMESTAMP, Kind.ZONED, Kind.DURATION))
_TIMES = frozenset((Kind.TIMESTAMP, Kind.ZONED))


def check_types(plan: Plan, schema: Schema | None = None) -> tuple[Plan, list[Diagnostic]]:
    """The plan for events of the schema, and every problem of its expressions with it."""
    checking = _Checking(plan, schema)
    root = checking.node(plan.root)
    for column in plan.output.columns:
        if isinstance(column, ValueColumn):
            checking.kind(column.expression)
    if schema is not None:
        checking.check_window(schema)
        columns = tuple(
            replace(column, expression=in_their_zones(column.expression, schema))
            if isinstance(column, ValueColumn)
            else column
            for column in plan.output.columns
        )
        plan = replace(plan, output=replace(plan.output, columns=columns))
    return replace(plan, root=root), checking.diagnostics


def result_kind(plan: Plan, expression: Expression, schema: Schema) -> Kind:
    """The kind of a returned expression."""
    return _Checking(plan, schema).kind(expression)


class _Checking:
    def __init__(self, plan: Plan, schema: Schema | None) -> None:
        self.plan = plan
        self.schema = schema
        self.types: Mapping[str, tuple[str, ...]] = {leaf.variable: leaf.types for leaf in leaves(plan.root)}
        self.diagnostics: list[Diagnostic] = []

    def report(self, code: str, message: str, at: Expression, hint: str | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, at.span, hint=hint))

    # -- the tree ------------------------------------------------------------------------------------------

    def node(self, node: Node) -> Node:
        for predicate in node.predicates:
            self.formula(predicate)
        predicates = tuple(self.for_types(predicate) for predicate in node.predicates)
        if self.schema is not None:
            predicates = tuple(in_their_zones(predicate, self.schema) for predicate in predicates)
        if isinstance(node, Leaf):
            return replace(node, predicates=predicates)
        assert not isinstance(node, Proj), "types are checked before a plan is rewritten"
        return replace(node, components=tuple(map(self.component, node.components)), predicates=predicates)

    def component(self, component: Component) -> Component:
        assert not isinstance(component, Witness), "types are checked before a plan is rewritten"
        return (
            Negation(self.node(component.body)) if isinstance(component, Negation) else self.node(component)
        )

    def formula(self, formula: Expression) -> None:
        """Check that an expression is a condition, and check its parts."""
        kind = self.kind(formula)
        if kind not in (Kind.BOOLEAN, Kind.UNKNOWN):
            self.report(
                "not-a-condition",
                f"`{print_expression(formula)}` is {_a(kind)}, and a predicate is a condition",
                formula,
                "compare it with something",
            )

    # -- expressions ---------------------------------------------------------------------------------------

    def kind(self, expression: Expression) -> Kind:
        """The kind of an expression; problems in it are reported and give UNKNOWN."""
        match expression:
            case Literal(value=datetime() as value):
                return Kind.ZONED if value.tzinfo is not None else Kind.TIMESTAMP
            case Literal(value=value):
                return _KINDS[type(value)]
            case Attribute():
                return self.attribute(expression)
            case Negative(operand=operand):
                return self.require(
                    operand, lambda k: k.is_number or k is Kind.DURATION, "a number or duration"
                )
            case Arithmetic():
                return self.arithmetic(expression)
            case Comparison(operator=operator, operands=operands):
                for left, right in pairwise(operands):
                    self.comparable(operator, left, right, expression)
                return Kind.BOOLEAN
            case Not(operand=operand):
                self.formula(operand)
                return Kind.BOOLEAN
            case And(operands=operands) | Or(operands=operands):
                for operand in operands:
                    self.formula(operand)
                return Kind.BOOLEAN
            case In(operand=operand, values=members):
                for member in members:
                    self.comparable("=", operand, member, expression)
                return Kind.BOOLEAN
            case Between(operand=operand, low=low, high=high):
                self.comparable("<=", low, operand, expression)
                self.comparable("<=", operand, high, expression)
                return Kind.BOOLEAN
            case IsNull(operand=operand):
                self.kind(operand)
                return Kind.BOOLEAN
            case Call():
                return self.call(expression)
            case Equivalence():
                return Kind.BOOLEAN

    def attribute(self, attribute: Attribute) -> Kind:
        if self.schema is None:
            return Kind.UNKNOWN  # of `type` too: the data may have a column of that name
        variable = attribute.variable or ""
        kind = self.schema.kind(attribute.name)
        owners = [name for name in self.types[variable] if self.schema.has(name, attribute.name)]
        if owners and kind is not None:
            return kind
        if self.plan.exclusive and self.schema.types:
            return kind or Kind.UNKNOWN
        self.diagnostics.append(self.unknown_attribute(attribute, variable))
        return Kind.UNKNOWN

    def unknown_attribute(self, attribute: Attribute, variable: str) -> Diagnostic:
        assert self.schema is not None
        known = sorted(
            {
                name
                for name in self.schema.columns
                if any(self.schema.has(t, name) for t in self.types[variable])
            }
        )
        close = get_close_matches(attribute.name, known, 1)
        base, hyphen, rest = attribute.name.partition("-")
        if hyphen and base in known:
            hint = f"names may contain `-`: if a subtraction is meant, write `{variable}.{base} - {rest}`"
        elif close:
            hint = f"did you mean `{variable}.{close[0]}`?"
        else:
            hint = f"the attributes are {', '.join(f'`{name}`' for name in known)}"
        owner = " or ".join(self.types[variable])
        return Diagnostic(
            "unknown-attribute",
            f"{owner} events have no attribute `{attribute.name}`",
            attribute.span,
            hint=hint,
        )

    def kinds(self, left: Expression, right: Expression) -> tuple[Kind, Kind]:
        """The kinds of two expressions that meet in one operation."""
        (_, first), (_, second) = self.common_zone((left, right))
        return first, second

    def common_zone(self, operands: tuple[Expression, ...]) -> list[tuple[Expression, Kind]]:
        """The operands with their kinds; beside times with a zone, one written without gets it."""
        kinds = [(operand, self.kind(operand)) for operand in operands]
        if Kind.ZONED not in (kind for _, kind in kinds):
            return kinds
        return [
            (operand, Kind.ZONED if _is_constant(operand) and kind is Kind.TIMESTAMP else kind)
            for operand, kind in kinds
        ]

    def require(self, operand: Expression, holds: Callable[[Kind], bool], what: str) -> Kind:
        kind = self.kind(operand)
        if kind is Kind.UNKNOWN or holds(kind):
            return kind
        self.report("wrong-type", f"`{print_expression(operand)}` is {_a(kind)}, not {what}", operand)
        return Kind.UNKNOWN

    def arithmetic(self, expression: Arithmetic) -> Kind:
        left, right = self.kinds(expression.left, expression.right)
        result = _arithmetic_kind(expression.operator, left, right)
        if result is None:
            self.report(
                "wrong-type",
                f"`{expression.operator}` does not apply to {_a(left)} and {_a(right)}",
                expression,
                _clock_hint(left, right),
            )
            return Kind.UNKNOWN
        return result

    def comparable(self, operator: str, left: Expression, right: Expression, whole: Expression) -> None:
        kinds = self.kinds(left, right)
        if Kind.UNKNOWN in kinds:
            return
        if Kind.OTHER in kinds:
            culprit = left if kinds[0] is Kind.OTHER else right
            self.report(
                "not-comparable",
                f"`{print_expression(culprit)}` holds values that cannot be compared",
                culprit,
                "convert the column to a number, string, boolean or timestamp",
            )
        elif not (kinds[0] is kinds[1] or (kinds[0].is_number and kinds[1].is_number)):
            hint = _clock_hint(*kinds) or _text_hint(*kinds)
            self.report("wrong-type", f"cannot compare {_a(kinds[0])} with {_a(kinds[1])}", whole, hint)
        elif operator not in ("=", "!=") and kinds[0] not in _ORDERED:
            self.report("wrong-type", f"{_a(kinds[0])} has no order, so `{operator}` does not apply", whole)

    def call(self, call: Call) -> Kind:
        least, most = FUNCTIONS[call.function]
        count = len(call.arguments)
        if count < least or (most is not None and count > most):
            self.report("wrong-arguments", f"{call.function} takes {_count(least, most)}, not {count}", call)
            return Kind.UNKNOWN
        match call.function:
            case "abs":
                return self.require(
                    call.arguments[0], lambda k: k.is_number or k is Kind.DURATION, "a number or duration"
                )
            case "lower" | "upper":
                self.require(call.arguments[0], lambda k: k is Kind.STRING, "a string")
                return Kind.STRING
            case "length":
                self.require(call.arguments[0], lambda k: k is Kind.STRING, "a string")
                return Kind.INTEGER
            case _:
                return self.common_kind(call)

    def common_kind(self, call: Call) -> Kind:
        """The kind of a coalesce: that of its arguments, FLOAT where numbers are mixed."""
        kinds = [kind for _, kind in self.common_zone(call.arguments)]
        distinct = set(kinds) - {Kind.UNKNOWN}
        if Kind.OTHER in distinct or (len(distinct) > 1 and not all(kind.is_number for kind in distinct)):
            self.report("wrong-type", f"the arguments of {call.function} differ in type", call)
            return Kind.UNKNOWN
        if len(distinct) > 1:
            return Kind.FLOAT
        return distinct.pop() if distinct else Kind.UNKNOWN

    # -- the schema ----------------------------------------------------------------------------------------

    def check_window(self, schema: Schema) -> None:
        kind = schema.kind("ts")
        window = self.plan.window
        if window.kind is WindowKind.TIME and kind is Kind.INTEGER:
            self.diagnostics.append(
                Diagnostic(
                    "window-unit",
                    f"WITHIN {window} is a duration, and the time column `{schema.time}` holds integers",
                    self.plan.window_span,
                    hint="give the window as a bare number in the column's own unit, "
                    "or convert the column to timestamps",
                )
            )
        if window.kind is WindowKind.NUMBER and kind not in (Kind.INTEGER, Kind.UNKNOWN):
            self.diagnostics.append(
                Diagnostic(
                    "window-unit",
                    f"WITHIN {window} has no unit, and the time column `{schema.time}` holds timestamps",
                    self.plan.window_span,
                    hint=f"say the unit, for example `WITHIN {window} seconds`, or `WITHIN {window} EVENTS`",
                )
            )

    def for_types(self, predicate: Expression) -> Expression:
        """The predicate as SASE reads it: true for event types that lack an attribute it mentions."""
        if not self.plan.exclusive or self.schema is None or not self.schema.types:
            return predicate
        match predicate:
            case Not(operand=operand):
                return replace(predicate, operand=self.for_types(operand))
            case And(operands=operands) | Or(operands=operands):
                return replace(predicate, operands=tuple(map(self.for_types, operands)))
            case Comparison(operator=operator, operands=operands) if len(operands) > 2:
                pairs = pairwise(operands)
                return And(
                    tuple(self.for_types(Comparison(operator, pair, predicate.span)) for pair in pairs)
                )
            case _:
                exempt = tuple(self.exempt(predicate))
                if not exempt:
                    return predicate
                true = Literal(True)
                return true if true in exempt else Or((*exempt, predicate), predicate.span)

    def exempt(self, predicate: Expression) -> Iterator[Expression]:
        """For every attribute that some type of its variable lacks, the test for those types."""
        assert self.schema is not None
        for part in dict.fromkeys(attributes(predicate)):
            types = self.types[part.variable or ""]
            lacking = tuple(name for name in types if not self.schema.has(name, part.name))
            if len(lacking) == len(types):
                yield Literal(True)
            elif lacking:
                yield In(Attribute(part.variable, TYPE_ATTRIBUTE), tuple(map(Literal, lacking)))


def _arithmetic_kind(operator: str, left: Kind, right: Kind) -> Kind | None:
    """The kind of an arithmetic expression, None where the operator does not apply."""
    if Kind.UNKNOWN in (left, right):
        return Kind.FLOAT if operator == "/" else Kind.UNKNOWN
    if left.is_number and right.is_number:
        return Kind.INTEGER if left is right is Kind.INTEGER and operator != "/" else Kind.FLOAT
    match operator:
        case "+" if {left, right} == {Kind.DURATION} or (left in _TIMES and right is Kind.DURATION):
            return left
        case "+" if left is Kind.DURATION and right in _TIMES:
            return right
        case "-" if left is right and left in _TIMES | {Kind.DURATION}:
            return Kind.DURATION
        case "-" if left in _TIMES and right is Kind.DURATION:
            return left
        case "*" if {left, right} == {Kind.DURATION, Kind.INTEGER}:
            return Kind.DURATION
        case "/" if left is right is Kind.DURATION:
            return Kind.FLOAT
    return None


def _is_constant(expression: Expression) -> bool:
    return not any(True for _ in attributes(expression))


def _a(kind: Kind) -> str:
    """The kind with its article."""
    return f"an {kind}" if kind is Kind.INTEGER else f"a {kind}"


def _text_hint(left: Kind, right: Kind) -> str | None:
    """What to do about text beside something else."""
    if Kind.STRING in (left, right) and {left, right} & _TIMES:
        return "write the time as TIMESTAMP '2026-01-31 12:00:00', or convert the column"
    if Kind.STRING in (left, right) and (left.is_number or right.is_number):
        return "put the number in quotes, or convert the column"
    return None


def _clock_hint(left: Kind, right: Kind) -> str | None:
    """What to do about the usual confusions of times."""
    if {left, right} == {Kind.TIMESTAMP, Kind.ZONED}:
        return "one side has a time zone and the other has none: convert one of them"
    if {left, right} == {Kind.INTEGER, Kind.DURATION}:
        return "the time column holds integers: write the duration as a number in its unit"
    return None


def _count(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {least} argument" + ("s" if least != 1 else "")
    return f"{least} argument" + ("s" if least != 1 else "")
