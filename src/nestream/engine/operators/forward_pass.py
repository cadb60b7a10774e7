"""The forward pass of a chain: for each step, the events that some prefix reaches.

Each keeps the latest start of its prefixes, and the range of its predecessors. docs/how-it-works/engine.md,
"Chains", has the proofs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from nestream.engine.evaluation import Bindings, Evaluation, Stack
from nestream.engine.kernels import Rows
from nestream.engine.kernels.chain import extend_prefixes, running_maximum
from nestream.engine.kernels.stack import between_by_key, keys_between, sorted_by_key, taken
from nestream.engine.operators.derived import keys_of, member_limits
from nestream.engine.operators.operator import Asked

if TYPE_CHECKING:
    from nestream.engine.operators.chain import Chain, Composite, CountedGroup

_EMPTY = np.empty(0, np.int32)
_NO_KEY = np.zeros(2, np.int32)
"""Where the events of the keys begin if there are none."""
_SAFE = 1 << 62
"""The difference of two numbers below this fits in 64 bits."""
_MOST = (1 << 63) - 1
_DEAR = 64
"""Composites are built only if there are at most this many per event."""
_CHEAP = 1 << 20
"""Or this many in all."""
_BYTES = 64
"""About how many bytes it takes to build a composite and its place in a step."""


class TooManyCompositesError(Exception):
    """There are more composites than pay off, or than fit the budget of memory."""


def most_composites(evaluation: Evaluation) -> int:
    """How many composites may be built for one step."""
    return min(max(_DEAR * len(evaluation), _CHEAP), evaluation.memory // _BYTES, np.iinfo(np.int32).max)


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


class ForwardPass:
    """The steps of a chain over the events of one evaluation.

    The steps are stored one after the other. By place, `ends` are the rows of the last events, `start` the
    latest start of a prefix that ends there or earlier in its key, and `lowest` and `end` delimit the places
    of the previous step that may precede it in its own window. A later event's window is applied later.
    """

    def __init__(
        self, chain: Chain, evaluation: Evaluation, asked: Asked | None, composites: list[Composite]
    ) -> None:
        """Raises `TooManyCompositesError` if a step would have more composites than may be built."""
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
        self.bounded = [False]
        """For each step, whether something limits how far back its predecessors may be."""
        for place, (rows, begin) in enumerate(candidates):
            self.steps.append(self._step(rows, begin, composite=len(rows) > 1))
            candidates[place] = {}, begin  # release what was left out

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
        parts: list[Bindings] = []
        count, most = 0, most_composites(evaluation)
        for part in composite.operator.run(evaluation, Asked(0, len(evaluation))):
            parts.append(part)
            count += part.count
            if count > most:
                raise TooManyCompositesError
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
        if not self.steps and name in self.chain.counted:
            rows, begin, own = self._with_leading(name, rows[name], begin)
        elif self.steps:
            first = int(self.steps[-1].begin[-1])
            bound, low = self._bound(rows, own), self._low(name, own)
            firsts = own
            if name in self.chain.counted:
                rows, begin, bound, low = self._with_counts(
                    rows, begin, bound, taken(low, own) if len(low) else own
                )
                firsts = np.arange(len(low), dtype=np.int32)
            stay, begin, own, lowest, end = self._extended(_ends(rows), begin, firsts, bound, low)
            self.bounded.append(bool(len(bound)))
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

    def _extended(
        self, rows: Rows, begin: Rows, firsts: Rows, bound: Rows, low: Rows
    ) -> tuple[Rows, Rows, Rows, Rows, Rows]:
        """The candidates of the next step that some prefix reaches, as `extend_prefixes` returns them."""
        found: tuple[Rows, Rows, Rows, Rows, Rows] = extend_prefixes(
            self.ends,
            self.steps[-1].begin,
            self.start,
            rows,
            begin,
            firsts,
            bound,
            low,
            self.evaluation.reach,
        )
        return found

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

    def _with_leading(self, name: str, rows: Rows, begin: Rows) -> tuple[Mapping[str, Rows], Rows, Rows]:
        """The first events with as many members before them as their groups require, within a window.

        Also returns, for each, the first of the latest so many members, where its prefix starts.
        """
        start = rows
        for counted in self.chain.counted[name]:
            latest, _ = self._counted(counted, rows)
            assert latest is not None, "a leading group is counted for the members that it requires"
            start = np.minimum(start, latest)
        kept = start >= taken(self.evaluation.reach, rows)
        begin = np.concatenate(([0], np.cumsum(kept, dtype=np.int32))).astype(np.int32)[begin]
        return {name: rows[kept]}, begin, start[kept]

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


def _ends(rows: Mapping[str, Rows]) -> Rows:
    """The last rows of events or composites."""
    columns = list(rows.values())
    return columns[0] if len(columns) == 1 else np.maximum.reduce(columns)
