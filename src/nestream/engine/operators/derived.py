"""Derived: the latest starts of an inner expression's matches, computed once for all outer matches.

Let LS(r) be the greatest start of an inner match that ends before r. Some inner match lies inside (l, r)
exactly if LS(r) comes after l. So a negation that depends on the outer match only through its interval and a
key never looks at an inner match twice: a staircase holds LS at every end of an inner match, by key. See
docs/how-it-works/engine.md, "Negation", for the proof.

The staircase of a leaf, or of a sequence or conjunction without predicates, is built from its parts, without
building inner matches. That of any other expression is built from the matches of its operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nestream.engine.block import Term
from nestream.engine.evaluation import Evaluation, Mask, Stack
from nestream.engine.kernels import Rows
from nestream.engine.kernels.chain import extend_prefixes
from nestream.engine.kernels.search import latest, places, raised_bounds, rows_back
from nestream.engine.kernels.stack import key_of_place, sorted_by_key, taken, taken_or_none
from nestream.engine.kernels.staircase import both_ended, latest_starts
from nestream.engine.operators.operator import Asked, PhysicalOperator

NONE = -1
_EMPTY = np.empty(0, np.int32)
_DEAR = 64
"""A staircase is made from inner matches only if there are at most this many per event."""
_CHEAP = 1 << 20
"""Or this many in all."""
_FEW_NEW = 8
"""And only if at least one in this many of the events held is new."""


@dataclass(frozen=True)
class Staircase:
    """The ends of inner matches by key and row, each with the latest start of a match that ended by then.

    Within a key, neither decreases.
    """

    ends: Rows
    begin: Rows
    starts: Rows

    def latest(self, number: Rows, before: Rows) -> Rows:
        """The latest start of the matches of a key that end before a row; NONE if there are none."""
        found: Rows = latest(self.ends, self.begin, self.starts, number, before)
        return found

    def bounds(self, number: Rows, rows: Rows, low: Rows, bound: Rows) -> Rows:
        """The first row that a predecessor of each event may have, at least that of `bound`."""
        found: Rows = raised_bounds(self.ends, self.begin, self.starts, number, low, rows, bound)
        return found

    def latest_by(self, measure: Rows, number: Rows, limit: Rows) -> Rows:
        """The latest start of the matches whose last event's measure is at most a limit."""
        found: Rows = latest(measure[self.ends], self.begin, self.starts, number, limit + 1)
        return found


class Stair(Protocol):
    """Describes how a staircase is built, without names of variables, so that equal ones share it."""

    def build(self, evaluation: Evaluation) -> Staircase | None:
        """Build the staircase for an evaluation; None if it would cost more than it saves."""
        ...


@dataclass(frozen=True)
class Derived:
    """The inner matches of a negation: their staircase, and the attributes of its key."""

    stair: Stair
    key: tuple[str, ...] = ()

    def staircase(self, evaluation: Evaluation) -> Staircase | None:
        """The staircase over the events of an evaluation, built once."""
        depends = (evaluation.window, evaluation.since) if isinstance(self.stair, MatchStair) else ()
        return evaluation.made((self.stair, *depends), lambda: self.stair.build(evaluation))

    def numbers(self, evaluation: Evaluation, terms: Sequence[tuple[str, Rows]], count: int) -> Rows:
        """The key of each outer match, from the attributes that equal it and their rows."""
        if not self.key:
            return np.zeros(count, np.int32)
        return keys_of(evaluation, self.key, terms)


def keys_of(evaluation: Evaluation, key: tuple[str, ...], terms: Sequence[tuple[str, Rows]]) -> Rows:
    """For each match, the number of its key.

    `terms` are the attributes that equal those of `key`, each with the rows of its events.
    """
    numbering = evaluation.numbering
    columns = [taken(numbering.of((attribute,)), rows) for attribute, rows in terms]
    return columns[0] if len(columns) == 1 else numbering.combine(key, columns)


@dataclass(frozen=True)
class LeafStair:
    """The staircase of a single event: the event itself."""

    leaf: int
    key: tuple[str, ...] | None

    def build(self, evaluation: Evaluation) -> Staircase:
        """Build it from the stack of the leaf."""
        stack = evaluation.stack(self.leaf, self.key)
        return Staircase(stack.rows, stack.begin, stack.rows)


@dataclass(frozen=True)
class Gap:
    """A negation between two items of a sequence: derived, keyed by the key of the sequence or not at all."""

    derived: Derived
    keyed: bool


