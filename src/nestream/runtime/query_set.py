"""Runs the programs of a query set over the same events in one pass: one table, or one for each query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from nestream.engine.event_buffer import EventBuffer
from nestream.engine.in_threads import in_threads
from nestream.engine.matcher import END
from nestream.engine.operator import Matches
from nestream.engine.query_set import Matchers
from nestream.engine.retention import LEAST
from nestream.model.columns import with_columns
from nestream.model.memory import first_rows
from nestream.model.query_set_table import Gathered, set_schema
from nestream.model.schema import Schema
from nestream.runtime.compiled import CompiledSet
from nestream.runtime.local import LocalRun
from nestream.runtime.saved_events import (
    describe_events,
    in_order,
    restore_events,
    restored_emitted,
    saved_emitted,
    saved_events,
    saved_keeper,
)

_ROWS_AT_ONCE = 1 << 16
"""How many matches make up a table."""


class SetRun:
    """Several programs over events of one schema, which are held once for all of them.

    Matches show events with the columns of `shown`, if there are more.
    """

    def __init__(self, compiled: CompiledSet, shown: Schema | None = None) -> None:
        members = compiled.members
        self.compiled = compiled
        self.schema = compiled.schema
        self.names = [member.name for member in members]
        self.program = compiled.scope
        self.store = EventBuffer(compiled.leaves, self.schema, compiled.held)
        self.wanted = compiled.wanted if shown is None else set_schema(shown)
        self.shown = None if shown is None else shown.columns
        self.runs = [LocalRun(member, self.store) for member in members]
        self.matchers = Matchers([member.program for member in members], self.store)
        for run, matcher in zip(self.runs, self.matchers.members, strict=True):
            run.matcher = matcher
        self.floor = LEAST
        """Events before this time may be gone, however long the windows of queries that joined later are."""
        self.noted: Callable[[int, Matches], None] | None = None
        """Called with the matches of each query, by its number, as they are found."""

    # -- events in, matches out ----------------------------------------------------------------------------

    def append(self, events: pa.Table | pa.RecordBatch) -> None:
        """Take events by time and arrival."""
        self.store.append(events)

    def plan_for(self, events: pa.Table) -> None:
        """From now on, plan each query for events like these."""
        for run in self.runs:
            run.plan_for(events)

    def advance(self, watermark: int, *, in_order: bool = True) -> Iterator[pa.Table]:
        """The matches decided by a watermark, each with the name of its query, one query after the other."""
        yield from self._named(self.matchers.decide(watermark, in_order=in_order))
        self.matchers.expire()

    def expire(self) -> None:
        """Forget the events that no query needs any more, for example after queries have left the set."""
        self.matchers.expire()

    def pass_over(self, watermark: int) -> None:
        """Treat the matches that a watermark decides as emitted: they were found elsewhere."""
        self.matchers.pass_over(watermark)

    def finish(self, *, in_order: bool = True) -> Iterator[pa.Table]:
        """The matches decided at the end of the events."""
        return self.advance(END, in_order=in_order)

    def within(self, first: int, end: int | None) -> Iterator[pa.Table]:
        """The matches that end in a range of times, after all events have arrived."""
        return self._named(self.matchers.between(first, end))

    def _named(self, found: Iterator[tuple[int, Matches]]) -> Iterator[pa.Table]:
        """The matches with the names of their queries, several queries per table."""
        return map(self._table, self._gathered(found))

    def _noting(self, found: Iterator[tuple[int, Matches]]) -> Iterator[tuple[int, Matches]]:
        for number, matches in found:
            if self.noted is not None:
                self.noted(number, matches)
            yield number, matches

    def _table(self, gathered: Gathered) -> pa.Table:
        events = self.store.payload
        if self.shown is not None:
            events = with_columns(events, self.shown)
        return gathered.table(events)

    def _gathered(self, found: Iterator[tuple[int, Matches]]) -> Iterator[Gathered]:
        gathered = Gathered(self.wanted, self.schema.time)
        for number, matches in self._noting(found):
            run = self.runs[number]
            values = run.values(matches)
            gathered.add(self.names[number], run.output, matches.rows, matches.count, values, matches.members)
            if gathered.count >= _ROWS_AT_ONCE:
                yield gathered
                gathered = Gathered(self.wanted, self.schema.time)
        if gathered.count:
            yield gathered

    def each(self, events: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """The matches over a finite table of events, each query's in its own columns, with its name.

        The search for a query stops at its LIMIT.
        """
        self.append(in_order(events, self.schema))
        return self.each_decided()

    def each_decided(self) -> Iterator[tuple[str, pa.Table]]:
        """The matches of `each` over the events already taken, after all have arrived."""
        for number, found in self.matchers.decide_each(END):
            name, run = self.names[number], self.runs[number]
            matches = (one for _, one in self._noting((number, one) for one in found))
            for table in first_rows(map(run.table, matches), run.compiled.limit):
                yield name, table

    def over(self, events: pa.Table, threads: int = 1) -> Iterator[pa.Table]:
        """The matches over a finite table of events, in any order of arrival.

        With several threads, the others build tables of matches while this one finds more.
        """
        self.append(in_order(events, self.schema))
        return self.all_decided(threads)

    def all_decided(self, threads: int = 1) -> Iterator[pa.Table]:
        """The matches of `over` over the events already taken, after all have arrived."""
        found = self._gathered(self.matchers.decide(END))
        return in_threads(lambda gathered: (self._table(gathered),), found, threads)

    def count(self, events: pa.Table) -> dict[str, int]:
        """Count the matches of each query over a finite table."""
        self.append(in_order(events, self.schema))
        return self.counted()

    def counted(self) -> dict[str, int]:
        """Count the matches over the events already taken, after all have arrived."""
        counts = dict.fromkeys(self.names, 0)
        for number, matches in self._noting(self.matchers.decide(END, in_order=False)):
            counts[self.names[number]] += matches.count
        limits = {run.compiled.name: run.compiled.limit for run in self.runs}
        return {n: c if (most := limits[n]) is None else min(c, most) for n, c in counts.items()}

    # -- as a stream needs it ------------------------------------------------------------------------------

    def due(self) -> int | None:
        """The least watermark that decides or forgets more than the last one, without another event."""
        moments = [moment for run in self.runs if (moment := run.due()) is not None]
        return min(moments, default=None)

    @cached_property
    def awaited_types(self) -> frozenset[str]:
        """The types of the events that can be the last of a match."""
        return frozenset().union(*(run.awaited_types for run in self.runs))

    @cached_property
    def awaits_time(self) -> bool:
        """Whether some matches are decided by the passing of time, not by one of their events."""
        return any(run.awaits_time for run in self.runs)

    @property
    def is_empty(self) -> bool:
        """Whether no event is held, and nothing of earlier matches is remembered."""
        return not len(self.store) and not any(member.remembers for member in self.matchers.members)

    @property
    def decided(self) -> list[list[int]]:
        """For each operator of each program, the position up to which its matches were emitted."""
        return [member.decided for member in self.matchers.members]

    @property
    def watermark(self) -> int | None:
        """The greatest watermark so far."""
        return self.matchers.members[0].watermark

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds spent on finding the matches of each query, in this process."""
        return dict(zip(self.names, self.matchers.seconds, strict=True))

    @seconds.setter
    def seconds(self, before: Mapping[str, float]) -> None:
        self.matchers.seconds = [before.get(name, 0.0) for name in self.names]

    @property
    def since(self) -> dict[str, int]:
        """The queries that do not see all events, with the time since which they do."""
        return {run.compiled.name: since for run in self.runs if (since := run.compiled.since) is not None}

    def complete_since(self) -> int:
        """The time since which every event that has arrived is held for all queries that saw it."""
        return max(self.floor, min(member.complete_since for member in self.matchers.members))

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The state of the engine: numbers, and the held events with their positions, times and types."""
        tables = {"held": saved_events(self.store)}
        members = self.matchers.members
        for name, matcher in zip(self.names, members, strict=True):
            if matcher.emitted is not None:
                tables[f"given {name}"] = saved_emitted(matcher.emitted)
            if matcher.keeper is not None:
                tables[f"kept {name}"] = saved_keeper(matcher.keeper)
        decided = {name: member.decided for name, member in zip(self.names, members, strict=True)}
        numbers = {"seen": self.store.seen, "decided": decided, "watermark": self.watermark}
        return {**numbers, "floor": self.floor}, tables

    def load(self, numbers: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Continue from a saved state of the same set, or of one with other queries.

        A query that the state does not contain emits the matches that are decided from now on.
        """
        self.floor = numbers.get("floor", LEAST)
        decided = numbers["decided"]
        for name, matcher in zip(self.names, self.matchers.members, strict=True):
            matcher.decided = list(decided[name]) if name in decided else matcher.decided
            matcher.watermark = numbers["watermark"]
            if matcher.emitted is not None and f"given {name}" in tables:
                matcher.emitted.positions = restored_emitted(tables[f"given {name}"])
        restore_events(self.store, numbers["seen"], tables["held"])
        for name, matcher in zip(self.names, self.matchers.members, strict=True):
            if matcher.keeper is not None and f"kept {name}" in tables:
                matcher.keeper.load(tables[f"kept {name}"].to_pylist())
        if self.watermark is not None:
            for name, matcher in zip(self.names, self.matchers.members, strict=True):
                if name not in decided:
                    with self.matchers.cache() as cache:
                        matcher.catch_up(cache)

    def describe(self) -> dict[str, Any]:
        """What is held, for a person or a monitor."""
        programs = [run.program for run in self.runs]
        held = describe_events(self.store, programs, self.watermark)
        return {**held, "queries": len(self.runs), "seconds": self.seconds}
