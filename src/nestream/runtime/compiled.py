"""A query, or a set of them, compiled for events of one schema: what runs, streams and Spark tasks carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa

from nestream.engine.program import LeafSpec, Measure, Program, Scope
from nestream.model.expression import Attribute
from nestream.model.output import Output, ValueColumn, output_schema
from nestream.model.schema import Kind, Schema
from nestream.model.together import set_schema


@dataclass(frozen=True)
class CompiledQuery:
    """A program, the events it reads and what its matches show.

    `kinds` are those of the returned expressions; `name` is the query's own in a set.
    """

    schema: Schema
    output: Output
    kinds: Mapping[str, Kind]
    program: Program
    limit: int | None = None
    name: str = ""

    @property
    def scope(self) -> Scope:
        """The events that are read."""
        return self.program

    @cached_property
    def wanted(self) -> pa.Schema:
        """The columns of the matches."""
        return output_schema(self.output, self.schema, self.kinds)

    @cached_property
    def held(self) -> tuple[str, ...]:
        """The columns that are held of an event: those that the output shows or that predicates read."""
        shown = _shown_columns(self.output, self.schema)
        return tuple(dict.fromkeys([*shown, *map(self.schema.column, self.program.attributes)]))

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The columns that are read of the events, with time and type, in their own order."""
        needed = {self.schema.time, self.schema.type, *self.held}
        return tuple(name for name in self.schema.columns if name in needed)

    def planned_for(self, events: pa.Table, schema: Schema) -> CompiledQuery:
        """The same for events like these, which have a schema of their own."""
        return replace(self, program=self.program.planned_for(events, schema))

    def over(self, schema: Schema) -> CompiledQuery:
        """The same for events that come in other columns of the same kinds."""
        return replace(self, schema=schema)


@dataclass(frozen=True)
class CompiledSet:
    """The queries of a set over the same events; the numbers in their programs are those of the `leaves`."""

    schema: Schema
    members: tuple[CompiledQuery, ...]
    leaves: tuple[LeafSpec, ...]

    @cached_property
    def scope(self) -> Scope:
        """The events that are read by some query."""
        return together([member.program for member in self.members], self.leaves)

    @cached_property
    def wanted(self) -> pa.Schema:
        """The columns of the matches, each with the name of its query."""
        return set_schema(self.schema)

    @cached_property
    def held(self) -> tuple[str, ...]:
        """The columns that are held of an event for some query."""
        return tuple(dict.fromkeys(name for member in self.members for name in member.held))

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that are read of the events: all, as matches show events with all their columns."""
        return tuple(self.schema.columns)

    def planned_for(self, events: pa.Table, schema: Schema) -> CompiledSet:
        """The same for events like these, which have a schema of their own."""
        return replace(self, members=tuple(member.planned_for(events, schema) for member in self.members))

    def over(self, schema: Schema) -> CompiledSet:
        """The same for events that come in other columns of the same kinds."""
        return CompiledSet(schema, tuple(member.over(schema) for member in self.members), self.leaves)


Compiled: TypeAlias = CompiledQuery | CompiledSet


def together(programs: Sequence[Program], leaves: tuple[LeafSpec, ...]) -> Scope:
    """What holds of all the programs of a set: how their events can be split, filtered and forgotten."""
    measures = {program.measure for program in programs}
    measure = Measure.TIME
    for wider in (Measure.NONE, Measure.EVENTS):
        measure = wider if wider in measures else measure
    return Scope(
        leaves=leaves,
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


def _keep_keys(programs: Sequence[Program]) -> frozenset[str] | None:
    keys = [program.keep_keys for program in programs if program.keep_keys is not None]
    return frozenset.intersection(*keys) if keys else None


def _shown_columns(output: Output, schema: Schema) -> list[str]:
    """The columns that the output shows of an event: all for a variable, else those it returns."""
    if output.shows_events:
        return list(schema.columns)
    plain = [
        schema.column(column.expression.name)
        for column in output.columns
        if isinstance(column, ValueColumn) and isinstance(column.expression, Attribute)
    ]
    return [schema.time, *plain]