@dataclass(frozen=True)
class Count:
    """A group between two items of a sequence that are single events: from `least` to `most` members.

    Members are events of a leaf; their `key` equals the attributes `own` of the later item.
    """

    leaf: int
    key: tuple[str, ...]
    own: tuple[str, ...]
    least: int
    most: int | None

    def limits(self, evaluation: Evaluation, rows: Rows) -> tuple[Rows | None, Rows | None]:
        """How the group limits the predecessors of some events, as `member_limits` returns it."""
        number = np.zeros(len(rows), np.int32)
        if self.key:
            number = keys_of(evaluation, self.key, [(attribute, rows) for attribute in self.own])
        stack = evaluation.stack(self.leaf, self.key or None)
        return member_limits(evaluation, stack, number, rows, self.least, self.most)


def member_limits(
    evaluation: Evaluation, stack: Stack, number: Rows, rows: Rows, least: int, most: int | None
) -> tuple[Rows | None, Rows | None]:
    """For each event r of a key, how a group before it limits its predecessors.

    Returns the row of the m-th latest member before r, -1 if there are fewer than m; and the first row from
    which a predecessor has at most n members after it, -1 if any predecessor does. Neither decreases with r.
    """
    before = taken(evaluation.low, rows) if evaluation.ties else rows
    end = places(stack.rows, stack.begin, number, before)

    def back(count: int) -> Rows:
        found: Rows = rows_back(stack.rows, stack.begin, number, end, np.int64(count))
        return found

    fewest = back(least) if least > 0 else None
    if most is None:
        return fewest, None
    beyond = back(most + 1)
    return fewest, taken_or_none(evaluation.low, beyond) if evaluation.ties else beyond


@dataclass(frozen=True)
class SequenceStair:
    """The staircase of a sequence: each item takes the latest start of the prefixes that end before it.

    `gaps[i]` are the negations and `counts[i]` the groups between item i and item i + 1.
    """

    items: tuple[Stair, ...]
    gaps: tuple[tuple[Gap, ...], ...]
    counts: tuple[tuple[Count, ...], ...] = ()

    def build(self, evaluation: Evaluation) -> Staircase | None:
        """Build it from the ends of the last item that some prefix reaches."""
        prefix = self.items[0].build(evaluation)
        counts = self.counts or ((),) * len(self.gaps)
        for item, gaps, groups in zip(self.items[1:], self.gaps, counts, strict=True):
            step = item.build(evaluation)
            if prefix is None or step is None:
                return None
            bound = _EMPTY
            for gap in gaps:
                staircase = gap.derived.staircase(evaluation)
                if staircase is None:
                    return None
                number = key_of_place(
                    step.begin if gap.keyed else np.array((0, len(step.ends)), np.int32), len(step.ends)
                )
                bound = staircase.bounds(number, step.starts, evaluation.low, bound)
            firsts, low = step.starts, evaluation.low
            if groups:
                step, bound, low = _counted(evaluation, groups, step, bound)
                firsts = np.arange(len(low), dtype=np.int32)
            stay, begin, starts, _, _ = extend_prefixes(
                prefix.ends,
                prefix.begin,
                prefix.starts,
                step.ends,
                step.begin,
                firsts,
                bound,
                low,
                _EMPTY,
            )
            prefix = Staircase(step.ends[stay], begin, starts)
        return prefix


def _counted(
    evaluation: Evaluation, groups: Sequence[Count], step: Staircase, bound: Rows
) -> tuple[Staircase, Rows, Rows]:
    """The events of a step with as many members before them as its groups require.

    Also returns, for each, the first row that a predecessor may have and the first that is too late.
    """
    low = evaluation.low[step.ends]
    for group in groups:
        latest, most = group.limits(evaluation, step.ends)
        if latest is not None:
            kept = latest >= 0
            low = np.minimum(low[kept], evaluation.low[latest[kept]])
            begin = np.concatenate(([0], np.cumsum(kept))).astype(np.int32)[step.begin]
            step = Staircase(step.ends[kept], begin, step.starts[kept])
            bound = bound[kept] if len(bound) else bound
            most = None if most is None else most[kept]
        if most is not None:
            bound = np.maximum(bound, most) if len(bound) else most
    return step, bound, low


