"""A chain over the events of one evaluation: its steps, forward, and the ranges that build its matches.

The forward pass keeps, for each step, the events (or composites) that some prefix reaches, with the latest
start of their prefixes. In the backward pass, `extensions` returns the predecessors of partial matches, and
`kept` tests what is now bound. `Chain` plans the steps and combines the two. See docs/how-it-works/engine.md,
"Chains", for the proofs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from nestream.engine.block import Negation
from nestream.engine.evaluation import Bindings, Evaluation, Stack
from nestream.engine.kernels import Rows
from nestream.engine.kernels.chain import (
    count_through,
    extend_prefixes,
    extend_through,
    fill_in_order,
    followers,
    running_maximum,
)
from nestream.engine.kernels.stack import (
    between_by_key,
    in_row_order,
    keys_between,
    places_between,
    sorted_by_key,
    taken,
)
from nestream.engine.operators.derived import keys_of, member_limits
from nestream.engine.operators.operator import Asked
from nestream.model.expression import Expression, variables

if TYPE_CHECKING:
    from nestream.engine.operators.chain import Chain, Composite, CountedGroup

_EMPTY = np.empty(0, np.int32)
_NO_KEY = np.zeros(2, np.int32)
"""Where the events of the keys begin if there are none."""
_SAMPLE = 1024
"""How many triggers are sampled to estimate the number of matches."""
_AT_FIRST = 16
"""How many matches per trigger the first piece has room for."""
_NO_END = 1 << 62
_SAFE = 1 << 62
"""The difference of two numbers below this fits in 64 bits."""
_MOST = (1 << 63) - 1


@dataclass(frozen=True)
class Step:
    """The events, or composites, of one step that some prefix reaches, by key.

    Their places begin at `first` among those of all steps. `rows` holds the rows of each variable; `own`, of
    composites, the latest start of each one's own prefixes.
    """

    rows: Mapping[str, Rows]
    first: int
    begin: Rows
    own: Rows | None


class PreparedChain:
    """The steps of a chain, ready for any of its triggers.

    The steps are stored one after the other. By place, `ends` are the rows of the last events, `start` the
    latest start of a prefix that ends there or earlier in its key, and `lowest` and `end` delimit the places
    of the previous step that may precede it, apart from the window.
    """

    def __init__(
        self, chain: Chain, evaluation: Evaluation, asked: Asked | None, composites: list[Composite]
    ) -> None:
        self.chain = chain
        self.evaluation = evaluation
        self.late = list(chain.late)
        """Negations to check match by match, including derived ones whose staircase costs too much."""
        self._wanted: npt.NDArray[np.bool_] | None = None
        leaves = (chain.block.leaves[name] for name in chain.names)
        self._hopeless = any(not len(evaluation.leaf_rows(leaf)) for leaf in leaves)
        """Whether some step has no event, so that the others can be skipped."""
        begins = {composite.first: composite for composite in composites}
        inside = {place for composite in composites for place in range(composite.first, composite.end)}
        candidates: list[tuple[Mapping[str, Rows], Rows]] = []
        for place, names in enumerate(chain.steps):
            if place in begins:
                candidates.append(self._composite(begins[place]))
            elif place not in inside:
                stack = self._stack(names[0], asked)
                candidates.append(({names[0]: stack.rows}, stack.begin))
        length = sum(len(next(iter(rows.values()))) for rows, _ in candidates)
        self.ends, self.start, self.lowest, self.end = np.empty((4, length), np.int32)
        self.steps: list[Step] = []
        self._bounded = [False]
        """For each step, whether something limits how far back its predecessors may be."""
        for place, (rows, begin) in enumerate(candidates):
            self.steps.append(self._step(rows, begin, composite=len(rows) > 1))
            candidates[place] = {}, begin  # release what was left out
        self._level = {name: level for level, step in enumerate(self.steps) for name in step.rows}
        done = [set(composite.names) for composite in composites]
        self._due: list[list[Expression]] = [[] for _ in self.steps]
        for predicate in chain.filters:
            own = variables(predicate)
            if not own or not any(own <= inside for inside in done):
                self._due[min((self._level[name] for name in own), default=0)].append(predicate)
        self._late: list[list[Negation]] = [[] for _ in self.steps]
        for negation in self.late:
            level = min((self._level[name] for name in negation.needs(chain.block)), default=0)
            self._late[0 if any(self._due[:level]) else level].append(negation)

    # -- forward -------------------------------------------------------------------------------------------

    def _stack(self, name: str, asked: Asked | None) -> Stack:
        if self._hopeless:
            return Stack(_EMPTY, _NO_KEY)
        block, evaluation = self.chain.block, self.evaluation
        key = block.key[name] if block.key else None
        leaf = block.leaves[name]
        if asked is None:
            shared = key is None or evaluation.cache.several or self.chain.block.negations
            return evaluation.stack(leaf, key) if shared else evaluation.made_stack(leaf, key)
        rows, wanted = evaluation.leaf_rows(leaf), self._wanted_rows(asked, name)
        if key is None:
            rows = rows[slice(*np.searchsorted(rows, wanted))]
            return Stack(rows, np.array((0, len(rows)), np.int32))
        if self._wanted is None:
            self._wanted = self._wanted_keys(asked)
        return Stack(
            *between_by_key(rows, evaluation.numbering.of(key), self._wanted, *map(np.int64, wanted))
        )

    def _wanted_rows(self, asked: Asked, name: str) -> tuple[int, int]:
        """The rows of a step's events in the wanted matches."""
        evaluation, names = self.evaluation, self.chain.names
        if asked.by_last:
            reached = int(evaluation.reach[min(asked.first, len(evaluation) - 1)])
            return asked.first if name == names[-1] else reached, asked.end
        if name == names[0]:
            return asked.first, asked.end
        return asked.first, int(np.searchsorted(evaluation.reach, asked.end - 1, "right"))

    def _wanted_keys(self, asked: Asked) -> npt.NDArray[np.bool_]:
        """Which keys the events have that decide the wanted matches."""
        block, numbering = self.chain.block, self.evaluation.numbering
        assert block.key is not None
        name = self.chain.names[-1 if asked.by_last else 0]
        key, rows = block.key[name], self.evaluation.leaf_rows(block.leaves[name])
        found: npt.NDArray[np.bool_] = keys_between(
            rows, numbering.of(key), numbering.size(key), np.int64(asked.first), np.int64(asked.end)
        )
        return found

    def _composite(self, composite: Composite) -> tuple[Mapping[str, Rows], Rows]:
        """The matches of some neighbouring steps by key, in the order of their ends."""
        evaluation, names = self.evaluation.inner, composite.names
        if self._hopeless:
            return dict.fromkeys(names, _EMPTY), _NO_KEY
        parts = list(composite.operator.run(evaluation, Asked(0, len(evaluation))))
        rows = {name: np.concatenate([part.rows[name] for part in parts] or [_EMPTY]) for name in names}
        order = np.argsort(_ends(rows), kind="stable").astype(np.int32)
        begin, key = np.array((0, len(order)), np.int32), composite.operator.block.key
        if key is not None:
            name, numbering = names[0], evaluation.numbering
            number = taken(numbering.of(key[name]), rows[name])
            order, begin = sorted_by_key(order, number, numbering.size(key[name]))
        return {name: taken(own, order) for name, own in rows.items()}, begin

    def _step(self, rows: Mapping[str, Rows], begin: Rows, *, composite: bool) -> Step:
        """Prepare the next step: its candidates that some prefix reaches."""
        name = next(iter(rows))
        own = np.minimum.reduce(list(rows.values())) if composite else rows[name]
        first = 0
        if self.steps:
            before, evaluation = self.steps[-1], self.evaluation
            first = int(before.begin[-1])
            bound, low = self._bound(rows, own), self._low(name, own)
            firsts = own
            if name in self.chain.counted:
                rows, begin, bound, low = self._with_counts(
                    rows, begin, bound, taken(low, own) if len(low) else own
                )
                firsts = np.arange(len(low), dtype=np.int32)
            stay, begin, own, lowest, end = extend_prefixes(
                self.ends,
                before.begin,
                self.start,
                _ends(rows),
                begin,
                firsts,
                bound,
                low,
                evaluation.reach,
            )
            self._bounded.append(bool(len(bound)))
            self.lowest[first : first + len(stay)] = lowest
            self.end[first : first + len(stay)] = end
            if len(stay) < len(rows[name]):
                rows = {name: taken(column, stay) for name, column in rows.items()}
        here = slice(first, first + len(own))
        self.ends[here] = _ends(rows)
        self.start[here] = running_maximum(own, begin) if composite else own
        if composite:
            return Step(rows, first, begin + np.int32(first), own)
        return Step({name: self.ends[here]}, first, begin + np.int32(first), None)

    def _with_counts(
        self, rows: Mapping[str, Rows], begin: Rows, bound: Rows, low: Rows
    ) -> tuple[Mapping[str, Rows], Rows, Rows, Rows]:
        """The candidates of a step with as many members before them as its groups require.

        Also returns, for each, the first row that a predecessor may have and the first that is too late.
        """
        name = next(iter(rows))
        for counted in self.chain.counted[name]:
            latest, most = self._counted(counted, rows[name])
            if latest is not None:  # a predecessor comes before at least as many members as required
                kept = latest >= 0
                low = np.minimum(low[kept], self.evaluation.low[latest[kept]])
                rows = {variable: column[kept] for variable, column in rows.items()}
                begin = np.concatenate(([0], np.cumsum(kept, dtype=np.int32))).astype(np.int32)[begin]
                bound = bound[kept] if len(bound) else bound
                most = None if most is None else most[kept]
            if most is not None:  # and not before more than allowed
                bound = most if not len(bound) else np.maximum(bound, most)
        return rows, begin, bound, low

    def _counted(self, counted: CountedGroup, rows: Rows) -> tuple[Rows | None, Rows | None]:
        """For each event of a step, how a group before it limits its predecessors."""
        evaluation, group = self.evaluation, counted.group
        stack = evaluation.stack(counted.leaf, counted.key or None)
        number = np.zeros(len(rows), np.int32)
        if counted.key:
            terms = [(attribute, rows) for _, attribute in counted.terms]
            number = keys_of(evaluation, counted.key, terms)
        return member_limits(evaluation, stack, number, rows, group.least, group.most)

    def _bound(self, rows: Mapping[str, Rows], own: Rows) -> Rows:
        """For each event or composite, the first row that its predecessor may have.

        `own` are its first rows. Negations in the gap before it and distances limit the predecessors.
        """
        evaluation, bound, name = self.evaluation, _EMPTY, next(iter(rows))
        for negation, terms in self.chain.gaps.get(name, ()):
            assert negation.derived is not None
            staircase = negation.derived.staircase(evaluation)
            if staircase is None:
                self.late.append(negation)
                continue
            by_row = [(attribute, rows[variable]) for variable, attribute in terms]
            number = negation.derived.numbers(evaluation, by_row, len(own))
            bound = staircase.bounds(number, own, evaluation.low, bound)
        for gap in self.chain.distances.get(name, ()):
            _, most = gap.ends(evaluation.events.evaluator.per_microsecond)
            low = self._since(own, most, "left")
            bound = low if not len(bound) else np.maximum(bound, low)
        return bound

    def _low(self, name: str, rows: Rows) -> Rows:
        """For each event, by its row, the first row too late for its predecessor; empty for itself."""
        evaluation = self.evaluation
        low = evaluation.low if evaluation.ties else _EMPTY
        for gap in self.chain.distances.get(name, ()):
            least, _ = gap.ends(evaluation.events.evaluator.per_microsecond)
            if least is not None:
                low = (low if len(low) else evaluation.low).copy()
                low[rows] = np.minimum(low[rows], self._since(rows, least, "right"))
        return low

    def _since(self, rows: Rows, distance: int, side: Literal["left", "right"]) -> Rows:
        """For each event, the first row at most that long before it; rows are in time order."""
        times = self.evaluation.events.ts
        own = times[rows].astype(np.int64)
        if -_SAFE < distance < _SAFE and (not len(own) or (abs(own.min()) < _SAFE and own.max() < _SAFE)):
            moments = own - distance
        else:  # 64 bits might not suffice
            moments = np.array([max(min(int(t) - distance, _MOST), -_MOST - 1) for t in own], np.int64)
        return np.searchsorted(times, moments, side).astype(np.int32)

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
        places = in_row_order(self.ends, *map(np.int64, (begin[0], begin[-1], 0, len(self.evaluation))))
        return places, taken(self.ends, places)

    def in_order(self, asked: Asked) -> Iterator[Bindings]:
        """The matches piece by piece, by their last events, then by their rows."""
        triggers, ends = self._by_row
        if asked.by_last:
            triggers = triggers[slice(*np.searchsorted(ends, (asked.first, asked.end)))]
        at, until = np.zeros((2, len(self.steps)), np.int32)
        room = min(self.evaluation.limit, _AT_FIRST * len(triggers))
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
            rows = dict(zip(self.chain.names, found[:, :count], strict=True))
            bindings = Bindings(rows, count)
            if self.filters(0):
                bindings, _ = self._passed(bindings, 0)
            bindings.in_order = asked.by_last
            yield bindings
            room = min(self.evaluation.limit, 8 * room)

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
        total, looked_at = count_through(
            columns, reach, self.start, self.lowest, self.end, level, stop, most, at, until
        )
        return int(total), int(looked_at)

    # -- one match an event --------------------------------------------------------------------------------

    def latest(self) -> Bindings:
        """For each last event, the match that KEEP LAST keeps: with the last predecessor at every step.

        Latest starts never decrease, so the last predecessor leads to the latest start; every event of this
        match is as late as in any other match with the same last event.
        """
        columns = [np.arange(self.steps[-1].first, self.steps[-1].begin[-1], dtype=np.int32)]
        for _ in self.steps[1:]:
            columns.append(self.end[columns[-1]] - np.int32(1))
        return self._as_rows(columns[::-1])

    def earliest(self) -> Bindings | None:
        """For each first event, the match that KEEP FIRST keeps: with the first successor at every step.

        The ends of the ranges of predecessors never decrease. If their beginnings do not either, the
        successors of an event are a range, and the first of them that reaches the last step leads to the
        earliest end. Returns None if they do decrease, which negations on another attribute than the key can
        cause.
        """
        spans = [slice(step.first, int(step.begin[-1])) for step in self.steps]
        if any((self.lowest[span][1:] < self.lowest[span][:-1]).any() for span in spans[1:]):
            return None
        alive = np.arange(spans[-1].stop - spans[-1].start + 1)
        # By the number of a place in its step: the number of the first place from there on that reaches the
        # end
        following: list[npt.NDArray[np.int64]] = []
        for before, span in zip(reversed(spans[:-1]), reversed(spans[1:]), strict=True):
            count = before.stop - before.start
            first = alive[_up_to_each(self.end[span] - before.start, count)]
            reached = first < _up_to_each(self.lowest[span] - before.start, count)
            following.append(np.where(reached, first, -1))
            found = np.where(reached, np.arange(count), count)
            alive = np.append(np.minimum.accumulate(found[::-1])[::-1], count)
        columns = [np.arange(spans[0].stop - spans[0].start)]
        for step in reversed(following):
            columns = [column[step[columns[-1]] >= 0] for column in columns]
            columns.append(step[columns[-1]])
        columns = [column + span.start for column, span in zip(columns, spans, strict=True)]
        fits = self.evaluation.reach[self.ends[columns[-1]]] <= self.ends[columns[0]]
        return self._as_rows([column[fits] for column in columns])

    def _as_rows(self, columns: Sequence[npt.NDArray[Any]]) -> Bindings:
        """Matches, given by their places in each step, as rows; every step has one variable."""
        rows = {name: self.ends[column] for name, column in zip(self.chain.names, columns, strict=True)}
        return Bindings(rows, len(columns[0]))

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
        return _sample(self._all_triggers, most)

    def all_expected(self, down_to: int) -> float:
        """Estimate how many partial matches of all triggers reach down to a step."""
        return self.expected(self._all_triggers, down_to)

    def each_expected(self, down_to: int) -> float:
        """Estimate how many partial matches of a trigger reach down to a step, on average."""
        return self.all_expected(down_to) / max(len(self._all_triggers), 1)

    def expected(self, triggers: Rows, down_to: int) -> float:
        """Estimate how many partial matches reach down to a step, from a sample of the triggers."""
        level = len(self.steps) - 1
        if level == down_to:
            return float(len(triggers))
        total, looked_at = self.count(_sample(triggers, _SAMPLE), level, down_to, 8 * self.evaluation.limit)
        return total / max(looked_at, 1) * len(triggers)


def _sample(triggers: Rows, most: int) -> Rows:
    """Some triggers, evenly spaced and about `most` of them, as partial matches."""
    return np.ascontiguousarray(triggers[:: max(1, len(triggers) // most)]).reshape(1, -1)


def _ends(rows: Mapping[str, Rows]) -> Rows:
    """The last rows of events or composites."""
    columns = list(rows.values())
    return columns[0] if len(columns) == 1 else np.maximum.reduce(columns)


def _up_to_each(numbers: Rows, count: int) -> npt.NDArray[np.int64]:
    """For each number below a count, how many of some non-negative numbers are at most that number."""
    return np.cumsum(np.bincount(np.minimum(numbers, count), minlength=count + 1))[:count]
