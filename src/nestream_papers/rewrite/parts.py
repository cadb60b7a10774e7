"""What the rules share: components with more predicates, with parts replaced, and their types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from nestream.logical.nodes import (
    Component,
    Group,
    Leaf,
    Negation,
    Node,
    Operator,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    Witness,
    is_constraint,
    leaves,
    walk,
)
from nestream.model.expression import Expression, conjuncts


def with_predicates(component: Component, predicates: Sequence[Expression]) -> Node:
    """The component with more predicates. Constraints cannot have any and are never asked to."""
    assert not isinstance(component, Negation | Group | Witness | Proj)
    if not predicates:
        return component
    return replace(component, predicates=tuple(dict.fromkeys((*component.predicates, *predicates))))


def with_components(node: Operator, components: Iterable[Component]) -> Operator:
    """The operator over other components."""
    return replace(node, components=tuple(components))


def flattened(component: Component, kind: type[WinSeq] | type[WinAnd]) -> Node | None:
    """A SEQ or AND with the parts of those of its `kind` directly in it; None if there are none."""
    if not isinstance(component, kind) or not any(isinstance(part, kind) for part in component.components):
        return None
    merged: list[Component] = []
    predicates: list[Expression] = []
    for part in component.components:
        if isinstance(part, kind):
            merged += part.components
            predicates += part.predicates
        else:
            merged.append(part)
    return with_predicates(kind(tuple(merged), component.predicates), predicates)


def children(component: Component) -> tuple[Component, ...]:
    """The direct parts of a component."""
    match component:
        case Negation(body=body) | Group(body=body) | Proj(body=body):
            return (body,)
        case WinSeq(components=inner) | WinAnd(components=inner) | WinOr(components=inner):
            return inner
        case Leaf() | Witness():
            return ()


def with_children(component: Component, inner: Sequence[Component]) -> Component:
    """The component with other direct parts; itself if they are the same."""
    if all(new is old for new, old in zip(inner, children(component), strict=True)):
        return component
    match component:
        case Negation() | Group() | Proj():
            (body,) = inner
            assert not isinstance(body, Negation | Group | Witness)
            return replace(component, body=body)
        case WinSeq() | WinAnd() | WinOr():
            return with_components(component, inner)
        case _:
            return component


def positive_parts(component: Component) -> Iterator[Node]:
    """The component and its positive parts, outermost first; for an OR, all branches."""
    if isinstance(component, Negation | Group | Witness) or is_constraint(component):
        return
    yield component
    for inner in children(component):
        yield from positive_parts(inner)


def positive_predicates(component: Component) -> list[Expression]:
    """The formulas that hold for the events of every match of an expression without OR."""
    return [
        formula
        for part in positive_parts(component)
        for predicate in part.predicates
        for formula in conjuncts(predicate)
    ]


def without_predicates(component: Component) -> Component:
    """The component without the predicates of its positive part."""
    if is_constraint(component):
        return component
    bare = with_children(component, [without_predicates(inner) for inner in children(component)])
    assert not isinstance(bare, Negation | Group | Witness | Proj)
    return replace(bare, predicates=())


def positive_types(component: Component) -> frozenset[str]:
    """The event types that a match of the component may contain."""
    return frozenset(
        name for part in positive_parts(component) if isinstance(part, Leaf) for name in part.types
    )


def all_types(component: Component) -> frozenset[str]:
    """The event types that the component mentions at all, including those under its negations."""
    return frozenset(name for leaf in leaves(component) for name in leaf.types)


def is_settled(component: Component) -> bool:
    """Whether flattening and distribution have nothing left to do in the component.

    There is no OR, no SEQ directly in a SEQ, no AND directly in an AND, and no operator over one component.
    """
    return not any(
        isinstance(part, WinOr)
        or (
            isinstance(part, WinSeq | WinAnd)
            and (len(part.components) == 1 or any(isinstance(inner, type(part)) for inner in part.components))
        )
        for part in walk(component)
    )
