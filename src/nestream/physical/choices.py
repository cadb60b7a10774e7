"""Chooses a branch of every OR: each choice leaves only SEQ and AND, a partial order of leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from nestream.logical.nodes import Leaf, Negation, Node, Proj, WinAnd, WinOr, WinSeq, constraints, positive
from nestream.model.diagnostics import Diagnostic, QueryError
from nestream.model.expression import Expression

MOST_CHOICES = 1024
"""How many combinations of OR branches a query may have."""


@dataclass(frozen=True)
class Chosen:
    """A node without ORs: its positive components, and the predicates that hold where it takes part."""

    node: Leaf | WinSeq | WinAnd
    parts: tuple[Chosen, ...]
    predicates: tuple[Expression, ...]

    def walk(self) -> Iterator[Chosen]:
        """This node and its positive parts, outermost first."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The positive leaves in the order of the text."""
        return tuple(part.node for part in self.walk() if isinstance(part.node, Leaf))

    @property
    def first(self) -> tuple[str, ...]:
        """The variables of which one is the earliest event."""
        return self._ends(0)

    @property
    def last(self) -> tuple[str, ...]:
        """The variables of which one is the latest event."""
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
    def chain(self) -> tuple[str, ...] | None:
        """The variables in their order where that is total."""
        match self.node:
            case Leaf(variable=variable):
                return (variable,)
            case WinAnd() if len(self.parts) > 1:
                return None
            case _:
                chains = [part.chain for part in self.parts]
                return None if None in chains else tuple(name for chain in chains for name in chain or ())

    @property
    def levels(self) -> dict[str, int]:
        """How deep each variable is nested: 0 for those of the outermost expression."""
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


def choices(node: Node) -> list[Chosen]:
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


def _count(node: Node) -> int:
    match node:
        case Leaf():
            return 1
        case WinOr():
            return sum(map(_count, positive(node)))
        case Proj():
            raise AssertionError("a rewritten plan is not compiled yet")
        case WinSeq() | WinAnd():
            if any(not isinstance(part, Negation) for part in constraints(node)):
                raise AssertionError("a rewritten plan is not compiled yet")
            total = 1
            for part in positive(node):
                total *= _count(part)
            return total


def _choices(node: Node) -> Iterator[Chosen]:
    match node:
        case Leaf(predicates=predicates):
            yield Chosen(node, (), predicates)
        case WinOr(predicates=predicates):
            for branch in positive(node):
                for chosen in _choices(branch):
                    yield replace(chosen, predicates=(*predicates, *chosen.predicates))
        case WinSeq(predicates=predicates) | WinAnd(predicates=predicates):
            for parts in product(*map(_choices, positive(node))):
                yield Chosen(node, parts, predicates)
