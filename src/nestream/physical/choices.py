"""Chooses a branch of every OR: each choice leaves only SEQ and AND, a partial order of leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from nestream.engine.block import chain_of
from nestream.logical.nodes import (
    Component,
    Group,
    Leaf,
    Negation,
    Node,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    Witness,
    is_constraint,
    positive,
    target_variables,
)
from nestream.model.diagnostics import Diagnostic, QueryError
from nestream.model.expression import Attribute, Expression, IsNull, Or, variables

MOST_CHOICES = 1024
"""The maximum number of combinations of OR branches."""


@dataclass(frozen=True)
class OrAlternative:
    """A node without ORs: its positive components, and the predicates that hold in its matches."""

    node: Leaf | WinSeq | WinAnd
    parts: tuple[OrAlternative, ...]
    predicates: tuple[Expression, ...]

    def walk(self) -> Iterator[OrAlternative]:
        """This node and its positive parts, outermost first."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The positive leaves in text order."""
        return tuple(part.node for part in self.walk() if isinstance(part.node, Leaf))

    @property
    def first(self) -> tuple[str, ...]:
        """The variables that can bind the earliest event."""
        return self._ends(0)

    @property
    def last(self) -> tuple[str, ...]:
        """The variables that can bind the latest event."""
        return self._ends(-1)

    def _ends(self, side: int) -> tuple[str, ...]:
        match self.node:
            case Leaf(variable=variable):
                return (variable,)
            case WinSeq():
                return self.parts[side]._ends(side)
            case WinAnd():
                return tuple(name for part in self.parts for name in part._ends(side))

    @property
    def steps(self) -> tuple[tuple[str, ...], ...]:
        """The steps in their order: single variables, and the variables of an AND."""
        match self.node:
            case Leaf(variable=variable):
                return ((variable,),)
            case WinAnd() if len(self.parts) > 1:
                return (tuple(leaf.variable for leaf in self.leaves),)
            case _:
                return tuple(step for part in self.parts for step in part.steps)

    @property
    def chain(self) -> tuple[str, ...] | None:
        """The variables in order, if the order is total."""
        return chain_of(self.steps)

    @property
    def levels(self) -> dict[str, int]:
        """How deeply each variable is nested: 0 for the outermost expression."""
        if isinstance(self.node, Leaf):
            return {self.node.variable: 0}
        found: dict[str, int] = {}
        for part in self.parts:
            deeper = 0 if isinstance(part.node, Leaf) else 1
            found |= {name: level + deeper for name, level in part.levels.items()}
        return found

    @property
    def order(self) -> Iterator[tuple[str, str]]:
        """The pairs of variables that must follow each other."""
        for part in self.walk():
            if isinstance(part.node, WinSeq):
                for left, right in zip(part.parts, part.parts[1:], strict=False):
                    yield from product(left.last, right.first)


def choices(node: Node) -> list[OrAlternative]:
    """Every choice of the branches under a node."""
    if _count(node) > MOST_CHOICES:
        raise QueryError(
            [
                Diagnostic(
                    "too-many-branches",
                    f"the ORs of the query combine to {_count(node)} alternatives",
                    detail=f"at most {MOST_CHOICES} are run",
                    hint="write ANY(A, B) for branches that differ only in their type, or split the query",
                )
            ]
        )
    return list(_choices(node))


def _count(component: Component) -> int:
    match component:
        case Leaf() | Negation() | Group() | Witness():
            return 1
        case WinOr(components=branches):
            return sum(map(_count, branches))
        case Proj(body=body):
            return _count(body)
        case WinSeq(components=components) | WinAnd(components=components):
            return prod(map(_count, components))


def _choices(node: Node) -> Iterator[OrAlternative]:
    match node:
        case Leaf(predicates=predicates):
            yield OrAlternative(node, (), predicates)
        case WinOr(predicates=predicates):
            for branch in positive(node):
                for chosen in _choices(branch):
                    asked = _asked(predicates, node, (chosen,))
                    yield replace(chosen, predicates=(*asked, *chosen.predicates))
        case Proj(body=body):
            yield from _choices(body)
        case WinSeq(predicates=predicates) | WinAnd(predicates=predicates):
            given = [
                list(_alternatives(part)) if is_constraint(part) else [(part,)] for part in node.components
            ]
            for components in product(*given):
                plain = replace(node, components=tuple(part for parts in components for part in parts))
                for parts in product(*map(_choices, positive(node))):
                    yield OrAlternative(plain, parts, tuple(_asked(predicates, node, parts)))


def _asked(
    predicates: tuple[Expression, ...], node: Node, parts: tuple[OrAlternative, ...]
) -> Iterator[Expression]:
    """The predicates of a node for one choice of branches.

    Outside an OR, only the condition of a window mentions its branches: `d.ts IS NULL OR d.ts - b.ts <= 10`.
    It holds without `d`; with `d`, the test for NULL is not needed.
    """
    missing = target_variables(node) - {leaf.variable for part in parts for leaf in part.leaves}
    for predicate in predicates:
        if not variables(predicate) & missing:
            yield _without_tests(predicate)


def _without_tests(predicate: Expression) -> Expression:
    match predicate:
        case Or(operands=(*tests, condition)) if all(
            isinstance(test, IsNull) and isinstance(test.operand, Attribute) and test.operand.own
            for test in tests
        ):
            return condition
        case _:
            return predicate


def _alternatives(constraint: Component) -> Iterator[tuple[Component, ...]]:
    """The negations and witnesses of each choice of branches of a constraint; other components stay."""
    if not is_constraint(constraint):
        yield (constraint,)
        return
    match constraint:
        case WinOr(components=branches):
            for branch in branches:
                yield from _alternatives(branch)
        case WinAnd(components=parts):
            for chosen in product(*map(_alternatives, parts)):
                yield tuple(part for each in chosen for part in each)
        case _:
            yield (constraint,)
