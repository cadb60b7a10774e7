"""Runs the columnar engine in this process: over a finite table, in batches of matches."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from nestream.engine.events import Events
from nestream.engine.matcher import END, Matcher
from nestream.engine.operator import Matches
from nestream.engine.program import Decided, Measure, Program
from nestream.model.expression import Attribute
from nestream.model.output import EventColumn, Output, ValueColumn, build_matches, output_schema
from nestream.model.schema import Kind, Schema
from nestream.model.vector import Vector
from nestream.runtime.held import (
    describe_events,
    in_order,
    restore_events,
    restored_given,
    saved_events,
    saved_given,
)


class LocalRun:
    """One program over events of one schema, giving matches as Arrow tables.

    `store` are the events it shares with other runs, which then are taken in and forgotten elsewhere.
    """

    def __init__(
        self,
        output: Output,
        program: Program,
        schema: Schema,
        kinds: Mapping[str, Kind],
        unit: str,
        store: Events | None = None,
    ) -> None:
        self.output = output
        self.program = program
        self.schema = schema
        self.unit = unit
        self.events = pa.schema(list(schema.columns.items()))
        self.wanted = output_schema(output, schema, kinds, unit)
        if store is None:
            columns = held_columns(output, program, schema)
            store = Events(program.leaves, schema, unit, columns, by_arrival=program.by_arrival)
        self.store = store
        self.matcher = Matcher(program, self.store)

    def append(self, events: pa.Table | pa.RecordBatch) -> None:
        """Take events in the order of time and arrival."""
        self.store.append(events)

    def advance(self, watermark: int, *, in_order: bool = True) -> Iterator[pa.Table]:
        """The matches decided by a watermark, in the order of the output unless that does not matter."""
        for matches in self.matcher.advance(watermark, in_order=in_order):
            yield self.table(matches)

    def finish(self, *, in_order: bool = True) -> Iterator[pa.Table]:
        """The matches decided at the end of the events."""
        return self.advance(END, in_order=in_order)

    def within(self, first: int, end: int) -> Iterator[pa.Table]:
        """The matches that end in a range of times, when all the events have arrived."""
        for matches in self.matcher.between(first, end):
            yield self.table(matches)

    def over(self, events: pa.Table, threads: int = 1) -> Iterator[pa.Table]:
        """The matches over a finite table of events, in any order of arrival.

        Several threads work on slices of the events.
        """
        self.append(in_order(events, self.schema.time, self.unit))
        return self.matcher.whole(self.table, threads)

    def count(self, events: pa.Table) -> int:
        """How many matches there are over a finite table."""
        self.append(in_order(events, self.schema.time, self.unit))
        return self.matcher.count()

    def count_within(self, events: pa.Table, seconds: float) -> int | None:
        """The same, None where counting takes longer."""
        self.append(in_order(events, self.schema.time, self.unit))
        total, end = 0, clock.monotonic() + seconds
        for found in self.matcher.counts():
            total += found
            if clock.monotonic() > end:
                return None
        return total

    def due(self) -> int | None:
        """The least watermark that decides or forgets more than the last one did, without another event.

        None where only events can; it may be too early, never too late.
        """
        matcher, program = self.matcher, self.program
        store = self.store
        store.seal()
        if not len(store) or (program.measure is Measure.EVENTS and Decided.CLOSED not in program.decided):
            return None
        moments = []
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
        """The state of the engine: numbers, and the events held with their positions, times and types."""
        tables = {"held": saved_events(self.store)}
        if self.matcher.given is not None:
            tables["given"] = saved_given(self.matcher.given)
        matcher = self.matcher
        numbers = {"seen": self.store.seen, "decided": matcher.decided, "watermark": matcher.watermark}
        return numbers, tables

    def load(self, numbers: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Go on from a saved state of the same query."""
        matcher = self.matcher
        matcher.decided = list(numbers["decided"])
        matcher.watermark = numbers["watermark"]
        restore_events(self.store, numbers["seen"], tables["held"])
        if matcher.given is not None and "given" in tables:
            matcher.given.positions = restored_given(tables["given"])

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
        """Whether some matches are decided by the passing of time, not by an event of theirs."""
        return any(decided is not Decided.LAST for decided in self.program.decided)

    def table(self, matches: Matches) -> pa.Table:
        """Matches as a table."""
        store = self.store

        def values(column: ValueColumn) -> pa.Array:
            return self._values(column, matches)

        events, rows = store.shown(matches.rows)
        return build_matches(self.output, self.wanted, events, rows, self.schema, values)

    def values(self, matches: Matches) -> pa.Table | None:
        """What RETURN computes of matches, where it does."""
        names = [column.name for column in self.output.columns if isinstance(column, ValueColumn)]
        return self.table(matches).select(names) if names else None

    def _values(self, column: ValueColumn, bound: Matches) -> pa.Array:
        """The values of a returned expression, NULL where a variable in it is unbound."""
        store = self.store

        def fetch(variable: str, attribute: str) -> Vector:
            rows = bound.rows[variable]
            vector = store.attribute(attribute).take(np.maximum(rows, 0))
            missing = rows < 0
            return vector.where(~missing) if missing.any() else vector

        vector = store.evaluator.value(column.expression, fetch)
        return vector.column(self.wanted.field(column.name).type, bound.count)


def shown_columns(output: Output, schema: Schema) -> list[str]:
    """The columns that the output shows of an event: all for a variable, else those it returns."""
    if any(isinstance(column, EventColumn) for column in output.columns):
        return list(schema.columns)
    plain = [
        schema.column(column.expression.name)
        for column in output.columns
        if isinstance(column, ValueColumn) and isinstance(column.expression, Attribute)
    ]
    return list(dict.fromkeys([schema.time, *plain]))


def held_columns(output: Output, program: Program, schema: Schema) -> list[str]:
    """The columns that are held of an event: those that the output shows or that predicates read."""
    read = [schema.column(name) for name in program.attributes]
    return list(dict.fromkeys([*shown_columns(output, schema), *read]))
