"""A query over events that are complete up to a time: matches still open then are pending, and not emitted.

Law: a match as of `t` has only events up to `t`, as do its negations, and every negation that extends to the
end of the window has ended by `t`. Both are predicates on the times of events, so every way to run a query
obeys it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta

from nestream.logical.invariants import check_plan
from nestream.logical.nodes import (
    Component,
    Group,
    Leaf,
    Negation,
    Node,
    Plan,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    Witness,
    is_constraint,
    positive,
)
from nestream.model.expression import TIME_ATTRIBUTE, Attribute, Comparison, Expression, IsNull, Literal, Or
from nestream.model.time import WindowKind

Moment = int | datetime


def complete_up_to(plan: Plan, as_of: object) -> Plan:
    """The plan for events that are complete up to a time: a number, a datetime or ISO-8601 text."""
    moment = _moment(as_of, plan.window.kind)
    root = plan.root
    if isinstance(root, WinOr):  # each branch is a root
        branches = tuple(_waiting_root(branch, plan, moment) for branch in positive(root))
        root = replace(root, components=branches)
    else:
        root = _waiting_root(root, plan, moment)
    return check_plan(replace(plan, root=_up_to(root, moment)), "leaving out what is not complete")


def _moment(given: object, window: WindowKind) -> Moment:
    if isinstance(given, str):
        given = _read(given)
    elif isinstance(given, date) and not isinstance(given, datetime):
        given = datetime(given.year, given.month, given.day)
    is_number = isinstance(given, int) and not isinstance(given, bool)
    if not is_number and not isinstance(given, datetime):
        raise TypeError(f"as_of is a {type(given).__name__}\n  hint: pass a datetime, its text, or a number")
    if (window is WindowKind.NUMBER and not is_number) or (window is WindowKind.TIME and is_number):
        wanted = "a number" if window is WindowKind.NUMBER else "a time"
        raise ValueError(f"as_of is {given}, and the window of the query needs {wanted}")
    return given  # type: ignore[return-value]


def _read(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"as_of is {text[:60]!r}, which is not a time\n"
            "  hint: write it as 2026-01-05T08:00:00, or as a number if times are integers"
        ) from None


def _waiting_root(root: Node, plan: Plan, moment: Moment) -> Node:
    """The root with a condition wherever a negation extends to the end of the window."""
    if not isinstance(root, WinSeq):  # an AND extends no further than its last event
        return root
    firsts = tuple(_firsts(root))
    return _waiting(root, firsts, plan, moment)


def _waiting(node: Node, firsts: tuple[str, ...], plan: Plan, moment: Moment) -> Node:
    """A node that reaches to the limit of the root: its open negations must have ended by that time."""
    match node:
        case WinOr(components=branches):
            return replace(node, components=tuple(_inner(part, firsts, plan, moment) for part in branches))
        case WinAnd(components=parts):
            is_open = any(map(is_constraint, parts))
            inner = tuple(_inner(part, firsts, plan, moment) for part in parts)
        case WinSeq(components=parts):
            last = max(place for place, part in enumerate(parts) if not is_constraint(part))
            is_open = last + 1 < len(parts)
            inner = (*parts[:last], _inner(parts[last], firsts, plan, moment), *parts[last + 1 :])
        case _:
            return node
    predicates = (*node.predicates, _ended(firsts, plan, moment)) if is_open else node.predicates
    return replace(node, components=inner, predicates=predicates)


def _inner(part: Component, firsts: tuple[str, ...], plan: Plan, moment: Moment) -> Component:
    if isinstance(part, Negation | Group | Witness) or is_constraint(part):
        return part
    return _waiting(part, firsts, plan, moment)


def _firsts(node: Node) -> Iterator[str]:
    """The variables that can bind the first event of a match."""
    match node:
        case Leaf(variable=variable):
            yield variable
        case Proj(body=body):
            yield from _firsts(body)
        case WinSeq():
            yield from _firsts(positive(node)[0])
        case WinAnd() | WinOr():
            for part in positive(node):
                yield from _firsts(part)


def _ended(firsts: tuple[str, ...], plan: Plan, moment: Moment) -> Expression:
    """The condition that the window of the first event has ended by that time."""
    window = plan.window
    match window.kind:
        case WindowKind.EVENTS:
            raise ValueError(
                "as_of does not say when a window of events has ended\n"
                "  hint: give the window as a time, or leave out the negation at the end"
            )
        case WindowKind.UNBOUNDED:
            return IsNull(_time(firsts[0]), negated=False)  # never
    latest: Moment
    if isinstance(moment, datetime):
        try:
            latest = moment - timedelta(microseconds=window.size)
        except OverflowError:
            latest = datetime.min.replace(tzinfo=moment.tzinfo)
    else:
        latest = moment - window.size
    parts = tuple(_at_most(name, latest) for name in firsts)
    return parts[0] if len(parts) == 1 else Or(parts)


def _up_to(node: Node, moment: Moment) -> Node:
    """The node over only the events up to that time."""

    def component(part: Component) -> Component:
        if isinstance(part, Negation):
            return Negation(_up_to(part.body, moment))
        if isinstance(part, Group):
            return replace(part, body=_up_to(part.body, moment))
        assert not isinstance(part, Witness), "a plan is cut off before it is rewritten"
        return _up_to(part, moment)

    if isinstance(node, Leaf):
        return replace(node, predicates=(*node.predicates, _at_most(node.variable, moment)))
    assert not isinstance(node, Proj), "a plan is cut off before it is rewritten"
    return replace(node, components=tuple(map(component, node.components)))


def _at_most(variable: str, latest: Moment) -> Expression:
    return Comparison("<=", (_time(variable), Literal(latest)))


def _time(variable: str) -> Attribute:
    return Attribute(variable, TIME_ATTRIBUTE, own=True)
