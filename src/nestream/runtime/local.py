"""Runs the columnar engine in this process: over a finite table, in batches of matches."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from nestream.engine.aggregates import AGGREGATE, without_aggregates
from nestream.engine.event_buffer import EventBuffer
from nestream.engine.in_threads import in_threads
from nestream.engine.matcher import END, Matcher
from nestream.engine.operator import Matches
from nestream.engine.program import Decided, Measure
from nestream.model.expression import Aggregate
from nestream.model.match_table import MatchTables
from nestream.model.memory import first_rows
from nestream.model.output import ValueColumn
from nestream.model.vector import Vector
from nestream.runtime.compiled import CompiledQuery
from nestream.runtime.saved_events import (
    describe_events,
    in_order,
    restore_events,
    restored_emitted,
    saved_emitted,
    saved_events,
    saved_keeper,
)
from nestream.runtime.time_slices import TimeSlice, TimeSlices, can_be_sliced


class LocalRun:
    """One program over events of one schema; matches are Arrow tables.

    `store` holds events shared with other runs, which are then added and forgotten elsewhere.
    """

    def __init__(self, compiled: CompiledQuery, store: EventBuffer | None = None) -> None:
        self.compiled = compiled
        self.output = compiled.output
        self.program = compiled.program
        self.schema = compiled.schema
        self.wanted = compiled.wanted
        self.store = EventBuffer(self.program.leaves, self.schema, compiled.held) if store is None else store
        self.matcher = Matcher(self.program, self.store)

    def append(self, events: pa.Table | pa.RecordBatch) -> None:
        """Take events by time and arrival."""
        self.store.append(events)

    def plan_for(self, events: pa.Table) -> None:
        """From now on, plan for events like these, where the strategy uses statistics."""
        program = self.program.planned_for(events, self.schema)
        if program is not self.program:
            self.program = program
            self.matcher.go_on_with(program)

    def advance(self, watermark: int, *, in_order: bool = True) -> Iterator[pa.Table]:
        """The matches decided by a watermark, in output order unless that does not matter."""
        for matches in self.matcher.advance(watermark, in_order=in_order):
            yield self.table(matches)

    def pass_over(self, watermark: int) -> None:
        """Treat the matches that a watermark decides as emitted: they were found elsewhere."""
        self.matcher.pass_over(watermark)

    def finish(self, *, in_order: bool = True) -> Iterator[pa.Table]:
        """The matches decided at the end of the events."""
        return self.advance(END, in_order=in_order)

    def within(self, first: int, end: int | None) -> Iterator[pa.Table]:
        """The matches that end in a range of times, after all events have arrived."""
        for matches in self.matcher.between(first, end):
            yield self.table(matches)

    def over(self, events: pa.Table, threads: int = 1) -> Iterator[pa.Table]:
        """The matches over a finite table of events, in any order of arrival, up to the LIMIT of the query.

        Several threads process time slices; without slices, they build the tables of matches.
        """
        events = in_order(events, self.schema)
        if can_be_sliced(self.program):
            found = self._sliced(TimeSlices(events, self.schema, self.program, threads), threads)
        else:
            self.append(events)
            found = in_threads(lambda matches: (self.table(matches),), self.matcher.advance(END), threads)
        return first_rows(found, self.compiled.limit)

    def _sliced(self, slices: TimeSlices, threads: int) -> Iterator[pa.Table]:
        """The matches of time slices, each with its own run."""

        def within(one: TimeSlice) -> Iterator[pa.Table]:
            run, count = LocalRun(self.compiled), 0
            run.append(one.events)
            for table in run.within(one.first, one.end):
                count += table.num_rows
                yield table
            slices.adapt(one, count)

        return in_threads(within, iter(slices), threads)

    def count(self, events: pa.Table, threads: int = 1) -> int:
        """Count the matches over a finite table."""
        return self._limited(sum(self._counts(events, threads)))

    def count_within(self, events: pa.Table, seconds: float) -> int | None:
        """Count the matches over a finite table; None if that takes longer than some seconds."""
        total, end = 0, clock.monotonic() + seconds
        for found in self._counts(events, 1):
            total += found
            if clock.monotonic() > end:
                return None
        return self._limited(total)

    def _counts(self, events: pa.Table, threads: int) -> Iterator[int]:
        """Count the matches in parts, so that counting can be abandoned; several threads count slices."""
        events = in_order(events, self.schema)
        if not can_be_sliced(self.program):
            self.append(events)
            return self.matcher.counts()

        def within(one: TimeSlice) -> Iterator[int]:
            run = LocalRun(self.compiled)
            run.append(one.events)
            return run.matcher.counts_between(one.first, one.end)

        return in_threads(within, iter(TimeSlices(events, self.schema, self.program, threads)), threads)

    def _limited(self, total: int) -> int:
        return total if self.compiled.limit is None else min(total, self.compiled.limit)

    def due(self) -> int | None:
        """The least watermark that decides or forgets more than the last one, without another event.

        None if only events can. It may be too early, but never too late.
        """
        matcher, program = self.matcher, self.program
        store = self.store
        store.seal()
        held = None if matcher.keeper is None else matcher.keeper.due
        if held is not None:
            held = held if matcher.watermark is None else max(held, matcher.watermark + 1)
        if not len(store) or (program.measure is Measure.EVENTS and Decided.CLOSED not in program.decided):
            return held
        moments = [] if held is None else [held]
        for decided, done in zip(program.decided, matcher.decided, strict=True):
            row = int(np.searchsorted(store.pos, done - store.base, "left"))
            if row == len(store) or decided is Decided.LAST:
                continue
            if decided is Decided.CLOSED:
                moments.append(int(store.ts[row]) + 1)
            elif program.measure is Measure.TIME:
                moments.append(int(store.ts[row]) + program.window + (0 if program.exclusive else 1))
        if program.measure is Measure.TIME:
            windows = 2 if Decided.WINDOW in program.decided and program.looks_back else 1
            moments.append(int(store.ts[-1]) + windows * program.window + 1)
        return min(moments, default=None)

    # -- state ---------------------------------------------------------------------------------------------

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The state of the engine: numbers, and the held events with their positions, times and types."""
        tables = {"held": saved_events(self.store)}
        if self.matcher.emitted is not None:
            tables["given"] = saved_emitted(self.matcher.emitted)
        if self.matcher.keeper is not None:
            tables["kept"] = saved_keeper(self.matcher.keeper)
        matcher = self.matcher
        numbers = {"seen": self.store.seen, "decided": matcher.decided, "watermark": matcher.watermark}
        return numbers, tables

    def load(self, numbers: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Continue from a saved state of the same query."""
        matcher = self.matcher
        matcher.decided = list(numbers["decided"])
        matcher.watermark = numbers["watermark"]
        restore_events(self.store, numbers["seen"], tables["held"])
        if matcher.emitted is not None and "given" in tables:
            matcher.emitted.positions = restored_emitted(tables["given"])
        if matcher.keeper is not None and "kept" in tables:
            matcher.keeper.load(tables["kept"].to_pylist())

    @property
    def since(self) -> dict[str, int]:
        """Empty: a single query sees all events."""
        return {}

    @property
    def is_empty(self) -> bool:
        """Whether no event is held, and nothing of earlier matches is remembered."""
        return not len(self.store) and not self.matcher.remembers

    @property
    def decided(self) -> list[list[int]]:
        """For each operator of the program, the position up to which its matches were emitted."""
        return [self.matcher.decided]

    @property
    def watermark(self) -> int | None:
        """The greatest watermark so far."""
        return self.matcher.watermark

    def describe(self) -> dict[str, Any]:
        """What is held, for a person or a monitor."""
        return describe_events(self.store, [self.program], self.matcher.watermark)

    @cached_property
    def awaited_types(self) -> frozenset[str]:
        """The types of the events that can be the last of a match."""
        last = {leaf for outline in self.program.outlines for leaf in outline.ends(by_last=True)}
        return frozenset(name for leaf in last for name in self.program.leaves[leaf].types)

    @cached_property
    def awaits_time(self) -> bool:
        """Whether some matches are decided by the passing of time, not by one of their events."""
        keeps = self.program.keep is not None  # a match may wait for others
        return keeps or any(decided is not Decided.LAST for decided in self.program.decided)

    @cached_property
    def edges(self) -> tuple[str | None, str | None]:
        """The variables that always bind the first and the last event of a match, if there are such."""
        outlines, kept = self.program.outlines, self.output.kept

        def only(names: set[tuple[str, ...]]) -> str | None:
            (found, *others) = {name for some in names for name in some}
            return found if not others and found in kept else None

        return only({outline.first for outline in outlines}), only({outline.last for outline in outlines})

    def table(self, matches: Matches) -> pa.Table:
        """Matches as a table."""

        def values(column: ValueColumn) -> pa.Array:
            return self._values(column, matches)

        events, rows, members = self.store.shown(matches.rows, matches.members)
        return self._tables.build(events, rows, values, members)

    @cached_property
    def _tables(self) -> MatchTables:
        kept = set(self.output.kept)
        unbound = not all(kept.issubset(outline.bound) for outline in self.program.outlines)
        return MatchTables(self.output, self.wanted, self.schema, self.edges, unbound=unbound)

    def values(self, matches: Matches) -> pa.Table | None:
        """What RETURN computes from matches, if anything."""
        names = [column.name for column in self.output.columns if isinstance(column, ValueColumn)]
        return self.table(matches).select(names) if names else None

    def _values(self, column: ValueColumn, bound: Matches) -> pa.Array:
        """The values of a returned expression; NULL where one of its variables is unbound."""
        store = self.store
        over: list[Aggregate]

        def fetch(variable: str, attribute: str) -> Vector:
            if variable == AGGREGATE:
                return bound.aggregates[over[int(attribute)]]
            rows = bound.rows[variable]
            vector = store.attribute(attribute).take(np.maximum(rows, 0))
            missing = rows < 0
            return vector.where(~missing) if missing.any() else vector

        expression, over = without_aggregates(column.expression)
        vector = store.evaluator.value(expression, fetch)
        return vector.column(self.wanted.field(column.name).type, bound.count)
