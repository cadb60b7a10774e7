"""`OR(SEQ(A, !B, D), SEQ(A, !B, !C, D))` is `SEQ(A, !B, D)`.

Law: a branch of an OR that differs from another only by further constraints can be left out, since its
matches are among the other's; and of equal constraints in one place one is enough. Branches with different
positive events, or with different predicates on them, are left alone.

>>> from nestream.logical.nodes import Leaf, Negation, WinSeq
>>> from nestream.logical.text import expression_text
>>> a, b, c, d = (Leaf(name.lower(), (name,)) for name in "ABCD")
>>> less, more = WinSeq((a, Negation(b), d)), WinSeq((a, Negation(b), Negation(c), d))
>>> print(expression_text(ABSORPTION.apply(WinOr((more, less)), Place())))
SEQ(A a, !B b, D d)
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from nestream.logical.nodes import Component, WinAnd, WinOr, WinSeq, is_constraint
from nestream_papers.rewrite.parts import children, with_children, with_components
from nestream_papers.rewrite.rule import Outcome, Place, Rule

Held: TypeAlias = frozenset[tuple[Hashable, Component]]
"""The constraints of an expression, each with its place."""


def _apply(component: Component, place: Place) -> Outcome:
    if not place.root:
        return None
    if not isinstance(component, WinOr):
        once = _once(component)
        return None if once == component else once
    branches = list(dict.fromkeys(component.components))
    shapes = [_shape(branch) for branch in branches]
    kept = [
        branch
        for branch, (bare, held) in zip(branches, shapes, strict=True)
        if not any(other == bare and fewer < held for other, fewer in shapes)
    ]
    if tuple(kept) == component.components:
        return None
    return kept[0] if len(kept) == 1 and not component.predicates else with_components(component, kept)


def _once(component: Component) -> Component:
    """The component without repeated equal constraints in one place."""
    component = with_children(component, [_once(inner) for inner in children(component)])
    if not isinstance(component, WinSeq | WinAnd):
        return component
    found: list[Component] = []
    gap = 0  # the beginning of the gap of the next constraint
    for part in component.components:
        if is_constraint(part) and part in found[gap:]:
            continue
        found.append(part)
        if isinstance(component, WinSeq) and not is_constraint(part):
            gap = len(found)
    return component if len(found) == len(component.components) else with_components(component, found)


def _shape(component: Component, path: tuple[int, ...] = ()) -> tuple[Component, Held]:
    """The component without its constraints, and the constraints with their places."""
    if not isinstance(component, WinSeq | WinAnd):
        return component, frozenset()
    bare: list[Component] = []
    held: Held = frozenset()
    for part in component.components:
        if is_constraint(part):
            held |= {((*path, len(bare) if isinstance(component, WinSeq) else -1), part)}
        else:
            inner, deeper = _shape(part, (*path, len(bare)))
            bare.append(inner)
            held |= deeper
    return with_components(component, bare), held


ABSORPTION = Rule(
    "absorption", "a branch of an OR that has only further constraints than another can be left out", _apply
)
