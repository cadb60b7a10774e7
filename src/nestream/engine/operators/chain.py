"""Chain: totally ordered steps, without dead ends.

Forward through the steps, an event that no prefix reaches is left out, and each other keeps the latest start of
its prefixes. Backward from each last event (the trigger) the predecessors of an event are a range: bounded by
the order, by the negations in the gap, and by the window, because latest starts do not go down. So every row
that is built is part of a match of the steps with their gaps, and the cost is linear in events and matches.
Predicates between events, and negations that are no range, filter the rows when their last variable is bound.
docs/engine.md, "Chains", has the proofs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nestream.engine.block import Block, Negation, Term
from nestream.engine.evaluation import Bindings, Evaluation, Stack
from nestream.engine.kernels import Rows
from nestream.engine.kernels.chain import count_extensions, extend, extend_prefixes
from nestream.engine.kernels.search import places
from nestream.engine.kernels.stack import in_row_order, key_of_place, sorted_by_key
from nestream.engine.operators.lateral_join import LateralJoin
from nestream.engine.operators.operator import Asked
from nestream.engine.pieces import pieces
from nestream.model.expression import Expression, variables

_EMPTY = np.empty(0, np.int32)
_SAMPLE = 1024
"""How many triggers are looked at to find out how many matches there are."""


@dataclass(frozen=True)
class Step:
    """The events of one step that some prefix reaches, by key.

    `start` is the latest start of a prefix; `lowest` and `end` delimit the places of the step before that may
    come before the event, the window aside.
    """

    rows: Rows
    begin: Rows
    start: Rows
    lowest: Rows
    end: Rows


class Chain:
    """The matches of a block whose variables are totally ordered and equal on a key, if on anything."""

    def __init__(self, block: Block) -> None:
        assert block.chain is not None
        self.block = block
        self.names = block.chain
        self.join = LateralJoin(block)
        self.gaps: dict[int, list[tuple[Negation, tuple[Term, ...]]]] = {}
        """The negations that limit the predecessors of a step, with the step's own terms for their key."""
        self.late: list[Negation] = []
        for negation in block.negations:
            place = self._gap(negation)
            if place is None:
                self.late.append(negation)
            else:
                self.gaps.setdefault(place[0], []).append((negation, place[1]))

    def _gap(self, negation: Negation) -> tuple[int, tuple[Term, ...]] | None:
        """The step after the gap that a derived negation looks at, if that step knows the negation's key."""
        interval = negation.interval
        for place, (left, right) in enumerate(pairwise(self.names), 1):
            if (interval.after, interval.before) == ((left,), (right,)) and negation.derived is not None:
                terms = tuple(self._own_term(term, right) for term in negation.link)
                return None if None in terms else (place, tuple(term for term in terms if term))
        return None

    def _own_term(self, term: Term, name: str) -> Term | None:
        """The term of a step that equals another: itself, or by the key of the block."""
        variable, attribute = term
        if variable == name:
            return term
        key = self.block.key or {}
        if attribute in key.get(variable, ()):
            return name, key[name][key[variable].index(attribute)]
        return None

    def explain(self) -> str:
        return "Chain"

    # -- forward -------------------------------------------------------------------------------------------

    def _prepared(self, evaluation: Evaluation, asked: Asked) -> _Prepared:
        """The steps for what is asked, built once for all the ranges of an evaluation."""
        span: Asked | None = asked
        if asked.by_last:
            span = Asked(evaluation.since, len(evaluation)) if evaluation.since else None
        return evaluation.made((self, evaluation.window, span), lambda: _Prepared(self, evaluation, span))

    # -- backward ------------------------------------------------------------------------------------------

    def run(self, evaluation: Evaluation, asked: Asked) -> Iterator[Bindings]:
        """The matches, in the order of their triggers."""
        prepared = self._prepared(evaluation, asked)
        triggers = prepared.triggers(asked)
        level = len(self.names) - 1
        columns = triggers.reshape(1, -1)
        yield from self._extended(prepared, self._kept(prepared, columns, level), level)

    def _extended(self, prepared: _Prepared, columns: Rows, level: int) -> Iterator[Bindings]:
        """Extend partial matches, given by their places from `level` on, to the first step."""
        if not columns.shape[1]:
            return
        if level == 0:
            yield prepared.bindings(columns, 0)
            return
        step = prepared.steps[level]
        window = prepared.window(level - 1)[columns[-1]]
        counts = count_extensions(columns[0], window, step.lowest, step.end)
        limit = prepared.evaluation.limit
        for piece in pieces(counts, limit):
            part, counted = columns[:, piece], counts[piece]
            total = int(counted.sum())
            if total <= limit:
                longer, _ = extend(np.ascontiguousarray(part), window[piece], step.lowest, step.end, total)
                yield from self._extended(prepared, self._kept(prepared, longer, level - 1), level - 1)
                continue
            first = np.maximum(step.lowest[part[0]], window[piece])
            for start in range(int(first[0]), int(step.end[part[0, 0]]), limit):  # one event alone has too many
                own = np.arange(start, min(start + limit, int(step.end[part[0, 0]])), dtype=np.int32)
                longer = np.vstack([own, np.repeat(part[:, :1], len(own), axis=1)])
                yield from self._extended(prepared, self._kept(prepared, longer, level - 1), level - 1)

    def _kept(self, prepared: _Prepared, columns: Rows, level: int) -> Rows:
        """The partial matches that pass the predicates and negations that can now be tested."""
        due, late = self._due[level], prepared.late_at(level)
        if not due and not late:
            return columns
        bindings = prepared.bindings(columns, level)
        kept = np.arange(bindings.count)
        for predicate in due:
            if bindings.count:
                held = prepared.evaluation.satisfied(predicate, bindings)
                kept, bindings = kept[held], bindings.only(held)
        for negation in late:
            if bindings.count:
                stays = ~self.join.drops(prepared.evaluation, negation, bindings)
                kept, bindings = kept[stays], bindings.only(stays)
        return columns if len(kept) == columns.shape[1] else np.take(columns, kept, axis=1)

    @cached_property
    def _due(self) -> list[list[Expression]]:
        """The predicates to test at each step: those whose first variable it is; constant ones at the first."""
        found: list[list[Expression]] = [[] for _ in self.names]
        for predicate in self.block.predicates:
            names = variables(predicate)
            found[min(map(self.names.index, names), default=0)].append(predicate)
        return found

    def level_of(self, negation: Negation) -> int:
        """The step with which a late negation is tested: the first it needs, unless predicates follow."""
        level = min(map(self.names.index, negation.needs(self.block)), default=0)
        return 0 if any(self._due[:level]) else level

    # -- counting ------------------------------------------------------------------------------------------

    def counts(self, evaluation: Evaluation, asked: Asked) -> Iterator[int]:
        """The number of matches, piece by piece; the last extension is counted, not built."""
        prepared = self._prepared(evaluation, asked)
        if len(self.names) == 1 or self._due[0] or prepared.late_at(0):
            yield from (found.count for found in self.run(evaluation, asked))
            return
        columns = prepared.triggers(asked).reshape(1, -1)
        level = len(self.names) - 1
        yield from self._counted(prepared, self._kept(prepared, columns, level), level)

    def _counted(self, prepared: _Prepared, columns: Rows, level: int) -> Iterator[int]:
        step = prepared.steps[level]
        window = prepared.window(level - 1)[columns[-1]]
        counts = count_extensions(columns[0], window, step.lowest, step.end)
        if level == 1:
            yield int(counts.sum())
            return
        for piece in pieces(counts, prepared.evaluation.limit):
            total = int(counts[piece].sum())
            longer, _ = extend(
                np.ascontiguousarray(columns[:, piece]), window[piece], step.lowest, step.end, total
            )
            yield from self._counted(prepared, self._kept(prepared, longer, level - 1), level - 1)

    def expected(self, evaluation: Evaluation, asked: Asked) -> float | None:
        """About how many matches there are if all predicates and late negations let them pass."""
        prepared = self._prepared(evaluation, asked)
        triggers = prepared.triggers(asked)
        if len(self.names) == 1:
            return float(len(triggers))
        sample = triggers[:: max(1, len(triggers) // _SAMPLE)]
        looked_at, total = 0, 0.0
        for part in np.array_split(sample, max(1, len(sample) // 32)):
            total += self._estimated(prepared, part)
            looked_at += len(part)
            if total > 8 * evaluation.limit:
                break
        return total / max(looked_at, 1) * len(triggers)

    def _estimated(self, prepared: _Prepared, triggers: Rows) -> float:
        """The number of matches of some triggers, each level estimated from a sample of the one after."""
        columns, weight = triggers.reshape(1, -1), 1.0
        for level in range(len(self.names) - 1, 0, -1):
            step = prepared.steps[level]
            window = prepared.window(level - 1)[columns[-1]]
            counts = count_extensions(columns[0], window, step.lowest, step.end)
            total = int(counts.sum())
            if level == 1 or not total:
                return total * weight
            while total > prepared.evaluation.limit and columns.shape[1] > 1:
                columns, window, counts = columns[:, ::2], window[::2], counts[::2]
                weight *= 2
                total = int(counts.sum())
            if total > prepared.evaluation.limit:
                return total * weight
            columns, _ = extend(np.ascontiguousarray(columns), window, step.lowest, step.end, total)
        return columns.shape[1] * weight


class _Prepared:
    """The steps of a chain over the events of an evaluation, ready for any of its triggers."""

    def __init__(self, chain: Chain, evaluation: Evaluation, asked: Asked | None) -> None:
        self.chain = chain
        self.evaluation = evaluation
        self.missing: list[Negation] = []
        """Derived negations whose staircase would cost too much: they are joined instead."""
        self.steps = self._steps(asked)
        self._windows: dict[int, Rows] = {}

    # -- the steps -----------------------------------------------------------------------------------------

    def _steps(self, asked: Asked | None) -> list[Step]:
        steps: list[Step] = []
        for place, name in enumerate(self.chain.names):
            stack = self._stack(name, place, asked)
            if not place:
                steps.append(Step(stack.rows, stack.begin, stack.rows, _EMPTY, _EMPTY))
                continue
            previous = steps[-1]
            stay, begin, start, lowest, end = extend_prefixes(
                previous.rows,
                previous.begin,
                previous.start,
                stack.rows,
                stack.begin,
                stack.rows,
                self._bound(place, stack),
                self.evaluation.low,
                self.evaluation.reach,
            )
            rows = stack.rows if len(stay) == len(stack) else stack.rows[stay]
            steps.append(Step(rows, begin, start, lowest, end))
        return steps

    def _stack(self, name: str, place: int, asked: Asked | None) -> Stack:
        block, evaluation = self.chain.block, self.evaluation
        key = block.key[name] if block.key else None
        leaf = block.leaves[name]
        if asked is None:
            return evaluation.stack(leaf, key)
        rows = evaluation.leaf_rows(leaf)
        low, high = self._wanted_rows(asked, place)
        rows = rows[np.searchsorted(rows, low) : np.searchsorted(rows, high)]
        if key is None:
            return Stack(rows, np.array((0, len(rows)), np.int32))
        numbers, size = evaluation.numbering.of(key), evaluation.numbering.size(key)
        wanted = self._wanted_keys(asked)
        rows = rows[wanted[numbers[rows]]]
        return Stack(*sorted_by_key(rows, numbers, size))

    def _wanted_rows(self, asked: Asked, place: int) -> tuple[int, int]:
        """The rows of a step's events in the matches asked for."""
        evaluation, last = self.evaluation, len(self.chain.names) - 1
        if asked.by_last:
            first = asked.first if place == last else int(evaluation.reach[min(asked.first, len(evaluation) - 1)])
            return first, asked.end
        if place == 0:
            return asked.first, asked.end
        return asked.first, int(np.searchsorted(evaluation.reach, asked.end - 1, "right"))

    def _wanted_keys(self, asked: Asked) -> npt.NDArray[np.bool_]:
        """Which keys the events have that decide which matches are asked for; the last place is NULL's."""
        block, evaluation = self.chain.block, self.evaluation
        assert block.key is not None
        name = self.chain.names[-1 if asked.by_last else 0]
        rows = evaluation.leaf_rows(block.leaves[name])
        rows = rows[np.searchsorted(rows, asked.first) : np.searchsorted(rows, asked.end)]
        wanted = np.zeros(evaluation.numbering.size(block.key[name]) + 1, bool)
        wanted[evaluation.numbering.of(block.key[name])[rows]] = True
        wanted[-1] = False
        return wanted

    def _bound(self, place: int, stack: Stack) -> Rows:
        """For each event the first row at which its predecessor may stand, given the negations of the gap."""
        evaluation, bound = self.evaluation, _EMPTY
        for negation, terms in self.chain.gaps.get(place, ()):
            assert negation.derived is not None
            staircase = negation.derived.staircase(evaluation)
            if staircase is None:
                self.missing.append(negation)
                continue
            by_row = [(attribute, stack.rows) for _, attribute in terms]
            number = negation.derived.numbers(evaluation, by_row, len(stack))
            start = staircase.latest(number, evaluation.low[stack.rows])
            low = np.where(start < 0, np.int32(-1), evaluation.low[start])
            bound = low if not len(bound) else np.maximum(bound, low)
        return bound

    # -- the triggers --------------------------------------------------------------------------------------

    def triggers(self, asked: Asked) -> Rows:
        """The places in the last step of the matches asked for, in the order of their rows."""
        if not asked.by_last:
            return self._in_order[0]
        places_, rows = self._in_order
        return places_[np.searchsorted(rows, asked.first) : np.searchsorted(rows, asked.end)]

    @cached_property
    def _in_order(self) -> tuple[Rows, Rows]:
        rows = self.steps[-1].rows
        if self.chain.block.key is None:
            return np.arange(len(rows), dtype=np.int32), rows
        found = in_row_order(rows, 0, len(self.evaluation))
        return found, rows[found]

    def window(self, level: int) -> Rows:
        """For each event of the last step, the first place of a step that its window reaches."""
        if level not in self._windows:
            last, step = self.steps[-1], self.steps[level]
            number = key_of_place(last.begin, len(last.rows))
            reach = self.evaluation.reach[last.rows]
            self._windows[level] = places(step.start, step.begin, number, reach)
        return self._windows[level]

    def late_at(self, level: int) -> list[Negation]:
        """The negations to test at a step."""
        found = [*self.chain.late, *self.missing]
        return [negation for negation in found if self.chain.level_of(negation) == level] if found else []

    def bindings(self, columns: Rows, level: int) -> Bindings:
        """Partial matches, given by their places from a step on, as rows."""
        rows = {
            name: self.steps[level + number].rows[columns[number]]
            for number, name in enumerate(self.chain.names[level:])
        }
        return Bindings(rows, columns.shape[1])
