"""What the joins of one evaluation share: events, the stacks of their leaves, keys and staircases."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nestream.engine.event_buffer import EventBuffer, Ints
from nestream.engine.keys import key_classes
from nestream.engine.operator import Matches
from nestream.engine.program import Edge
from nestream.engine.windowed_events import WindowedEvents
from nestream.model.expression import Expression, variables
from nestream.model.vector import Vector
from nestream_papers.engine.keys import Keys
from nestream_papers.engine.program import Block, BlockProgram, Negation
from nestream_papers.engine.stack import Stack, greatest, least
from nestream_papers.engine.staircase import Staircases

Mask = npt.NDArray[np.bool_]


@dataclass
class Bindings(Matches):
    """Partial matches as columns: for each bound variable the rows of its events.

    For matches of a negated expression, `outer` is the number of the outer match of each.
    """

    rows: dict[str, Ints]
    outer: Ints | None = None

    def only(self, which: npt.NDArray[np.int64] | Mask) -> Bindings:
        """A selection of the partial matches."""
        rows = {name: column[which] for name, column in self.rows.items()}
        outer = None if self.outer is None else self.outer[which]
        count = int(np.count_nonzero(which)) if which.dtype == np.bool_ else len(which)
        return Bindings(rows, count, outer)


class Shared:
    """What all queries of an evaluation share, whatever their windows: the numbers of keys, and stacks."""

    def __init__(self, events: EventBuffer, key_classes: Mapping[str, str]) -> None:
        self.events = events
        length = int(events.pos[-1]) + 2 if len(events) else 2
        self.stride = 1 << length.bit_length()
        self.keys = Keys(events, key_classes)
        self._stacks: dict[tuple[int, tuple[str, ...] | None], Stack] = {}
        self._domains: dict[tuple[int, str], int] = {}

    def domain(self, leaf: int, attribute: str) -> int:
        """How many values an attribute has in the events of a leaf, not counting NULL."""
        if (leaf, attribute) not in self._domains:
            numbers = self.keys.numbers((attribute,))[self.events.leaf_rows[leaf]]
            seen = np.zeros(self.keys.size((attribute,)) + 1, bool)
            seen[numbers] = True  # NULL is the last place
            self._domains[leaf, attribute] = int(np.count_nonzero(seen[:-1]))
        return self._domains[leaf, attribute]

    def stack(self, leaf: int, key: tuple[str, ...] | None, store: WindowedEvents) -> Stack:
        """The stack of a leaf, ordered by the key's attributes first, with a window."""
        if (leaf, key) not in self._stacks:
            numbers = self.keys.numbers(key) if key else None
            self._stacks[leaf, key] = Stack(store, self.events.leaf_rows[leaf], numbers, self.stride)
        stack = self._stacks[leaf, key]
        return stack if stack.store is store else stack.seen_through(store)


class Evaluation:
    """One evaluation over the events. Everything in it is built on first use and shared by all blocks.

    Programs with the same window may share one evaluation: `for_program` returns it with another program's
    options.
    """

    def __init__(self, store: WindowedEvents, shared: Shared | None = None) -> None:
        self.store = store
        assert isinstance(store.program, BlockProgram)
        self.program = store.program
        self.shared = shared or Shared(store.events, key_classes([store.program]))
        self.stride = self.shared.stride
        self.keys = self.shared.keys
        self._stacks: dict[tuple[int, tuple[str, ...] | None], Stack] = {}
        self.staircases = Staircases(store, self.stack, self.stride)
        self.prefixes: dict[Hashable, Any] | None = None
        """The steps of sequences that several programs may share, if there are several."""

    def for_program(self, program: BlockProgram) -> Evaluation:
        """The same evaluation for another program with the same window."""
        same = copy(self)
        same.program = program
        return same

    def stack(self, leaf: int, key: tuple[str, ...] | None) -> Stack:
        """The stack of a leaf, ordered by the key's attributes first."""
        if (leaf, key) not in self._stacks:
            self._stacks[leaf, key] = self.shared.stack(leaf, key, self.store)
        return self._stacks[leaf, key]

    def fetch(self, bindings: Bindings, variable: str, attribute: str) -> Vector:
        """The values of an attribute of the events bound to a variable."""
        return self.store.attribute(attribute).take(bindings.rows[variable])

    def satisfied(self, formula: Expression, bindings: Bindings) -> Mask:
        """Which of the partial matches satisfy a formula whose variables are all bound."""
        return self.store.evaluator.satisfied(
            formula,
            lambda variable, attribute: self.fetch(bindings, variable, attribute),
            bindings.count,
        )

    # -- negations that are bounds -------------------------------------------------------------------------

    def occurs(self, negation: Negation, bindings: Bindings, root: Block) -> Mask:
        """Which matches a bound negation rejects: some inner match lies in its interval."""
        store = self.store
        staircase = self.staircases.of(negation)
        if negation.link is None:
            start: Ints = np.zeros(bindings.count, np.int64)
        else:
            name, attributes = negation.link
            start = self.keys.numbers(attributes)[bindings.rows[name]] * self.stride
        interval = negation.interval
        after = since = None
        if isinstance(interval.after, Edge):
            since = store.reach(self.last(bindings, root))
        else:
            after = greatest([store.pos[bindings.rows[name]] for name in interval.after])
        if interval.before is Edge.WINDOW_END:
            upto = "reach", store.pos[self.first(bindings, root)]
        elif interval.before is Edge.MATCH_END:
            upto = "low", store.pos[self.last(bindings, root)]
        else:
            upto = "before", least([store.low[bindings.rows[name]] for name in interval.before])
        found = staircase.occurs(start, upto, after, since)
        return found & (start >= 0) if negation.link else found

    def first(self, bindings: Bindings, root: Block) -> Ints:
        """The rows of the first events of the outer matches."""
        return least([bindings.rows[name] for name in root.leaves])

    def last(self, bindings: Bindings, root: Block) -> Ints:
        """The rows of the last events of the outer matches."""
        return greatest([bindings.rows[name] for name in root.leaves])


def needed(negation: Negation, root: Block) -> frozenset[str]:
    """The outer variables that must be bound before a negation can be decided."""
    interval = negation.interval
    names: set[str] = set()
    for limit in (interval.after, interval.before):
        names |= set(root.leaves) if isinstance(limit, Edge) else set(limit)
    if negation.link:
        names.add(negation.link[0])
    return frozenset(names) | _mentioned(negation, root)


def _mentioned(negation: Negation, root: Block) -> set[str]:
    """The outer variables that a negation's predicates, order and own negations mention."""
    block = negation.block
    names = {name for predicate in block.predicates for name in variables(predicate)}
    names |= {name for e in block.equalities for name in (e.left[0], e.right[0])}
    names |= {name for pair in (*block.order, *block.apart) for name in pair}
    for inner in block.negations:
        names |= needed(inner, root)
    for witness in block.witnesses:
        names |= witness.needs(root)
    return names - set(block.leaves)


Ranges = Mapping[str, tuple[int, int]]
"""For some variables, the positions `[first, end)` that their events must have."""
