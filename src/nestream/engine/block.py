"""What is matched: blocks of leaves in a partial order, and the negations that must not occur.

A block is one choice of a branch for every OR. It is plain data; `physical/` builds it from a logical plan
and chooses the operator that runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

    `leaves` maps each variable to its leaf. `order` holds the pairs that must follow each other, `apart` the
    pairs that might be the same event and must not be. `equalities` and `predicates` relate variables.
    `steps` follow each other: single variables, and the variables of an AND. `key` maps every variable to its
    attributes that are equal in all of them; it is None if there are none. `judged` are the predicates over
    aggregates of groups.
    """

    leaves: Mapping[str, int]
    order: frozenset[tuple[str, str]]
    apart: frozenset[tuple[str, str]]
    equalities: tuple[Equality, ...]
    predicates: tuple[Expression, ...]
    steps: tuple[tuple[str, ...], ...]
    negations: tuple[Negation, ...] = ()
    groups: tuple[Group, ...] = ()
    judged: tuple[Expression, ...] = ()
    key: Mapping[str, tuple[str, ...]] | None = None

    @property
    def chain(self) -> tuple[str, ...] | None:
        """The variables in order, if the order is total."""
        return chain_of(self.steps)

    def outermost(self, names: Iterable[str] | None = None, *, last: bool) -> list[str]:
        """The variables, of all or of some, that can bind the last (or first) event of a match."""
        some = list(self.leaves if names is None else names)
        inner = {pair[0 if last else 1] for pair in self.order if set(pair) <= set(some)}
        return [name for name in some if name not in inner]


@dataclass(frozen=True, eq=False)
class Negation:
    """One alternative of a negated expression, which must have no match in its interval.

    `derived` is set where its matches depend on the outer match only through the interval and a key; `link`
    then holds the outer terms that equal that key. `reason` says why it is derived, or why not.
    """

    interval: Interval
    block: Block
    derived: Derived | None = None
    link: tuple[Term, ...] = ()
    reason: str = ""

    def needs(self, root: Block) -> frozenset[str]:
        """The outer variables that decide it; edges depend on all variables of the root."""
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
        for group in block.groups:
            names |= group_needs(group, root)
        names |= {name for predicate in block.judged for name in variables(predicate)}
        names -= {name for group in block.groups for name in group.variables}
        return names - set(block.leaves)


@dataclass(frozen=True, eq=False)
class Group:
    """A group: all the matches of its alternatives in its interval, from `least` to `most` of them.

    Each alternative is one choice of branches of the group's expression. It is written like a negation, with
    an interval and a block; but all its matches are taken.
    """

    variable: str
    variables: tuple[str, ...]
    """The variables that members bind, in the order of the text."""
    interval: Interval
    alternatives: tuple[Negation, ...]
    least: int = 0
    most: int | None = None

    @property
    def reaches_out(self) -> bool:
        """Whether members may lie before the first or after the last event of a match."""
        return isinstance(self.interval.after, Edge) or isinstance(self.interval.before, Edge)


def group_needs(group: Group, root: Block) -> frozenset[str]:
    """The outer variables that determine the members of a group."""
    return frozenset().union(*(one.needs(root) for one in group.alternatives))


def why_no_range(group: Group) -> str | None:
    """Why the members of a group are not a range of a stack by key; None where they are."""
    if len(group.alternatives) > 1:
        return "they are of several kinds"
    block = group.alternatives[0].block
    if len(block.leaves) > 1:
        return "each is a match of several events"
    if block.negations or block.groups:
        return "something else is looked for around each"
    if block.apart:
        return "an event of the match could be one"
    if block.predicates:
        return "a predicate relates them to the match by more than equality"
    own = [term for e in block.equalities for term in (e.left, e.right) if term[0] in block.leaves]
    if len(set(own)) < len(own):
        return "an attribute must equal two others"
    return None


def chain_of(steps: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The variables of the steps if each step has one; None otherwise."""
    names = tuple(name for step in steps for name in step)
    return names if len(names) == len(steps) else None


def has_groups(block: Block) -> bool:
    """Whether a block has groups, at any depth."""
    return bool(block.groups) or any(has_groups(inner.block) for inner in block.negations)


def closure(order: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """The transitive closure of an order: every pair that follows from the given ones."""
    reach = frozenset(order)
    while True:
        more = {(a, d) for a, b in reach for c, d in reach if b == c} - reach
        if not more:
            return reach
        reach |= more