@dataclass(frozen=True)
class ConjunctionStair:
    """The staircase of a conjunction: at each end of a part, the least of the parts' latest starts."""

    items: tuple[Stair, ...]

    def build(self, evaluation: Evaluation) -> Staircase | None:
        """Build it from the ends of all parts, once every part has ended."""
        found = self.items[0].build(evaluation)
        for item in self.items[1:]:
            part = item.build(evaluation)
            if found is None or part is None:
                return None
            steps = both_ended(found.ends, found.begin, found.starts, part.ends, part.begin, part.starts)
            found = Staircase(*steps)
        return found


@dataclass(frozen=True)
class AllKeysStair:
    """The staircase of all keys together, for an expression whose key is not linked to the outer match."""

    inner: Stair

    def build(self, evaluation: Evaluation) -> Staircase | None:
        """Merge the steps of every key in the order of their ends."""
        keyed = self.inner.build(evaluation)
        if keyed is None:
            return None
        order = np.argsort(keyed.ends, kind="stable")
        starts = keyed.starts[order]
        if len(starts):
            starts = np.maximum.accumulate(starts)
        return Staircase(keyed.ends[order], np.array((0, len(order)), np.int32), starts)


@dataclass(frozen=True, eq=False)
class MatchStair:
    """The staircase of any other expression, from its matches, with the terms of their key.

    What a negation finds lies in a window with the outer match. If its interval, or one around it, is wide,
    it lies in the two windows that begin and end with that match.
    """

    operator: PhysicalOperator
    key: tuple[Term, ...] = ()
    is_wide: bool = False

    def build(self, evaluation: Evaluation) -> Staircase | None:
        """Build it from the latest starts of its matches; None if it does not pay off.

        It does not if few of the events held are new, or if there are too many inner matches. The negation is
        then evaluated match by match.
        """
        if _FEW_NEW * (len(evaluation) - evaluation.since) < len(evaluation):
            return None
        evaluation = evaluation.around if self.is_wide else evaluation.inner
        asked = Asked(0, len(evaluation))
        budget = max(_DEAR * len(evaluation), _CHEAP)
        expected = self.operator.expected(evaluation, asked)
        if expected is not None and expected > budget:
            return None
        attributes = tuple(attribute for _, attribute in self.key)
        keys = evaluation.numbering.size(attributes) if attributes else 1
        held: list[tuple[Rows, Rows, Rows]] = []
        total = count = 0
        for found in self.operator.run(evaluation, asked):
            columns = list(found.rows.values())
            number = np.zeros(found.count, np.int32)
            if attributes:
                number = keys_of(evaluation, attributes, [(a, found.rows[name]) for name, a in self.key])
            held.append((number, np.minimum.reduce(columns), np.maximum.reduce(columns)))
            total, count = total + found.count, count + found.count
            if total > budget:
                return None
            if len(held) > 1 and count > 4 * evaluation.limit:
                held, count = [_reduced(held, keys)], 0
        if not held:
            return Staircase(_EMPTY, np.zeros(keys + 1, np.int32), _EMPTY)
        number, starts, ends = _reduced(held, keys)
        return Staircase(ends, np.searchsorted(number, np.arange(keys + 1)).astype(np.int32), starts)


def _reduced(held: list[tuple[Rows, Rows, Rows]], keys: int) -> tuple[Rows, Rows, Rows]:
    """Reduce matches, given as keys, starts and ends, to their latest starts by key and end."""
    number, starts, ends = (np.concatenate(columns) for columns in zip(*held, strict=True))
    by_end = np.argsort(ends, kind="stable").astype(np.int32)
    order, begin = sorted_by_key(by_end, number, keys)
    stair_ends, stair_begin, stair_starts = latest_starts(order, begin, starts, ends)
    return key_of_place(stair_begin, len(stair_ends)), stair_starts, stair_ends


def occurs(
    staircase: Staircase,
    evaluation: Evaluation,
    number: Rows,
    upto: tuple[str, Rows],
    after: Rows | None,
    since: Rows | None,
) -> Mask:
    """Whether an inner match ends by `upto` and starts after an event, or at or after a row.

    `upto` selects the measure of the end: "before" a row, or up to its "reach" or "low".
    """
    measure, limit = upto
    match measure:
        case "before":
            start = staircase.latest(number, limit)
        case "reach":
            start = staircase.latest_by(evaluation.reach, number, limit)
        case _:
            start = staircase.latest_by(evaluation.low, number, limit)
    if after is not None:
        found: Mask = (start >= 0) & (evaluation.low[start] > after)
        return found
    assert since is not None
    return (start >= 0) & (start >= since)
