"""Product: events in any order, as ranges of the other parts around each event as the last one.

The last event of a match is the one with the greatest row. The other parts may then bind any event of their
stacks in the window that ends there. These ranges do not depend on each other, so the matches of a last event
are all their combinations, without dead ends. Predicates, negations and parts that might bind the same event
filter the matches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nestream.engine.block import Block
from nestream.engine.evaluation import Bindings, Evaluation, Stack
from nestream.engine.kernels import Rows
from nestream.engine.kernels.product import MOST, combinations, combine, ranges_before
from nestream.engine.kernels.stack import taken
from nestream.engine.operators.lateral_join import LateralJoin
from nestream.engine.operators.operator import Asked
from nestream.engine.pieces import Counts, pieces

_NO_ROWS = np.empty(0, np.int32)


class Product:
    """The matches of a block whose variables have no order and are related by at most a key."""

    name = "Product"

    def __init__(self, block: Block) -> None:
        self.block = block
        self.join = LateralJoin(block)

    def run(self, evaluation: Evaluation, asked: Asked) -> Iterator[Bindings]:
        """The matches in the order of their last events, for each part that may be the last."""
        if not asked.by_last:
            yield from self.join.run(evaluation, asked)
            return
        for place, last in enumerate(self.block.leaves):
            yield from self._ending_in(evaluation, place, last, asked)

    def _ending_in(self, evaluation: Evaluation, place: int, last: str, asked: Asked) -> Iterator[Bindings]:
        events, lows, highs, counts = self._ranges(evaluation, last, asked)
        rows = self._rows(evaluation, last)
        for piece in pieces(counts, evaluation.limit):
            total = int(counts[piece].sum())
            if not total:
                continue
            parts = (np.ascontiguousarray(lows[:, piece]), np.ascontiguousarray(highs[:, piece]))
            for low, high, size in _cut(*parts, total, evaluation.limit):
                found = combine(rows, low, high, events[piece], place, size)
                bindings = Bindings(dict(zip(self.block.leaves, found, strict=True)), size)
                yield self._filtered(evaluation, bindings)

    def _rows(self, evaluation: Evaluation, last: str) -> Rows:
        """The rows of the stacks of all parts except one, one after the other."""
        others = [self._stack(evaluation, name).rows for name in self.block.leaves if name != last]
        joined: Rows = evaluation.made((self, last), lambda: np.concatenate([_NO_ROWS, *others]))
        return joined

    def _ranges(self, evaluation: Evaluation, last: str, asked: Asked) -> tuple[Rows, Rows, Rows, Counts]:
        """The events that are the last of a match, the ranges of the other parts, and their combinations.

        Ranges are places in the rows of the other parts.
        """
        events, lows, highs, counts = evaluation.made(
            (self, evaluation.window, evaluation.since, last), lambda: self._all_ranges(evaluation, last)
        )
        some = slice(*np.searchsorted(events, (asked.first, asked.end)))
        return events[some], lows[:, some], highs[:, some], counts[some]

    def _all_ranges(self, evaluation: Evaluation, last: str) -> tuple[Rows, Rows, Rows, Counts]:
        """The same for everything that an evaluation may ask for, in the order of the last events."""
        events = self._last_events(evaluation, last)
        places = np.full(len(evaluation), -1, np.int32)
        places[events.rows] = np.arange(len(events), dtype=np.int32)
        order = places[places >= 0]
        others = [self._stack(evaluation, name) for name in self.block.leaves if name != last]
        lows, highs = np.empty((2, len(others), len(events)), np.int32)
        first = np.int32(0)
        for part, other in enumerate(others):
            low, high = ranges_before(events.rows, events.begin, other.rows, other.begin, evaluation.reach)
            lows[part], highs[part] = taken(low, order) + first, taken(high, order) + first
            first += np.int32(len(other))
        return taken(events.rows, order), lows, highs, combinations(lows, highs)

    def _last_events(self, evaluation: Evaluation, last: str) -> Stack:
        """The events of a part from the first wanted one on, by key."""
        stack = self._stack(evaluation, last)
        if not evaluation.since:
            return stack
        new = stack.rows >= evaluation.since
        counted = np.concatenate(([0], np.cumsum(new))).astype(np.int32)
        return Stack(stack.rows[new], counted[stack.begin])

    def _stack(self, evaluation: Evaluation, name: str) -> Stack:
        key = self.block.key[name] if self.block.key else None
        return evaluation.stack(self.block.leaves[name], key)

    def _filtered(self, evaluation: Evaluation, bindings: Bindings) -> Bindings:
        for x, y in self.block.apart:
            if bindings.count:
                bindings = bindings.only(bindings.rows[x] != bindings.rows[y])
        for predicate in self.block.predicates:
            if bindings.count:
                bindings = bindings.only(evaluation.satisfied(predicate, bindings))
        for negation in self.block.negations:
            if bindings.count:
                bindings = bindings.only(~self.join.drops(evaluation, negation, bindings))
        return bindings

    def expected(self, evaluation: Evaluation, asked: Asked) -> float | None:
        """How many matches there are if all pass the filters."""
        if not asked.by_last:
            return None
        return float(sum(self._ranges(evaluation, last, asked)[3].sum() for last in self.block.leaves))

    def counts(self, evaluation: Evaluation, asked: Asked) -> Iterator[int]:
        """Count the matches: products of lengths where nothing filters."""
        block = self.block
        if not asked.by_last or block.apart or block.predicates or block.negations:
            yield from (found.count for found in self.run(evaluation, asked))
            return
        for last in block.leaves:
            counts = self._ranges(evaluation, last, asked)[3]
            yield (
                int(counts.sum())
                if counts.max(initial=0) < MOST
                else _exact(counts, *self._ranges(evaluation, last, asked)[1:3])
            )


def _exact(counts: Counts, lows: Rows, highs: Rows) -> int:
    """The number of combinations where some event has more than a kernel can count."""
    lengths = (highs - lows).astype(object)
    return int(np.prod(lengths, axis=0).sum())


def _cut(lows: Rows, highs: Rows, total: int, limit: int) -> Iterator[tuple[Rows, Rows, int]]:
    """Cut ranges to at most `limit` combinations; those of a single event are cut at the first part."""
    if total <= limit:
        yield lows, highs, total
        return
    widths = (highs - lows)[:, 0].astype(object)
    rest = int(np.prod(widths[1:])) if len(widths) > 1 else 1
    width = max(limit // rest, 1)
    for start in range(int(lows[0, 0]), int(highs[0, 0]), width):
        low, high = lows.copy(), highs.copy()
        low[0, 0], high[0, 0] = start, min(start + width, int(highs[0, 0]))
        if rest <= limit or len(widths) == 1:
            yield low, high, (int(high[0, 0]) - start) * rest
            continue
        for inner_low, inner_high, size in _cut(low[1:], high[1:], rest, limit):
            yield np.vstack([low[:1], inner_low]), np.vstack([high[:1], inner_high]), size
