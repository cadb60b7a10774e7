"""What a rewriting rule is: a law about two expressions, and when the one may stand for the other.

A rule is asked about one component at a time, at its place. It gives the component that stands for it, or
says why its law does not hold there, or has nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from nestream.logical.nodes import Component, Negation, Proj, WinOr


@dataclass(frozen=True)
class Place:
    """Where a component stands.

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
        """The place of what is directly in the component."""
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
        """What orders variables: their place in the text."""
        return self.order.get(variable, len(self.order)), variable


@dataclass(frozen=True)
class Refused:
    """The rule is about such components, but a side condition of its law fails; this is the reason."""

    reason: str


Outcome: TypeAlias = Component | Refused | None
"""The component in its new form, a refusal, or None where the rule is not about such a component."""


@dataclass(frozen=True)
class Rule:
    """A law by name. `law` says in one sentence which two expressions have the same matches."""

    name: str
    law: str
    apply: Callable[[Component, Place], Outcome]
