"""Witnesses: the latest events of a chain in an interval, by one binary search each for many matches.

Going back from the right end of the interval, each step takes the latest event of its leaf, within its key,
before the previous find. The first of them must lie in the interval, and the latest event of the absent step
before it must not. So between neighbours of a sequence a witness is a range, like a negation: with `w` the
first event found and `q` the absent one before it, it holds for the left neighbours from `q` on, before `w`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream.engine.program import Edge, Interval
from nestream_papers.engine.context import Bindings, Evaluation, Mask
from nestream_papers.engine.program import Block, Witness, WitnessStep
from nestream_papers.engine.stack import Stack, expand, greatest, least, places

NONE = -1
"""The row and position of no event."""

Upto = tuple[str, Ints]
"""The right end: "before" a `low`, or up to a position in the measure "reach" or "low"."""

Inside = Callable[[Ints, Ints], Mask]
"""Whether rows lie after the left end of the intervals of some partial matches."""


def witnessed(evaluation: Evaluation, witness: Witness, bindings: Bindings, root: Block, limit: int) -> Mask:
    """Which partial matches have the witness in its interval."""
    store = evaluation.store
    upto, inside = limits(evaluation, witness.interval, bindings, root)
    found = np.ones(bindings.count, bool)
    for step in reversed(witness.chain):
        rows = _latest(evaluation, step, bindings, upto, inside, limit)
        found &= rows != NONE
        upto = "before", store.low[rows]
    if witness.absent is not None:
        found &= _latest(evaluation, witness.absent, bindings, upto, inside, limit) == NONE
    return found


def limits(
    evaluation: Evaluation, interval: Interval, bindings: Bindings, root: Block
) -> tuple[Upto, Inside]:
    """The right end of the interval of each match, and a test whether rows lie after its left end."""
    store = evaluation.store
    if isinstance(interval.after, Edge):
        coordinate, least_position = store.pos, store.reach(evaluation.last(bindings, root))
    else:
        coordinate = store.low
        least_position = greatest([store.pos[bindings.rows[name]] for name in interval.after]) + 1

    def inside(rows: Ints, which: Ints) -> Mask:
        held: Mask = coordinate[rows] >= least_position[which]
        return held

    if interval.before is Edge.WINDOW_END:
        return ("reach", store.pos[evaluation.first(bindings, root)]), inside
    if interval.before is Edge.MATCH_END:
        return ("low", store.pos[evaluation.last(bindings, root)]), inside
    return ("before", least([store.low[bindings.rows[name]] for name in interval.before])), inside


def _latest(
    evaluation: Evaluation,
    step: WitnessStep,
    bindings: Bindings,
    upto: Upto,
    inside: Inside,
    limit: int,
) -> Ints:
    """The row of the latest event of a step in the rest of each interval; NONE if there is none."""
    numbers = [evaluation.keys.numbers((name,))[bindings.rows[variable]] for variable, name in step.equal_to]
    stack, start = keyed(evaluation, step, numbers, bindings.count)
    last = _last_place(stack, start, upto)
    if step.predicates:
        return _latest_satisfying(evaluation, step, bindings, stack, start, last, inside, limit)
    for _ in step.apart:  # each event of the match is skipped at most once
        for name in step.apart:
            last = last - ((last >= 0) & (stack.rows[last] == bindings.rows[name])) if len(stack) else last
    rows = _rows(stack, start, last)
    return np.where((rows != NONE) & inside(rows, np.arange(bindings.count)), rows, NONE)


def keyed(evaluation: Evaluation, step: WitnessStep, numbers: list[Ints], count: int) -> tuple[Stack, Ints]:
    """The stack of a step and where the key of each match begins in it; negative if that is NULL."""
    if not step.attributes:
        return evaluation.stack(step.leaf, None), np.zeros(count, np.int64)
    number, _ = evaluation.keys.combine(step.attributes, numbers)
    return evaluation.stack(step.leaf, step.attributes), number * evaluation.stride


def _last_place(stack: Stack, start: Ints, upto: Upto) -> Ints:
    measure, value = upto
    match measure:
        case "before":
            return places(stack.pos, start + value, "left") - 1
        case "reach":
            return places(stack.reach, start + value, "right") - 1
        case _:
            return places(stack.low, start + value, "right") - 1


def _rows(stack: Stack, start: Ints, last: Ints) -> Ints:
    """The rows at the places; NONE if a place is before the key's own stretch."""
    if not len(stack):
        return np.full(len(last), NONE, np.int64)
    return np.where((last >= 0) & (start >= 0) & (stack.pos[last] >= start), stack.rows[last], NONE)


