"""Product: events in any order, as ranges of the other parts around each event as the last one.

The last event of a match is the one with the greatest row. The other parts may then bind any event of their
stacks in the window that ends there. These ranges do not depend on each other, so the matches of a last event
are all their combinations, without dead ends. Predicates, negations and parts that might bind the same event
filter the matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nestream.engine.block import Block
from nestream.engine.evaluation import Bindings, Evaluation, Stack
from nestream.engine.kernels import Rows
from nestream.engine.kernels.product import MOST, combine, ranges_before
from nestream.engine.kernels.stack import between_by_key, key_of_place, keys_between, sorted_by_key, taken
from nestream.engine.operators.lateral_join import LateralJoin
from nestream.engine.operators.operator import Asked
from nestream.engine.pieces import Counts, pieces

_SPARSE = 16
"""Rows are sorted by counting if there are at most this many events for each."""


@dataclass(frozen=True)
class _Ranges:
    """The last events of matches in the order of rows, each with its part, and the ranges of the other parts.

    Ranges are places in `rows`, the rows of the stacks of all parts. `in_order` says that no event can be two
    of the parts, so that all combinations of one event come together.
    """

    rows: Rows
    events: Rows
    parts: Rows
    lows: Rows
    highs: Rows
    counts: Counts
    in_order: bool

    def between(self, first: int, end: int) -> _Ranges:
        """Those of the events with some rows."""
        some = slice(*np.searchsorted(self.events, (first, end)))
        return replace(
            self,
            events=self.events[some],
            parts=self.parts[some],
            lows=self.lows[:, some],
            highs=self.highs[:, some],
            counts=self.counts[some],
        )


class Product:
    """The matches of a block whose variables have no order and are related by at most a key."""

    name = "Product"

    def __init__(self, block: Block) -> None:
        self.block = block
        self.join = LateralJoin(block)

    def run(self, evaluation: Evaluation, asked: Asked) -> Iterator[Bindings]:
        """The matches in the order of their last events."""
        if not asked.by_last:
            yield from self.join.run(evaluation, asked)
            return
        found = self._ranges(evaluation, asked)
        for piece in pieces(found.counts, evaluation.limit):
            total = int(found.counts[piece].sum())
            if not total:
                continue
            lows, highs = (np.ascontiguousarray(side[:, piece]) for side in (found.lows, found.highs))
            for low, high, size in _cut(lows, highs, total, evaluation.limit):
                rows = combine(found.rows, low, high, found.events[piece], found.parts[piece], size)
                bindings = Bindings(dict(zip(self.block.leaves, rows, strict=True)), size)
                passed = self._filtered(evaluation, bindings)
                passed.in_order = found.in_order
                yield passed

    def _ranges(self, evaluation: Evaluation, asked: Asked) -> _Ranges:
        """The events that are the last of a wanted match, with the ranges of the other parts."""
        which = (self, evaluation.window, evaluation.since)
        return evaluation.made(which, lambda: self._all_ranges(evaluation)).between(asked.first, asked.end)

    def _all_ranges(self, evaluation: Evaluation) -> _Ranges:
        """The same for everything that an evaluation may ask for."""
        stacks = self._recent(evaluation) if evaluation.since else self._stacks(evaluation)
        rows = np.concatenate([stack.rows for stack in stacks])
        parts = np.repeat(np.arange(len(stacks), dtype=np.int32), [len(stack) for stack in stacks])
        number = np.concatenate([key_of_place(stack.begin, len(stack)) for stack in stacks])
        ends = np.cumsum([0, *map(len, stacks)], dtype=np.int32)
        begin = np.stack([stack.begin + first for stack, first in zip(stacks, ends[:-1], strict=True)])
        order = _by_row(rows)
        events, parts = taken(rows, order), taken(parts, order)
        found, lows, highs, counts = ranges_before(
            events, parts, taken(number, order), begin, evaluation.reach, np.int64(evaluation.since)
        )
        distinct = bool((events[1:] > events[:-1]).all())
        return _Ranges(rows, taken(events, found), taken(parts, found), lows, highs, counts, distinct)

    def _stacks(self, evaluation: Evaluation) -> list[Stack]:
        """The events of each part."""
        key = self.block.key or {}
        return [evaluation.stack(leaf, key.get(name)) for name, leaf in self.block.leaves.items()]

    def _recent(self, evaluation: Evaluation) -> list[Stack]:
        """The same for the matches of a round: those in its windows, with the keys of its new events."""
        rows = [evaluation.leaf_rows(leaf) for leaf in self.block.leaves.values()]
        since, end = np.int64(evaluation.since), np.int64(len(evaluation))
        first = np.int64(evaluation.reach[since]) if since < end else end
        key, numbering = self.block.key, evaluation.numbering
        if not key:
            recent = [some[np.searchsorted(some, first) :] for some in rows]
            return [Stack(some, np.array((0, len(some)), np.int32)) for some in recent]
        numbers = [numbering.of(key[name]) for name in self.block.leaves]
        size = max(numbering.size(names) for names in key.values())
        pairs = list(zip(rows, numbers, strict=True))
        wanted = np.logical_or.reduce([keys_between(*pair, size, since, end) for pair in pairs])
        return [Stack(*between_by_key(*pair, wanted, first, end)) for pair in pairs]

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
        return float(self._ranges(evaluation, asked).counts.sum()) if asked.by_last else None

    def counts(self, evaluation: Evaluation, asked: Asked) -> Iterator[int]:
        """Count the matches: products of lengths where nothing filters."""
        block = self.block
        if not asked.by_last or block.apart or block.predicates or block.negations:
            yield from (found.count for found in self.run(evaluation, asked))
            return
        found = self._ranges(evaluation, asked)
        few = found.counts.max(initial=0) < MOST
        yield int(found.counts.sum()) if few else _exact(found.lows, found.highs)


def _by_row(rows: Rows) -> Rows:
    """The places of rows in the order of the rows, then of the places."""
    first, end = (int(rows.min()), int(rows.max()) + 1) if len(rows) else (0, 0)
    if end - first > _SPARSE * len(rows):  # few of the events held
        return np.argsort(rows, kind="stable").astype(np.int32)
    order, _ = sorted_by_key(np.arange(len(rows), dtype=np.int32), rows - np.int32(first), end - first)
    found: Rows = order
    return found


def _exact(lows: Rows, highs: Rows) -> int:
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
