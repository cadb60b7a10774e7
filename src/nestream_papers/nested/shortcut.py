"""Shortcuts: checks whether an outer value occurs in an inner query before the inner query is run.

NEEL+ keeps a table of the values that an inner variable's events have, each with the time of the latest one.
A value is inserted with its first event, updated with each further one, and purged when its latest event has
left the window. If the value of a bound outer event is not in the table, the inner query has nothing that
fits it.

Here the table is a stack of the inner leaf by the attribute: the events of a value are its entries over time.
The current entry is the last of them before a moment, which one search finds for an array of outer events; an
entry before the earliest that the window, or the interval, allows counts as purged. Events enter the stack
and leave with the window, and so do entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream_papers.engine.context import Bindings, Evaluation, Mask
from nestream_papers.engine.program import Shortcut
from nestream_papers.engine.stack import Stack

if TYPE_CHECKING:
    from nestream_papers.engine.join import Join

PAYS = 0.8
"""The shortcut is used if the inner variable has at most this share of the outer one's values.

The fewer it has, the more outer events are stopped. The paper draws the line at a fifth; a lookup costs less
here, one search, and the benchmark of predicates still gains at four fifths.
"""


class ValueCache:
    """The values of an attribute in the events of a leaf, each with the latest event that has it."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def holds(self, start: Ints, first: Ints, end: Ints) -> Mask:
        """Which values (by the start of their coordinates) have an entry at a moment that was not purged.

        `end` is the place of the value's first event that has not arrived then, `first` that of the first one
        that is not too old; the entry is the event before `end`. NULL is not a value.
        """
        entry = end - 1
        return (start >= 0) & (entry >= first)


def pays(evaluation: Evaluation, shortcut: Shortcut, leaf: int) -> bool:
    """Whether the inner variable, of this leaf, has few values compared with the outer one."""
    if shortcut.leaf < 0:
        return True
    outer = evaluation.shared.domain(shortcut.leaf, shortcut.outer[1])
    return evaluation.shared.domain(leaf, shortcut.inner[1]) <= PAYS * outer


def without_hopeless(join: Join, name: str, bindings: Bindings) -> Bindings:
    """The early stop: the partial matches that something nested in the block can still match with."""
    for shortcut in join.block.shortcuts:
        if shortcut.outer[0] == name and shortcut.inner[0] not in bindings.rows and bindings.count:
            bindings = bindings.only(_possible(join, shortcut, bindings))
    return bindings


def with_possible_matches(inner: Join, around: Bindings) -> Bindings:
    """The outer matches for which a negated expression may have a match; the others pass unchanged."""
    for shortcut in inner.block.shortcuts:
        if shortcut.outer[0] in around.rows and around.count:
            around = around.only(_possible(inner, shortcut, around))
    return around


def _possible(join: Join, shortcut: Shortcut, bindings: Bindings) -> Mask:
    """For which partial matches the value of the outer variable is among those of the inner one."""
    name, attribute = shortcut.inner
    evaluation, leaf = join.evaluation, join.block.leaves[name]
    scanned = join.negation is not None and not evaluation.program.options.negation_index
    if scanned or not pays(evaluation, shortcut, leaf):
        return np.ones(bindings.count, bool)
    cache = ValueCache(evaluation.stack(leaf, (attribute,)))
    start = (
        evaluation.keys.numbers((shortcut.outer[1],))[bindings.rows[shortcut.outer[0]]] * evaluation.stride
    )
    first = join.lower(name, bindings, cache.stack, start)
    end = join.upper(name, bindings, cache.stack, start)
    return cache.holds(start, first, end)
