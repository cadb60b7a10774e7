"""What is matched: blocks of leaves in a partial order, and the negations that a match must pass.

A block is one choice of a branch of every OR. It is plain data; `physical/` writes it from a logical plan and
chooses the operator that runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nestream.engine.program import Edge, Equality, Interval
from nestream.model.expression import Expression, variables

if TYPE_CHECKING:
    from nestream.engine.operators.derived import Derived

Term = tuple[str, str]
"""A variable and one of its attributes."""


@dataclass(frozen=True, eq=False)
class Block:
    """A conjunctive query over leaves.

    `leaves` gives each variable's leaf. `order` holds the pairs that must follow each other, `apart` the
    pairs that might be the same event and must not be. `equalities` and `predicates` relate variables.
    `chain` is set where the variables are totally ordered, `key` where every variable has attributes that
    are equal in all of them.
    """

    leaves: Mapping[str, int]
    order: frozenset[tuple[str, str]]
    apart: frozenset[tuple[str, str]]
    equalities: tuple[Equality, ...]
    predicates: tuple[Expression, ...]
    negations: tuple[Negation, ...] = ()
    chain: tuple[str, ...] | None = None
    key: Mapping[str, tuple[str, ...]] | None = None

    def outermost(self, *, last: bool) -> list[str]:
        """The variables of which one is the last (or first) event of a match."""
        inner = {pair[0 if last else 1] for pair in self.order if set(pair) <= set(self.leaves)}
        return [name for name in self.leaves if name not in inner]


@dataclass(frozen=True, eq=False)
class Negation:
    """One alternative of a negated expression, which must have no match in its interval.

    `derived` is set where its matches depend on the outer match by the interval and a key alone; `link` are
    then the outer terms that equal that key. `reason` says why it is derived, or why not.
    """

    interval: Interval
    block: Block
    derived: Derived | None = None
    link: tuple[Term, ...] = ()
    reason: str = ""

    def needs(self, root: Block) -> frozenset[str]:
        """The outer variables that decide it; edges depend on all of the root's."""
        names: set[str] = {variable for variable, _ in self.link}
        for limit in (self.interval.after, self.interval.before):
            names |= set(root.leaves) if isinstance(limit, Edge) else set(limit)
        return frozenset(names) | self._mentioned(root)

    def _mentioned(self, root: Block) -> set[str]:
        block = self.block
        names = {name for predicate in block.predicates for name in variables(predicate)}
        names |= {term[0] for e in block.equalities for term in (e.left, e.right)}
        names |= {name for pair in (*block.order, *block.apart) for name in pair}
        for inner in block.negations:
            names |= inner.needs(root)
        return names - set(block.leaves)


def closure(order: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """Every pair that follows from the pairs."""
    reach = frozenset(order)
    while True:
        more = {(a, d) for a, b in reach for c, d in reach if b == c} - reach
        if not more:
            return reach
        reach |= more
