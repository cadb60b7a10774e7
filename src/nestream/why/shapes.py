"""The shapes of a match: the taken branch of each OR, and so the variables it binds and their order.

A shape is the skeleton of a `Part` of the reference; with an event for each variable, it becomes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice, pairwise, product

from nestream.logical.nodes import Leaf, Node, Proj, WinAnd, WinOr, WinSeq, positive
from nestream.model.expression import Attribute, Comparison, Expression, aggregates, conjuncts
from nestream.reference import Binding, Event, Part

MOST_SHAPES = 4096
"""How many shapes of a query are examined; only a query with many ORs side by side has more."""


@dataclass(frozen=True)
class Shape:
    """A node with the shapes of its positive components; an OR has only the taken branch."""

    node: Node
    inner: tuple[Shape, ...] = ()

    def walk(self) -> Iterator[Shape]:
        """This shape and all shapes in it."""
        yield self
        for shape in self.inner:
            yield from shape.walk()

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The leaves that the shape binds, in text order."""
        return tuple(shape.node for shape in self.walk() if isinstance(shape.node, Leaf))

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The variables that the shape binds."""
        return tuple(leaf.variable for leaf in self.leaves)

    @cached_property
    def predicates(self) -> tuple[Expression, ...]:
        """Every predicate that a binding of the shape must satisfy, except those over groups."""
        return tuple(predicate for predicate in self._written if not any(aggregates(predicate)))

    @cached_property
    def judged(self) -> tuple[Expression, ...]:
        """The predicates over aggregates of groups."""
        return tuple(predicate for predicate in self._written if any(aggregates(predicate)))

    @cached_property
    def _written(self) -> tuple[Expression, ...]:
        return tuple(predicate for shape in self.walk() for predicate in shape.node.predicates)

    @cached_property
    def tests(self) -> tuple[Expression, ...]:
        """The predicates in their smallest parts: a chain of equalities as pairs."""
        return tuple(piece for predicate in self.predicates for piece in pieces(predicate))

    @cached_property
    def before(self) -> tuple[tuple[str, str], ...]:
        """Pairs of variables of neighbours in a SEQ: the first one's event must be before the second's."""
        return self._ordered(pairwise)

    @cached_property
    def precedes(self) -> frozenset[tuple[str, str]]:
        """The same pairs for all components of a SEQ, neighbours or not: what holds if some are left out."""
        return frozenset(self._ordered(lambda inner: combinations(inner, 2)))

    def _ordered(
        self, pairs: Callable[[Sequence[Shape]], Iterable[tuple[Shape, Shape]]]
    ) -> tuple[tuple[str, str], ...]:
        return tuple(
            (early, late)
            for shape in self.walk()
            if isinstance(shape.node, WinSeq)
            for left, right in pairs(shape.inner)
            for early in left.variables
            for late in right.variables
        )

    @cached_property
    def equal(self) -> tuple[frozenset[Attribute], ...]:
        """The attributes that equalities between two of them make equal, in groups."""
        classes: list[frozenset[Attribute]] = []
        for test in self.tests:
            match test:
                case Comparison(operator="=", operands=(Attribute() as left, Attribute() as right)):
                    touching = [terms for terms in classes if left in terms or right in terms]
                    classes = [terms for terms in classes if terms not in touching]
                    classes.append(frozenset((left, right)).union(*touching))
        return tuple(classes)

    @cached_property
    def implied(self) -> tuple[Expression, ...]:
        """The tests, and every equality that follows from them: what holds if some variables are left out."""
        pairs = (pair for terms in self.equal for pair in combinations(sorted(terms, key=repr), 2))
        return tuple(dict.fromkeys((*self.tests, *(Comparison("=", pair) for pair in pairs))))

    def part(self, binding: Binding) -> Part:
        """The `Part` of the reference for a complete binding."""
        if isinstance(self.node, Leaf):
            return Part(self.node, {self.node.variable: binding[self.node.variable]})
        parts = tuple(shape.part(binding) for shape in self.inner)
        bound: dict[str, Event] = {}
        for part in parts:
            bound.update(part.binding)
        return Part(self.node, bound, parts)


def shapes(node: Node) -> Sequence[Shape]:
    """Every shape of a node, up to `MOST_SHAPES`."""
    return list(islice(_shapes(node), MOST_SHAPES))


def _shapes(node: Node) -> Iterator[Shape]:
    match node:
        case Leaf():
            yield Shape(node)
        case Proj(body=body):
            for inner in _shapes(body):
                yield Shape(node, (inner,))
        case WinOr():
            for branch in positive(node):
                for inner in _shapes(branch):
                    yield Shape(node, (inner,))
        case WinSeq() | WinAnd():
            for parts in product(*map(shapes, positive(node))):
                yield Shape(node, parts)


def pieces(predicate: Expression) -> Iterator[Expression]:
    """The formulas that together are equivalent to the predicate."""
    for formula in conjuncts(predicate):
        if isinstance(formula, Comparison) and len(formula.operands) > 2:
            for pair in pairwise(formula.operands):
                yield Comparison(formula.operator, pair, formula.span)
        else:
            yield formula
