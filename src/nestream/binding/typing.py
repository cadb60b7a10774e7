"""Checks the types of a plan, against a schema if one is known, and makes conversions explicit.

In the SASE dialect, a predicate on an attribute that the event's type lacks is true. No stage after binding
needs to know about that, or about conversions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from nestream.binding.expression_types import ExpressionTypes
from nestream.binding.unknown_attributes import once_for_each_place
from nestream.binding.zones import in_their_zones
from nestream.logical.nodes import Component, Group, Leaf, Negation, Node, Plan, Proj, Witness
from nestream.model.diagnostics import Diagnostic
from nestream.model.expression import (
    TIME_ATTRIBUTE,
    TYPE_ATTRIBUTE,
    And,
    Attribute,
    Comparison,
    Expression,
    In,
    Literal,
    Not,
    Or,
    attributes,
    plain_variables,
)
from nestream.model.keep import Keep
from nestream.model.output import ValueColumn
from nestream.model.schema import Kind, Schema
from nestream.model.time import Duration, WindowKind


def check_types(plan: Plan, schema: Schema | None = None) -> tuple[Plan, list[Diagnostic]]:
    """The plan for events of the schema, and every type error in it."""
    checking = _PlanTypes(plan, schema)
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
    return replace(plan, root=root, output=output, keep=keep), once_for_each_place(checking.diagnostics)


def result_kind(plan: Plan, expression: Expression, schema: Schema) -> Kind:
    """The kind of a returned expression."""
    return _PlanTypes(plan, schema).checked(expression)[1]


class _PlanTypes(ExpressionTypes):
    """Checks the expressions of a plan in place."""

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

    def keep(self, keep: Keep | None) -> Keep | None:
        """Check the expressions of KEEP: their values must be comparable, and EVERY must fit the times."""
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
                self.report("window-unit", said, keep.span, hint=hint)
        return keep.with_expressions(lambda item: self.checked(item)[0])

    # -- the schema ----------------------------------------------------------------------------------------

    def check_window(self, schema: Schema) -> None:
        kind = schema.kind("ts")
        window = self.plan.window
        if window.kind is WindowKind.TIME and kind is Kind.INTEGER:
            self.report(
                "window-unit",
                f"WITHIN {window} is a duration, and the time column `{schema.time}` holds integers",
                self.plan.window_span,
                hint="write the window as a number in the column's unit, or convert the column to timestamps",
            )
        if window.kind is WindowKind.NUMBER and kind not in (Kind.INTEGER, Kind.UNKNOWN):
            self.report(
                "window-unit",
                f"WITHIN {window} has no unit, and the time column `{schema.time}` holds timestamps",
                self.plan.window_span,
                hint=f"add a unit, for example `WITHIN {window} seconds`, or `WITHIN {window} EVENTS`",
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
                continue  # in an aggregate, an attribute that a type lacks is NULL
            types = self.of(part.variable or "")
            lacking = tuple(name for name in types if not self.schema.has(name, part.name))
            if len(lacking) == len(types):
                yield Literal(True)
            elif lacking:
                yield In(Attribute(part.variable, TYPE_ATTRIBUTE), tuple(map(Literal, lacking)))
