"""Binds RETURN and EXISTS: which variables a match keeps, and the columns it shows."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from nestream.binding.declare import Declarations
from nestream.language.ast import ReturnExpression, ReturnVariable
from nestream.model.diagnostics import Diagnostic, Span
from nestream.model.expression import Attribute, attributes
from nestream.model.output import EventColumn, Output, ValueColumn
from nestream.model.text import print_expression, print_name

MATCH_START = "match_start"
MATCH_END = "match_end"


def bind_output(
    returns: Sequence[ReturnVariable | ReturnExpression], declared: Declarations
) -> tuple[Output, list[Diagnostic]]:
    """The output of a query and the problems of its RETURN clause."""
    targets = tuple(name for name in declared.order if not declared.scopes.negated(name))
    visible = tuple(name for name in targets if name not in declared.hidden)
    binding = _OutputBinding(declared, visible)
    columns = tuple(binding.column(item) for item in returns) or tuple(EventColumn(name) for name in visible)
    binding.check_names(columns, returns)
    bare = bool(returns) and all(isinstance(item, ReturnVariable) for item in returns)
    kept = tuple(column.name for column in columns) if bare else visible
    return Output(kept, set(kept) != set(targets), columns), binding.diagnostics


class _OutputBinding:
    def __init__(self, declared: Declarations, visible: tuple[str, ...]) -> None:
        self.declared = declared
        self.visible = visible
        self.diagnostics: list[Diagnostic] = []

    def column(self, item: ReturnVariable | ReturnExpression) -> EventColumn | ValueColumn:
        if isinstance(item, ReturnVariable):
            self.check_variable(item.variable, item.span)
            return EventColumn(item.variable)
        for part in attributes(item.expression):
            self.check_variable(part.variable or "", part.span)
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
        return ValueColumn(item.name or "value", item.expression)

    def check_variable(self, name: str, span: Span) -> None:
        if name in self.visible:
            return
        hint: str | None
        if name in self.declared.hidden:
            message, hint = f"EXISTS drops `{name}`", "remove it from EXISTS to return it"
        elif name in self.declared.scopes.of:
            message = f"`{name}` is negated, so a match has no event for it"
            hint = self.bound()
        else:
            message = f"unknown variable `{name}` in RETURN"
            close = get_close_matches(name, self.visible, 1)
            hint = f"did you mean `{close[0]}`?" if close else self.bound()
        self.diagnostics.append(Diagnostic("cannot-return", message, span, hint=hint))

    def bound(self) -> str | None:
        """The variables that a match has, as a hint."""
        return f"a match has {', '.join(f'`{name}`' for name in self.visible)}" if self.visible else None

    def check_names(
        self,
        columns: Sequence[EventColumn | ValueColumn],
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
                        if isinstance(column, EventColumn)
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
