"""Nested execution with views: first the outer expression, then inner queries from their views.

Each outer result has a query-interval for each inner query: after the outer event on its left and before the
one on its right, or within the outer limits. The view's results for it are joined and tested for everything
that relates them to the outer result; a negated query that relates to it only through the interval and equal
values asks for a fact instead. If a view would have to hold too much, the inner query is joined leaf by leaf,
as without views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream.engine.program import Edge
from nestream.model.expression import Expression, variables
from nestream_papers.engine.context import Bindings, Mask, Ranges, needed
from nestream_papers.engine.join import Join, _pieces, _split, outermost
from nestream_papers.engine.program import Negation, Witness
from nestream_papers.engine.stack import expand, greatest, least
from nestream_papers.views.inner import Inner, outer_names
from nestream_papers.views.intervals import Intervals
from nestream_papers.views.view import View
from nestream_papers.views.view_set import ViewSet


@dataclass
class Limits:
    """The rows in which results of an inner query are computed, for each loaded interval.

    All their events lie in `[since, until)`, the last of them at or after `ends_from`.
    """

    since: Ints
    until: Ints
    ends_from: Ints


Computing = Callable[["ViewJoin", Inner, Bindings, Limits], Iterator[Bindings]]
"""Computes the results of an inner query that a join requests, for each of some outer results."""


@dataclass
class ViewJoin(Join):
    """Joins a block whose nested expressions are answered from views.

    All events lie in the rows `[first_row, end_row)`. With `direct`, views are not used for nested
    expressions.
    """

    view_set: ViewSet
    computing: Computing
    first_row: int = 0
    end_row: int = 2**62
    direct: bool = False

    # -- the outer expression ------------------------------------------------------------------------------

    @cached_property
    def outer(self) -> tuple[str, ...]:
        """The variables of the outer expression."""
        return outer_names(self.block)

    @cached_property
    def inner(self) -> list[Inner]:
        """The nested expressions in the order in which they are joined."""
        return self.view_set.inner_queries(self.block, self.root)

    def from_start(self, ranges: Ranges) -> Iterator[Bindings]:
        """The matches of the root block whose variables lie in the ranges."""
        name = self.starting_leaf(ranges)
        stack = self.stack(name, None)
        rows = stack.rows[self.within(stack, name, ranges)]
        rows = rows[slice(*np.searchsorted(rows, (self.first_row, self.end_row)))]
        for start in range(0, len(rows), self.limit):
            piece = rows[start : start + self.limit]
            bindings = self.filtered(Bindings({name: piece}, len(piece)), name, ranges)
            yield from self.extended(bindings, ranges, None)

    def starting_leaf(self, ranges: Ranges) -> str:
        """The last leaf of the outer expression; one with a range if there is one."""
        limited = [name for name in self.outer if name in ranges]
        return self.outermost_leaf(limited or list(self.outer))

    def next_leaf(self, remaining: list[str], bindings: Bindings) -> str:
        """The last remaining leaf of the outer expression, then any other."""
        return super().next_leaf([name for name in remaining if name in self.outer] or remaining, bindings)

    def extended(self, bindings: Bindings, ranges: Ranges, found: Mask | None) -> Iterator[Bindings]:
        """The matches that the partial matches extend to: outer leaves, then nested expressions by views."""
        if not self.direct and bindings.count and all(name in bindings.rows for name in self.outer):
            for inner in self.inner:
                if inner.names[0] not in bindings.rows:
                    yield from self.joined(inner, bindings, ranges)
                    return
        yield from super().extended(bindings, ranges, found)

    # -- nested expressions --------------------------------------------------------------------------------

    def joined(self, inner: Inner, bindings: Bindings, ranges: Ranges) -> Iterator[Bindings]:
        """The partial matches with the results of a nested expression that fit them."""
        view = self.view_set.view(inner, self.block, first=inner is self.inner[0])
        rows = self.query_intervals(inner, bindings)
        asked = view.load(self.compute, self.evaluation, bindings, rows, self.trigger(bindings))
        if asked is None:
            yield from replace(self, direct=True).extended(bindings, ranges, None)
            return
        for longer in self.results(view, asked, bindings, self._ends_from(inner, ranges)):
            kept = self.tested(longer, inner, ranges)
            if kept.count and not (inner.after and inner.before):
                kept = kept.only(self.fits(kept))
            yield from self.extended(self.decided(kept, frozenset(inner.names)), ranges, None)

    def _row(self, position: int) -> int:
        return int(np.searchsorted(self.evaluation.store.pos, position))

    def _ends_from(self, inner: Inner, ranges: Ranges) -> int:
        """The row from which results must end: that of the range of their last event."""
        lasts = outermost(inner.block, by_last=True)
        return self._row(ranges[lasts[0]][0]) if len(lasts) == 1 and lasts[0] in ranges else 0

    def trigger(self, bindings: Bindings) -> Ints:
        """The rows of the last events of the outer results."""
        return greatest([bindings.rows[name] for name in self.outer])

    def query_intervals(self, inner: Inner, bindings: Bindings) -> Intervals:
        """The rows between the outer events on both sides, or as far as windows of the outer events reach."""
        store = self.evaluation.store
        bound = [bindings.rows[name] for name in self.block.leaves if name in bindings.rows]
        if inner.after:
            left = self.after(inner.after, bindings)
        else:
            left = np.searchsorted(store.pos, store.reach(greatest(bound)), "left")
        if inner.before:
            right = self.before(inner.before, bindings)
        else:
            right = np.searchsorted(self.view_set.reach(self.evaluation), store.pos[least(bound)], "right")
        return Intervals(np.maximum(left, self.first_row), np.minimum(right, self.end_row))

    def after(self, names: tuple[str, ...], bindings: Bindings) -> Ints:
        """The first rows after all the events of some variables."""
        store = self.evaluation.store
        last = greatest([bindings.rows[name] for name in names])
        return np.searchsorted(store.low, store.pos[last], "right")

    def before(self, names: tuple[str, ...], bindings: Bindings) -> Ints:
        """The first rows that are not before all the events of some variables."""
        store = self.evaluation.store
        first = least([bindings.rows[name] for name in names])
        return np.searchsorted(store.pos, store.low[first], "left")

    def results(self, view: View, asked: Intervals, bindings: Bindings, since: int = 0) -> Iterator[Bindings]:
        """The partial matches with the results of a view in their query-intervals, piece by piece."""
        held = view.results
        base = asked.left - asked.left % self.evaluation.stride
        first, counts = held.within(Intervals(np.maximum(asked.left, base + since), asked.right))
        least_start = asked.left - base
        if not len(counts):
            return
        if counts.max() > self.limit:
            which, first, counts = _split(first, counts, self.limit)
            bindings, least_start = bindings.only(which), least_start[which]
        for piece in _pieces(counts, self.limit):
            run, here = expand(counts[piece], first[piece])
            run = run + piece.start
            inside = held.start[here] >= least_start[run]
            run, here = run[inside], here[inside]
            longer = bindings.only(run)
            longer.rows |= view.use(here)
            yield longer

    def compute(
        self, inner: Inner, around: Bindings, since: Ints, until: Ints, ends_from: Ints
    ) -> Iterator[Bindings]:
        """The results of an inner query for its view."""
        return self.computing(self, inner, around, Limits(since, until, ends_from))

    # -- what is tested at each use ------------------------------------------------------------------------

    def tested(self, bindings: Bindings, inner: Inner, ranges: Ranges) -> Bindings:
        """The partial matches whose inner result fits the outer one; constraints are left aside."""
        store = self.evaluation.store
        for name in inner.names:
            if name in ranges and bindings.count:
                bindings = bindings.only(self.in_range(bindings.rows[name], name, ranges))
        for x, y in inner.order:
            if bindings.count:
                bindings = bindings.only(store.pos[bindings.rows[x]] < store.low[bindings.rows[y]])
        for x, y in inner.apart:
            if bindings.count:
                bindings = bindings.only(bindings.rows[x] != bindings.rows[y])
        for equality in inner.equalities:
            if bindings.count:
                bindings = self.equal_terms(bindings, equality)
        for predicate in inner.predicates:
            if bindings.count:
                bindings = bindings.only(self.evaluation.satisfied(predicate, bindings))
        return bindings

    def fits(self, bindings: Bindings) -> Mask:
        """Which partial matches fit into a window."""
        store = self.evaluation.store
        bound = [bindings.rows[name] for name in self.block.leaves if name in bindings.rows]
        held: Mask = store.reach(greatest(bound)) <= store.pos[least(bound)]
        return held

    def without_negated(self, bindings: Bindings, name: str) -> Bindings:
        """The partial matches that satisfy the constraints that are decidable once a variable is bound."""
        return self.decided(bindings, frozenset((name,)))

    def decided(self, bindings: Bindings, names: frozenset[str]) -> Bindings:
        """The same for several variables; what results of views already satisfy is not checked again."""
        bound = set(bindings.rows)
        known = frozenset[int]() if self.direct else self._known
        for constraint in self.block.constraints:
            if not bindings.count:
                break
            if id(constraint) in known:
                continue
            if isinstance(constraint, Witness):
                wanted = constraint.needs(self.root)
            elif self.waits(constraint):
                wanted = frozenset(self.block.leaves)
            else:
                wanted = needed(constraint, self.root)
            own = wanted & set(self.block.leaves)
            if wanted <= bound and (not own or own & names):
                bindings = bindings.only(self.satisfies(constraint, bindings))
        return bindings

    def due(self, name: str, bound: set[str]) -> list[Expression]:
        """The predicates to test once a variable is bound: as soon as all their variables are."""
        own = set(self.block.leaves)
        read = [(predicate, variables(predicate)) for predicate in self.block.predicates]
        return [p for p, names in read if names <= bound and (name in names or not names & own)]

    @cached_property
    def _known(self) -> frozenset[int]:
        return frozenset(number for inner in self.inner for number in inner.local)

    # -- negated expressions -------------------------------------------------------------------------------

    def drops(self, negation: Negation, bindings: Bindings) -> Mask:
        """Which partial matches have a match of the negation in its interval."""
        inner = self.view_set.negated_query(negation, self.root)
        if inner is None:
            return super().drops(negation, bindings)
        around = Bindings(bindings.rows, bindings.count, np.arange(bindings.count))
        for predicate in negation.block.predicates:
            if not variables(predicate) & set(negation.block.leaves):
                around = around.only(self.evaluation.satisfied(predicate, around))
        found = np.zeros(bindings.count, bool)
        if not around.count:
            return found
        assert around.outer is not None
        view = self.view_set.view(inner, self.block, first=self._is_first(negation))
        rows = self.negated_intervals(negation, around)
        asked = view.load(self.compute, self.evaluation, around, rows, self.trigger(around))
        if asked is None:
            return super().drops(negation, bindings)
        if view.facts is not None:
            found[around.outer] = view.facts.has(asked, self.evaluation.stride)
            return found
        user = ViewJoin(
            self.evaluation, negation.block, self.root, negation, self.limit, self.view_set, self.computing
        )
        for longer in self.results(view, asked, around):
            kept = user.tested(longer, inner, {})
            for constraint in negation.block.constraints:
                if kept.count and id(constraint) not in inner.local:
                    kept = kept.only(user.satisfies(constraint, kept))
            assert kept.outer is not None
            found[kept.outer] = True
        return found

    def _is_first(self, negation: Negation) -> bool:
        """Whether only the outer expression decides which outer results ask."""
        waiting = [part for part in self.block.negations if part.stair is None]
        return not self.block.nested and waiting[0] is negation

    def negated_intervals(self, negation: Negation, bindings: Bindings) -> Intervals:
        """The rows of a negation's interval."""
        store, interval = self.evaluation.store, negation.interval
        if isinstance(interval.after, Edge):
            reach = store.reach(self.evaluation.last(bindings, self.root))
            left = np.searchsorted(store.pos, reach, "left")
        else:
            left = self.after(interval.after, bindings)
        if interval.before is Edge.WINDOW_END:
            first = store.pos[self.evaluation.first(bindings, self.root)]
            right = np.searchsorted(self.view_set.reach(self.evaluation), first, "right")
        elif interval.before is Edge.MATCH_END:
            last = store.pos[self.evaluation.last(bindings, self.root)]
            right = np.searchsorted(store.low, last, "right")
        else:
            assert not isinstance(interval.before, Edge)
            right = self.before(interval.before, bindings)
        return Intervals(left, right)
