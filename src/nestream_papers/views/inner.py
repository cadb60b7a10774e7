"""Extracts an inner query from the block around it: what its view computes, and what is tested at each use.

What relates only its own events is computed once, with negations that depend on nothing else. Equalities with
the outer match partition the view. Everything else that mentions the outer match, or the ends of the
interval, is tested when an outer result uses the view.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from nestream.engine.block import closure
from nestream.engine.program import Edge, Equality, Interval
from nestream.model.expression import Expression, variables
from nestream_papers.engine.context import needed
from nestream_papers.engine.program import Block, Negation, Nested

Term = tuple[str, str]
_NONE, _EACH, _KEY = "none", "each", "key"
"""What partitions a view: nothing, terms that equal outer ones, or the key of a negation."""


@dataclass(frozen=True, eq=False)
class Inner:
    """An inner query of a block.

    `after` and `before` are the outer events next to it; if there are none, the outer limits apply. `equal`
    pairs its own terms with outer ones: they partition the view. The rest is tested at each use: order,
    equalities and predicates. `local` are the constraints, by identity, that its results already satisfy;
    `exact` says that every result in the interval counts, whatever the outer result is.
    """

    names: tuple[str, ...]
    block: Block
    after: tuple[str, ...]
    before: tuple[str, ...]
    equal: tuple[tuple[Term, Term], ...]
    order: tuple[tuple[str, str], ...]
    apart: tuple[tuple[str, str], ...]
    equalities: tuple[Equality, ...]
    predicates: tuple[Expression, ...]
    local: frozenset[int]
    exact: bool


def equalities_of(block: Block) -> list[Equality]:
    """The equalities of a block, including those of its key."""
    found = list(block.equalities)
    if block.key:
        first, *others = block.key
        for other in others:
            pairs = zip(block.key[first], block.key[other], strict=True)
            found += [Equality((first, a), (other, b)) for a, b in pairs]
    return found


def outer_names(block: Block) -> tuple[str, ...]:
    """The variables of the outer expression: those that no nested one has."""
    inside = {name for part in block.nested for name in part.variables}
    return tuple(name for name in block.leaves if name not in inside)


def inner_queries(block: Block, root: Block, *, partition: bool = True) -> list[Inner]:
    """The nested expressions of a block, in the order in which they are joined to the outer results.

    Without `partition`, equalities with the outer match are tested at each use.
    """
    found = []
    for place, nested in enumerate(block.nested):
        later = {name for part in block.nested[place + 1 :] for name in part.variables}
        found.append(
            _taken_out(block, nested.variables, nested.inside, later, root, _EACH if partition else _NONE)
        )
    return found


def negated_query(negation: Negation, root: Block, *, partition: bool = True) -> Inner:
    """What is negated, as an inner query."""
    block = negation.block
    keyed = partition and negation.key is not None and negation.link is not None
    how = _KEY if keyed else _EACH if partition else _NONE
    inner = _taken_out(block, tuple(block.leaves), block.nested, set(), root, how, negation.interval)
    if keyed:  # every equality of the negation follows from its key
        assert negation.key is not None
        assert negation.link is not None
        name, attributes = negation.link
        first = inner.names[0]
        equal = tuple(((first, a), (name, b)) for a, b in zip(negation.key[first], attributes, strict=True))
        return replace(inner, equal=equal)
    return inner


def _taken_out(
    block: Block,
    names: tuple[str, ...],
    inside: tuple[Nested, ...],
    later: set[str],
    root: Block,
    how: str,
    limits: Interval | None = None,
) -> Inner:
    own = set(names)
    order = closure(block.order)
    outer = [name for name in outer_names(block) if name not in own]
    after = _nearest(outer, names, order, forward=True) if limits is None else _names(limits.after)
    before = _nearest(outer, names, order, forward=False) if limits is None else _names(limits.before)
    local = [part for part in block.negations if needed(part, root) <= own]
    crossing = [p for p in block.predicates if not variables(p) <= own and variables(p) & own]
    equal, within, tested = _partition(block, own, later, how)
    apart = [pair for pair in block.apart if len(set(pair) & own) == 1 and not set(pair) & later]
    predicates = tuple(p for p in crossing if not variables(p) & later)
    computed = Block(
        leaves={name: block.leaves[name] for name in names},
        order=frozenset(pair for pair in order if set(pair) <= own),
        apart=frozenset(pair for pair in block.apart if set(pair) <= own),
        equalities=tuple(within),
        predicates=tuple(p for p in block.predicates if variables(p) and variables(p) <= own),
        negations=tuple(local),
        levels={name: (block.levels or {})[name] for name in names},
        nested=inside,
    )
    return Inner(
        names=names,
        block=computed,
        after=after,
        before=before,
        equal=tuple(equal),
        order=tuple(
            (x, y)
            for x, y in order
            if len({x, y} & own) == 1 and not {x, y} & later and not _implied((x, y), after, before, order)
        ),
        apart=tuple(apart),
        equalities=tuple(tested),
        predicates=predicates,
        local=frozenset(map(id, local)),
        exact=not (tested or apart or predicates or block.witnesses or len(local) < len(block.negations)),
    )


def _names(limit: tuple[str, ...] | Edge) -> tuple[str, ...]:
    return () if isinstance(limit, Edge) else limit


def _nearest(
    outer: Sequence[str], names: Sequence[str], order: frozenset[tuple[str, str]], *, forward: bool
) -> tuple[str, ...]:
    """The outer variables directly before (or after) all the names."""

    def follows(x: str, y: str) -> bool:
        return ((x, y) if forward else (y, x)) in order

    around = [name for name in outer if all(follows(name, own) for own in names)]
    return tuple(name for name in around if not any(follows(name, other) for other in around))


def _implied(
    pair: tuple[str, str], after: tuple[str, ...], before: tuple[str, ...], order: frozenset[tuple[str, str]]
) -> bool:
    """Whether being in the interval implies the order of a pair."""
    x, y = pair
    return (
        x in after
        or y in before
        or any((x, z) in order for z in after)
        or any((z, y) in order for z in before)
    )


def _partition(
    block: Block, own: set[str], later: set[str], how: str
) -> tuple[list[tuple[Term, Term]], list[Equality], list[Equality]]:
    """The terms that partition a view, the equalities it computes with, and those tested at each use."""
    nested = {name for part in block.nested for name in part.variables}
    equalities = equalities_of(block)
    within = [e for e in equalities if {e.left[0], e.right[0]} <= own]
    facts = [e for e in equalities if not {e.left[0], e.right[0]} & (own | nested)]
    crossing = [e for e in equalities if len({e.left[0], e.right[0]} & own) == 1]
    if how == _KEY:
        return [], [*within, *crossing], []
    chosen: list[tuple[Term, Term]] = []
    tested: list[Equality] = []
    for equality in crossing:
        mine, theirs = equality.left, equality.right
        if mine[0] not in own:
            mine, theirs = theirs, mine
        if theirs[0] in later:
            continue
        known = [*facts, *within, *(Equality(a, b) for a, b in chosen)]
        if _same(mine, theirs, known):
            continue
        equal_to_theirs = [a for a, b in chosen if _same(b, theirs, facts)]
        if how == _NONE or theirs[0] in nested or any(_same(mine, a, within) for a, _ in chosen):
            tested.append(equality)
        elif equal_to_theirs:
            within.append(Equality(mine, equal_to_theirs[0]))
        else:
            chosen.append((mine, theirs))
    return chosen, [*within, *(Equality(a, b) for a, b in chosen)], tested


def _same(one: Term, other: Term, equalities: Iterable[Equality]) -> bool:
    """Whether equalities make two terms equal."""
    reached, pairs = {one}, [{e.left, e.right} for e in equalities]
    while True:
        more = {term for pair in pairs if pair & reached for term in pair} - reached
        if not more:
            return other in reached
        reached |= more


def spans_two_windows(negation: Negation, *, ties: bool) -> bool:
    """Whether its interval may be longer than a window, so that its results need not fit into one.

    `ties` says that windows count events, some of which have equal times.
    """
    interval = negation.interval
    if interval.after is not Edge.WINDOW_START:
        return False
    return interval.before is Edge.WINDOW_END or (ties and interval.before is Edge.MATCH_END)


def is_steady(block: Block, inner: Inner) -> bool:
    """Whether the query-intervals of an inner query only move right from trigger to trigger.

    This holds if the outer events are in order, with the inner query between two of them, and only the order,
    the window and tests of single events decide which of them match together. Then an event that fits a
    trigger fits every earlier one that leaves room for it.
    """
    outer = outer_names(block)
    order = closure(block.order)
    names = set(outer)
    return (
        all((x, y) in order or (y, x) in order for x, y in product(outer, outer) if x != y)
        and bool(inner.after and inner.before)
        and names.issuperset((*inner.after, *inner.before))
        and not any({e.left[0], e.right[0]} <= names for e in equalities_of(block))
        and not any(variables(p) <= names for p in block.predicates)
        and not any(n.stair or n.block.levels is None for n in block.negations)
        and not block.witnesses
    )
