"""Bit-marking in a sequence: the constraints of a gap are ranges, and their hull is built."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream_papers.engine.chain import Chain, Step
from nestream_papers.engine.context import Bindings, Evaluation
from nestream_papers.engine.join import _pieces, _split
from nestream_papers.engine.program import Block, Witness
from nestream_papers.engine.stack import Stack, expand
from nestream_papers.sharing.marking import EMap, Facts, Marked, marked, mask_of

Gap = tuple[str, str]
Range = tuple[Ints, Ints | None]
"""For each event after a gap, the range of positions that its left neighbour may have."""


class MarkedChain(Chain):
    """The steps that the blocks of a group share, with marks that distinguish the blocks."""

    def __init__(self, evaluation: Evaluation, block: Block, limit: int, emap: EMap, since: int = 0) -> None:
        """Prepare the steps for the triggers from the position `since` on."""
        self.emap = emap
        self._allowed: dict[Gap, dict[int, Range]] = {}
        super().__init__(evaluation, block, limit, since)
        self.looked_at = [mask_of(self._columns_of(gap)) for gap in self._gaps()]
        self.late_columns = [n for n, part in enumerate(emap.columns) if self.gap(part) is None]

    def _gaps(self) -> list[Gap]:
        return list(zip(self.names, self.names[1:], strict=False))

    def _columns_of(self, gap: Gap) -> list[int]:
        return [n for n, part in enumerate(self.emap.columns) if self.gap(part) == gap]

    # -- forward -------------------------------------------------------------------------------------------

    def _bounded(self, stack: Stack, pair: Gap) -> tuple[Ints | None, Ints | None]:
        """What the common constraints allow, reduced to what some expression allows."""
        bound, limit = super()._bounded(stack, pair)
        columns = self._columns_of(pair)
        self._allowed[pair] = {n: self.allowed(self.emap.columns[n], stack, pair) for n in columns}
        patterns = self.emap.patterns(mask_of(columns))
        if 0 in patterns:
            return bound, limit
        ranges = [self._range_of(pattern, pair) for pattern in patterns]
        hull = np.minimum.reduce([lower for lower, _ in ranges])
        bound = hull if bound is None else np.maximum(bound, hull)
        uppers = [upper for _, upper in ranges if upper is not None]
        if len(uppers) == len(ranges):
            outer = np.maximum.reduce(uppers)
            limit = outer if limit is None else np.minimum(limit, outer)
        return bound, limit

    def _range_of(self, pattern: int, gap: Gap) -> Range:
        """What an expression allows in a gap; an empty range if nothing."""
        lowers, uppers = [], []
        for column, (lower, upper) in self._allowed[gap].items():
            if pattern >> column & 1:
                lowers.append(lower)
                constraint = self.emap.columns[column]
                if upper is not None and isinstance(constraint, Witness) and self.is_steady(constraint, gap):
                    uppers.append(upper)
        lower = np.maximum.reduce(lowers)
        if not uppers:
            return lower, None
        upper = np.minimum.reduce(uppers)
        nowhere = self.evaluation.stride  # beyond every position
        return np.where(upper > np.maximum(lower, 0), lower, nowhere), upper

    def _step(self, previous: Step, stack: Stack, pair: Gap) -> Step:
        step = super()._step(previous, stack, pair)
        if len(step.stack) < len(stack):
            kept = np.searchsorted(stack.pos, step.stack.pos)
            self._allowed[pair] = {
                column: (lower[kept], None if upper is None else upper[kept])
                for column, (lower, upper) in self._allowed[pair].items()
            }
        return step

    # -- backward ------------------------------------------------------------------------------------------

    def matches(self, triggers: Ints) -> Iterator[Bindings]:
        """The matches that end with the triggers."""
        level = len(self.names) - 1
        kept = self._keep([triggers], level)
        triggers = triggers if kept is None else triggers[kept]
        yield from self._extend_marked([triggers], np.zeros(len(triggers), np.uint64), level)

    def _extend_marked(self, places: list[Ints], facts: Facts, level: int) -> Iterator[Bindings]:
        """Extend partial matches to the left, marking what is found in each gap."""
        if not len(places[0]):
            return
        if level == 0:
            yield self._satisfying(self.bindings(places, 0), facts)
            return
        first, counts = self._ranges(places, level)
        if counts.max() > self.limit:
            which, first, counts = _split(first, counts, self.limit)
            places, facts = [column[which] for column in places], facts[which]
        for piece in _pieces(counts, self.limit):
            run, earlier = expand(counts[piece], first[piece])
            longer = [earlier, *(column[piece][run] for column in places)]
            known = facts[piece][run]
            known = self._mark(longer, known, level)
            held = self.emap.alive(known, mask_of(self._seen_from(level)))
            if held is not None and not held.all():
                longer, known = [column[held] for column in longer], known[held]
            kept = self._keep(longer, level - 1)
            if kept is not None:
                longer, known = [column[kept] for column in longer], known[kept]
            yield from self._extend_marked(longer, known, level - 1)

    def _seen_from(self, level: int) -> list[int]:
        """The columns of the gaps from one on to the end."""
        return [n for gap in self._gaps()[level - 1 :] for n in self._allowed[gap]]

    def _mark(self, places: list[Ints], facts: Facts, level: int) -> Facts:
        """The facts, including those of the gap before a level, whose left neighbour is now bound."""
        columns = self._allowed[self.names[level - 1], self.names[level]]
        if not columns:
            return facts
        position = self.evaluation.store.pos[self.steps[level - 1].stack.rows[places[0]]]
        for column, (lower, upper) in columns.items():
            held = position >= lower[places[1]]
            if upper is not None:
                held &= position < upper[places[1]]
            facts = marked(facts, held, column)
        return facts

    def _satisfying(self, bindings: Bindings, facts: Facts) -> Bindings:
        """The matches that satisfy some expression, including the columns that need a whole match."""
        known = mask_of(n for gap in self._gaps() for n in self._allowed[gap])
        for column in self.late_columns:
            if not bindings.count:
                return bindings
            facts = marked(facts, self.join.satisfies(self.emap.columns[column], bindings), column)
            known |= mask_of([column])
            held = self.emap.alive(facts, known)
            if held is not None and not held.all():
                bindings, facts = bindings.only(held), facts[held]
        found = Marked(bindings.rows, bindings.count, bindings.outer, facts)
        covered = self.emap.covered(facts)
        return found if covered.all() else found.only(covered)
