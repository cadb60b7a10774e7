"""Negation as a bound: the latest start of any inner match that ended so far.

Let LS(r) be the greatest start of a match of N that ends before r. Some match of N lies inside (l, r) exactly
if LS(r) comes after l; so the predecessors that survive the negation are those from LS(r) on. A staircase
holds LS at every end of an inner match, by key, and answers for whole arrays of right ends at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
import numpy.typing as npt

from nestream.engine.event_buffer import Ints
from nestream.engine.windowed_events import WindowedEvents
from nestream_papers.engine.program import Negation, Stair
from nestream_papers.engine.stack import Stack, before

NONE = -1
"""The latest start if there is no inner match."""


class Staircase:
    """The ends of inner matches in order, each with the latest start of a match that ended by then.

    `ends` are a stack of the last events; `starts` the rows of the latest first events.
    """

    def __init__(self, ends: Stack, starts: Ints, stride: int) -> None:
        self.ends = ends
        self.starts = starts
        self.stride = stride

    def _latest(self, places: Ints, start: Ints, coordinates: Ints) -> Ints:
        """The coordinate at the last place before each of `places`; NONE if that has another key."""
        if not len(self.ends):
            return np.full(len(places), NONE, np.int64)
        last = places - 1
        found = (last >= 0) & (self.ends.pos[last] >= start)
        return np.where(found, coordinates[self.starts[last]], NONE)

    def latest_low(self, start: Ints, low: Ints) -> Ints:
        """`low` of the latest start among the matches that end before a position, within a key's stretch."""
        return self._latest(before(self.ends, start + low), start, self.ends.store.low)

    def occurs(
        self,
        start: Ints,
        upto: tuple[str, Ints],
        after: Ints | None,
        since: Ints | None,
    ) -> npt.NDArray[np.bool_]:
        """Whether a match ends by `upto` and starts after an event's position, or at or after a position.

        `upto` selects the measure of the end: "before" a `low`, or up to a position in "reach" or "low".
        """
        measure, value = upto
        match measure:
            case "before":
                places = before(self.ends, start + value)
            case "reach":
                places = np.searchsorted(self.ends.reach, start + value, "right")
            case _:
                places = np.searchsorted(self.ends.low, start + value, "right")
        store = self.ends.store
        found: npt.NDArray[np.bool_]
        if after is not None:
            found = self._latest(places, start, store.low) > after
            return found
        assert since is not None
        latest = self._latest(places, start, store.pos)
        found = (latest != NONE) & (latest >= since)
        return found


class Staircases:
    """Builds the staircases of negations, each once."""

    def __init__(
        self, store: WindowedEvents, stack_of: Callable[[int, tuple[str, ...] | None], Stack], stride: int
    ) -> None:
        self.store = store
        self.stack_of = stack_of
        self.stride = stride
        self._built: dict[Hashable, Staircase] = {}
        self._signatures: dict[int, Hashable] = {}

    def of(self, negation: Negation) -> Staircase:
        """The staircase of a bound negation, shared by all negations with the same inner matches."""
        if id(negation) not in self._signatures:
            self._signatures[id(negation)] = signature(negation)
        same = self._signatures[id(negation)]
        if same not in self._built:
            assert negation.stair is not None
            built = self._build(negation.stair, negation)
            if negation.key is not None and negation.link is None:
                built = self._over_all_keys(built)
            self._built[same] = built
        return self._built[same]

    def _build(self, stair: Stair, negation: Negation) -> Staircase:
        match stair.kind:
            case "leaf":
                assert stair.leaf is not None
                key = negation.key[stair.leaf] if negation.key else None
                stack = self.stack_of(negation.block.leaves[stair.leaf], key)
                return Staircase(stack, stack.rows, self.stride)
            case "seq":
                return self._sequence(stair, negation)
            case _:
                return self._conjunction(stair, negation)

    def _sequence(self, stair: Stair, negation: Negation) -> Staircase:
        """Carry the latest start of each prefix: a step takes the value of the prefixes that end before it.

        With negations between its steps, only prefixes that end at or after a bound may be extended. An event
        that no prefix reaches is dropped; then the last prefix before an event has the latest start, so one
        comparison with the bound decides.
        """
        prefix = self._build(stair.items[0], negation)
        for place, item in enumerate(stair.items[1:]):
            step = self._build(item, negation)
            first = step.starts
            start, low = step.ends.start, self.store.low[first]
            places = before(prefix.ends, start + low) - 1
            if not len(prefix.ends):
                possible = np.zeros(len(first), bool)
            else:
                possible = (places >= 0) & (prefix.ends.pos[places] >= start)
            for gap in stair.gaps[place] if stair.gaps else ():
                bound = self.of(gap).latest_low(start if gap.link else np.zeros_like(start), low)
                possible &= prefix.ends.pos[places] >= start + bound if len(prefix.ends) else False
            kept = np.flatnonzero(possible)
            prefix = Staircase(step.ends.only(kept), prefix.starts[places[kept]], self.stride)
        return prefix

    def _conjunction(self, stair: Stair, negation: Negation) -> Staircase:
        """The least of the components' latest starts, at every end of any of them."""
        parts = [self._build(item, negation) for item in stair.items]
        coordinates = np.concatenate([part.ends.pos for part in parts])
        order = np.argsort(coordinates, kind="stable")
        ends = parts[0].ends.only(np.empty(0, np.int64))
        ends.rows = np.concatenate([part.ends.rows for part in parts])[order]
        ends.start = np.concatenate([part.ends.start for part in parts])[order]
        here = coordinates[order]
        latest = np.full(len(here), len(self.store), np.int64)
        possible = np.ones(len(here), bool)
        for part in parts:
            places = np.searchsorted(part.ends.pos, here, "right") - 1
            if not len(part.ends):
                possible[:] = False
                break
            possible &= (places >= 0) & (part.ends.pos[places] >= ends.start)
            latest = np.minimum(latest, part.starts[places])
        kept = np.flatnonzero(possible)
        return Staircase(ends.only(kept), latest[kept], self.stride)

    def _over_all_keys(self, keyed: Staircase) -> Staircase:
        """The staircase of all keys together, for a negation that is not compared with the outer match."""
        order = np.argsort(keyed.ends.rows, kind="stable")
        ends = Stack(self.store, keyed.ends.rows[order], None, self.stride)
        return Staircase(ends, np.maximum.accumulate(keyed.starts[order]), self.stride)


def signature(negation: Negation) -> Hashable:
    """What the staircase of a negation depends on, whatever its variables are called."""
    assert negation.stair is not None
    return negation.link is None, _signature(negation.stair, negation)


def _signature(stair: Stair, negation: Negation) -> Hashable:
    if stair.leaf is not None:
        return negation.block.leaves[stair.leaf], negation.key[stair.leaf] if negation.key else None
    gaps = tuple(tuple((gap.link is not None, signature(gap)) for gap in gaps) for gaps in stair.gaps)
    return stair.kind, tuple(_signature(item, negation) for item in stair.items), gaps
