"""Defines a rewriting rule: a law about two expressions, and when one may replace the other.

A rule is applied to one component at a time, at its place. It returns the component that replaces it, or says
why its law does not hold there, or returns nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from nestream.logical.nodes import Component, Negation, Proj, WinOr


@dataclass(frozen=True)
class Place:
    """The place of a component.

    `root` is true of the plan's root and the branches of a root OR: their limits come from the window.
    `negations` counts the negations around. `order` is each variable's rank in the text of the query.
    `frozen` are components that keep their form. `projected` is true inside a Proj.
    """

    root: bool = True
    negations: int = 0
    order: Mapping[str, int] = field(default_factory=dict)
    frozen: frozenset[Component] = frozenset()
    projected: bool = False

    def inside(self, component: Component) -> Place:
        """The place of the direct parts of the component."""
        if isinstance(component, Negation):
            return replace(self, root=False, negations=self.negations + 1)
        root = self.root and isinstance(component, WinOr | Proj)
        projected = self.projected or isinstance(component, Proj)
        if (root, projected) == (self.root, self.projected):
            return self
        return replace(self, root=root, projected=projected)

    def keeps(self, component: Component) -> bool:
        """Whether the component keeps its form."""
        return bool(self.frozen) and component in self.frozen

    def rank(self, variable: str) -> tuple[int, str]:
        """The order of variables: their place in the text."""
        return self.order.get(variable, len(self.order)), variable


@dataclass(frozen=True)
class Refused:
    """The rule is about such components, but a side condition of its law fails; this is the reason."""

    reason: str


Outcome: TypeAlias = Component | Refused | None
"""The component in its new form, a refusal, or None if the rule is not about such a component."""


@dataclass(frozen=True)
class Rule:
    """A law by name. `law` says in one sentence which two expressions have the same matches."""

    name: str
    law: str
    apply: Callable[[Component, Place], Outcome]
