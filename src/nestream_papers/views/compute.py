"""Computes the results of an inner query for its view, in the intervals to load.

If part of an interval is known, only results with a last event beyond it are computed. It need not be known
which variable has the last event: each candidate is tried, with those before it ending earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream_papers.engine.context import Bindings, Ranges
from nestream_papers.engine.join import outermost
from nestream_papers.engine.stack import Stack, greatest, least, places
from nestream_papers.views.inner import Inner
from nestream_papers.views.intervals import Intervals
from nestream_papers.views.join import Limits, ViewJoin


def computed(asker: ViewJoin, inner: Inner, around: Bindings, limits: Limits) -> Iterator[Bindings]:
    """The results of an inner query for each of some outer results, each of which represents an interval."""
    made = InnerJoin(
        asker.evaluation, inner.block, asker.root, None, asker.limit, asker.view_set, computed, limits=limits
    )
    return made.computed(around)


@dataclass
class InnerJoin(ViewJoin):
    """Computes the results of an inner query in intervals whose last event is not before a row.

    `trigger_name` is the variable of that last event; those of `earlier` come before the row.
    """

    limits: Limits | None = None
    trigger_name: str = ""
    earlier: frozenset[str] = frozenset()

    def computed(self, around: Bindings) -> Iterator[Bindings]:
        """The results for each of some outer results, each of which represents an interval."""
        assert self.limits is not None
        lasts = outermost(self.block, by_last=True)
        if (self.limits.ends_from <= self.limits.since).all():
            lasts = lasts[:1]
        for number, name in enumerate(lasts):
            made = replace(self, trigger_name=name, earlier=frozenset(lasts[:number]))
            yield from made.extended(around, {}, None)

    def _position(self, rows: Ints) -> Ints:
        """The positions of rows; after the last row, that of the next event."""
        store = self.evaluation.store
        return np.concatenate([store.pos, [store.pos[-1] + 1]])[np.minimum(rows, len(store))]

    def lower(self, name: str, bindings: Bindings, stack: Stack, start: Ints) -> Ints:
        """The first places in a leaf's stack: in the interval, the window, and after what precedes."""
        assert self.limits is not None
        assert bindings.outer is not None
        store = self.evaluation.store
        since = self._position(self.limits.since[bindings.outer])
        if name == self.trigger_name:
            since = np.maximum(since, self._position(self.limits.ends_from[bindings.outer]))
        own = [bindings.rows[other] for other in self.block.leaves if other in bindings.rows]
        if own:
            since = np.maximum(since, store.reach(greatest(own)))
        found = places(stack.pos, start + since, "left")
        earlier = [store.pos[bindings.rows[x]] for x, y in self.order if y == name and x in bindings.rows]
        if earlier:
            found = np.maximum(found, places(stack.low, start + greatest(earlier), "right"))
        return found

    def upper(self, name: str, bindings: Bindings, stack: Stack, start: Ints) -> Ints:
        """One past the last places: in the interval, the window, and before what follows."""
        assert self.limits is not None
        assert bindings.outer is not None
        store = self.evaluation.store
        until = self.limits.until[bindings.outer]
        if name in self.earlier:
            until = np.minimum(until, self.limits.ends_from[bindings.outer])
        limit = self._position(until)
        later = [store.low[bindings.rows[y]] for x, y in self.order if x == name and y in bindings.rows]
        found = places(stack.pos, start + least([limit, *later]), "left")
        own = [bindings.rows[other] for other in self.block.leaves if other in bindings.rows]
        if own:
            found = np.minimum(found, places(stack.reach, start + store.pos[least(own)], "right"))
        return found

    def query_intervals(self, inner: Inner, bindings: Bindings) -> Intervals:
        """The query-intervals of an expression nested in it, within its own."""
        assert self.limits is not None
        assert bindings.outer is not None
        rows = super().query_intervals(inner, bindings)
        left = np.maximum(rows.left, self.limits.since[bindings.outer])
        return Intervals(left, np.minimum(rows.right, self.limits.until[bindings.outer]))

    def tested(self, bindings: Bindings, inner: Inner, ranges: Ranges) -> Bindings:
        """The partial results whose nested ones fit and have the last event where it must be."""
        assert self.limits is not None
        assert bindings.outer is not None
        if self.trigger_name in inner.names:
            rows = bindings.rows[self.trigger_name]
            bindings = bindings.only(rows >= self.limits.ends_from[bindings.outer])
        for name in self.earlier.intersection(inner.names):
            assert bindings.outer is not None
            bindings = bindings.only(bindings.rows[name] < self.limits.ends_from[bindings.outer])
        return super().tested(bindings, inner, ranges)
