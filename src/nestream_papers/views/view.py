"""A view of an inner query: loaded for the requested intervals, updated, used, and purged.

For every view-interval, it holds all results of the inner query that lie in it. What is missing of an
interval is computed from its last events on: if a view-interval overlaps it on the left, only for last events
beyond that one's end. A result that a view-interval already contains is not stored again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream_papers.engine.context import Bindings, Evaluation
from nestream_papers.engine.program import Views
from nestream_papers.engine.stack import greatest, least
from nestream_papers.views.counters import Counters
from nestream_papers.views.held import Facts, Results
from nestream_papers.views.inner import Inner
from nestream_papers.views.intervals import Index, Intervals, Overlap
from nestream_papers.views.partitions import Partitions
from nestream_papers.views.policy import wanted


class Compute(Protocol):
    """Computes the results of an inner query."""

    def __call__(
        self, inner: Inner, around: Bindings, since: Ints, until: Ints, ends_from: Ints
    ) -> Iterator[Bindings]:
        """The results in `[since, until)` whose last events lie at or after a row, for each of `around`."""


class View:
    """The results of an inner query, or facts about them under negation, and where they are complete."""

    def __init__(
        self, inner: Inner, kind: Views, most: int, *, facts: bool = False, steady: bool = False
    ) -> None:
        self.inner = inner
        self.kind = kind
        self.most = most
        self.steady = steady
        self.facts = Facts() if facts else None
        self.results = Results(inner.names)
        self.parts = Partitions(inner.equal)
        self.index = Index()
        self.counters = Counters()
        self.oldest = 0
        self._evaluation: Evaluation | None = None
        self._forgotten = 0
        self._stride = 1
        self._trigger = -1

    # -- usage ---------------------------------------------------------------------------------------------

    def load(
        self, compute: Compute, evaluation: Evaluation, asking: Bindings, rows: Intervals, trigger: Ints
    ) -> Intervals | None:
        """Make sure that the view can answer query-intervals, given in rows, of some outer results.

        Returns their coordinates in the view; None if it would have to hold too much.
        """
        self.attach(evaluation)
        part = self.parts.numbers(evaluation, asking)
        base = np.maximum(part, 0) * self._stride
        right = np.where(part < 0, rows.left, np.maximum(rows.left, rows.right))
        queries = Intervals(base + rows.left, base + right)
        real = rows.left < right
        if real.any() and int(rows.left[real].min()) < self.oldest:
            self.forget()
            self.oldest = int(rows.left[real].min())
        known = ~real | self.index.covers(queries)
        if self.facts is not None:
            known |= self.facts.has(queries, self._stride)
        self.parts.note(part, asking, real)
        count = 0
        if not known.all():
            loaded, served = wanted(
                self.kind, queries, np.flatnonzero(~known), part, trigger, base + self.oldest
            )
            count = len(loaded)
            if not self._update(compute, asking.only(served), loaded, part[served], trigger[served]):
                self.forget()
                return None
        self._count(int(np.count_nonzero(real)), count)
        return queries

    def _count(self, asked: int, loaded: int) -> None:
        """Count answered query-intervals, some after loading; for facts, an answer is a use."""
        self.counters.asked += asked
        self.counters.answered += asked - loaded
        if self.facts is not None:
            self.counters.used += asked
            self.counters.reused += asked - loaded

    def use(self, places: Ints) -> dict[str, Ints]:
        """The rows of some results that an outer result uses."""
        used = self.results.used
        fresh = np.unique(places[~used[places]])
        used[fresh] = True
        self.counters.used += len(places)
        self.counters.reused += len(places) - len(fresh)
        self.counters.unused -= len(fresh)
        return {name: column[places] for name, column in self.results.rows.items()}

    # -- maintenance ---------------------------------------------------------------------------------------

    def _update(
        self, compute: Compute, asking: Bindings, loaded: Intervals, part: Ints, trigger: Ints
    ) -> bool:
        """Compute what is missing of some intervals; return whether there was room for it."""
        base = part * self._stride
        cases = self.index.cases(loaded)
        crossed = (cases == Overlap.RIGHT) | (cases == Overlap.CONTAINED)
        lasts = self.index.intervals.left
        inside = np.searchsorted(lasts, loaded.right) > np.searchsorted(lasts, loaded.left, "right")
        self.counters.moved_left += int(np.count_nonzero(crossed))
        if self.steady and self.kind is Views.BALANCED:
            assert not (crossed & (trigger > self._trigger)).any(), "a view-interval has moved to the left"
        self._trigger = max(self._trigger, int(trigger.max()))
        previous = np.concatenate(([-1], loaded.right[:-1]))
        ends_from = np.maximum(self.index.known_until(loaded.left), previous)
        since, until = loaded.left - base, loaded.right - base
        parts: list[tuple[dict[str, Ints], Ints, Ints, Ints]] = []
        total = len(self.results)
        self.counters.loads += 1
        around = Bindings(asking.rows, asking.count, np.arange(asking.count))
        for found in compute(self.inner, around, since, until, np.maximum(ends_from - base, since)):
            assert found.outer is not None
            self.counters.computed += found.count
            columns = [found.rows[name] for name in self.inner.names]
            start, end, own = least(columns), greatest(columns), part[found.outer]
            if self.facts is not None:
                self.counters.kept += self.facts.add(start, end, own, self._stride)
                continue
            rows = dict(zip(self.inner.names, columns, strict=True))
            if inside.any():  # what lies in a view-interval is already there
                at = own * self._stride
                fresh = ~self.index.covers(Intervals(at + start, at + end + 1))
                rows = {name: column[fresh] for name, column in rows.items()}
                start, end, own = start[fresh], end[fresh], own[fresh]
            total += len(start)
            if total > self.most:
                return False
            parts.append((rows, start, end, own))
        if parts:
            joined = {name: np.concatenate([rows[name] for rows, *_ in parts]) for name in self.inner.names}
            start, end, own = (np.concatenate([part[place] for part in parts]) for place in (1, 2, 3))
            self.results.add(joined, start, end, own, self._stride)
            self.counters.kept += len(start)
            self.counters.unused += len(start)
        self.index = self.index.with_(loaded)
        self.counters.hold(self.nbytes)
        return True

    def purge(self, oldest: int) -> None:
        """Forget what begins before a row: no later outer result requests it."""
        if oldest <= self.oldest:
            return
        self.oldest = oldest
        held = self.results if self.facts is None else self.facts
        kept = held.start >= oldest
        if not kept.all():
            held.only(kept)
        intervals = self.index.intervals
        limit = intervals.left // self._stride * self._stride + oldest
        if len(intervals) and (intervals.left < limit).any():
            self.index = Index(Intervals(np.maximum(intervals.left, limit), intervals.right))
        self.counters.hold(self.nbytes)

    def forget(self) -> None:
        """Forget everything; it is recomputed on request."""
        self.steady = False  # what a trigger requests from now on may be incomplete
        if self.facts is not None:
            self.facts = Facts()
        self.results = Results(self.inner.names)
        self.index = Index()
        self.parts.forget()
        self.counters.hold(0)

    def attach(self, evaluation: Evaluation) -> None:
        """Move to the rows and the partitions of an evaluation."""
        if self._evaluation is evaluation:
            return
        forgotten = evaluation.store.events.forgotten
        shift, self._forgotten = forgotten - self._forgotten, forgotten
        self.purge(shift)
        before, self._stride, self._evaluation = self._stride, evaluation.stride, evaluation
        if not len(self.index) and not len(self.results) and not (self.facts and len(self.facts)):
            self.oldest -= shift
            self._trigger -= shift
            self.parts.forget()
            return
        held = self.results if self.facts is None else self.facts
        held.shift(shift)
        self.oldest -= shift
        self._trigger -= shift
        intervals = self.index.intervals
        parts = intervals.left // before
        left, right = intervals.left - parts * before - shift, intervals.right - parts * before - shift
        renumbered = self.parts.renumbered(evaluation, shift)
        kept, numbers = renumbered(held.part)
        held.only(kept)
        held.place(numbers[kept], self._stride)
        kept, numbers = renumbered(parts)
        at = numbers[kept] * self._stride
        self.index = Index(Intervals(at + left[kept], at + right[kept]))

    @property
    def nbytes(self) -> int:
        """The memory of results or facts, and of the intervals in which they are complete."""
        held = self.results if self.facts is None else self.facts
        return held.nbytes + self.index.intervals.left.nbytes + self.index.intervals.right.nbytes
