"""Keeps a plan from exploding: decides which parts keep their form so that the disjuncts stay within a limit.

The number of disjuncts is computed from the plan as written: ORs add, and what is side by side multiplies. If
it is too high, the negation with the most alternatives keeps its form, then the next, and then the ORs of
events. The choice depends only on the plan, not on the order in which rules are applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod

from nestream.logical.nodes import (
    Component,
    Group,
    Leaf,
    Negation,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    Witness,
    walk,
)
from nestream_papers.rewrite.parts import children

Rewrite = Callable[[Negation], Component]
"""Pushes a negation down as far as it goes."""


@dataclass(frozen=True)
class Frozen:
    """The parts that keep their form, each with the reason."""

    reasons: Mapping[Component, str]

    @property
    def parts(self) -> frozenset[Component]:
        """The parts themselves."""
        return frozenset(self.reasons)


def frozen_parts(root: Component, limit: int, rewrite: Rewrite) -> Frozen:
    """The parts that must keep their form for at most `limit` disjuncts."""
    reasons: dict[Component, str] = {}

    @cache
    def alternatives(negation: Negation) -> int:
        """How many disjuncts a negation produces; one more than the limit if even its body is too wide."""
        if any(_width(part) > limit for part in walk(negation.body)):
            return limit + 1
        return _constraint_width(rewrite(negation))

    def disjuncts(component: Component) -> int:
        if reasons and component in reasons:
            return 1
        match component:
            case Negation():
                return alternatives(component)
            case WinOr(components=branches):
                return sum(map(disjuncts, branches))
            case _:
                return prod(map(disjuncts, children(component)))

    while (total := disjuncts(root)) > limit:
        worst = _worst(root, reasons, alternatives)
        if worst is None:
            break
        part, count = worst
        shown = f"more than {limit}" if count > limit else str(count)
        reasons[part] = f"its {shown} alternatives would make more than {limit} disjuncts"
        assert disjuncts(root) < total
    return Frozen(reasons)


def _worst(
    root: Component, reasons: Mapping[Component, str], alternatives: Callable[[Negation], int]
) -> tuple[Component, int] | None:
    """The part that produces the most disjuncts: a negation if one produces several, otherwise an OR."""
    parts = list(_parts(root, reasons, True))
    negations = [(part, alternatives(part)) for part in parts if isinstance(part, Negation)]
    several = [(part, count) for part, count in negations if count > 1]
    either = [(part, _width(part)) for part in parts if isinstance(part, WinOr) and _width(part) > 1]
    return max(several or either, key=lambda found: found[1], default=None)


def _parts(component: Component, reasons: Mapping[Component, str], at_root: bool) -> Iterator[Component]:
    """The negations, and the ORs below the root, that still change; from left to right."""
    if reasons and component in reasons:
        return
    if isinstance(component, Negation) or (isinstance(component, WinOr) and not at_root):
        yield component
    if not isinstance(component, Negation):
        for inner in children(component):
            yield from _parts(inner, reasons, at_root and isinstance(component, WinOr))


def _width(component: Component) -> int:
    """The number of combinations of the ORs of a positive part."""
    match component:
        case WinOr(components=branches):
            return sum(map(_width, branches))
        case WinSeq(components=inner) | WinAnd(components=inner):
            return prod(map(_width, inner))
        case Leaf() | Negation() | Group() | Witness() | Proj():
            return 1


def _constraint_width(component: Component) -> int:
    """The number of disjuncts that a constraint produces."""
    match component:
        case WinOr(components=branches):
            return sum(map(_constraint_width, branches))
        case WinAnd(components=inner):
            return prod(map(_constraint_width, inner))
        case _:
            return 1
