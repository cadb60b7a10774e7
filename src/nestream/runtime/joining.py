"""Since when a query that joins a running set sees events.

A set holds the events that its queries read, with the columns they need, as long as the longest window needs
them. A query that joins sees them where they are all there: each of its leaves is covered by a leaf of a
query that was there before, and so is each of its columns. Otherwise it begins with the events after those
that were taken. What it sees is always everything from one time on, never a part: a negation over events that
were not held would find violations that are none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from nestream.engine.program import LeafSpec
from nestream.engine.retention import LEAST
from nestream.runtime.compiled import CompiledQuery
from nestream.runtime.layers import RunningLayer
from nestream.runtime.many import SetRun
from nestream.runtime.progress import Progress, layers_of


class Joining:
    """Says since when each query of a changed set sees events.

    `staying` are the queries that go on, `columns` those of the events from now on. With `whole` all columns
    of the events were taken so far, so that a column which is not known never had a value.
    """

    def __init__(
        self, before: Progress, staying: Collection[str], columns: Collection[str], *, whole: bool
    ) -> None:
        self._staying, self._columns, self._whole = staying, columns, whole
        self._runs = {reads: _set_run(layer) for reads, layer in layers_of(before.run).items()}
        self._watermark, self._greatest = before.watermark, before.greatest
        self._schema = before.run.schema
        self.joined: list[str] = []
        """The queries that begin: new ones, and those that read other composite types than before."""

    def __call__(self, name: str, reads: frozenset[str], alone: Callable[[], CompiledQuery]) -> int | None:
        """The time since which a query sees events; None for all."""
        run = self._runs.get(reads)
        if run is not None and name in self._staying and name in run.names:
            return _still(run, name)
        self.joined.append(name)
        query = alone()
        if run is None:  # it reads composite events that none read before
            moments = [_after(self._watermark), *(self._since_column(None, one) for one in query.held)]
        else:
            moments = [self._since_leaf(run, leaf) for leaf in query.program.leaves]
            moments += [self._since_column(run, one) for one in query.held]
        since = max(moments)
        return None if since == LEAST else since

    def _since_leaf(self, run: SetRun, leaf: LeafSpec) -> int:
        found = [since for since, known in _held_leaves(run) if known.covers(leaf)]
        return min(found, default=_after(run.watermark))

    def _since_column(self, run: SetRun | None, column: str) -> int:
        if column == self._schema.type:  # it is held with every event
            return LEAST
        if run is not None:
            found = [since for since, query in _held_queries(run) if column in query.held]
            if found:
                return min(found)
        known = self._schema if run is None else run.schema
        if column in known.columns:  # events that wait still have it
            return _after(self._watermark if run is None else run.watermark)
        if column not in self._columns or self._whole:  # of composite events, or new: it was always NULL
            return LEAST
        return _after(self._greatest)


def _held_queries(run: SetRun) -> Iterator[tuple[int, CompiledQuery]]:
    """The queries of a run, each with the time since which all that it reads is held."""
    floor = run.complete_since()
    for member in run.compiled.members:
        yield max(floor, LEAST if member.since is None else member.since), member


def _held_leaves(run: SetRun) -> Iterator[tuple[int, LeafSpec]]:
    """Their leaves in the same way, without the test of the time itself."""
    for since, member in _held_queries(run):
        for number in {leaf for outline in member.program.outlines for _, leaf in outline.read}:
            leaf = run.compiled.leaves[number]
            yield since, leaf if member.since is None else LeafSpec(leaf.types, leaf.filters[:-1])


def _still(run: SetRun, name: str) -> int | None:
    """Since when a query sees events that goes on; None once no event before is held."""
    since = run.since.get(name)
    return None if since is not None and len(run.store) and since <= run.store.ts[0] else since


def _after(time: int | None) -> int:
    return LEAST if time is None else time + 1


def _set_run(layer: object) -> SetRun:
    run = layer.run if isinstance(layer, RunningLayer) else layer
    assert isinstance(run, SetRun)
    return run
