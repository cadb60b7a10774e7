"""Runs a query set in which some queries read the composite events of others, layer by layer.

A layer is a query set over the events and the composite events that its queries read. A composite event is
passed on once no other can precede it: the watermark of a layer is the time up to which the queries that it
reads have found all their matches. Events of that very time still wait, so that composite events come after
the others of their time, however the events arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from nestream.engine.matcher import END, Matcher
from nestream.engine.operator import Matches
from nestream.engine.retention import LEAST
from nestream.model.columns import times_of, with_columns
from nestream.model.output import START
from nestream.runtime.compiled import CompiledLayers, Layer
from nestream.runtime.local import LocalRun
from nestream.runtime.query_set import SetRun
from nestream.runtime.reorder_buffer import ReorderBuffer, Times, together
from nestream.runtime.reorder_buffer import in_order as by_time
from nestream.runtime.saved_events import in_order

QUERY, RANK = "nestream query", "nestream rank"
"""Extra columns of a waiting composite event: the number of its query, and its rank among equals."""
HIDDEN = (QUERY, RANK)


class RunningLayer:
    """The run of a layer, and the plain and composite events that wait for its watermark."""

    def __init__(self, layer: Layer, run: SetRun) -> None:
        self.reads = layer.reads
        self.run = run
        self.events = ReorderBuffer()
        self.composites = ReorderBuffer()
        self.makers: list[Matcher] = []

    @property
    def columns(self) -> Mapping[str, pa.DataType]:
        """The columns of its events."""
        return self.run.schema.columns

    def take(self, events: pa.Table | pa.RecordBatch) -> None:
        """Take events by time and arrival."""
        if not self.reads:
            self.run.append(events)
            return
        table = pa.Table.from_batches([events]) if isinstance(events, pa.RecordBatch) else events
        self.wait(self.events, with_columns(table, self.columns))

    def wait(self, waiting: ReorderBuffer, table: pa.Table) -> None:
        """Let events wait until the watermark has passed their time."""
        waiting.add(table, self._times(table))

    def _times(self, table: pa.Table) -> Times:
        return times_of(table.column(self.run.schema.time), self.run.schema)

    def take_composites(self, table: pa.Table) -> None:
        """Let composite events wait.

        A query that joined a running set may still produce some for a time that this layer has passed; these
        are too late.
        """
        times, passed = self._times(table), self.run.watermark
        if passed is not None and len(times) and times.min() < passed:
            table, times = table.filter(pa.array(times >= passed)), times[times >= passed]
        self.composites.add(table, times)

    def reach(self, watermark: int) -> int:
        """Pass the run all events that no other can precede; return the watermark it has then."""
        if not self.reads:
            return watermark
        watermark = min([watermark, *(maker.frontier for maker in self.makers)])
        until = watermark if watermark == END else max(watermark - 1, LEAST)
        parts = [part for part in (self.events.settled(until), self._settled(until)) if part is not None]
        if parts:
            table = together(parts)
            self.run.append(by_time(table, self._times(table)))
        return watermark

    def _settled(self, until: int) -> pa.Table | None:
        """The composite events up to a time, by time, query and output order."""
        found = self.composites.settled(until)
        if found is None:
            return None
        keys = [(self.run.schema.time, "ascending"), (QUERY, "ascending"), (RANK, "ascending")]
        return found.sort_by(keys).select(list(self.columns))

    @property
    def due(self) -> int | None:
        """The least watermark that may change something; it may be too early, but never too late."""
        first = [waiting.first for waiting in (self.events, self.composites)]
        moments = [self.run.due(), *(None if time is None else time + 1 for time in first)]
        return min((moment for moment in moments if moment is not None), default=None)

    @property
    def is_empty(self) -> bool:
        """Whether no event is held or waiting."""
        return self.run.is_empty and not len(self.events) and not len(self.composites)

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The state as numbers and tables."""
        numbers, tables = self.run.save()
        for name, waiting in (("events", self.events), ("composites", self.composites)):
            if len(waiting):
                tables[name] = together(waiting.tables())
        return numbers, tables

    def load(self, numbers: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Continue from a saved state."""
        self.run.load(numbers, tables)
        for name, waiting in (("events", self.events), ("composites", self.composites)):
            if name in tables:
                self.wait(waiting, tables[name])


class LayeredRun:
    """The layers of a query set over events of one schema."""

    def __init__(self, compiled: CompiledLayers) -> None:
        self.compiled = compiled
        self.schema = compiled.schema
        self.program = compiled.scope
        self.wanted = compiled.wanted
        self.names = list(compiled.names)
        self.layers = [
            RunningLayer(layer, SetRun(layer.queries, compiled.shown)) for layer in compiled.layers
        ]
        running = {name: run for layer in self.layers for name, run in _runs(layer.run)}
        self.runs: list[LocalRun] = [running[name] for name in self.names]
        for layer in self.layers:
            layer.makers = [run.matcher for run in self.runs if run.output.into in layer.reads]
            layer.run.noted = self._handing_on(layer.run)

    def _handing_on(self, made: SetRun) -> Callable[[int, Matches], None]:
        """A function that turns matches into waiting events of the layers that read them."""
        readers = {
            number: [layer for layer in self.layers if run.output.into in layer.reads]
            for number, run in enumerate(made.runs)
        }

        def hand_on(number: int, matches: Matches) -> None:
            if not readers[number] or not matches.count:
                return
            run = made.runs[number]
            events = composite_events(run, matches)
            place = self.names.index(made.names[number])
            ranks = {QUERY: pa.array(np.full(matches.count, place)), RANK: _ranks(run, matches)}
            for layer in readers[number]:
                table = with_columns(events, layer.columns)
                for name, column in ranks.items():
                    table = table.append_column(name, column)
                layer.take_composites(table)

        return hand_on

    @property
    def since(self) -> dict[str, int]:
        """The queries that do not see all events, with the time since which they do."""
        return {name: since for layer in self.layers for name, since in layer.run.since.items()}

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds spent on finding the matches of each query, in this process."""
        return {name: time for layer in self.layers for name, time in layer.run.seconds.items()}

    @property
    def store(self) -> Any:
        """The events held for the queries that read only plain events."""
        return self.layers[0].run.store

    # -- events in, matches out ----------------------------------------------------------------------------

    def append(self, events: pa.Table | pa.RecordBatch) -> None:
        """Take events by time and arrival."""
        for layer in self.layers:
            layer.take(events)

    def plan_for(self, events: pa.Table) -> None:
        """From now on, plan the queries that read only plain events for events like these."""
        self.layers[0].run.plan_for(events)

    def advance(self, watermark: int, *, in_order: bool = True) -> Iterator[pa.Table]:
        """The matches decided by a watermark, each with the name of its query, layer by layer."""
        for layer in self.layers:
            yield from layer.run.advance(layer.reach(watermark), in_order=in_order)

    def expire(self) -> None:
        """Forget the events that no query needs any more, for example after queries have left the set."""
        for layer in self.layers:
            layer.run.expire()

    def pass_over(self, watermark: int) -> None:
        """Treat the matches that a watermark decides as emitted: they were found elsewhere."""
        for _ in self.advance(watermark, in_order=False):
            pass

    def finish(self, *, in_order: bool = True) -> Iterator[pa.Table]:
        """The matches decided at the end of the events."""
        return self.advance(END, in_order=in_order)

    def within(self, first: int, end: int | None) -> Iterator[pa.Table]:
        """The matches that end in a range of times, after all events have arrived."""
        for layer in self.layers:
            layer.reach(END)
            hand_on, layer.run.noted = layer.run.noted, None
            yield from layer.run.within(first, end)
            assert hand_on is not None
            for number, matches in layer.run.matchers.between(LEAST, None):
                hand_on(number, matches)
            layer.run.noted = hand_on

    def each(self, events: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """The matches over a finite table of events, each query's in its own columns, with its name."""
        for layer in self._over(events):
            yield from layer.run.each_decided()

    def over(self, events: pa.Table, threads: int = 1) -> Iterator[pa.Table]:
        """The matches over a finite table of events, in any order of arrival."""
        for layer in self._over(events):
            yield from layer.run.all_decided(threads)

    def count(self, events: pa.Table) -> dict[str, int]:
        """Count the matches of each query over a finite table."""
        counts: dict[str, int] = {}
        for layer in self._over(events):
            counts |= layer.run.counted()
        return {name: counts[name] for name in self.names}

    def _over(self, events: pa.Table) -> Iterator[RunningLayer]:
        """Each layer with all its events, once those below it have found all their matches."""
        self.append(in_order(events, self.schema))
        for layer in self.layers:
            layer.reach(END)
            yield layer

    # -- as a stream needs it ------------------------------------------------------------------------------

    def due(self) -> int | None:
        """The least watermark that may decide or forget more than the last one, without another event."""
        due = min((moment for layer in self.layers if (moment := layer.due) is not None), default=None)
        if due is None or self.watermark is None:
            return due
        return max(due, self.watermark + 1)

    @property
    def awaited_types(self) -> frozenset[str]:
        """The types of the events that can be the last of a match."""
        return frozenset().union(*(layer.run.awaited_types for layer in self.layers))

    @property
    def awaits_time(self) -> bool:
        """Whether some matches are decided by the passing of time: all those of the upper layers."""
        return True

    @property
    def decided(self) -> list[list[int]]:
        """For each operator of each program, the position up to which its matches were emitted."""
        return [run.matcher.decided for run in self.runs]

    @property
    def watermark(self) -> int | None:
        """The greatest watermark so far."""
        return self.layers[0].run.watermark

    @property
    def is_empty(self) -> bool:
        """Whether no event is held or waiting in any layer."""
        return all(layer.is_empty for layer in self.layers)

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The state of all layers: the numbers and tables of the lowest, with those of the others inside."""
        (numbers, tables), *others = [layer.save() for layer in self.layers]
        for place, (_, own) in enumerate(others, 1):
            tables |= {f"{_layer(place)}{name}": table for name, table in own.items()}
        return {**numbers, "layers": [own for own, _ in others]}, tables

    def load(self, numbers: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Continue from a saved state of the same set."""
        for place, layer in enumerate(self.layers):
            if place == 0:
                layer.load(numbers, tables)
                continue
            mark = _layer(place)
            own = {name.removeprefix(mark): table for name, table in tables.items() if name.startswith(mark)}
            layer.load(numbers["layers"][place - 1], own)

    def describe(self) -> dict[str, Any]:
        """What is held, for a person or a monitor; each layer counts the events it holds."""
        lowest, *others = described = [layer.run.describe() for layer in self.layers]
        held = {name: sum(one[name] for one in described) for name in ("events", "bytes", "queries")}
        leaves = {
            f"layer {place}: {leaf}": count
            for place, one in enumerate(others, 1)
            for leaf, count in one["leaves"].items()
        }
        oldest = [one["oldest"] for one in described if one["oldest"] is not None]
        return {
            **lowest,
            **held,
            "leaves": {**lowest["leaves"], **leaves},
            "oldest": min(oldest, default=None),
            "seconds": self.seconds,
            "layers": len(self.layers),
            "composites waiting": sum(len(layer.composites) for layer in self.layers),
        }


def composite_events(run: LocalRun, matches: Matches) -> pa.Table:
    """Convert matches to events of the type after INTO, at the time when the match ends."""
    schema, table = run.schema, run.table(matches)
    assert run.output.into is not None
    types = pa.array([run.output.into], pa.string()).take(pa.array(np.zeros(matches.count, np.int64)))
    columns = {schema.time: table.column("match_end"), schema.type: types}
    columns[START] = table.column("match_start")
    return pa.table({**columns, **{name: table.column(name) for name in run.compiled.values}})


def _ranks(run: LocalRun, matches: Matches) -> pa.Array:
    """Bytes that sort matches with equal ends into output order, whenever they are found."""
    store = run.store
    rows = np.column_stack([np.asarray(matches.rows[name], np.int64) for name in run.output.kept])
    unbound = rows < 0
    rows = np.maximum(rows, 0)
    last = np.where(unbound, LEAST, store.ts[rows]).max(axis=1)
    positions = np.where(unbound, 0, store.pos[rows] + store.base + 1).astype(np.uint64)
    moments = last.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)  # bytes sort unsigned
    data = np.ascontiguousarray(np.column_stack([moments, positions]).astype(">u8"))
    fixed = pa.binary(data.shape[1] * 8)
    return pa.Array.from_buffers(fixed, len(data), [None, pa.py_buffer(data.tobytes())]).cast(pa.binary())


def _runs(run: SetRun) -> Iterator[tuple[str, LocalRun]]:
    return zip(run.names, run.runs, strict=True)


def _layer(place: int) -> str:
    return f"layer {place} "
