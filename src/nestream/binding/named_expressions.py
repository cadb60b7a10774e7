"""Binds variables on expressions: for `SEQ(B b, C c) s`, `s.ts` and `s.te` are the first and last time.

Binding replaces them by the times of events, so later stages do not know them. For an AND, that is the least
or greatest of several times. An OR has a different time for each branch, so a condition on it becomes one
condition for each branch, inside the branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from nestream.binding.scopes import Scope, Scopes, member_variables
from nestream.language.ast import Composite, Operator, Primitive
from nestream.model.diagnostics import Diagnostic
from nestream.model.expression import (
    END_ATTRIBUTE,
    TIME_ATTRIBUTE,
    Attribute,
    Call,
    Expression,
    attributes,
    transform,
)
from nestream.model.text import print_expression, print_name

MOST_BRANCHES = 64
"""The maximum number of combinations of branches that a condition is written for."""


@dataclass(frozen=True)
class Edge:
    """Where an expression begins or ends, for one choice of branches: at one of some events."""

    events: tuple[str, ...]
    branches: tuple[Scope, ...] = ()


def expand(predicate: Expression, scopes: Scopes) -> Iterator[tuple[tuple[Scope, ...], Expression]]:
    """The predicate over plain events, with the branches in which it must hold; none means everywhere."""
    mentions = [part for part in attributes(predicate) if _is_time(part, scopes)]
    if not mentions:
        yield (), predicate
        return
    edges = {(part.variable or "", part.name): None for part in mentions}
    choices = [_edges(scopes.named[name], time) for name, time in edges]
    for chosen in product(*choices):
        branches = tuple(dict.fromkeys(branch for edge in chosen for branch in edge.branches))
        if _contradict(branches):
            continue
        times = {mention: _time(edge.events, mention[1]) for mention, edge in zip(edges, chosen, strict=True)}

        def change(part: Expression, times: dict[tuple[str, str], Expression] = times) -> Expression:
            found = isinstance(part, Attribute) and times.get((part.variable or "", part.name))
            return found or part

        yield branches, transform(predicate, change)


def branch_choices(predicate: Expression, scopes: Scopes) -> int:
    """An upper limit for the number of conditions that a predicate becomes."""
    count = 1
    for name, time in {(part.variable or "", part.name) for part in attributes(predicate)}:
        if name in scopes.named and time in (TIME_ATTRIBUTE, END_ATTRIBUTE):
            count *= len(_edges(scopes.named[name], time))
    return count


def value(expression: Expression, scopes: Scopes) -> Expression:
    """A returned expression over plain events; `least` skips branches that are not in the match."""

    def change(part: Expression) -> Expression:
        if not isinstance(part, Attribute) or not _is_time(part, scopes):
            return part
        edges = _edges(scopes.named[part.variable or ""], part.name)
        events = tuple(dict.fromkeys(name for edge in edges for name in edge.events))
        return _time(events, part.name)

    return transform(expression, change)


def wrong_attributes(expression: Expression, scopes: Scopes) -> Iterator[Diagnostic]:
    """Report attributes that an expression does not have."""
    for part in attributes(expression):
        if part.variable not in scopes.named or _is_time(part, scopes):
            continue
        scope = scopes.named[part.variable]
        names = list(member_variables(scope))
        types = [kind for leaf in _branches(scope) for kind in leaf.types]
        several = f"; for one event of several types write `ANY({', '.join(types)}) {part.variable}`"
        yield Diagnostic(
            "expression-attribute",
            f"`{part.variable}` is an expression: it has `ts` and `te`, and no attribute `{part.name}`",
            part.span,
            hint=f"name the event: {', '.join(f'`{name}`' for name in names)}" + (several if types else ""),
            suggestion=print_expression(Attribute(names[0], part.name)) if names else None,
        )


def _branches(scope: Scope) -> list[Primitive]:
    """The branches of an OR of events; none for anything else."""
    branches = [item.pattern for item in scope.nested] if scope.is_or else []
    return [branch for branch in branches if isinstance(branch, Primitive)] if _all_events(branches) else []


def _all_events(branches: Sequence[object]) -> bool:
    return all(isinstance(branch, Primitive) for branch in branches)


def too_many(predicate: Expression) -> Diagnostic:
    """Report a condition on ORs with too many branches."""
    return Diagnostic(
        "too-many-alternatives",
        f"the condition has more than {MOST_BRANCHES} combinations of branches",
        predicate.span,
        detail="a condition on an OR is written for each of its branches",
        hint="write it inside the branches it concerns",
    )


def apart(predicate: Expression, scopes: Scopes) -> Diagnostic:
    """Report a condition that compares an OR with something its branches do not see."""
    named = [part.variable for part in attributes(predicate) if part.variable in scopes.named]
    shown = print_name(named[0] or "")
    return Diagnostic(
        "across-or-branches",
        f"the branches of `{shown}` cannot see every variable of this condition",
        predicate.span,
        detail="a condition on an OR is written for each of its branches; a branch sees the variables of the "
        "expressions around it, not those inside an expression beside it",
        hint=f"compare `{shown}` with an event of the expression around it, or write a query for each branch",
    )


def _is_time(part: Attribute, scopes: Scopes) -> bool:
    return (
        part.variable in scopes.named and part.inner is None and part.name in (TIME_ATTRIBUTE, END_ATTRIBUTE)
    )


def _edges(scope: Scope, time: str) -> list[Edge]:
    """The edges of a scope: one for each choice of branches, so just one if it has no OR."""
    items = [item for item in scope.items if isinstance(item, str) or not item.apart]
    if scope.is_or:
        return [
            Edge(edge.events, (item, *edge.branches))
            for item in items
            if isinstance(item, Scope)
            for edge in _edges(item, time)
        ]
    if isinstance(scope.pattern, Composite) and scope.pattern.operator is Operator.SEQ:
        items = items[:1] if time == TIME_ATTRIBUTE else items[-1:]
    parts = [[Edge((item,))] if isinstance(item, str) else _edges(item, time) for item in items]
    return [
        Edge(
            tuple(name for edge in chosen for name in edge.events),
            tuple(branch for edge in chosen for branch in edge.branches),
        )
        for chosen in product(*parts)
    ]


def _time(events: tuple[str, ...], time: str) -> Expression:
    times = tuple(Attribute(name, TIME_ATTRIBUTE, own=True) for name in events)
    if len(times) == 1:
        return times[0]
    return Call("least" if time == TIME_ATTRIBUTE else "greatest", times)


def _contradict(branches: tuple[Scope, ...]) -> bool:
    """Whether two of the branches belong to one OR, so that no match has both."""
    return len({id(branch.parent) for branch in branches}) < len(branches)
