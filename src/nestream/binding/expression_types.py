"""Infers the kinds of expressions, checks their operands, and makes conversions explicit.

Numbers that meet in arithmetic or in a choice become one kind: floats next to a float, and a number written
with a point becomes a decimal next to decimals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from itertools import pairwise

from nestream.binding.kinds import (
    Typed,
    a_kind,
    arithmetic_kind,
    as_float,
    clock_hint,
    exact,
    is_constant,
    text_hint,
    time_hint,
)
from nestream.binding.unknown_attributes import unknown_attribute
from nestream.logical.nodes import Plan, leaves
from nestream.model.aggregates import AGGREGATES, OF_DURATIONS, kind_of
from nestream.model.diagnostics import Reporting
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import (
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
    Previous,
)
from nestream.model.expression import Parameter as Given
from nestream.model.functions import FUNCTIONS, Function, Parameter
from nestream.model.functions.define import ORDERED, size
from nestream.model.schema import Kind, Schema
from nestream.model.text import print_expression
from nestream.model.time import Duration

_KINDS: dict[type, Kind] = {
    bool: Kind.BOOLEAN,
    int: Kind.INTEGER,
    float: Kind.FLOAT,
    str: Kind.STRING,
    Duration: Kind.DURATION,
    Decimal: Kind.DECIMAL,
}


class ExpressionTypes(Reporting):
    """The expressions of a plan over events of a schema, if one is known, and the problems in them."""

    def __init__(self, plan: Plan, schema: Schema | None) -> None:
        super().__init__()
        self.plan = plan
        self.schema = schema
        self.types: Mapping[str, tuple[str, ...]] = {leaf.variable: leaf.types for leaf in leaves(plan.root)}

    def of(self, variable: str) -> tuple[str, ...]:
        """The types of a variable; for ANY, those whose attributes are declared, and any other."""
        types = self.types[variable]
        if ANY_TYPE not in types or self.schema is None:
            return types
        return (*self.schema.types, ANY_TYPE)

    def formula(self, formula: Expression) -> Expression:
        """Check that an expression is a condition, and check its parts."""
        checked, kind = self.checked(formula)
        if kind not in (Kind.BOOLEAN, Kind.UNKNOWN):
            self.report(
                "not-a-condition",
                f"`{print_expression(formula)}` is {a_kind(kind)}, not a condition",
                formula.span,
                "compare it with something",
            )
        return checked

    def checked(self, expression: Expression) -> Typed:
        """The expression with its kind; problems in it are reported, and its kind is then UNKNOWN."""
        match expression:
            case Literal(value=datetime() as value):
                return expression, Kind.ZONED if value.tzinfo is not None else Kind.TIMESTAMP
            case Literal(value=value):
                return expression, _KINDS[type(value)]
            case Attribute():
                return expression, self.attribute(expression)
            case Negative(operand=operand):
                negated, kind = self.required(operand, size())
                return replace(expression, operand=negated), kind
            case Arithmetic():
                return self.arithmetic(expression)
            case Comparison(operator=operator, operands=operands):
                typed = self.compared(operands)
                for left, right in pairwise(typed):
                    self.comparable(operator, left, right, expression)
                return replace(expression, operands=tuple(part for part, _ in typed)), Kind.BOOLEAN
            case Not(operand=operand):
                return replace(expression, operand=self.formula(operand)), Kind.BOOLEAN
            case And(operands=operands) | Or(operands=operands):
                return replace(expression, operands=tuple(map(self.formula, operands))), Kind.BOOLEAN
            case In(operand=operand, values=members):
                first, *rest = self.compared((operand, *members))
                for member in rest:
                    self.comparable("=", first, member, expression)
                return replace(
                    expression, operand=first[0], values=tuple(part for part, _ in rest)
                ), Kind.BOOLEAN
            case Between(operand=operand, low=low, high=high):
                middle, least, most = self.compared((operand, low, high))
                self.comparable("<=", least, middle, expression)
                self.comparable("<=", middle, most, expression)
                return replace(expression, operand=middle[0], low=least[0], high=most[0]), Kind.BOOLEAN
            case IsNull(operand=operand):
                return replace(expression, operand=self.checked(operand)[0]), Kind.BOOLEAN
            case Call():
                return self.call(expression)
            case Aggregate():
                return self.aggregate(expression)
            case Previous(operands=operands):
                typed = self.compared(operands)
                kinds = {kind for _, kind in typed} - {Kind.UNKNOWN}
                if len(kinds) > 1 and all(kind.is_number for kind in kinds):
                    return replace(
                        expression, operands=tuple(as_float(part, kind) for part, kind in typed)
                    ), Kind.FLOAT
                if len(kinds) > 1:
                    self.report(
                        "wrong-type",
                        f"PREV is {a_kind(typed[0][1])}, and {a_kind(typed[1][1])} for the first member",
                        expression.span,
                        "write two values of one kind",
                    )
                    return expression, Kind.UNKNOWN
                return replace(expression, operands=tuple(part for part, _ in typed)), typed[0][1]
            case Equivalence():
                return expression, Kind.BOOLEAN
            case Given():  # it already has its value
                return expression, Kind.UNKNOWN

    def aggregate(self, aggregate: Aggregate) -> Typed:
        """An aggregate over a group: checks the operand, and treats the mean of durations separately."""
        known = AGGREGATES.get(aggregate.function.split()[0])
        assert known is not None
        operand, kind = self.checked(aggregate.operand)
        if kind is not Kind.UNKNOWN and kind not in known.takes:
            self.report(
                "wrong-type",
                f"`{print_expression(aggregate.operand)}` is {a_kind(kind)}, and {known.name.upper()} takes "
                f"{known.said}",
                aggregate.operand.span,
            )
            return aggregate, Kind.UNKNOWN
        function = OF_DURATIONS if known.name == "avg" and kind is Kind.DURATION else aggregate.function
        gives = kind if kind is Kind.UNKNOWN and known.gives is None else kind_of(function, kind)
        return replace(aggregate, operand=operand, function=function), gives

    def attribute(self, attribute: Attribute) -> Kind:
        if self.schema is None:
            return Kind.UNKNOWN  # also for `type`: the data may have a column of that name
        variable = attribute.variable or ""
        kind = self.schema.kind(attribute.name)
        if kind is not None and any(self.schema.has(name, attribute.name) for name in self.of(variable)):
            return kind
        if self.plan.exclusive and self.schema.types:
            return kind or Kind.UNKNOWN
        self.diagnostics.append(
            unknown_attribute(attribute, self.schema, self.of(variable), self.types[variable])
        )
        return Kind.UNKNOWN

    def compared(self, operands: tuple[Expression, ...]) -> list[Typed]:
        """Operands of one operation, each with its kind.

        Next to times with a zone, a constant without one gets that zone; next to decimals, a number with a
        point is a decimal.
        """
        typed = [self.checked(operand) for operand in operands]
        kinds = {kind for _, kind in typed}
        if Kind.ZONED in kinds:
            typed = [
                (part, Kind.ZONED if is_constant(part) and kind is Kind.TIMESTAMP else kind)
                for part, kind in typed
            ]
        if Kind.DECIMAL in kinds:
            typed = [exact(part) or (part, kind) for part, kind in typed]
        return typed

    def required(self, operand: Expression, parameter: Parameter) -> Typed:
        """An argument with its kind; UNKNOWN if the parameter does not accept it."""
        checked, kind = self.checked(operand)
        if kind is Kind.UNKNOWN or kind in parameter.accepts:
            return checked, kind
        hint = "a condition is a comparison, or another formula that holds or not"
        self.report(
            "wrong-type",
            f"`{print_expression(operand)}` is {a_kind(kind)}, not {parameter.said}",
            operand.span,
            hint if parameter.accepts == {Kind.BOOLEAN} else None,
        )
        return checked, Kind.UNKNOWN

    def arithmetic(self, expression: Arithmetic) -> Typed:
        (left, first), (right, second) = self.compared((expression.left, expression.right))
        result = arithmetic_kind(expression.operator, first, second)
        if result is None:
            known = [a_kind(kind) for kind in (first, second) if kind is not Kind.UNKNOWN]
            self.report(
                "wrong-type",
                f"`{expression.operator}` does not apply to {' and '.join(known)}",
                expression.span,
                time_hint(expression, first, second) or clock_hint((left, first), (right, second)),
            )
            return expression, Kind.UNKNOWN
        if Kind.FLOAT in (first, second):
            left, right = as_float(left, first), as_float(right, second)
        return replace(expression, left=left, right=right), result

    def comparable(self, operator: str, left: Typed, right: Typed, whole: Expression) -> None:
        """Check that two operands can be compared with each other."""
        kinds = left[1], right[1]
        if Kind.OTHER in kinds:
            culprit = left[0] if kinds[0] is Kind.OTHER else right[0]
            self.report(
                "not-comparable",
                f"`{print_expression(culprit)}` holds values that cannot be compared",
                culprit.span,
                "convert the column to a number, string, boolean or timestamp",
            )
        elif Kind.UNKNOWN in kinds:
            return
        elif not (kinds[0] is kinds[1] or (kinds[0].is_number and kinds[1].is_number)):
            hint = clock_hint(left, right) or text_hint(*kinds)
            self.report(
                "wrong-type",
                f"cannot compare {a_kind(kinds[0])} with {a_kind(kinds[1])}",
                whole.span,
                hint,
            )
        elif operator not in ("=", "!=") and kinds[0] not in ORDERED:
            self.report(
                "wrong-type", f"{a_kind(kinds[0])} has no order, so `{operator}` does not apply", whole.span
            )

    # -- functions -----------------------------------------------------------------------------------------

    def call(self, call: Call) -> Typed:
        """A call of a function; the parser has checked its name and number of arguments."""
        function, count = FUNCTIONS.get(call.function), len(call.arguments)
        if function is None or count < function.least or count > (function.most or count):
            for argument in call.arguments:
                self.checked(argument)
            return call, Kind.UNKNOWN
        parameters = [function.parameter(place, count) for place in range(count)]
        typed = [
            self.required(argument, parameter)
            for argument, parameter in zip(call.arguments, parameters, strict=True)
        ]
        for argument, parameter in zip(call.arguments, parameters, strict=True):
            self.constant(argument, parameter, function)
        kind = function.gives or typed[function.least - 1][1]
        common = [place for place, parameter in enumerate(parameters) if parameter.common]
        if common:
            alike, kind = self.alike(call, [call.arguments[place] for place in common])
            for place, argument in zip(common, alike, strict=True):
                typed[place] = argument, kind
        arguments = tuple(
            as_float(part, found) if parameter.becomes_float else part
            for (part, found), parameter in zip(typed, parameters, strict=True)
        )
        return replace(call, arguments=arguments), kind

    def constant(self, argument: Expression, parameter: Parameter, function: Function) -> None:
        """Check an argument that must be a constant in the query."""
        name = function.infix.removeprefix("NOT ") or function.name
        if not parameter.constant:
            return
        if not isinstance(argument, Literal):
            self.report(
                "not-constant",
                f"the {parameter.name} of {name} is a constant, and `{print_expression(argument)}` is not",
                argument.span,
                f"for example `{function.example.rpartition(' = ')[0]}`",
            )
        elif isinstance(argument.value, str) and (problem := parameter.problem(argument.value)):
            self.report("bad-constant", problem, argument.span)

    def alike(self, call: Call, arguments: list[Expression]) -> tuple[list[Expression], Kind]:
        """Convert arguments to one kind: floats if numbers are mixed with floats, otherwise decimals."""
        silent = len(self.diagnostics)
        typed = self.compared(tuple(arguments))
        del self.diagnostics[silent:]  # they were checked one by one
        kinds = {kind for _, kind in typed} - {Kind.UNKNOWN, Kind.OTHER}
        if len(kinds) > 1 and not all(kind.is_number for kind in kinds):
            name = "CASE" if call.function == "case" else call.function
            what = "values" if call.function == "case" else "arguments"
            self.report("wrong-type", f"the {what} of {name} differ in type", call.span)
            return arguments, Kind.UNKNOWN
        if Kind.FLOAT in kinds:
            return [as_float(part, kind) for part, kind in typed], Kind.FLOAT
        found = Kind.DECIMAL if Kind.DECIMAL in kinds else next(iter(kinds), Kind.UNKNOWN)
        return [part for part, _ in typed], found
