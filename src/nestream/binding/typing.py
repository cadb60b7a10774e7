"""Checks the types of a plan's expressions, against a schema where one is known, and writes out conversions.

Numbers that meet in arithmetic or in a choice become one kind: floats beside a float, and a number that the
query writes with a point becomes a decimal beside decimals. In the SASE spelling a predicate on an attribute
that the event's type does not have is true. Nothing after binding needs to know of either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from nestream.binding.zones import in_their_zones
from nestream.logical.nodes import Component, Group, Leaf, Negation, Node, Plan, Proj, Witness, leaves
from nestream.model.aggregates import AGGREGATES, OF_DURATIONS, kind_of
from nestream.model.diagnostics import Diagnostic
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import (
    TIME_ATTRIBUTE,
    TYPE_ATTRIBUTE,
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
    attributes,
    plain_variables,
)
from nestream.model.expression import Parameter as Given
from nestream.model.functions import FUNCTIONS, Function, Parameter
from nestream.model.functions.define import ORDERED, size
from nestream.model.keep import Keep
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
    Decimal: Kind.DECIMAL,
}


def check_types(plan: Plan, schema: Schema | None = None) -> tuple[Plan, list[Diagnostic]]:
    """The plan for events of the schema, and every problem of its expressions with it."""
    checking = _Checking(plan, schema)
    root = checking.node(plan.root)
    columns = tuple(
        replace(column, expression=checking.checked(column.expression)[0])
        if isinstance(column, ValueColumn)
        else column
        for column in plan.output.columns
    )
    keep = checking.keep(plan.keep)
    if schema is not None:
        checking.check_window(schema)
        keep = keep and keep.with_expressions(lambda part: in_their_zones(part, schema))
        columns = tuple(
            replace(column, expression=in_their_zones(column.expression, schema))
            if isinstance(column, ValueColumn)
            else column
            for column in columns
        )
    output = replace(plan.output, columns=columns)
    return replace(plan, root=root, output=output, keep=keep), checking.diagnostics


def result_kind(plan: Plan, expression: Expression, schema: Schema) -> Kind:
    """The kind of a returned expression."""
    return _Checking(plan, schema).checked(expression)[1]


class _Checking:
    def __init__(self, plan: Plan, schema: Schema | None) -> None:
        self.plan = plan
        self.schema = schema
        self.types: Mapping[str, tuple[str, ...]] = {leaf.variable: leaf.types for leaf in leaves(plan.root)}
        self.diagnostics: list[Diagnostic] = []

    def of(self, variable: str) -> tuple[str, ...]:
        """The types of a variable; of any type those whose attributes are declared, and any other."""
        types = self.types[variable]
        if ANY_TYPE not in types or self.schema is None:
            return types
        return (*self.schema.types, ANY_TYPE)

    def report(self, code: str, message: str, at: Expression, hint: str | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, at.span, hint=hint))

    # -- the tree ------------------------------------------------------------------------------------------

    def node(self, node: Node) -> Node:
        predicates = tuple(self.for_types(self.formula(predicate)) for predicate in node.predicates)
        if self.schema is not None:
            predicates = tuple(in_their_zones(predicate, self.schema) for predicate in predicates)
        if isinstance(node, Leaf):
            return replace(node, predicates=predicates)
        assert not isinstance(node, Proj), "types are checked before a plan is rewritten"
        return replace(node, components=tuple(map(self.component, node.components)), predicates=predicates)

    def component(self, component: Component) -> Component:
        assert not isinstance(component, Witness), "types are checked before a plan is rewritten"
        if isinstance(component, Group):
            return replace(component, body=self.node(component.body))
        return (
            Negation(self.node(component.body)) if isinstance(component, Negation) else self.node(component)
        )

    def formula(self, formula: Expression) -> Expression:
        """Check that an expression is a condition, and check its parts."""
        checked, kind = self.checked(formula)
        if kind not in (Kind.BOOLEAN, Kind.UNKNOWN):
            self.report(
                "not-a-condition",
                f"`{print_expression(formula)}` is {a_kind(kind)}, and a predicate is a condition",
                formula,
                "compare it with something",
            )
        return checked

    def keep(self, keep: Keep | None) -> Keep | None:
        """KEEP with its expressions checked: their values can be compared, and EVERY fits the times."""
        if keep is None:
            return None
        for item in keep.expressions:
            typed = self.checked(item)
            if typed[1] is Kind.OTHER:
                self.comparable("=", typed, typed, item)
        kind = self.schema.kind(TIME_ATTRIBUTE) if self.schema is not None else None
        is_duration = isinstance(keep.every, Duration)
        if keep.every is not None and kind is not None:
            numbers = kind is Kind.INTEGER
            if is_duration and numbers:
                message, hint = "is a duration, and the times are integers", "write a number in their unit"
            elif not is_duration and not numbers and kind is not Kind.UNKNOWN:
                message, hint = "has no unit, and the times are timestamps", f"write `EVERY {keep.every} s`"
            else:
                message = hint = ""
            if message:
                said = f"EVERY {keep.every} {message}"
                self.diagnostics.append(Diagnostic("window-unit", said, keep.span, hint=hint))
        return keep.with_expressions(lambda item: self.checked(item)[0])

    # -- expressions ---------------------------------------------------------------------------------------

    def checked(self, expression: Expression) -> Typed:
        """The expression with its kind; problems in it are reported and give UNKNOWN."""
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
                        expression,
                        "write two values of one kind",
                    )
                    return expression, Kind.UNKNOWN
                return replace(expression, operands=tuple(part for part, _ in typed)), typed[0][1]
            case Equivalence():
                return expression, Kind.BOOLEAN
            case Given():  # it has got its value before
                return expression, Kind.UNKNOWN

    def aggregate(self, aggregate: Aggregate) -> Typed:
        """An aggregate over a group: its operand is checked, and the mean of durations told from others."""
        known = AGGREGATES.get(aggregate.function.split()[0])
        assert known is not None
        operand, kind = self.checked(aggregate.operand)
        if kind is not Kind.UNKNOWN and kind not in known.takes:
            self.report(
                "wrong-type",
                f"`{print_expression(aggregate.operand)}` is {a_kind(kind)}, and {known.name.upper()} takes "
                f"{known.said}",
                aggregate.operand,
            )
            return aggregate, Kind.UNKNOWN
        function = OF_DURATIONS if known.name == "avg" and kind is Kind.DURATION else aggregate.function
        gives = kind if kind is Kind.UNKNOWN and known.gives is None else kind_of(function, kind)
        return replace(aggregate, operand=operand, function=function), gives

    def attribute(self, attribute: Attribute) -> Kind:
        if self.schema is None:
            return Kind.UNKNOWN  # of `type` too: the data may have a column of that name
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
        """Operands that meet in one operation, each with its kind.

        Beside times with a zone a constant without one gets it, and beside decimals a number with a point is
        a decimal.
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
        """An argument with its kind, UNKNOWN if the parameter does not take it."""
        checked, kind = self.checked(operand)
        if kind is Kind.UNKNOWN or kind in parameter.accepts:
            return checked, kind
        hint = "a condition is a comparison, or another formula that holds or not"
        self.report(
            "wrong-type",
            f"`{print_expression(operand)}` is {a_kind(kind)}, not {parameter.said}",
            operand,
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
                expression,
                time_hint(expression, first, second) or clock_hint(first, second),
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
                culprit,
                "convert the column to a number, string, boolean or timestamp",
            )
        elif Kind.UNKNOWN in kinds:
            return
        elif not (kinds[0] is kinds[1] or (kinds[0].is_number and kinds[1].is_number)):
            hint = clock_hint(*kinds) or text_hint(*kinds)
            self.report(
                "wrong-type",
                f"cannot compare {a_kind(kinds[0])} with {a_kind(kinds[1])}",
                whole,
                hint,
            )
        elif operator not in ("=", "!=") and kinds[0] not in ORDERED:
            self.report(
                "wrong-type", f"{a_kind(kinds[0])} has no order, so `{operator}` does not apply", whole
            )

    # -- functions -----------------------------------------------------------------------------------------

    def call(self, call: Call) -> Typed:
        """A call of a function; that there is one, and takes so many arguments, was said in reading."""
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
        """Check an argument that has to be written in the query."""
        name = function.infix.removeprefix("NOT ") or function.name
        if not parameter.constant:
            return
        if not isinstance(argument, Literal):
            self.report(
                "not-constant",
                f"the {parameter.name} of {name} is a constant, and `{print_expression(argument)}` is not",
                argument,
                f"for example `{function.example.rpartition(' = ')[0]}`",
            )
        elif isinstance(argument.value, str) and (problem := parameter.problem(argument.value)):
            self.report("bad-constant", problem, argument)

    def alike(self, call: Call, arguments: list[Expression]) -> tuple[list[Expression], Kind]:
        """Arguments that have one kind: floats where numbers are mixed with floats, else decimals."""
        silent = len(self.diagnostics)
        typed = self.compared(tuple(arguments))
        del self.diagnostics[silent:]  # they were checked one by one
        kinds = {kind for _, kind in typed} - {Kind.UNKNOWN, Kind.OTHER}
        if len(kinds) > 1 and not all(kind.is_number for kind in kinds):
            name = "CASE" if call.function == "case" else call.function
            what = "values" if call.function == "case" else "arguments"
            self.report("wrong-type", f"the {what} of {name} differ in type", call)
            return arguments, Kind.UNKNOWN
        if Kind.FLOAT in kinds:
            return [as_float(part, kind) for part, kind in typed], Kind.FLOAT
        found = Kind.DECIMAL if Kind.DECIMAL in kinds else next(iter(kinds), Kind.UNKNOWN)
        return [part for part, _ in typed], found

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
            if part.variable not in plain_variables(predicate):
                continue  # in an aggregate an attribute that a type lacks is NULL
            types = self.of(part.variable or "")
            lacking = tuple(name for name in types if not self.schema.has(name, part.name))
            if len(lacking) == len(types):
                yield Literal(True)
            elif lacking:
                yield In(Attribute(part.variable, TYPE_ATTRIBUTE), tuple(map(Literal, lacking)))