def _latest_satisfying(
    evaluation: Evaluation,
    step: WitnessStep,
    bindings: Bindings,
    stack: Stack,
    start: Ints,
    last: Ints,
    inside: Inside,
    limit: int,
) -> Ints:
    """The same with predicates on the match: events are checked from the last one back, a few at a time."""
    found = np.full(bindings.count, NONE, np.int64)
    open_ = np.arange(bindings.count)
    size = 1
    while len(open_):
        size = max(1, min(2 * size, limit // len(open_)))
        run, place = expand(np.full(len(open_), size), np.zeros(len(open_), np.int64))
        which = open_[run]
        place = last[which] - place
        rows = _rows(stack, start[which], np.maximum(place, NONE))
        candidates = bindings.only(which)
        usable = (rows != NONE) & inside(rows, which)
        ended = np.zeros(bindings.count, bool)
        ended[which[~usable]] = True
        which, rows, candidates = which[usable], rows[usable], candidates.only(usable)
        candidates.rows[step.variable] = rows
        for name in step.apart:
            kept = rows != bindings.rows[name][which]
            which, rows, candidates = which[kept], rows[kept], candidates.only(kept)
        for predicate in step.predicates:
            kept = evaluation.satisfied(predicate, candidates)
            which, rows, candidates = which[kept], rows[kept], candidates.only(kept)
        found[which[::-1]] = rows[::-1]  # of each match, the first comes last and is the latest
        last = last - size
        open_ = open_[(found[open_] == NONE) & ~ended[open_]]
    return found


# -- witnesses between neighbours of a sequence ------------------------------------------------------------


def gap_attributes(
    witness: Witness, left: str, right: str, key: Mapping[str, tuple[str, ...]] | None
) -> list[tuple[str, ...]] | None:
    """For each step, the attributes of the right neighbour that its own equal; None if others matter."""
    if (witness.interval.after, witness.interval.before) != ((left,), (right,)):
        return None
    found = []
    for step in witness.steps:
        if step.predicates or step.apart:
            return None
        names = []
        for variable, attribute in step.equal_to:
            if variable == right:
                names.append(attribute)
            elif key is not None and attribute in key.get(variable, ()):
                names.append(key[right][key[variable].index(attribute)])
            else:
                return None
        found.append(tuple(names))
    return found


def gap_range(
    evaluation: Evaluation, witness: Witness, attributes: list[tuple[str, ...]], right: Ints
) -> tuple[Ints, Ints]:
    """For each event after the gap, the range of positions that its left neighbour may have."""
    store = evaluation.store
    low = store.low[right]
    names = dict(zip((id(step) for step in witness.steps), attributes, strict=True))

    def latest(step: WitnessStep, low: Ints) -> Ints:
        numbers = [evaluation.keys.numbers((name,))[right] for name in names[id(step)]]
        stack, start = keyed(evaluation, step, numbers, len(right))
        return _rows(stack, start, _last_place(stack, start, ("before", low)))

    found = np.ones(len(right), bool)
    for step in reversed(witness.chain):
        rows = latest(step, low)
        found &= rows != NONE
        low = store.low[rows]
    before = np.where(found, low, NONE)
    if witness.absent is None:
        return np.full(len(right), NONE, np.int64), before
    rows = latest(witness.absent, low)
    return np.where(rows == NONE, NONE, store.low[rows]), before
