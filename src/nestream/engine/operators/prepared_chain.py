"""A chain over the events of one evaluation: its matches, built from the last step to the first.

`extensions` returns the predecessors of partial matches, `kept` tests what is now bound, and `in_order`
builds whole matches in the order of the output. `Chain` plans the steps and combines these; the forward pass
prepares the steps. See docs/how-it-works/engine.md, "Chains", for the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nestream.engine.block import Negation
from nestream.engine.evaluation import Bindings, Evaluation
from nestream.engine.kernels import Rows
from nestream.engine.kernels.chain import (
    count_through,
    extend_through,
    fill_in_order,
    fill_latest,
    followers,
)
from nestream.engine.kernels.stack import in_row_order, places_between, taken
from nestream.engine.operators.forward_pass import ForwardPass
from nestream.engine.operators.operator import Asked
from nestream.engine.pieces import sample
from nestream.model.expression import Expression, variables

if TYPE_CHECKING:
    from nestream.engine.operators.chain import Chain, Composite

_EMPTY = np.empty(0, np.int32)
_SAMPLE = 1024
"""How many triggers are sampled to estimate the number of matches."""
_AT_FIRST = 16
"""How many matches per trigger the first piece has room for."""
_AT_LEAST = 1 << 12
"""Pieces with fewer matches are joined: each piece has a cost, and several may be given to threads."""
_COUNTED_AT_FIRST = 1 << 12
"""How many matches are counted at first: few, because it is not known how much work counting is."""
_NO_END = 1 << 62


class PreparedChain:
    """The steps of a chain, ready for any of its triggers; they are numbered as in `ForwardPass`."""

    def __init__(
        self, chain: Chain, evaluation: Evaluation, asked: Asked | None, composites: list[Composite]
    ) -> None:
        self.chain = chain
        self.evaluation = evaluation
        made = ForwardPass(chain, evaluation, asked, composites)
        self.steps, self._bounded = made.steps, made.bounded
        self.ends, self.start, self.lowest, self.end = made.ends, made.start, made.lowest, made.end
        self._level = {name: level for level, step in enumerate(self.steps) for name in step.rows}
        done = [set(composite.names) for composite in composites]
        self._due: list[list[Expression]] = [[] for _ in self.steps]
        for predicate in chain.filters:
            own = variables(predicate)
            if not own or not any(own <= inside for inside in done):
                self._due[min((self._level[name] for name in own), default=0)].append(predicate)
        self._expected: dict[int, float] = {}
        self._late: list[list[Negation]] = [[] for _ in self.steps]
        for negation in made.late:
            level = min((self._level[name] for name in negation.needs(chain.block)), default=0)
            self._late[0 if any(self._due[:level]) else level].append(negation)

    # -- triggers and ranges -------------------------------------------------------------------------------

    def triggers(self, asked: Asked) -> Rows:
        """The places in the last step of the wanted matches, key by key, for locality."""
        begin = self.steps[-1].begin
        if not asked.by_last:
            return np.arange(begin[0], begin[-1], dtype=np.int32)
        found: Rows = places_between(self.ends, begin, np.int64(asked.first), np.int64(asked.end))
        return found

    def _reach(self, triggers: Rows) -> Rows:
        """For each trigger, the first row in its window."""
        found: Rows = taken(self.evaluation.reach, taken(self.ends, triggers))
        return found

    @cached_property
    def is_ordered(self) -> bool:
        """Whether `in_order` can build the matches: nothing filters them before they are whole."""
        filtered = any(self.filters(level) for level in range(1, len(self.steps)))
        single = len(self._level) == len(self.steps)
        return single and len(self.steps) > 1 and not filtered and not any(self._bounded[:-1])

    @cached_property
    def _following(self) -> Rows:
        """For each place, the first place of the next step that may follow it."""
        found = np.empty(len(self.ends), np.int32)
        for step, following in pairwise(self.steps[:-1]):
            followers(step.begin, following.begin, self.end, found)
        return found

    @cached_property
    def _by_row(self) -> tuple[Rows, Rows]:
        """The places of the last step in the order of their rows, and these rows."""
        begin = self.steps[-1].begin
        first = self.ends[begin[0] : begin[-1]].min(initial=len(self.evaluation))
        places = in_row_order(self.ends, *map(np.int64, (begin[0], begin[-1], first, len(self.evaluation))))
        return places, taken(self.ends, places)

    def _triggers_by_row(self, asked: Asked) -> Rows:
        """The places in the last step of the wanted matches, in the order of their rows."""
        triggers, ends = self._by_row
        return (
            triggers[slice(*np.searchsorted(ends, (asked.first, asked.end)))] if asked.by_last else triggers
        )

    def in_order(self, asked: Asked) -> Iterator[Bindings]:
        """The matches piece by piece, by their last events, then by their rows."""
        triggers = self._triggers_by_row(asked)
        at, until = np.zeros((2, len(self.steps)), np.int32)
        room = min(self.evaluation.limit, _AT_FIRST * len(triggers))
        pieces: list[Rows] = []
        while at[-1] < len(triggers):
            found = np.empty((len(self.steps), room), np.int32)
            count = fill_in_order(
                triggers,
                self.evaluation.reach,
                self.start,
                self.lowest,
                self.end,
                self._following,
                self.ends,
                at,
                until,
                found,
            )
            room = min(self.evaluation.limit, 8 * room)
            pieces.append(found[:, :count])
            count = sum(piece.shape[1] for piece in pieces)
            if count < min(_AT_LEAST, self.evaluation.limit - room) and at[-1] < len(triggers):
                continue
            columns, pieces = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1), []
            bindings = Bindings(dict(zip(self.chain.names, columns, strict=True)), count)
            if self.filters(0):
                bindings, _ = self._passed(bindings, 0)
            bindings.in_order = asked.by_last
            yield bindings

    def extensions(self, columns: Rows, level: int, stop: int) -> Iterator[Rows]:
        """Extend partial matches from step `level` down to `stop`, piece by piece.

        They are places, or rows where they are `complete`.
        """
        rows = self.ends if self.complete(stop) else _EMPTY
        at, until = np.zeros((2, level + 1), np.int32)
        reach = self._reach(columns[-1])
        room = min(self.evaluation.limit, _AT_FIRST * columns.shape[1])
        while at[level] < columns.shape[1]:
            found = np.empty((level - stop + len(columns), room), np.int32)
            count = extend_through(
                columns, reach, self.start, self.lowest, self.end, level, stop, at, until, rows, found
            )
            yield found[:, :count]
            room = min(self.evaluation.limit, 8 * room)

    def count(self, columns: Rows, level: int, stop: int = 0, most: int = _NO_END) -> tuple[int, int]:
        """Count the extensions, and the partial matches that have some; gives up after `most`."""
        at, until = np.zeros((2, level + 1), np.int32)
        reach = self._reach(columns[-1])
        total, looked_at, some = 0, 0, _COUNTED_AT_FIRST
        while looked_at < columns.shape[1] and total <= most:
            found, looked_at = count_through(
                columns,
                reach,
                self.start,
                self.lowest,
                self.end,
                level,
                stop,
                np.int64(looked_at),
                min(some, most - total),
                at,
                until,
            )
            total, some = total + int(found), 8 * some
        return total, int(looked_at)

    # -- one match an event --------------------------------------------------------------------------------

    def latest(self, asked: Asked) -> Bindings:
        """For each last event, the match that KEEP LAST keeps: with the last predecessor at every step.

        Latest starts never decrease, so the last predecessor leads to the latest start; every event of this
        match is as late as in any other match with the same last event.
        """
        triggers = self._triggers_by_row(asked)
        found = np.empty((len(self.steps), len(triggers)), np.int32)
        fill_latest(triggers, self.end, self.ends, found)
        rows = dict(zip(self.chain.names, found, strict=True))
        return Bindings(rows, len(triggers), in_order=True)

    # -- filters -------------------------------------------------------------------------------------------

    def filters(self, level: int) -> bool:
        """Whether partial matches are tested once a step is bound."""
        return bool(self._due[level] or self._late[level] or self.steps[level].own is not None)

    def next_stop(self, level: int) -> int:
        """The step before `level` at which partial matches are tested next, or the first step."""
        return next((step for step in range(level - 1, 0, -1) if self.filters(step)), 0)

    def complete(self, level: int) -> bool:
        """Whether partial matches from a step on are whole matches, and every step has one variable."""
        return level == 0 and not self.filters(0) and len(self._level) == len(self.steps)

    def kept(self, columns: Rows, level: int) -> Rows:
        """The partial matches that pass the tests that are possible once a step is bound."""
        step = self.steps[level]
        if step.own is not None:
            fits = step.own[columns[0] - step.first] >= self._reach(columns[-1])
            columns = np.compress(fits, columns, axis=1)
        if not self._due[level] and not self._late[level]:
            return columns
        _, kept = self._passed(self.bindings(columns, level), level)
        return columns if len(kept) == columns.shape[1] else np.take(columns, kept, axis=1)

    def _passed(self, bindings: Bindings, level: int) -> tuple[Bindings, npt.NDArray[np.intp]]:
        """The partial matches that pass the predicates and negations of a step, and their numbers."""
        kept = np.arange(bindings.count)
        for predicate in self._due[level]:
            if bindings.count:
                held = self.evaluation.satisfied(predicate, bindings)
                kept, bindings = kept[held], bindings.only(held)
        for negation in self._late[level]:
            if bindings.count:
                stays = ~self.chain.join.drops(self.evaluation, negation, bindings)
                kept, bindings = kept[stays], bindings.only(stays)
        return bindings, kept

    def bindings(self, columns: Rows, level: int) -> Bindings:
        """Partial matches, given by their places from a step on, as rows."""
        rows = {
            name: taken(own, places - np.int32(step.first))
            for places, step in zip(columns, self.steps[level:], strict=True)
            for name, own in step.rows.items()
        }
        return Bindings(rows, columns.shape[1])

    # -- estimates -----------------------------------------------------------------------------------------

    @cached_property
    def _all_triggers(self) -> Rows:
        return self.triggers(Asked(0, len(self.evaluation)))

    def sample(self, most: int) -> Rows:
        """Some triggers, about `most` of them, as partial matches."""
        return sample(self._all_triggers, most).reshape(1, -1)

    def all_expected(self, down_to: int) -> float:
        """Estimate how many partial matches of all triggers reach down to a step."""
        if down_to not in self._expected:
            self._expected[down_to] = self.expected(self._all_triggers, down_to)
        return self._expected[down_to]

    def each_expected(self, down_to: int) -> float:
        """Estimate how many partial matches of a trigger reach down to a step, on average."""
        return self.all_expected(down_to) / max(len(self._all_triggers), 1)

    def exceeds(self, number: float, down_to: int) -> bool:
        """Whether `all_expected` is more than a number; counts only until that is known."""
        found = self._expected.get(down_to)
        return (self.expected(self._all_triggers, down_to, number) if found is None else found) > number

    def expected(self, triggers: Rows, down_to: int, enough: float = math.inf) -> float:
        """Estimate how many partial matches reach down to a step, from a sample of the triggers.

        If there are more than `enough`, the estimate is only known to be more than that.
        """
        level = len(self.steps) - 1
        if level == down_to or not len(triggers):
            return float(len(triggers))
        some = sample(triggers, _SAMPLE).reshape(1, -1)
        most = min(enough * some.shape[1] / len(triggers), 4 * self.evaluation.limit)
        total, looked_at = self.count(some, level, down_to, int(most))
        return total / max(looked_at, 1) * len(triggers)
