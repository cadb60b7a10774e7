"""Chain: totally ordered steps, without dead ends.

The forward pass drops events that no prefix reaches; every other event keeps the latest start of its
prefixes. The backward pass starts at each last event (the trigger). The predecessors of an event are a range,
bounded by the order, by the negations in the gap, by predicates on its length, and by the window, because
latest starts never decrease. So every row that is built is part of a match of the steps and their gaps, and
the cost is linear in events and matches. Predicates between events, and negations that are not ranges, filter
the rows once their last variable is bound.

Neighbouring steps that predicates relate only to each other may form one step, a **composite**: their matches
are found once, by a chain of their own, instead of once per match of the later steps. An AND is a composite
too, found by a product or a lateral join.

docs/how-it-works/engine.md, "Chains", has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np

from nestream.engine.block import Block, Group, Negation, Term, why_no_range
from nestream.engine.evaluation import Bindings, Evaluation
from nestream.engine.kernels import Rows
from nestream.engine.operators.first_matches import FirstMatches
from nestream.engine.operators.forward_pass import TooManyCompositesError, most_composites
from nestream.engine.operators.gaps import Gap, gaps_of
from nestream.engine.operators.lateral_join import LateralJoin
from nestream.engine.operators.operator import Asked, PhysicalOperator
from nestream.engine.operators.prepared_chain import PreparedChain
from nestream.engine.operators.product import Product
from nestream.engine.program import Edge, Equality
from nestream.model.expression import variables
from nestream.model.keep import Keep, Kept

_FEW = 32
"""The number of triggers whose matches are built to estimate how many there are."""
_SELDOM = 4
"""Only the events for new matches are prepared if at most one in this many events is new."""
_SOME = 4096
"""How many triggers are counted at a time, so that counting can be abandoned."""
_KEPT = 2
"""Finding a composite and keeping it takes about this many times as long as finding a match of the chain."""
_JOINED = 8
"""Joining a partial match leaf by leaf takes about this many times as long as finding it as a range."""


@dataclass(frozen=True)
class CountedGroup:
    """A group before a step, with the leaf and key of its members and the step's terms that equal the key."""

    group: Group
    leaf: int
    key: tuple[str, ...]
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Composite:
    """Neighbouring steps, from `first` to `end`, that become one; `operator` finds their matches.

    `estimate` is the same without equalities, to estimate how many matches there are.
    """

    first: int
    end: int
    operator: PhysicalOperator
    estimate: Chain | Product

    @property
    def names(self) -> tuple[str, ...]:
        """The variables of the steps."""
        return tuple(self.operator.block.leaves)

    @property
    def is_optional(self) -> bool:
        """Whether a chain can do without it: predicates alone relate its steps, which are single events."""
        return isinstance(self.operator, Chain)

    def is_worth(self, evaluation: Evaluation, rarest: int, chain: Callable[[], PreparedChain]) -> bool:
        """Whether finding all its matches once is less work than doing without it.

        Without it, predicates filter what the chain builds, and an AND makes the whole block a join. `chain`
        prepares the steps without composites. A join starts at the rarest step, which has `rarest` events.
        """
        inner, most, block = evaluation.inner, most_composites(evaluation), self.operator.block
        expected = self.estimate.expected(inner, Asked(0, len(inner))) or 0.0
        share: float = 1 / 2 ** len(block.order) if isinstance(self.estimate, Product) else 1.0
        if block.equalities and share * expected < most:
            share *= math.prod(self._share(evaluation, equality) for equality in block.equalities)
        elif block.equalities:  # one may hold for most of the pairs in a window and for few others
            assert isinstance(self.operator, LateralJoin)
            share = self.operator.sampled(inner) / max(expected, 1.0)
        found = share * expected
        if isinstance(self.estimate, Product):
            if _KEPT * found < _JOINED * rarest:
                return found < most
            return found < most and chain().exceeds(_KEPT / _JOINED * expected, 0)
        if not share or not chain().exceeds(_KEPT * expected, self.first):
            return False
        return found < most or self.estimate.filtered(inner) < most

    def _share(self, evaluation: Evaluation, equality: Equality) -> float:
        """The share of the pairs of events, whatever their times, for which an equality holds."""
        counts = []
        for variable, attribute in (equality.left, equality.right):
            numbers = evaluation.numbering.of((attribute,))
            numbers = numbers[evaluation.leaf_rows(self.operator.block.leaves[variable])]
            size = evaluation.numbering.size((attribute,))
            counts.append(np.bincount(numbers[numbers >= 0], minlength=size).astype(float))
        left, right = counts
        return float(left @ right) / max(float(left.sum() * right.sum()), 1.0)


