"""What the operators of one evaluation share: coordinates of the events, keys, stacks and staircases.

An event is a row of the buffer, which is in the order of time and arrival, so *x comes before y* is `row[x] <
low[y]` and *x is in a window that ends with y* is `row[x] >= reach[y]`. Everything here is built on first
use, once for all the queries of a set.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nestream.engine.event_buffer import EventBuffer
from nestream.engine.growing import Growing
from nestream.engine.kernels import Rows
from nestream.engine.kernels.search import places
from nestream.engine.kernels.stack import sorted_by_key, taken, window_starts
from nestream.engine.keys import Numbering
from nestream.engine.operator import EvaluationCache
from nestream.engine.program import Measure
from nestream.model.expression import Expression
from nestream.model.vector import Vector

Mask = npt.NDArray[np.bool_]
_Made = TypeVar("_Made")
_LONGEST = int(np.iinfo(np.int64).max)
"""The longest window that 64 bits can measure."""


@dataclass(frozen=True)
class Window:
    """How far apart the events of a match may be."""

    measure: Measure
    size: int
    exclusive: bool


@dataclass
class Bindings:
    """Partial matches as columns: for each bound variable the rows of its events.

    For matches of a negated expression, `outer` is the number of the outer match of each.
    """

    rows: dict[str, Rows]
    count: int
    outer: Rows | None = None
    in_order: bool = False
    """Whether they are whole matches in the order of their last events, then of their rows.

    If so, the matches that the operator yields next follow them in that order.
    """

    def only(self, which: npt.NDArray[Any]) -> Bindings:
        """Some of the partial matches, by a mask or by their numbers."""
        rows = {name: column[which] for name, column in self.rows.items()}
        outer = None if self.outer is None else self.outer[which]
        count = int(np.count_nonzero(which)) if which.dtype == np.bool_ else len(which)
        return Bindings(rows, count, outer)

    def repeated(self, numbers: Rows) -> Bindings:
        """Some of the partial matches by their numbers, which may repeat."""
        rows = {name: taken(column, numbers) for name, column in self.rows.items()}
        outer = None if self.outer is None else taken(self.outer, numbers)
        return Bindings(rows, len(numbers), outer)


@dataclass(frozen=True)
class Stack:
    """The rows of a leaf by key, in the order of time within one.

    Key k has the places `begin[k]` to `begin[k + 1]`; without a key, the only number is 0.
    """

    rows: Rows
    begin: Rows
    _measured: dict[int, tuple[Rows, Rows]] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.rows)

    def by(self, measure: Rows) -> Rows:
        """The measure of the event at each place, given a measure by row; gathered once."""
        if measure is self.rows:
            return self.rows
        if id(measure) not in self._measured:
            self._measured[id(measure)] = measure, measure[self.rows]
        return self._measured[id(measure)][1]


class _Reach:
    """For each row, the first row that fits in a window ending with it; it grows with the events."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self._rows = Growing(np.empty(0, np.int32))
        self._forgotten = 0

    def of(self, events: EventBuffer) -> Rows:
        """The rows for all the events."""
        forgotten, self._forgotten = events.forgotten - self._forgotten, events.forgotten
        if forgotten:
            self._rows.drop(forgotten, less=forgotten)
        done = len(self._rows)
        if done < len(events):
            self._rows.extend(self._since(events, done))
        return self._rows.values

    def _since(self, events: EventBuffer, done: int) -> Rows:
        window, first = self.window, int(self._rows.values[-1]) if done else 0
        if window.measure is Measure.NONE:
            return np.zeros(len(events) - done, np.int32)
        counted = window.measure is Measure.EVENTS
        size = window.size - 1 if counted or window.exclusive else window.size
        measure = (events.pos if counted else events.ts)[first:]  # a window never begins before the last one
        found: Rows = window_starts(measure, np.int64(size), np.int64(done - first))
        return found + np.int32(first) if first else found


