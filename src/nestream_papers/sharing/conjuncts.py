"""Shared steps of conjuncts: their rows are built once and kept, and a join uses them for each conjunct.

An AND of sequences is one join. If some of its conjuncts share steps, the join does not bind these event by
event: it takes a whole row of them, which it finds by the row's last event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream.engine.windowed_events import WindowedEvents
from nestream_papers.engine.context import Bindings, Evaluation, Ranges
from nestream_papers.engine.join import Join, ranges_of
from nestream_papers.engine.program import Block, SharedSteps, Use
from nestream_papers.engine.runs import RARE, OwnRun
from nestream_papers.engine.stack import Stack, by_number
from nestream_papers.sharing.prefix import PreCache
from nestream_papers.sharing.steps import CoreRows


class RowStack(Stack):
    """Rows of shared steps, by the key and position of their last events."""

    def __init__(
        self, store: WindowedEvents, columns: Sequence[Ints], numbers: Ints | None, stride: int
    ) -> None:
        if numbers is not None:
            own = numbers[columns[-1]]
            some = np.flatnonzero(own >= 0)
            order = some[by_number(own[some])]
            columns = [column[order] for column in columns]
        super().__init__(store, columns[-1], numbers, stride)
        self.columns = columns


@dataclass
class SharingJoin(Join):
    """A join that takes rows of shared steps; `taken_by` maps the last variable of each use to them."""

    taken_by: Mapping[str, tuple[Use, list[Ints]]] = field(default_factory=dict)
    _stacks: dict[tuple[str, tuple[str, ...] | None], RowStack] = field(default_factory=dict)

    @property
    def choosable(self) -> tuple[str, ...]:
        """The variables outside of shared steps, and the last variable of each of these."""
        within = {name for use, _ in self.taken_by.values() for name in use.names[:-1]}
        return tuple(name for name in self.block.leaves if name not in within)

    def stack(self, name: str, key: tuple[str, ...] | None) -> Stack:
        """The events of a variable, or the rows of shared steps that end with it."""
        if name not in self.taken_by:
            return super().stack(name, key)
        if (name, key) not in self._stacks:
            numbers = self.evaluation.keys.numbers(key) if key else None
            columns = self.taken_by[name][1]
            self._stacks[name, key] = RowStack(
                self.evaluation.store, columns, numbers, self.evaluation.stride
            )
        return self._stacks[name, key]

    def bound(self, bindings: Bindings, name: str, stack: Stack, here: Ints, ranges: Ranges) -> Bindings:
        """The partial matches with rows of a stack that pass the tests that are then possible."""
        if not isinstance(stack, RowStack):
            return super().bound(bindings, name, stack, here, ranges)
        names = self.taken_by[name][0].names
        for own, column in zip(names, stack.columns, strict=True):
            bindings.rows[own] = column[here]
        bindings = self._in_place(bindings, names)
        for own in names:
            if bindings.count:
                bindings = self.filtered(bindings, own, ranges)
        return bindings

    def _in_place(self, bindings: Bindings, names: tuple[str, ...]) -> Bindings:
        """The partial matches in one window whose new events are in order and have the required equal values.

        The range of the last event ensures that only for itself.
        """
        store, rows = self.evaluation.store, bindings.rows
        every = list(rows.values())
        held = store.pos[np.minimum.reduce(every)] >= store.reach(np.maximum.reduce(every))
        for earlier, later in self.order:
            if (earlier in names) != (later in names) and {earlier, later} <= rows.keys():
                held &= store.pos[rows[earlier]] < store.low[rows[later]]
        bindings = bindings.only(held)
        for equality in self.equalities:
            ends = {equality.left[0], equality.right[0]}
            if ends & set(names) and ends <= rows.keys():
                bindings = self.equal_terms(bindings, equality)
        return bindings


class SharingJoinRun(OwnRun):
    """A block without a total order that shares some steps."""

    def __init__(
        self,
        evaluation: Evaluation,
        block: Block,
        limit: int,
        steps: Sequence[tuple[SharedSteps, list[Use], PreCache]],
        *,
        by_last: bool,
    ) -> None:
        super().__init__(evaluation, block, limit, by_last=by_last)
        self.steps = steps

    def run(self, first: int, end: int) -> Iterator[Bindings]:
        """The matches decided in a range of positions."""
        taken_by: dict[str, tuple[Use, list[Ints]]] = {}
        if self.by_last or (first <= 0 and end >= self.length):
            for steps, uses, cache in self.steps:
                core = None
                if not self._is_dear(steps):
                    core = cache.prepare(self.evaluation, first, end, self.limit)
                if core is not None:
                    columns = _by_last_event(core)
                    taken_by |= {use.names[-1]: (use, columns) for use in uses}
        tested = [part for use, _ in taken_by.values() for part in use.tested]
        rest = replace(
            self.block,
            predicates=tuple(p for p in self.block.predicates if p not in tested),
            negations=tuple(n for n in self.block.negations if n not in tested),
            witnesses=tuple(w for w in self.block.witnesses if w not in tested),
        )
        for ranges in ranges_of(self.block, first, end, by_last=self.by_last, length=self.length):
            join = SharingJoin(self.evaluation, rest, rest, None, self.limit, taken_by)
            yield from join.from_start(ranges)

    def _is_dear(self, steps: SharedSteps) -> bool:
        """Whether another leaf is so rare that joining around its events costs less than building rows."""
        rows = self.evaluation.store.leaf_rows
        least = min(len(rows[leaf]) for leaf in self.block.leaves.values())
        return least * RARE < max(len(rows[leaf]) for leaf in steps.core.leaves.values())


def _by_last_event(core: CoreRows) -> list[Ints]:
    order = np.argsort(core.columns[-1], kind="stable")
    return [column[order] for column in core.columns]
