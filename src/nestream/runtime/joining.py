"""Decides since when a query that joins a running set sees events.

A set holds the events that its queries read, with the columns they need, for as long as the longest window
needs them. A joining query sees these events if all that it reads is held: if each of its leaves is covered
by a leaf of an earlier query, and so is each of its columns. Otherwise it begins with the events after those
already taken. It always sees everything from one time on, never a part: a negation over events that were not
held would report false violations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from nestream.engine.program import LeafSpec, Measure
from nestream.engine.retention import LEAST
from nestream.model.event_types import ANY_TYPE
from nestream.runtime.compiled import CompiledQuery, CompiledSet
from nestream.runtime.layers import RunningLayer
from nestream.runtime.progress import Progress, layers_of
from nestream.runtime.query_set import SetRun

_NEVER = LEAST - 1
"""A time since which no query sees events; it stands for a query that does not continue."""


class Joining:
    """Says since when each query of a changed set sees events, and what need not be compiled again.

    `staying` are the queries that continue; `columns` are the columns of the events from now on. With
    `whole`, all columns were taken so far, so an unknown column never had a value. With `fixed`, events that
    no query read were dropped on arrival, so they do not wait for the watermark either.
    """

    def __init__(
        self,
        before: Progress,
        staying: Collection[str],
        columns: Collection[str],
        *,
        whole: bool,
        fixed: bool = False,
    ) -> None:
        self._columns, self._whole = columns, whole
        self._watermark, self._greatest = before.watermark, before.greatest
        left_behind = before.greatest if fixed else None
        self._held = {
            reads: _Held(_run(layer), staying, left_behind) for reads, layer in layers_of(before.run).items()
        }
        self._unread = before.greatest if fixed else before.watermark
        """The greatest time of an event that no query read and that may be gone."""
        self._counted = self._counted_since() if fixed else LEAST
        """The time since which events that no query reads were counted, for windows of events."""
        self._schema = before.run.schema
        self.joined: list[str] = []
        """The queries that begin: new ones, and those that now read other composite types."""

    def compiled(self, reads: frozenset[str]) -> CompiledSet | None:
        """The queries that continue as they were compiled, unless too many leaves would be unused."""
        return self._held[reads].compiled() if reads in self._held else None

    def since(self, name: str, reads: frozenset[str], alone: Callable[[], CompiledQuery]) -> int | None:
        """The time since which a query sees events; None for all."""
        held = self._held.get(reads)
        if held is not None and name in held.going_on:
            return held.going_on[name]
        self.joined.append(name)
        query = alone()
        moments = [self._since_column(held, column) for column in query.held]
        if held is None:  # it reads composite events that no query read before
            moments.append(_after(self._unread))
        else:
            moments += [held.since_leaf(leaf) for leaf in query.program.leaves]
        if query.program.measure is Measure.EVENTS:
            moments.append(self._counted)
        since = max(moments)
        return None if since == LEAST else since

    def _counted_since(self) -> int:
        members = [member for held in self._held.values() for member in held.run.compiled.members]
        counting = [member.since for member in members if member.program.measure is Measure.EVENTS]
        since = (LEAST if time is None else time for time in counting)
        return min(since, default=_after(self._greatest))

    def _since_column(self, held: _Held | None, column: str) -> int:
        if column == self._schema.type:  # held with every event
            return LEAST
        if held is not None and column in held.columns:
            return held.columns[column]
        known = self._schema if held is None else held.run.schema
        if column in known.columns:  # waiting events still have it
            return _after(self._watermark if held is None else held.run.watermark)
        if column not in self._columns or self._whole:  # of composite events, or new: always NULL so far
            return LEAST
        return _after(self._greatest)


class _Held:
    """What a run holds: since when all events of a leaf, and all values of a column, are held."""

    def __init__(self, run: SetRun, staying: Collection[str], left_behind: int | None) -> None:
        self.run = run
        self._unread = run.watermark if left_behind is None else left_behind
        self.going_on = {one.name: self._still(one) for one in run.compiled.members if one.name in staying}
        self.columns: dict[str, int] = {}
        self._leaves: dict[str, dict[LeafSpec, int]] = {}
        """The leaves by the types of their events."""
        floor = run.complete_since()
        for member in run.compiled.members:
            since = max(floor, LEAST if member.since is None else member.since)
            for column in member.held:
                self.columns[column] = min(since, self.columns.get(column, since))
            for number in {leaf for outline in member.program.outlines for leaf in outline.leaves}:
                leaf = run.compiled.leaves[number].before(member.since)
                for type in leaf.types:
                    known = self._leaves.setdefault(type, {})
                    known[leaf] = min(since, known.get(leaf, since))

    def _still(self, query: CompiledQuery) -> int | None:
        """The time since which a continuing query sees events; None once no earlier event is held."""
        store = self.run.store
        passed = query.since is not None and len(store) and query.since <= store.ts[0]
        return None if passed else query.since

    def compiled(self) -> CompiledSet | None:
        """The queries that continue as they are, unless too many leaves would be unused."""
        known = self.run.compiled
        same = {one.name for one in known.members if self.going_on.get(one.name, _NEVER) == one.since}
        kept = known.only(same)
        return kept if 2 * sum(bool(leaf.types) for leaf in kept.leaves) >= len(kept.leaves) else None

    def since_leaf(self, leaf: LeafSpec) -> int:
        """Since when all events of a leaf are held: by another leaf that covers it, or from now on."""
        candidates = {**self._leaves.get(ANY_TYPE, {}), **self._leaves.get(leaf.types[0], {})}
        found = [since for known, since in candidates.items() if known.covers(leaf)]
        return min(found, default=_after(self._unread))


def _after(time: int | None) -> int:
    return LEAST if time is None else time + 1


def _run(layer: object) -> SetRun:
    run = layer.run if isinstance(layer, RunningLayer) else layer
    assert isinstance(run, SetRun)
    return run
