"""Binds RETURN and EXISTS: which variables a match keeps, and the columns it shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from nestream.binding.declare import Declarations
from nestream.binding.groups import GroupBinding, has_aggregate, members, mentioned
from nestream.binding.named_expressions import value, wrong_attributes
from nestream.binding.scopes import AGGREGATED, Scope, group_names, member_variables
from nestream.language.ast import IntoType, ReturnExpression, ReturnVariable
from nestream.model.diagnostics import Diagnostic, Reporting, Span
from nestream.model.expression import PATH_MARK, TIME_ATTRIBUTE, TYPE_ATTRIBUTE, Attribute, Expression
from nestream.model.output import (
    START,
    Column,
    CompositeColumn,
    EventColumn,
    GroupColumn,
    Output,
    ValueColumn,
)
from nestream.model.text import print_expression, print_name

MATCH_START = "match_start"
MATCH_END = "match_end"
RESERVED = {
    TIME_ATTRIBUTE: "the end of its match",
    TYPE_ATTRIBUTE: "the name after INTO",
    START: "the start of its match",
}
"""The attributes that every event made by INTO has."""


def bind_output(
    returns: Sequence[ReturnVariable | ReturnExpression],
    declared: Declarations,
    into: IntoType | None = None,
) -> tuple[Output, list[Diagnostic]]:
    """The output of a query and the problems of its RETURN clause."""
    scopes = declared.scopes
    targets = tuple(name for name in declared.order if scopes.positive(name))
    visible = tuple(name for name in targets if name not in declared.hidden)
    groups = tuple(name for name in group_names(scopes.root) if name not in declared.hidden)
    named = tuple(
        name
        for name, scope in scopes.named.items()
        if scopes.positive(name) and declared.hidden.isdisjoint((name, *member_variables(scope)))
    )
    binding = _OutputBinding(declared, visible, groups, named)
    columns = tuple(binding.column(item) for item in returns) or tuple(
        column for name in declared.shown for column in binding.by_default(name)
    )
    binding.check_names(columns, returns)
    if into is not None and returns:  # without items: the wrong ones were already reported
        binding.check_into(columns, returns)
    bare = bool(returns) and all(
        isinstance(column, EventColumn | CompositeColumn) and not column.groups for column in columns
    )
    kept = tuple(dict.fromkeys(name for column in columns for name in column.events)) if bare else visible
    shown = () if bare else groups
    if len(visible) < len(targets) and not bare:
        binding.check_dropped(columns, returns)
        shown = ()
    made = None if into is None else into.name
    return Output(kept, set(kept) != set(targets), columns, shown, made), binding.diagnostics


class _OutputBinding(Reporting):
    def __init__(
        self,
        declared: Declarations,
        visible: tuple[str, ...],
        groups: tuple[str, ...],
        named: tuple[str, ...],
    ) -> None:
        super().__init__()
        self.declared = declared
        self.visible = visible
        self.groups = groups
        self.named = named

    def shown(self, name: str) -> EventColumn | GroupColumn | CompositeColumn:
        """The column of a variable: an event, a group, or an expression."""
        if name in self.named:
            return CompositeColumn(name, tuple(self.parts(self.declared.scopes.named[name])))
        if name not in self.groups:
            return EventColumn(name)
        of_matches = name not in self.declared.order
        return GroupColumn(name, tuple(members(self.declared.scopes, name)) if of_matches else ())

    def by_default(self, name: str) -> Iterator[EventColumn | GroupColumn | CompositeColumn]:
        """What a match shows of a variable; for an expression with a dropped event, what is left of it."""
        scopes = self.declared.scopes
        if name in self.visible or name in self.groups or name in self.named:
            yield self.shown(name)
        elif name in scopes.named and scopes.positive(name):
            yield from self.parts(scopes.named[name])

    def parts(self, scope: Scope) -> Iterator[EventColumn | GroupColumn | CompositeColumn]:
        """What a match of an expression holds."""
        for item in scope.items:
            if isinstance(item, str):
                name = item
            elif item.negated:
                continue
            elif item.group is not None:
                name = item.group_name
            elif item.variable in self.named:
                name = item.variable
            else:
                yield from self.parts(item)
                continue
            if name not in self.declared.hidden:
                yield self.shown(name)

    def column(self, item: ReturnVariable | ReturnExpression) -> Column:
        if isinstance(item, ReturnVariable):
            self.check_variable(item.variable, item.span)
            return self.shown(item.variable)
        expression = self.expression(item.expression)
        if item.name is None:
            text = print_expression(item.expression)
            name = "value"
            if isinstance(item.expression, Attribute):
                name = item.expression.name.split(PATH_MARK)[-1]
            self.report(
                "unnamed-expression",
                "a returned expression needs a name",
                item.span,
                hint="name it with AS",
                suggestion=f"{text} AS {print_name(name)}",
            )
        return ValueColumn(item.name or "value", expression)

    def expression(self, expression: Expression) -> Expression:
        """A returned expression with the groups of its aggregates."""
        scopes = self.declared.scopes
        binding = GroupBinding(scopes)
        bound = binding.bound(expression)
        wrong = list(wrong_attributes(expression if bound is None else bound, scopes))
        self.diagnostics += [*binding.diagnostics, *wrong]
        if bound is None or wrong:
            return expression
        for name, part in mentioned(bound, self.declared.scopes).items():
            group = name.removeprefix(AGGREGATED)
            if isinstance(part, Attribute) and name in self.declared.scopes.of:
                group = self.declared.scopes.group_of(name) or ""
                if group in self.groups:
                    self.report(
                        "grouped-variable",
                        f"`{name}` ranges over the members of a group",
                        part.span,
                        hint="return the whole group, or a value of it",
                        suggestion=f"{print_name(group)}, or FIRST({print_expression(part)}) AS "
                        f"{print_name(part.name)}",
                    )
                    continue
            self.check_variable(name.removeprefix(AGGREGATED), part.span)
        return value(bound, scopes)

    def check_dropped(
        self,
        columns: Sequence[Column],
        returns: Sequence[ReturnVariable | ReturnExpression],
    ) -> None:
        """Report groups in the output of a query where EXISTS drops events that they depend on."""
        for place, column in enumerate(columns):
            grouped = column.groups or (isinstance(column, ValueColumn) and has_aggregate(column.expression))
            if grouped:
                self.report(
                    "group-with-exists",
                    f"`{column.name}` depends on the events that EXISTS drops",
                    returns[place].span if returns else self.declared.scopes.root.span,
                    detail="matches that differ in a dropped event are one match, and may have different "
                    "groups",
                    hint="leave EXISTS out, or return single events alone",
                )
                return

    def check_variable(self, name: str, span: Span) -> None:
        if name in self.visible or name in self.groups or name in self.named:
            return
        hint: str | None
        if name in self.declared.hidden:
            message, hint = f"EXISTS drops `{name}`", "remove it from EXISTS to return it"
        elif name in self.declared.scopes.named and self.declared.scopes.positive(name):
            message, hint = f"EXISTS drops an event of `{name}`", "return the events that are left"
        elif name in self.declared.scopes.of and self.declared.scopes.group_of(name) in self.groups:
            group = self.declared.scopes.group_of(name)
            message = f"`{name}` belongs to the matches of the group `{group}`"
            hint = f"return `{group}`, the whole group"
        elif name in self.declared.scopes.of or name in self.declared.scopes.groups:
            message = f"`{name}` is negated, so a match has no event for it"
            hint = self.bound()
        else:
            message = f"unknown variable `{name}` in RETURN"
            close = get_close_matches(name, [*self.visible, *self.groups, *self.named], 1)
            hint = f"did you mean `{close[0]}`?" if close else self.bound()
        self.report("cannot-return", message, span, hint=hint)

    def bound(self) -> str | None:
        """The variables that a match has, as a hint."""
        names = [*self.visible, *self.groups, *self.named]
        return f"a match has {', '.join(f'`{name}`' for name in names)}" if names else None

    def check_names(
        self,
        columns: Sequence[Column],
        returns: Sequence[ReturnVariable | ReturnExpression],
    ) -> None:
        seen: set[str] = set()
        for place, column in enumerate(columns):
            span = returns[place].span if returns else self.declared.scopes.root.span
            if column.name in seen:
                self.report(
                    "duplicate-column",
                    f"two output columns are named `{column.name}`",
                    span,
                    hint="remove one of them"
                    if not isinstance(column, ValueColumn)
                    else "give one of them another name with AS",
                )
            if column.name in (MATCH_START, MATCH_END):
                self.report(
                    "reserved-column",
                    f"every match has a column `{column.name}` already",
                    span,
                    hint="choose another name",
                )
            seen.add(column.name)

    def check_into(
        self,
        columns: Sequence[Column],
        returns: Sequence[ReturnVariable | ReturnExpression],
    ) -> None:
        """Report what cannot be an attribute of the events that the matches become."""
        for column, item in zip(columns, returns, strict=True):
            if not isinstance(column, ValueColumn):
                self.report(
                    "into-without-value",
                    f"`{column.name}` is a whole {_words(column)}, and INTO makes attributes of values",
                    item.span,
                    hint="return the attributes that are needed",
                    suggestion=f"COUNT({print_name(column.name)}) AS count"
                    if isinstance(column, GroupColumn)
                    else f"{print_name(column.name)}.{'ts AS begin' if _is_long(column) else 'id AS id'}",
                )
            elif column.name in RESERVED:
                self.report(
                    "reserved-attribute",
                    f"an event made by INTO has `{column.name}` already: {RESERVED[column.name]}",
                    item.span,
                    hint="choose another name",
                )


def _is_long(column: Column) -> bool:
    return isinstance(column, CompositeColumn)


def _words(column: EventColumn | CompositeColumn | GroupColumn) -> str:
    if isinstance(column, CompositeColumn):
        return "expression"
    return "event" if isinstance(column, EventColumn) else "group"
