"""Runs the programs of a query set over the same events in one pass: one table, or one for each query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from nestream.engine.events import Events
from nestream.engine.many import Matchers
from nestream.engine.matcher import END
from nestream.engine.operator import Matches
from nestream.engine.program import LeafSpec, Measure, Program, Scope
from nestream.model.output import Output
from nestream.model.schema import Kind, Schema
from nestream.model.together import Gathered, set_schema
from nestream.runtime.held import (
    describe_events,
    in_order,
    restore_events,
    restored_given,
    saved_events,
    saved_given,
    saved_keeper,
)
from nestream.runtime.local import LocalRun, held_columns

_ROWS_AT_ONCE = 1 << 16
"""How many matches make a table."""


@dataclass(frozen=True)
class Member:
    """A query of a set: its name, what its matches show, and what the engine runs."""

    name: str
    output: Output
    program: Program
    kinds: Mapping[str, Kind]


class SetRun:
    """Several programs over events of one schema, which are held once for all of them."""

    def __init__(
        self, members: Sequence[Member], leaves: Iterable[LeafSpec], schema: Schema, unit: str
    ) -> None:
        self.schema = schema
        self.unit = unit
        self.names = [member.name for member in members]
        self.program = together([member.program for member in members], leaves)
        columns = dict.fromkeys(
            name for member in members for name in held_columns(member.output, member.program, schema)
        )
        by_arrival = self.program.by_arrival
        self.store = Events(self.program.leaves, schema, unit, list(columns), by_arrival=by_arrival)
        self.events = pa.schema(list(schema.columns.items()))
        self.wanted = set_schema(schema)
        self.runs = [
            LocalRun(member.output, member.program, schema, member.kinds, unit, self.store)
            for member in members
        ]
        self.matchers = Matchers([member.program for member in members], self.store)
        for run, matcher in zip(self.runs, self.matchers.members, strict=True):
            run.matcher = matcher

    # -- events in, matches out ----------------------------------------------------------------------------

    def append(self, events: pa.Table | pa.RecordBatch) -> None:
        """Take events in the order of time and arrival."""
        self.store.append(events)

    def plan_for(self, events: pa.Table) -> None:
        """Plan each query for events like these from here on."""
        for run in self.runs:
            run.plan_for(events)

    def advance(self, watermark: int, *, in_order: bool = True) -> Iterator[pa.Table]:
        """The matches decided by a watermark, each with the name of its query, one query after the other."""
        yield from self._named(self.matchers.decide(watermark, in_order=in_order))
        self.matchers.expire()

    def pass_over(self, watermark: int) -> None:
        """Take the matches that a watermark decides as emitted: they were found elsewhere."""
        self.matchers.pass_over(watermark)

    def finish(self, *, in_order: bool = True) -> Iterator[pa.Table]:
        """The matches decided at the end of the events."""
        return self.advance(END, in_order=in_order)

    def within(self, first: int, end: int) -> Iterator[pa.Table]:
        """The matches that end in a range of times, when all the events have arrived."""
        return self._named(self.matchers.between(first, end))

    def _named(self, found: Iterator[tuple[int, Matches]]) -> Iterator[pa.Table]:
        """The matches with the names of their queries, many queries to a table."""
        gathered = Gathered(self.wanted, self.schema.time)
        for number, matches in found:
            run = self.runs[number]
            values = run.values(matches)
            gathered.add(self.names[number], run.output, matches.rows, matches.count, values)
            if gathered.count >= _ROWS_AT_ONCE:
                yield gathered.table(self.store.payload)
                gathered = Gathered(self.wanted, self.schema.time)
        if gathered.count:
            yield gathered.table(self.store.payload)

    def each(
        self, events: pa.Table, limits: Mapping[str, int | None] | None = None
    ) -> Iterator[tuple[str, pa.Table]]:
        """The matches over a finite table of events, with the names of their queries, as these show them.

        No more matches of a query are looked for than its limit.
        """
        self.append(in_order(events, self.schema.time, self.unit))
        for number, found in self.matchers.decide_each(END):
            name, run = self.names[number], self.runs[number]
            left = (limits or {}).get(name)
            for matches in found:
                yield name, run.table(matches).slice(0, left)
                left = None if left is None else left - matches.count
                if left is not None and left <= 0:
                    break

    def over(self, events: pa.Table) -> Iterator[pa.Table]:
        """The matches over a finite table of events, in any order of arrival."""
        self.append(in_order(events, self.schema.time, self.unit))
        return self.finish()

    def count(self, events: pa.Table) -> dict[str, int]:
        """How many matches each query has over a finite table."""
        counts = dict.fromkeys(self.names, 0)
        self.append(in_order(events, self.schema.time, self.unit))
        for number, matches in self.matchers.decide(END, in_order=False):
            counts[self.names[number]] += matches.count
        return counts

    # -- as a stream needs it ------------------------------------------------------------------------------

    def due(self) -> int | None:
        """The least watermark that decides or forgets more than the last one did, without another event."""
        moments = [moment for run in self.runs if (moment := run.due()) is not None]
        return min(moments, default=None)

    @cached_property
    def awaited_types(self) -> frozenset[str]:
        """The types of the events that can be the last of a match."""
        return frozenset().union(*(run.awaited_types for run in self.runs))

    @cached_property
    def awaits_time(self) -> bool:
        """Whether some matches are decided by the passing of time, not by an event of theirs."""
        return any(run.awaits_time for run in self.runs)

    @property
    def decided(self) -> list[list[int]]:
        """For each operator of each program, the position up to which its matches were emitted."""
        return [member.decided for member in self.matchers.members]

    @property
    def watermark(self) -> int | None:
        """The greatest watermark so far."""
        return self.matchers.members[0].watermark

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The state of the engine: numbers, and the events held with their positions, times and types."""
        tables = {"held": saved_events(self.store)}
        members = self.matchers.members
        for name, matcher in zip(self.names, members, strict=True):
            if matcher.given is not None:
                tables[f"given {name}"] = saved_given(matcher.given)
            if matcher.keeper is not None:
                tables[f"kept {name}"] = saved_keeper(matcher.keeper)
        decided = {name: member.decided for name, member in zip(self.names, members, strict=True)}
        return {"seen": self.store.seen, "decided": decided, "watermark": self.watermark}, tables

    def load(self, numbers: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Go on from a saved state of the same set."""
        for name, matcher in zip(self.names, self.matchers.members, strict=True):
            matcher.decided = list(numbers["decided"][name])
            matcher.watermark = numbers["watermark"]
            if matcher.given is not None and f"given {name}" in tables:
                matcher.given.positions = restored_given(tables[f"given {name}"])
        restore_events(self.store, numbers["seen"], tables["held"])
        for name, matcher in zip(self.names, self.matchers.members, strict=True):
            if matcher.keeper is not None and f"kept {name}" in tables:
                matcher.keeper.load(tables[f"kept {name}"].to_pylist())

    def describe(self) -> dict[str, Any]:
        """What is held, for a person or a monitor."""
        programs = [run.program for run in self.runs]
        return {**describe_events(self.store, programs, self.watermark), "queries": len(self.runs)}


AnyRun: TypeAlias = LocalRun | SetRun
"""A query or a set of them over events of one schema."""


def _keep_keys(programs: Sequence[Program]) -> frozenset[str] | None:
    keys = [program.keep_keys for program in programs if program.keep_keys is not None]
    return frozenset.intersection(*keys) if keys else None


def together(programs: Sequence[Program], leaves: Iterable[LeafSpec]) -> Scope:
    """What holds of all the programs of a set: how their events can be split, filtered and forgotten."""
    measures = {program.measure for program in programs}
    measure = Measure.TIME
    for wider in (Measure.NONE, Measure.EVENTS):
        measure = wider if wider in measures else measure
    return Scope(
        leaves=tuple(leaves),
        outlines=tuple(outline for program in programs for outline in program.outlines),
        measure=measure,
        window=max(program.window for program in programs),
        exclusive=programs[0].exclusive,
        by_arrival=programs[0].by_arrival,
        attributes=tuple(dict.fromkeys(name for program in programs for name in program.attributes)),
        distinct=any(program.distinct for program in programs),
        looks_back=any(program.looks_back for program in programs),
        keep_keys=_keep_keys(programs),
    )
