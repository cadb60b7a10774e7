"""A chain over the events of one evaluation: its steps, forward, and the ranges from which matches are built.

Forward, each step keeps the events (or composites) that some prefix reaches, with the latest start of their
prefixes. Backward, `extensions` gives the predecessors of partial matches and `kept` tests what is now bound.
`Chain` plans the steps and puts the two together. docs/engine.md, "Chains", has the proofs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from nestream.engine.block import Negation
from nestream.engine.evaluation import Bindings, Evaluation, Stack
from nestream.engine.kernels import Rows
from nestream.engine.kernels.chain import count_extensions, extend, extend_prefixes, running_maximum
from nestream.engine.kernels.search import places
from nestream.engine.kernels.stack import in_row_order, key_of_place, sorted_by_key
from nestream.engine.operators.operator import Asked
from nestream.engine.pieces import Counts, pieces
from nestream.model.expression import Expression, variables

if TYPE_CHECKING:
    from nestream.engine.operators.chain import Chain, Composite

_EMPTY = np.empty(0, np.int32)
_SAMPLE = 1024
"""How many triggers are looked at to find out how many matches there are."""
_DEAR = 64
"""Composites are built only if there are at most so many to an event."""
_CHEAP = 1 << 20
"""Or so many in all."""
_SAFE = 1 << 62
"""Two numbers below this have a difference of 64 bits."""
_MOST = (1 << 63) - 1


@dataclass(frozen=True)
class Step:
    """The events, or composites, of one step that some prefix reaches, by key.

    `rows` holds the rows of each of its variables. `start` is the latest start of a prefix that ends here or
    earlier; `own` is the latest start of a composite's own prefixes, where that may be less. `lowest` and
    `end` delimit the places of the step before that may come before it, the window aside.
    """

    rows: Mapping[str, Rows]
    begin: Rows
    start: Rows
    own: Rows | None
    lowest: Rows
    end: Rows

    @property
    def ends(self) -> Rows:
        """The rows of the last events."""
        return list(self.rows.values())[-1]


class PreparedChain:
    """The steps of a chain, ready for any of its triggers."""

    def __init__(
        self, chain: Chain, evaluation: Evaluation, asked: Asked | None, composites: list[Composite]
    ) -> None:
        self.chain = chain
        self.evaluation = evaluation
        self.late = list(chain.late)
        """Negations to look for match by match, derived ones among them where a staircase costs too much."""
        self.steps: list[Step] = []
        begins = {composite.first: composite for composite in composites}
        place = 0
        while place < len(chain.names):
            if place in begins:
                self.steps.append(self._composite_step(begins[place]))
                place = begins[place].end
            else:
                self.steps.append(self._step(chain.names[place], self._stack(chain.names[place], asked)))
                place += 1
        self._level = {name: level for level, step in enumerate(self.steps) for name in step.rows}
        done = [set(chain.names[composite.first : composite.end]) for composite in composites]
        self._due: list[list[Expression]] = [[] for _ in self.steps]
        for predicate in chain.filters:
            names = variables(predicate)
            if not names or not any(names <= inside for inside in done):
                self._due[min((self._level[name] for name in names), default=0)].append(predicate)
        self._late: list[list[Negation]] = [[] for _ in self.steps]
        for negation in self.late:
            level = min((self._level[name] for name in negation.needs(chain.block)), default=0)
            self._late[0 if any(self._due[:level]) else level].append(negation)
        self._windows: dict[int, Rows] = {}

    # -- forward -------------------------------------------------------------------------------------------

    def _stack(self, name: str, asked: Asked | None) -> Stack:
        block, evaluation = self.chain.block, self.evaluation
        key = block.key[name] if block.key else None
        leaf = block.leaves[name]
        if asked is None:
            return evaluation.stack(leaf, key)
        rows = evaluation.leaf_rows(leaf)
        rows = rows[slice(*np.searchsorted(rows, self._wanted_rows(asked, name)))]
        if key is None:
            return Stack(rows, np.array((0, len(rows)), np.int32))
        numbers, size = evaluation.numbering.of(key), evaluation.numbering.size(key)
        rows = rows[self._wanted_keys(asked)[numbers[rows]]]
        return Stack(*sorted_by_key(rows, numbers, size))

    def _wanted_rows(self, asked: Asked, name: str) -> tuple[int, int]:
        """The rows of a step's events in the matches asked for."""
        evaluation, names = self.evaluation, self.chain.names
        if asked.by_last:
            reached = int(evaluation.reach[min(asked.first, len(evaluation) - 1)])
            return asked.first if name == names[-1] else reached, asked.end
        if name == names[0]:
            return asked.first, asked.end
        return asked.first, int(np.searchsorted(evaluation.reach, asked.end - 1, "right"))

    def _wanted_keys(self, asked: Asked) -> npt.NDArray[np.bool_]:
        """Which keys the events have that decide which matches are asked for; the last place is NULL's."""
        block, evaluation = self.chain.block, self.evaluation
        assert block.key is not None
        name = self.chain.names[-1 if asked.by_last else 0]
        rows = evaluation.leaf_rows(block.leaves[name])
        rows = rows[slice(*np.searchsorted(rows, (asked.first, asked.end)))]
        wanted = np.zeros(evaluation.numbering.size(block.key[name]) + 1, bool)
        wanted[evaluation.numbering.of(block.key[name])[rows]] = True
        wanted[-1] = False
        return wanted

    def _step(self, name: str, stack: Stack) -> Step:
        """The events of a variable that end a prefix."""
        return self._extended({name: stack.rows}, stack.begin, composite=False)

    def _composite_step(self, composite: Composite) -> Step:
        """The matches of some neighbouring steps that end a prefix, in the order of their ends."""
        evaluation, chain = self.evaluation, composite.chain
        found = list(chain.run(evaluation, Asked(0, len(evaluation))))
        rows = {name: np.concatenate([part.rows[name] for part in found] or [_EMPTY]) for name in chain.names}
        ends = rows[chain.names[-1]]
        key = chain.block.key
        if key is None:
            return self._extended(rows, np.array((0, len(ends)), np.int32), composite=True)
        attributes = key[chain.names[-1]]
        number = evaluation.numbering.of(attributes)[ends]
        order, begin = sorted_by_key(
            np.arange(len(ends), dtype=np.int32), number, evaluation.numbering.size(attributes)
        )
        return self._extended({name: own[order] for name, own in rows.items()}, begin, composite=True)

    def _extended(self, rows: Mapping[str, Rows], begin: Rows, *, composite: bool) -> Step:
        """The candidates of a step that some prefix reaches."""
        names = list(rows)
        firsts, ends = rows[names[0]], rows[names[-1]]
        evaluation = self.evaluation
        if not self.steps:
            start = running_maximum(firsts, begin) if composite else firsts
            return Step(rows, begin, start, firsts if composite else None, _EMPTY, _EMPTY)
        previous = self.steps[-1]
        stay, begin, own, lowest, end = extend_prefixes(
            previous.ends,
            previous.begin,
            previous.start,
            ends,
            begin,
            firsts,
            self._bound(names[0], firsts),
            self._low(names[0], firsts),
            evaluation.reach,
        )
        if len(stay) < len(ends):
            rows = {name: column[stay] for name, column in rows.items()}
        start = running_maximum(own, begin) if composite else own
        return Step(rows, begin, start, own if composite else None, lowest, end)

    def _bound(self, name: str, rows: Rows) -> Rows:
        """For each event the first row at which its predecessor may stand, given the negations of the gap."""
        evaluation, bound = self.evaluation, _EMPTY
        for negation, terms in self.chain.gaps.get(name, ()):
            assert negation.derived is not None
            staircase = negation.derived.staircase(evaluation)
            if staircase is None:
                self.late.append(negation)
                continue
            by_row = [(attribute, rows) for _, attribute in terms]
            number = negation.derived.numbers(evaluation, by_row, len(rows))
            start = staircase.latest(number, evaluation.low[rows])
            low = np.where(start < 0, np.int32(-1), evaluation.low[start])
            bound = low if not len(bound) else np.maximum(bound, low)
        for gap in self.chain.distances.get(name, ()):
            _, most = gap.ends(evaluation.events.evaluator.per_microsecond)
            low = self._since(rows, most, "left")
            bound = low if not len(bound) else np.maximum(bound, low)
        return bound

    def _low(self, name: str, rows: Rows) -> Rows:
        """For each event, by its row, the first row that is too late for its predecessor."""
        evaluation = self.evaluation
        low = evaluation.low
        for gap in self.chain.distances.get(name, ()):
            least, _ = gap.ends(evaluation.events.evaluator.per_microsecond)
            if least is not None:
                low = low.copy()
                low[rows] = np.minimum(low[rows], self._since(rows, least, "right"))
        return low

    def _since(self, rows: Rows, distance: int, side: Literal["left", "right"]) -> Rows:
        """For each event the first row so long before it, or later than that; rows are in order of time."""
        times = self.evaluation.events.ts
        own = times[rows].astype(np.int64)
        if -_SAFE < distance < _SAFE and (not len(own) or (abs(own.min()) < _SAFE and own.max() < _SAFE)):
            moments = own - distance
        else:  # 64 bits might not do
            moments = np.array([max(min(int(t) - distance, _MOST), -_MOST - 1) for t in own], np.int64)
        return np.searchsorted(times, moments, side).astype(np.int32)

    # -- triggers and ranges -------------------------------------------------------------------------------

    def triggers(self, asked: Asked) -> Rows:
        """The places in the last step of the matches asked for, in the order of their rows."""
        places_, rows = self._in_order
        return places_[slice(*np.searchsorted(rows, (asked.first, asked.end)))] if asked.by_last else places_

    @cached_property
    def _in_order(self) -> tuple[Rows, Rows]:
        rows = self.steps[-1].ends
        if self.chain.block.key is None:
            return np.arange(len(rows), dtype=np.int32), rows
        found = in_row_order(rows, 0, len(self.evaluation))
        return found, rows[found]

    def _window(self, level: int) -> Rows:
        """For each event of the last step, the first place of a step that its window reaches."""
        if level not in self._windows:
            last, step = self.steps[-1], self.steps[level]
            number = key_of_place(last.begin, len(last.ends))
            self._windows[level] = places(step.start, step.begin, number, self._reach)
        return self._windows[level]

    @cached_property
    def _reach(self) -> Rows:
        """For each event of the last step the first row that its window reaches."""
        return self.evaluation.reach[self.steps[-1].ends]

    def extension_counts(self, columns: Rows, level: int) -> Counts:
        """How many predecessors each partial match has."""
        step, window = self.steps[level], self._window(level - 1)[columns[-1]]
        found: Counts = count_extensions(columns[0], window, step.lowest, step.end)
        return found

    def extensions(self, columns: Rows, level: int) -> Iterator[Rows]:
        """The partial matches with each of their predecessors in front, piece by piece."""
        step, limit = self.steps[level], self.evaluation.limit
        window = self._window(level - 1)[columns[-1]]
        counts = count_extensions(columns[0], window, step.lowest, step.end)
        for piece in pieces(counts, limit):
            part, total = np.ascontiguousarray(columns[:, piece]), int(counts[piece].sum())
            if total <= limit:
                yield extend(part, window[piece], step.lowest, step.end, total)[0]
                continue
            end = int(step.end[part[0, 0]])  # a single partial match has too many
            for first in range(end - total, end, limit):
                own = np.arange(first, min(first + limit, end), dtype=np.int32)
                yield np.vstack([own, np.repeat(part, len(own), axis=1)])

    # -- one match an event --------------------------------------------------------------------------------

    def latest(self) -> Bindings:
        """For each last event the match that KEEP LAST keeps: with the last predecessor at every step.

        Latest starts do not go down, so the last predecessor leads to the latest start; every event of this
        match is as late as in any other with the same last event.
        """
        places_ = np.arange(len(self.steps[-1].ends), dtype=np.int32)
        columns = [places_]
        for step in reversed(self.steps[1:]):
            columns.append(step.end[columns[-1]] - np.int32(1))
        return self.bindings(np.vstack(columns[::-1]), 0)

    def earliest(self) -> Bindings | None:
        """For each first event the match that KEEP FIRST keeps: with the first successor at every step.

        The ends of the ranges of predecessors do not go down. Where their beginnings do not either, the
        successors of an event are a range, and the first of them that reaches the last step leads to the
        earliest end. None where they do, as negations that look at another attribute than the key can make
        them.
        """
        if any((step.lowest[1:] < step.lowest[:-1]).any() for step in self.steps[1:]):
            return None
        count = len(self.steps[-1].ends)
        alive = np.arange(count + 1, dtype=np.int64)  # the first place from each on that reaches the end
        following: list[npt.NDArray[np.int64]] = []
        for step, before in zip(reversed(self.steps[1:]), reversed(self.steps[:-1]), strict=True):
            here = np.arange(len(before.ends))
            first = alive[np.searchsorted(step.end, here, "right")]
            reached = first < np.searchsorted(step.lowest, here, "right")
            following.append(np.where(reached, first, -1))
            found = np.where(reached, here, len(here))
            alive = np.append(np.minimum.accumulate(found[::-1])[::-1], len(here)).astype(np.int64)
        columns = [np.arange(len(self.steps[0].ends), dtype=np.int64)]
        for step in reversed(following):
            columns = [column[step[columns[-1]] >= 0] for column in columns]
            columns.append(step[columns[-1]])
        starts, ends = self.steps[0].ends[columns[0]], self.steps[-1].ends[columns[-1]]
        fits = self.evaluation.reach[ends] <= starts
        return self.bindings(np.vstack([column[fits] for column in columns]).astype(np.int32), 0)

    # -- filters -------------------------------------------------------------------------------------------

    def filters(self, level: int) -> bool:
        """Whether partial matches are tested once a step is bound."""
        return bool(self._due[level] or self._late[level] or self.steps[level].own is not None)

    def kept(self, columns: Rows, level: int) -> Rows:
        """The partial matches that pass what can be tested now that a step is bound."""
        own = self.steps[level].own
        if own is not None:
            columns = np.compress(own[columns[0]] >= self._reach[columns[-1]], columns, axis=1)
        if not self._due[level] and not self._late[level]:
            return columns
        bindings = self.bindings(columns, level)
        kept = np.arange(bindings.count)
        for predicate in self._due[level]:
            if bindings.count:
                held = self.evaluation.satisfied(predicate, bindings)
                kept, bindings = kept[held], bindings.only(held)
        for negation in self._late[level]:
            if bindings.count:
                stays = ~self.chain.join.drops(self.evaluation, negation, bindings)
                kept, bindings = kept[stays], bindings.only(stays)
        return columns if len(kept) == columns.shape[1] else np.take(columns, kept, axis=1)

    def bindings(self, columns: Rows, level: int) -> Bindings:
        """Partial matches, given by their places from a step on, as rows."""
        rows = {
            name: own[columns[number]]
            for number, step in enumerate(self.steps[level:])
            for name, own in step.rows.items()
        }
        return Bindings(rows, columns.shape[1])

    # -- estimates -----------------------------------------------------------------------------------------

    def is_worth(self, composite: Composite) -> bool:
        """Whether finding the matches of some steps once is less work than finding them for each match."""
        asked = Asked(0, len(self.evaluation))
        once = composite.chain.expected(self.evaluation, asked) or 0.0
        each = self.expected(self.triggers(asked), composite.first)
        return 2 * once < each and once < max(_DEAR * len(self.evaluation), _CHEAP)

    def expected(self, triggers: Rows, down_to: int) -> float:
        """About how many partial matches reach down to a step, from a sample of the triggers."""
        if len(self.steps) - 1 == down_to:
            return float(len(triggers))
        sample = triggers[:: max(1, len(triggers) // _SAMPLE)]
        looked_at, total = 0, 0.0
        for part in np.array_split(sample, max(1, len(sample) // 32)):
            total += self._estimated(part, down_to)
            looked_at += len(part)
            if total > 8 * self.evaluation.limit:
                break
        return total / max(looked_at, 1) * len(triggers)

    def _estimated(self, triggers: Rows, down_to: int) -> float:
        """The same for some triggers, each step estimated from a sample of the one after it."""
        columns, weight = triggers.reshape(1, -1), 1.0
        for level in range(len(self.steps) - 1, down_to, -1):
            counts = self.extension_counts(columns, level)
            total = int(counts.sum())
            while total > self.evaluation.limit and columns.shape[1] > 1:
                columns, counts, weight = columns[:, ::2], counts[::2], 2 * weight
                total = int(counts.sum())
            if level == down_to + 1 or not total or total > self.evaluation.limit:
                return total * weight
            (columns,) = self.extensions(np.ascontiguousarray(columns), level)
        return columns.shape[1] * weight
