"""Defines `ts`, `te` and `type`: columns of the data if it has them, otherwise an event's time and type.

A column of the data comes first: `a.type` is the column `type` if there is one, and otherwise the event's
type. The names of the time and type columns always reach an event's own time and type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nestream.logical.nodes import Component, Group, Leaf, Negation, Node, Plan, Proj, Witness, expressions
from nestream.model.expression import (
    COLUMN_MARK,
    END_ATTRIBUTE,
    TIME_ATTRIBUTE,
    Attribute,
    Expression,
    attributes,
    column_name,
    transform,
)
from nestream.model.output import ValueColumn
from nestream.model.schema import Schema


def with_own_columns(plan: Plan, schema: Schema) -> Plan:
    """The plan with `ts` and `type` replaced by columns of the data, if the data has them."""
    shadowed = schema.shadowed
    ends = END_ATTRIBUTE not in schema.columns and any(
        part.name == END_ATTRIBUTE for expression in expressions(plan) for part in attributes(expression)
    )
    if not shadowed and not ends:
        return plan

    def change(part: Expression) -> Expression:
        if isinstance(part, Attribute) and part.name == END_ATTRIBUTE and ends:
            return replace(part, name=TIME_ATTRIBUTE, own=True)
        if isinstance(part, Attribute) and column_name(part.name) in shadowed and not part.own:
            return replace(part, name=COLUMN_MARK + part.name)
        return part

    def node(old: Node) -> Node:
        predicates = tuple(transform(predicate, change) for predicate in old.predicates)
        if isinstance(old, Leaf):
            return replace(old, predicates=predicates)
        assert not isinstance(old, Proj), "columns are found before a plan is rewritten"
        return replace(old, predicates=predicates, components=tuple(map(component, old.components)))

    def component(old: Component) -> Component:
        assert not isinstance(old, Witness), "columns are found before a plan is rewritten"
        if isinstance(old, Group):
            return replace(old, body=node(old.body))
        return Negation(node(old.body)) if isinstance(old, Negation) else node(old)

    columns = tuple(
        replace(column, expression=transform(column.expression, change))
        if isinstance(column, ValueColumn)
        else column
        for column in plan.output.columns
    )
    keep = plan.keep and plan.keep.with_expressions(lambda part: transform(part, change))
    return replace(plan, root=node(plan.root), output=replace(plan.output, columns=columns), keep=keep)


def shadow_warnings(plan: Plan, schema: Schema) -> Iterator[str]:
    """Warnings for a query that mentions `ts` or `type` where the data has columns of these names."""
    parts = (part for expression in expressions(plan) for part in attributes(expression))
    read = {column_name(part.name) for part in parts if not part.own}
    for name, column in schema.shadowed.items():
        if name in read:
            own = "time" if name == "ts" else "type"
            yield (
                f"`{name}` in the query is the column `{name}` of the events, not the {own} of an event\n"
                f"  hint: the {own} is the column `{column}`; rename the column `{name}` to silence this"
            )