class Evaluation:
    """One evaluation of a query over the events held."""

    def __init__(
        self,
        cache: EvaluationCache,
        window: Window,
        limit: int,
        memory: int,
        since: int = 0,
        *,
        lasting: bool = True,
    ) -> None:
        self.cache = cache
        self.events = cache.events
        self.window = window
        self.limit = limit
        """The maximum number of partial matches held at once."""
        self.memory = memory
        """The maximum number of bytes that the matches of a part may take."""
        self.since = since
        """The first row that a wanted match may end with: earlier ones were evaluated before."""
        self.numbering = self.made(Numbering, lambda: Numbering(cache.events, cache.key_classes))
        self.ties = cache.events.ties and not cache.events.by_arrival
        """Whether some events have no order, so that `low` is not the row itself."""
        self.reach: Rows = self.made(window, lambda: self._reach(lasting=lasting))
        """For each row, the first row that fits in a window ending with it."""

    @property
    def low(self) -> Rows:
        """For each row, the first row that does not come before it."""
        return self.events.moments if self.ties else self.made("low", self._all_rows)

    def _all_rows(self) -> Rows:
        return np.arange(len(self), dtype=np.int32)

    def _reach(self, *, lasting: bool) -> Rows:
        """With `lasting`, every evaluation has this window: only the rows of new events are computed."""
        reach = (
            self.events.growing(self.window, lambda: _Reach(self.window)) if lasting else _Reach(self.window)
        )
        return reach.of(self.events)

    def __len__(self) -> int:
        return len(self.events)

    @property
    def inner(self) -> Evaluation:
        """The evaluation of inner expressions, whose matches may end anywhere inside the outer interval.

        In a window of events, that interval ends with the last event of its time, so it is longer by that
        many rows.
        """
        window = self.window
        if window.measure is Measure.EVENTS and self.ties:
            longer = int((self.events.pos - self.events.low).max())
            window = replace(window, size=window.size + longer)
        if not self.since and window == self.window:
            return self
        return self._with(window)

    @property
    def around(self) -> Evaluation:
        """The evaluation of inner expressions within the two windows that begin and end with one event."""
        window = self.inner.window
        same = window.exclusive or window.measure is Measure.EVENTS
        return self._with(replace(window, size=2 * window.size - same))

    def _with(self, window: Window) -> Evaluation:
        """The evaluation with another window; without any if it is too long for 64 bits.

        Inner matches outside the outer interval do no harm: they are found, and not asked for.
        """
        if window.size > _LONGEST:
            window = replace(window, measure=Measure.NONE)
        return Evaluation(self.cache, window, self.limit, self.memory, lasting=window == self.window)

    def made(self, what: Hashable, make: Callable[[], _Made]) -> _Made:
        """Return the value called `what`, made on first use.

        Queries that use the same name share the value, so a name contains no variable of a query.
        """
        return self.cache.once(what, make)

    def stack(self, leaf: int, key: tuple[str, ...] | None) -> Stack:
        """The events of a leaf, by the attributes of the key."""
        return self.made((leaf, key), lambda: self.made_stack(leaf, key))

    def leaf_rows(self, leaf: int) -> Rows:
        """The events of a leaf in the order of time."""
        return self.events.leaf_rows[leaf]

    def made_stack(self, leaf: int, key: tuple[str, ...] | None) -> Stack:
        """The same stack for a single use: it is not kept."""
        rows = self.leaf_rows(leaf)
        if key is None:
            return Stack(rows, np.array((0, len(rows)), np.int32))
        return Stack(*sorted_by_key(rows, self.numbering.of(key), self.numbering.size(key)))

    def satisfied(self, formula: Expression, bindings: Bindings) -> Mask:
        """Which of the partial matches satisfy a formula whose variables are all bound."""

        def fetch(variable: str, attribute: str) -> Vector:
            return self.events.attribute(attribute).take(bindings.rows[variable])

        return self.events.evaluator.satisfied(formula, fetch, bindings.count)


def places_in(stack: Stack, measure: Rows, number: Rows, wanted: npt.NDArray[Any]) -> Rows:
    """For each query, the first place of its key whose measure (by row) is at least the wanted row."""
    found: Rows = places(stack.by(measure), stack.begin, number, wanted)
    return found
