"""Binds RETURN and EXISTS: which variables a match keeps, and the columns it shows."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from nestream.binding.declare import Declarations
from nestream.binding.groups import GroupBinding, has_aggregate, members, mentioned
from nestream.binding.scopes import AGGREGATED, group_names
from nestream.language.ast import IntoType, ReturnExpression, ReturnVariable
from nestream.model.diagnostics import Diagnostic, Span
from nestream.model.expression import TIME_ATTRIBUTE, TYPE_ATTRIBUTE, Attribute, Expression
from nestream.model.output import START, EventColumn, GroupColumn, Output, ValueColumn
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
    binding = _OutputBinding(declared, visible, groups)
    columns = tuple(binding.column(item) for item in returns) or tuple(
        binding.shown(name) for name in declared.shown if name in visible or name in groups
    )
    binding.check_names(columns, returns)
    if into is not None:
        binding.check_into(columns, returns)
    bare = bool(returns) and all(isinstance(column, EventColumn) for column in columns)
    kept = tuple(column.name for column in columns) if bare else visible
    shown = () if bare else groups
    if len(visible) < len(targets) and not bare:
        binding.check_dropped(columns, returns)
        shown = ()
    made = None if into is None else into.name
    return Output(kept, set(kept) != set(targets), columns, shown, made), binding.diagnostics


class _OutputBinding:
    def __init__(self, declared: Declarations, visible: tuple[str, ...], groups: tuple[str, ...]) -> None:
        self.declared = declared
        self.visible = visible
        self.groups = groups
        self.diagnostics: list[Diagnostic] = []

    def shown(self, name: str) -> EventColumn | GroupColumn:
        """The column of a variable or a group."""
        if name not in self.groups:
            return EventColumn(name)
        of_matches = name not in self.declared.order
        return GroupColumn(name, tuple(members(self.declared.scopes, name)) if of_matches else ())

    def column(self, item: ReturnVariable | ReturnExpression) -> EventColumn | GroupColumn | ValueColumn:
        if isinstance(item, ReturnVariable):
            self.check_variable(item.variable, item.span)
            return self.shown(item.variable)
        expression = self.expression(item.expression)
        if item.name is None:
            text = print_expression(item.expression)
            name = item.expression.name if isinstance(item.expression, Attribute) else "value"
            self.diagnostics.append(
                Diagnostic(
                    "unnamed-expression",
                    "a returned expression needs a name",
                    item.span,
                    hint="name it with AS",
                    suggestion=f"{text} AS {print_name(name)}",
                )
            )
        return ValueColumn(item.name or "value", expression)

    def expression(self, expression: Expression) -> Expression:
        """A returned expression with the groups of its aggregates."""
        binding = GroupBinding(self.declared.scopes)
        bound = binding.bound(expression)
        self.diagnostics += binding.diagnostics
        if bound is None:
            return expression
        for name, part in mentioned(bound, self.declared.scopes).items():
            group = name.removeprefix(AGGREGATED)
            if isinstance(part, Attribute) and name in self.declared.scopes.of:
                group = self.declared.scopes.group_of(name) or ""
                if group in self.groups:
                    self.diagnostics.append(
                        Diagnostic(
                            "grouped-variable",
                            f"`{name}` stands for each member of a group",
                            part.span,
                            hint="return the whole group, or a value of it",
                            suggestion=f"{print_name(group)}, or FIRST({print_expression(part)}) AS "
                            f"{print_name(part.name)}",
                        )
                    )
                    continue
            self.check_variable(name.removeprefix(AGGREGATED), part.span)
        return bound

    def check_dropped(
        self,
        columns: Sequence[EventColumn | GroupColumn | ValueColumn],
        returns: Sequence[ReturnVariable | ReturnExpression],
    ) -> None:
        """Report groups in the output of a query in which EXISTS drops events: the groups depend on those."""
        for place, column in enumerate(columns):
            grouped = isinstance(column, GroupColumn) or (
                isinstance(column, ValueColumn) and has_aggregate(column.expression)
            )
            if grouped:
                self.diagnostics.append(
                    Diagnostic(
                        "group-with-exists",
                        f"`{column.name}` depends on the events that EXISTS drops",
                        returns[place].span if returns else self.declared.scopes.root.span,
                        detail="matches that differ in a dropped event are one match, and may have different "
                        "groups",
                        hint="leave EXISTS out, or return single events alone",
                    )
                )
                return

    def check_variable(self, name: str, span: Span) -> None:
        if name in self.visible or name in self.groups:
            return
        hint: str | None
        if name in self.declared.hidden:
            message, hint = f"EXISTS drops `{name}`", "remove it from EXISTS to return it"
        elif name in self.declared.scopes.of and self.declared.scopes.group_of(name) in self.groups:
            group = self.declared.scopes.group_of(name)
            message = f"`{name}` belongs to the matches of the group `{group}`"
            hint = f"return `{group}`, the whole group"
        elif name in self.declared.scopes.of or name in self.declared.scopes.groups:
            message = f"`{name}` is negated, so a match has no event for it"
            hint = self.bound()
        else:
            message = f"unknown variable `{name}` in RETURN"
            close = get_close_matches(name, self.visible, 1)
            hint = f"did you mean `{close[0]}`?" if close else self.bound()
        self.diagnostics.append(Diagnostic("cannot-return", message, span, hint=hint))

    def bound(self) -> str | None:
        """The variables that a match has, as a hint."""
        names = [*self.visible, *self.groups]
        return f"a match has {', '.join(f'`{name}`' for name in names)}" if names else None

    def check_names(
        self,
        columns: Sequence[EventColumn | GroupColumn | ValueColumn],
        returns: Sequence[ReturnVariable | ReturnExpression],
    ) -> None:
        seen: set[str] = set()
        for place, column in enumerate(columns):
            span = returns[place].span if returns else self.declared.scopes.root.span
            if column.name in seen:
                self.diagnostics.append(
                    Diagnostic(
                        "duplicate-column",
                        f"two output columns are named `{column.name}`",
                        span,
                        hint="remove one of them"
                        if not isinstance(column, ValueColumn)
                        else "give one of them another name with AS",
                    )
                )
            if column.name in (MATCH_START, MATCH_END):
                self.diagnostics.append(
                    Diagnostic(
                        "reserved-column",
                        f"every match has a column `{column.name}` already",
                        span,
                        hint="choose another name",
                    )
                )
            seen.add(column.name)

    def check_into(
        self,
        columns: Sequence[EventColumn | GroupColumn | ValueColumn],
        returns: Sequence[ReturnVariable | ReturnExpression],
    ) -> None:
        """Report what cannot be an attribute of the events that the matches become."""
        for column, item in zip(columns, returns, strict=True):
            if not isinstance(column, ValueColumn):
                self.diagnostics.append(
                    Diagnostic(
                        "into-without-value",
                        f"`{column.name}` is a whole {_words(column)}, and INTO makes attributes of values",
                        item.span,
                        hint="return the attributes that are needed",
                        suggestion=f"{print_name(column.name)}.id AS id"
                        if isinstance(column, EventColumn)
                        else f"COUNT({print_name(column.name)}) AS count",
                    )
                )
            elif column.name in RESERVED:
                self.diagnostics.append(
                    Diagnostic(
                        "reserved-attribute",
                        f"an event made by INTO has `{column.name}` already: {RESERVED[column.name]}",
                        item.span,
                        hint="choose another name",
                    )
                )


def _words(column: EventColumn | GroupColumn) -> str:
    return "event" if isinstance(column, EventColumn) else "group"
