"""Binds aggregates: finds the group of each, and what a predicate mentions around groups.

An aggregate mentions its group as a whole, as if the group were a variable of the expression that contains
it. Inside the aggregate, the variables of a member are visible too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches

from nestream.binding.scopes import AGGREGATED, Scopes, member_variables
from nestream.model.diagnostics import Reporting
from nestream.model.expression import (
    END_ATTRIBUTE,
    PATH_MARK,
    TIME_ATTRIBUTE,
    Aggregate,
    Attribute,
    Expression,
    Literal,
    Previous,
    attributes,
    children,
    transform,
    walk,
)
from nestream.model.text import print_expression, print_name


def mentioned(expression: Expression, scopes: Scopes) -> dict[str, Expression]:
    """What an expression mentions: each variable, or whole group, with the first part that mentions it."""
    found: dict[str, Expression] = {}
    for name, part in _mentions(expression, scopes, None):
        found.setdefault(name, part)
    return found


def _mentions(part: Expression, scopes: Scopes, inside: str | None) -> Iterator[tuple[str, Expression]]:
    if isinstance(part, Attribute):
        name = part.variable
        if name is None:
            return
        if name not in scopes.of or inside is None or (inside and scopes.group_of(name) != inside):
            yield name, part
        return
    if isinstance(part, Aggregate):
        inside = part.group or ""  # none if it mentions an unknown variable
        if inside:
            yield AGGREGATED + inside, part
    for child in children(part):
        yield from _mentions(child, scopes, inside)


class GroupBinding(Reporting):
    """Binds the aggregates of expressions; problems are in `diagnostics`."""

    def __init__(self, scopes: Scopes) -> None:
        super().__init__()
        self.scopes = scopes

    def bound(self, expression: Expression) -> Expression | None:
        """The expression with the group of every aggregate; None if there is a problem with one."""
        before = len(self.diagnostics)
        self._check_nesting(expression)
        if len(self.diagnostics) > before:
            return None
        changed = transform(expression, self._part)
        return changed if len(self.diagnostics) == before else None

    def _check_nesting(self, expression: Expression, inside: Expression | None = None) -> None:
        """Report an aggregate in an aggregate, and PREV in PREV or outside an aggregate."""
        if isinstance(expression, Aggregate) and inside is not None:
            self.report(
                "nested-aggregate",
                f"`{print_expression(expression)}` is inside another aggregate",
                expression.span,
                "an aggregate is over the members of one group: compute the two side by side",
            )
            return
        if isinstance(expression, Previous):
            if inside is None:
                self.report(
                    "misplaced-prev",
                    f"`{print_expression(expression)}` is outside an aggregate",
                    expression.span,
                    "PREV is the value of the member before, for each member of a group: write it in an "
                    "aggregate",
                    f"EVERY(f.x > {print_expression(expression)})",
                )
                return
            if isinstance(inside, Previous):
                self.report(
                    "nested-prev",
                    "PREV is inside PREV",
                    expression.span,
                    "PREV reaches one member back: compare each member with the one before it",
                )
                return
        within = expression if isinstance(expression, Aggregate | Previous) else inside
        for child in children(expression):
            self._check_nesting(child, within)

    def _part(self, part: Expression) -> Expression:
        if isinstance(part, Attribute):
            return self._attribute(part)
        if isinstance(part, Aggregate) and part.group is None:
            return self._aggregate(part)
        return part

    def _attribute(self, part: Attribute) -> Expression:
        """Read `p.b.x` as `b.x`, where `p` is a group of matches with a variable `b`."""
        named = self.scopes.named.get(part.variable or "")
        if named is not None and part.inner is not None:
            return self._event_of(part, list(member_variables(named)), "the expression")
        scope = self.scopes.groups.get(part.variable or "")
        of_matches = scope is not None and scope.group is not None and scope.group.variable is not None
        if part.inner is None:
            if of_matches and part.variable is not None:
                names = self._members(part.variable)
                self.report(
                    "group-of-matches",
                    f"`{part.variable}` is a group of matches, which have no attribute of their own",
                    part.span,
                    f"name an event of the match: {', '.join(f'`{name}`' for name in names)}",
                    f"{print_name(part.variable)}.{print_name(names[0])}.{print_name(part.name)}"
                    if names
                    else None,
                )
            return part
        if not of_matches or part.variable is None:  # a field of a struct
            return replace(part, name=PATH_MARK.join((part.inner, part.name)), inner=None)
        return self._event_of(part, self._members(part.variable), "the group of matches")

    def _event_of(self, part: Attribute, names: list[str], what: str) -> Attribute:
        """Read `p.b.x` as `b.x`, where `b` is a variable of an expression."""
        assert part.inner is not None
        if part.inner in names:
            return Attribute(part.inner, part.name, part.span)
        before, hyphen, after = part.inner.partition("-")
        close = get_close_matches(part.inner, names, 1)
        if hyphen and before in (TIME_ATTRIBUTE, END_ATTRIBUTE):
            hint = f"names may contain `-`: write `{part.variable}.{before} - {after}.{part.name}`"
        elif close:
            hint = f"did you mean `{close[0]}`?"
        else:
            hint = f"the variables are {', '.join(f'`{name}`' for name in names)}"
        message = f"{what} `{part.variable}` has no variable `{part.inner}`"
        self.report("unknown-variable", message, part.span, hint)
        return part

    def _members(self, group: str) -> list[str]:
        """The variables that a member of a group binds."""
        return members(self.scopes, group)

    def _aggregate(self, part: Aggregate) -> Expression:
        word, operand = part.function.upper(), part.operand
        if isinstance(operand, Attribute) and operand.variable is None:
            return self._over_variable(part, operand)
        names = [name for a in attributes(operand) if (name := a.variable) is not None]
        unknown = [name for name in names if name not in self.scopes.of]
        if unknown:
            return replace(part, group="")  # reported as an unknown variable
        groups = list(dict.fromkeys(found for name in names if (found := self.scopes.group_of(name))))
        around = {id(scope) for group in groups for scope in self.scopes.groups[group].path[:-1]}
        groups = [group for group in groups if id(self.scopes.groups[group]) not in around]
        if len(groups) == 1:
            own = self._members(groups[0])
            outside = [n for n in names if self.scopes.group_of(n) == groups[0] and n not in own]
            if outside:
                self.report(
                    "negated-variable",
                    f"`{outside[0]}` is negated in the group `{groups[0]}`, so no member has an event for it",
                    part.span,
                    "use a variable that every member binds",
                )
            return replace(part, group=groups[0])
        if groups:
            self.report(
                "two-groups",
                f"`{print_expression(part)}` mentions two groups",
                part.span,
                f"an aggregate is over the members of one: write one for `{groups[0]}` and one for "
                f"`{groups[1]}`",
            )
        else:
            self.report(
                "aggregate-without-group",
                f"`{print_expression(part)}` mentions no group",
                part.span,
                f"{word} is over the members of a group, as `f` in `Failure+ f`"
                + (
                    f": `{names[0]}` is a single event, so write `{print_expression(operand)}`"
                    if names
                    else ""
                ),
                print_expression(operand) if names else None,
            )
        return part

    def _over_variable(self, part: Aggregate, operand: Attribute) -> Expression:
        """Bind `COUNT(f)`, and other aggregates of a variable alone."""
        name, word = operand.name, part.function.upper()
        if name not in self.scopes.groups:
            single = name in self.scopes.of
            message = f"`{name}` is a single event, not a group" if single else f"there is no group `{name}`"
            groups = ", ".join(f"`{group}`" for group in self.scopes.groups)
            self.report(
                "aggregate-without-group",
                message,
                part.span,
                f"the groups are {groups}" if groups else "write a group as `Failure+ f`",
            )
            return part
        if part.function != "count" or part.distinct:
            inner = f"{print_name(name)}.x"
            hint = (
                f"every member is another event: write COUNT({print_name(name)}), or COUNT(DISTINCT {inner})"
                if part.distinct
                else f"name a value of the members, as in {word}({inner})"
            )
            self.report("aggregate-of-events", f"{word} takes a value, not an event", part.span, hint)
            return part
        return replace(part, group=name, operand=Literal(True))


def members(scopes: Scopes, group: str) -> list[str]:
    """The variables that a member of a group binds, in text order."""
    scope = scopes.groups[group]
    return [name for name in member_variables(scope) if name not in scope.hidden]


def has_aggregate(expression: Expression) -> bool:
    """Whether an expression mentions a group as a whole."""
    return any(isinstance(part, Aggregate) for part in walk(expression))