class Chain:
    """The matches of a block whose steps are totally ordered.

    A step is a variable, or an AND of several. Equalities other than the key must lie within composites
    (`is_right`). Where composites that are not optional do not pay off, the whole block is joined instead.
    """

    name = "Chain"

    def __init__(self, block: Block) -> None:
        self.block = block
        self.steps = block.steps
        self.names = tuple(name for step in block.steps for name in step)
        self.join = LateralJoin(block)
        said = {predicate: gaps_of(predicate, block.steps) for predicate in block.predicates}
        self.distances: dict[str, list[Gap]] = {}
        """How far each step is after the previous one, where predicates say so."""
        for gap in (gap for gaps in said.values() for gap in gaps or ()):
            self.distances.setdefault(gap.later, []).append(gap)
        self.ranges = tuple(predicate for predicate, gaps in said.items() if gaps)
        """The predicates that bound ranges."""
        self.filters = tuple(predicate for predicate in block.predicates if predicate not in self.ranges)
        """The predicates that do not."""
        self.gaps: dict[str, list[tuple[Negation, tuple[Term, ...]]]] = {}
        """The negations that limit the predecessors of a step, by its first variable, with its own terms."""
        self.late: list[Negation] = []
        """The negations that are checked match by match."""
        for negation in block.negations:
            place = self._gap(negation)
            if place is None:
                self.late.append(negation)
            else:
                self.gaps.setdefault(place[0], []).append((negation, place[1]))
        self.counted: dict[str, list[CountedGroup]] = {}
        """The groups that a step counts in the gap before it."""
        for group in block.groups:
            found = self._counted_group(group)
            if found is not None:
                self.counted.setdefault(found[0], []).append(found[1])
        assert not self.counted or block.chain is not None, "a group is counted between single events"
        self.composites = [] if self.counted else list(self._conjunctions() or self._related())
        self.outline = self if block.chain is not None else Chain(self._outline())
        """A chain with one variable of each step, for estimates."""

    def _gap(self, negation: Negation) -> tuple[str, tuple[Term, ...]] | None:
        """The step after the gap that a derived negation covers, if that step knows the negation's key."""
        interval = negation.interval
        for left, right in pairwise(self.steps):
            gap = self.block.outermost(left, last=True), self.block.outermost(right, last=False)
            if (interval.after, interval.before) == tuple(map(tuple, gap)) and negation.derived is not None:
                terms = tuple(self._own_term(term, right) for term in negation.link)
                return None if None in terms else (right[0], tuple(term for term in terms if term))
        return None

    def _counted_group(self, group: Group) -> tuple[str, CountedGroup] | None:
        """The step after the gap of a group whose members are a range that this step can count backwards.

        Before the first step it can only require members: too many in the window are not a range. And there
        must be no composites, which pay off more.
        """
        interval = group.interval
        if why_no_range(group) is not None or (group.least == 0 and group.most is None):
            return None
        for place, right in enumerate(self.names):
            after = self.names[place - 1 : place] or Edge.WINDOW_START
            if (interval.after, interval.before) != (after, (right,)):
                continue
            if place == 0 and (group.most is not None or any(self._related())):
                return None
            block = group.alternatives[0].block
            ((name, leaf),) = block.leaves.items()
            own: list[str] = []
            terms: list[Term] = []
            for equality in block.equalities:
                mine, theirs = equality.left, equality.right
                if mine[0] != name:
                    mine, theirs = theirs, mine
                term = self._own_term(theirs, (right,))
                if term is None:
                    return None
                own.append(mine[1])
                terms.append(term)
            if group.least > 0 and right != self.names[-1] and not self._keeps_order(terms):
                return None
            return right, CountedGroup(group, leaf, tuple(own), tuple(terms))
        return None

    def _keeps_order(self, terms: list[Term]) -> bool:
        """Whether the m-th latest member before an event never moves back within a key of the chain.

        It may if the members have a key that the chain does not have. The steps that follow rely on it.
        """
        key = self.block.key or {}
        return all(attribute in key.get(variable, ()) for variable, attribute in terms)

    def _own_term(self, term: Term, names: Sequence[str]) -> Term | None:
        """The term of some variables that equals another term: itself, or by the key of the block."""
        variable, attribute = term
        if variable in names:
            return term
        key = self.block.key or {}
        if attribute in key.get(variable, ()):
            return names[0], key[names[0]][key[variable].index(attribute)]
        return None

    @property
    def is_right(self) -> bool:
        """Whether the chain finds exactly the matches of its block."""
        inside = [set(composite.names) for composite in self.composites]
        equal = [{equality.left[0], equality.right[0]} for equality in self.block.equalities]
        return all(any(names <= own for own in inside) for names in equal)

    def _conjunctions(self) -> list[Composite]:
        """The steps of several variables."""
        found = []
        for place, names in enumerate(self.steps):
            if len(names) > 1:
                part = self._part(place, place + 1)
                product = Product(replace(part, order=frozenset(), equalities=()))
                free = not part.order and not part.equalities
                found.append(Composite(place, place + 1, product if free else LateralJoin(part), product))
        return found

    def _related(self) -> Iterator[Composite]:
        """The neighbouring steps that are related by more than the key and are followed by other steps."""
        place = {name: number for number, name in enumerate(self.names)}
        related = [names for names in map(variables, self.filters) if len(names) > 1]
        related += [frozenset((equality.left[0], equality.right[0])) for equality in self.block.equalities]
        spans = sorted(
            (min(place[name] for name in names), max(place[name] for name in names) + 1) for names in related
        )
        joined: list[tuple[int, int]] = []
        for first, end in spans:
            if joined and first < joined[-1][1]:
                joined[-1] = joined[-1][0], max(end, joined[-1][1])
            else:
                joined.append((first, end))
        for first, end in joined:
            if end < len(self.names):
                part = self._part(first, end)
                chain = Chain(replace(part, equalities=()))
                yield Composite(first, end, LateralJoin(part) if part.equalities else chain, chain)

    def _part(self, first: int, end: int) -> Block:
        """The block of some neighbouring steps only."""
        steps = self.steps[first:end]
        names = tuple(name for step in steps for name in step)
        own = set(names)
        inside = [negation for name, *_ in steps[1:] for negation, _ in self.gaps.get(name, ())]
        key = self.block.key
        return Block(
            leaves={name: self.block.leaves[name] for name in names},
            order=frozenset(pair for pair in self.block.order if set(pair) <= own),
            apart=frozenset(pair for pair in self.block.apart if set(pair) <= own),
            equalities=tuple(e for e in self.block.equalities if {e.left[0], e.right[0]} <= own),
            predicates=tuple(p for p in self.block.predicates if variables(p) and variables(p) <= own),
            negations=tuple(replace(n, link=self._moved(n.link, names)) for n in inside),
            steps=steps,
            key={name: key[name] for name in names} if key else None,
        )

    def _outline(self) -> Block:
        """The block of the first variable of each step, with the key only."""
        names, key = [names[0] for names in self.steps], self.block.key
        return Block(
            leaves={name: self.block.leaves[name] for name in names},
            order=frozenset(pairwise(names)),
            apart=frozenset(),
            equalities=(),
            predicates=(),
            steps=tuple((name,) for name in names),
            key={name: key[name] for name in names} if key else None,
        )

    def _moved(self, link: tuple[Term, ...], names: tuple[str, ...]) -> tuple[Term, ...]:
        """The terms of a link, replaced by the terms of some steps that equal them by the key."""
        return tuple(own for own in (self._own_term(term, names) for term in link) if own is not None)

    def _prepared(self, evaluation: Evaluation, asked: Asked) -> PreparedChain | None:
        """The prepared steps, built once for all ranges of an evaluation; None to join them instead."""
        span: Asked | None = asked
        if asked.by_last:
            since, end = evaluation.since, len(evaluation)
            span = Asked(since, end) if _SELDOM * (end - since) < end else None
        return evaluation.made((self, evaluation.window, span), lambda: self._prepare(evaluation, span))

    def _prepare(self, evaluation: Evaluation, asked: Asked | None) -> PreparedChain | None:
        if asked is not None and not all(composite.is_optional for composite in self.composites):
            return None
        plain = cache(lambda: PreparedChain(self.outline, evaluation, asked, []))
        if asked is not None or not self.composites:
            return plain()
        rarest = min(len(evaluation.leaf_rows(leaf)) for leaf in self.block.leaves.values())
        worth = [composite for composite in self.composites if composite.is_worth(evaluation, rarest, plain)]
        if not all(composite.is_optional for composite in self.composites if composite not in worth):
            return None
        try:
            prepared = PreparedChain(self, evaluation, None, worth) if worth else plain()
        except TooManyCompositesError:
            return plain() if all(composite.is_optional for composite in worth) else None
        return None if self._is_filtered(prepared) else prepared

    def _is_filtered(self, prepared: PreparedChain) -> bool:
        """Whether so few rows pass the predicates between steps that joining is less work.

        A chain tests these only after it has bound an AND, a join as soon as their variables are bound.
        """
        place = {name: number for number, names in enumerate(self.steps) for name in names}
        last = max((one.first for one in self.composites if not one.is_optional), default=-1)
        inside = [set(composite.names) for composite in self.composites]
        if not any(
            names and len(names) < len(place) and min(map(place.__getitem__, names)) <= last
            for names in map(variables, self.filters)
            if not any(names <= own for own in inside)
        ):
            return False
        return _JOINED * self._passing(prepared) < prepared.each_expected(0)

    # -- backward ------------------------------------------------------------------------------------------

    def run(self, evaluation: Evaluation, asked: Asked) -> Iterator[Bindings]:
        """The matches: in order where nothing filters the rows, otherwise key by key by their triggers."""
        prepared = self._prepared(evaluation, asked)
        if prepared is None:
            yield from self.join.run(evaluation, asked)
            return
        if prepared.is_ordered:
            yield from prepared.in_order(asked)
            return
        level = len(prepared.steps) - 1
        columns = prepared.triggers(asked).reshape(1, -1)
        yield from self._extended(prepared, prepared.kept(columns, level), level)

    def _extended(self, prepared: PreparedChain, columns: Rows, level: int) -> Iterator[Bindings]:
        """Extend partial matches, given by their places from `level` on, to the first step."""
        if not columns.shape[1]:
            return
        if level == 0:
            yield prepared.bindings(columns, 0)
            return
        stop = prepared.next_stop(level)
        for longer in prepared.extensions(columns, level, stop):
            if prepared.complete(stop):
                yield Bindings(dict(zip(self.names, longer, strict=True)), longer.shape[1])
            else:
                kept = prepared.kept(np.ascontiguousarray(longer), stop)
                yield from self._extended(prepared, kept, stop)

    def chooses(self, keep: Keep) -> bool:
        """Whether the kept matches can be found without building the others."""
        if self.block.chain is None:
            return False
        per_last = keep.kind is Kept.LAST and keep.per == self.names[-1:]
        per_first = keep.kind is Kept.FIRST and keep.per == self.names[:1] and keep.every is None
        related = self.filters or self.block.equalities  # by predicates, or by equalities of some neighbours
        return (per_last or per_first) and not (related or self.late or self.block.groups)

    def chosen(self, evaluation: Evaluation, keep: Keep, asked: Asked) -> Bindings | None:
        """The kept matches, one per event; None where the others must be built to know them.

        KEEP chooses among all matches over the events held; `asked` are the kept ones that are wanted.
        """
        if not self.chooses(keep):
            return None
        if keep.kind is Kept.FIRST:
            return FirstMatches(self, evaluation).found(asked)
        prepared = PreparedChain(self, evaluation, None, [])
        if any(prepared.filters(level) for level in range(len(prepared.steps))):
            return None
        return prepared.latest(asked)

    # -- counting ------------------------------------------------------------------------------------------

    def counts(self, evaluation: Evaluation, asked: Asked) -> Iterator[int]:
        """Count the matches, piece by piece; the last extensions are counted without building them."""
        prepared = self._prepared(evaluation, asked)
        if prepared is None or len(prepared.steps) == 1 or prepared.filters(0):
            yield from (found.count for found in self.run(evaluation, asked))
            return
        level = len(prepared.steps) - 1
        columns = prepared.triggers(asked).reshape(1, -1)
        yield from self._counted(prepared, prepared.kept(columns, level), level)

    def _counted(self, prepared: PreparedChain, columns: Rows, level: int) -> Iterator[int]:
        stop = prepared.next_stop(level)
        if stop == 0:
            for first in range(0, columns.shape[1], _SOME):
                yield prepared.count(np.ascontiguousarray(columns[:, first : first + _SOME]), level)[0]
            return
        for longer in prepared.extensions(columns, level, stop):
            kept = prepared.kept(np.ascontiguousarray(longer), stop)
            yield from self._counted(prepared, kept, stop)

    def expected(self, evaluation: Evaluation, asked: Asked) -> float | None:
        """Estimate the number of matches if all predicates and late negations pass."""
        prepared = self._prepared(evaluation, asked)
        return None if prepared is None else prepared.expected(prepared.triggers(asked), 0)

    def filtered(self, evaluation: Evaluation) -> float:
        """Estimate the number of matches by building those of a few triggers.

        Returns infinity if the block is joined.
        """
        asked = Asked(0, len(evaluation))
        prepared = self._prepared(evaluation, asked)
        return math.inf if prepared is None else self._passing(prepared) * len(prepared.triggers(asked))

    def _passing(self, prepared: PreparedChain) -> float:
        """Build the matches of a few triggers; return how many there are per trigger."""
        few = min(_FEW, prepared.evaluation.limit / max(prepared.each_expected(0), 1.0))
        level, some = len(prepared.steps) - 1, prepared.sample(max(int(few), 1))
        found = sum(part.count for part in self._extended(prepared, prepared.kept(some, level), level))
        return found / max(int(some.shape[1]), 1)
