"""A query or query set compiled for events of one schema: what runs, streams and Spark tasks carry."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeAlias

import pyarrow as pa

from nestream.engine.program import LeafSpec, Measure, Program, Scope
from nestream.model.expression import Attribute, attributes
from nestream.model.output import START, Output, ValueColumn, output_schema
from nestream.model.query_set_table import set_schema
from nestream.model.schema import EventError, Kind, Schema, kind_of
from nestream.model.widening import shown, widened


@dataclass(frozen=True)
class CompiledQuery:
    """A program, the events it reads and what its matches show.

    `kinds` are the kinds of the returned expressions; `name` is the name of the query in a set. A query that
    joined a running set sees events `since` a time; all others see all events.
    """

    schema: Schema
    output: Output
    kinds: Mapping[str, Kind]
    program: Program
    limit: int | None = None
    name: str = ""
    since: int | None = None

    @property
    def scope(self) -> Scope:
        """The events that the query reads."""
        return self.program

    @cached_property
    def wanted(self) -> pa.Schema:
        """The columns of the matches."""
        return output_schema(self.output, self.schema, self.kinds)

    @cached_property
    def held(self) -> tuple[str, ...]:
        """The columns held for an event: those that the output shows or predicates read."""
        shown = _shown_columns(self.output, self.schema)
        return tuple(dict.fromkeys([*shown, *map(self.schema.column, self.program.attributes)]))

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The columns read from the events, with time and type, in their original order."""
        needed = {self.schema.time, self.schema.type, *self.held}
        return tuple(name for name in self.schema.columns if name in needed)

    @property
    def values(self) -> dict[str, pa.DataType]:
        """The columns that RETURN computes."""
        names = [column.name for column in self.output.columns if isinstance(column, ValueColumn)]
        return {name: self.wanted.field(name).type for name in names}

    def planned_for(self, events: pa.Table, schema: Schema) -> CompiledQuery:
        """The same query, planned for events like these."""
        return replace(self, program=self.program.planned_for(events, schema))

    def over(self, schema: Schema) -> CompiledQuery:
        """The same query for events with other columns of the same kinds."""
        return replace(self, schema=schema)


@dataclass(frozen=True)
class CompiledSet:
    """The queries of a set over the same events; leaf numbers in their programs refer to `leaves`."""

    schema: Schema
    members: tuple[CompiledQuery, ...]
    leaves: tuple[LeafSpec, ...]

    @cached_property
    def scope(self) -> Scope:
        """The events that some query reads."""
        return together([member.program for member in self.members], self.leaves)

    @cached_property
    def wanted(self) -> pa.Schema:
        """The columns of the matches, each with the name of its query."""
        return set_schema(self.schema)

    @cached_property
    def held(self) -> tuple[str, ...]:
        """The columns held for an event, for any query."""
        return tuple(dict.fromkeys(name for member in self.members for name in member.held))

    @property
    def read(self) -> tuple[str, ...]:
        """The columns read from the events: all of them, because matches show whole events."""
        return tuple(self.schema.columns)

    def only(self, names: Collection[str]) -> CompiledSet:
        """Some of the queries; the leaves of the others become unused and keep their numbers."""
        members = tuple(member for member in self.members if member.name in names)
        used = {leaf for member in members for outline in member.program.outlines for leaf in outline.leaves}
        leaves = [leaf if n in used else LeafSpec.unused(n) for n, leaf in enumerate(self.leaves)]
        return CompiledSet(self.schema, members, tuple(leaves))

    def planned_for(self, events: pa.Table, schema: Schema) -> CompiledSet:
        """The same set, planned for events like these."""
        return replace(self, members=tuple(member.planned_for(events, schema) for member in self.members))

    def over(self, schema: Schema) -> CompiledSet:
        """The same set for events with other columns of the same kinds."""
        return CompiledSet(schema, tuple(member.over(schema) for member in self.members), self.leaves)


@dataclass(frozen=True)
class Layer:
    """Queries of a set that read the same composite types, `reads`; none if they read only plain events."""

    reads: frozenset[str]
    queries: CompiledSet


@dataclass(frozen=True)
class CompiledLayers:
    """The queries of a set where some read the composite events of others, which are in lower layers.

    `schema` is that of the events; the queries of a layer have one that includes the composite events they
    read. `names` are those of all queries, in the order of the set.
    """

    schema: Schema
    layers: tuple[Layer, ...]
    names: tuple[str, ...]

    @cached_property
    def members(self) -> tuple[CompiledQuery, ...]:
        """The queries in the order of the set."""
        known = {member.name: member for layer in self.layers for member in layer.queries.members}
        return tuple(known[name] for name in self.names)

    @cached_property
    def shown(self) -> Schema:
        """The columns of the events that matches show: those of the events and of all composite events."""
        return with_composites(self.schema, makers_of(self._read, self.members))

    @cached_property
    def wanted(self) -> pa.Schema:
        """The columns of the matches, each with the name of its query."""
        return set_schema(self.shown)

    @property
    def read(self) -> tuple[str, ...]:
        """The columns read from the events: all of them, because matches show whole events."""
        return tuple(self.schema.columns)

    @cached_property
    def scope(self) -> Scope:
        """The events that some query reads, and how they can be split.

        Events with the same key meet in one partition only if composite events carry the key. A time slice
        needs all events around it that its layers, one on top of the other, can see.
        """
        programs = [member.program for member in self.members]
        outlines = tuple(
            replace(outline, keys=self._keys(member, outline.keys))
            for member in self.members
            for outline in member.program.outlines
        )
        leaves = tuple(self._leaf(leaf) for layer in self.layers for leaf in layer.queries.leaves)
        together_ = together(programs, tuple(dict.fromkeys(leaves)))
        return replace(together_, outlines=outlines, window=max(self._reach.values()))

    @cached_property
    def _read(self) -> frozenset[str]:
        return frozenset(name for layer in self.layers for name in layer.reads)

    @cached_property
    def _reach(self) -> dict[frozenset[str], int]:
        """How far before its matches each layer sees events, through all layers below it."""
        reach: dict[frozenset[str], int] = {}
        for layer in self.layers:
            below = [
                reach[lower.reads]
                for lower in self.layers
                if makers_of(layer.reads, lower.queries.members) and lower.reads in reach
            ]
            reach[layer.reads] = layer.queries.scope.window + max(below, default=0)
        return reach

    def _keys(self, member: CompiledQuery, keys: frozenset[str]) -> frozenset[str]:
        """The keys of a query that the events and its composite events have."""
        columns = self.schema.columns
        keys = frozenset(key for key in keys if self.schema.column(key) in columns)
        return keys & carried(member) if member.output.into in self._read else keys

    def _leaf(self, leaf: LeafSpec) -> LeafSpec:
        """A leaf with only the tests that can be done on the events themselves."""
        known = self.schema.columns
        tests = tuple(
            test
            for test in leaf.filters
            if all(self.schema.column(part.name) in known for part in attributes(test))
        )
        return LeafSpec(leaf.types, tests)

    def planned_for(self, events: pa.Table, schema: Schema) -> CompiledLayers:
        """The same set, with the queries that read only plain events planned for events like these."""
        lowest, *others = self.layers
        lowest = replace(lowest, queries=lowest.queries.planned_for(events, schema))
        return replace(self, layers=(lowest, *others))

    def over(self, schema: Schema) -> CompiledLayers:
        """The same set for events with other columns of the same kinds."""
        layers: list[Layer] = []
        for layer in self.layers:
            below = [member for lower in layers for member in lower.queries.members]
            known = with_composites(schema, makers_of(layer.reads, below))
            layers.append(replace(layer, queries=layer.queries.over(known)))
        return CompiledLayers(schema, tuple(layers), self.names)


Compiled: TypeAlias = CompiledQuery | CompiledSet | CompiledLayers


class Begin(Protocol):
    """How the queries of a set begin when it takes over from another."""

    def since(self, name: str, reads: frozenset[str], alone: Callable[[], CompiledQuery]) -> int | None:
        """Since when a query sees events, None for all; `reads` are the composite types it reads."""
        ...

    def compiled(self, reads: frozenset[str]) -> CompiledSet | None:
        """The queries that continue, as they were compiled, with the numbers of their leaves."""
        ...


@dataclass(frozen=True)
class Since:
    """The queries of a set begin at known times."""

    times: Mapping[str, int]

    def since(self, name: str, reads: frozenset[str], alone: Callable[[], CompiledQuery]) -> int | None:
        """The time since which a query sees events."""
        return self.times.get(name)

    def compiled(self, reads: frozenset[str]) -> CompiledSet | None:
        """None: all queries are compiled again."""
        return None


def makers_of(types: Collection[str], members: Iterable[CompiledQuery]) -> list[CompiledQuery]:
    """The queries whose matches become events of these types."""
    return [member for member in members if member.output.into in types]


def with_composites(schema: Schema, makers: Sequence[CompiledQuery]) -> Schema:
    """The schema of events together with the composite events of queries.

    Raises an `EventError` if one of their attributes does not fit the column of that name.
    """
    if not makers:
        return schema
    columns = dict(schema.columns)
    types = dict(schema.types)
    if pa.types.is_dictionary(columns[schema.type]):
        columns[schema.type] = columns[schema.type].value_type
    for maker in makers:
        assert maker.output.into is not None
        own = {START: schema.columns[schema.time], **maker.values}
        for name, datatype in own.items():
            if name in (schema.time, schema.type):
                role = "time" if name == schema.time else "type"
                raise EventError(
                    f"query {maker.name} returns `{name}`, but that column is the {role} of the events\n"
                    "  hint: choose another name for the returned value"
                )
            columns[name] = _holding(columns.get(name, pa.null()), datatype, name, maker)
        if schema.types:
            types[maker.output.into] = types.get(maker.output.into, frozenset()) | own.keys()
    return replace(schema, columns=columns, types=types)


def _holding(known: pa.DataType, found: pa.DataType, name: str, maker: CompiledQuery) -> pa.DataType:
    """The type that holds every value of two types: a cast to it never fails."""
    known, found = (t.value_type if pa.types.is_dictionary(t) else t for t in (known, found))
    wide = widened(known, found)
    kinds = {kind_of(datatype) for datatype in (known, found)} - {Kind.UNKNOWN}
    beyond = pa.types.is_uint64(known) != pa.types.is_uint64(found) and kinds == {Kind.INTEGER}
    if wide is None or len(kinds) > 1 or (beyond and not pa.types.is_null(known)):
        raise EventError(
            f"query {maker.name} makes {maker.output.into} events with `{name}` in {shown(found)}, "
            f"and other events have it in {shown(known)}\n  hint: return it under another name"
        )
    return wide


def carried(maker: CompiledQuery) -> frozenset[str]:
    """The attributes that a composite event copies, under the same name, from an event of its match."""
    return frozenset(
        column.name
        for column in maker.output.columns
        if isinstance(column, ValueColumn)
        and isinstance(column.expression, Attribute)
        and column.expression.name == column.name
    )


def together(programs: Sequence[Program], leaves: tuple[LeafSpec, ...]) -> Scope:
    """What is true of all programs of a set: how their events can be split, filtered and forgotten."""
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
    """The columns of an event that the output shows: all for a variable, otherwise those it returns."""
    if output.shows_events:
        return list(schema.columns)
    plain = [
        schema.column(column.expression.name)
        for column in output.columns
        if isinstance(column, ValueColumn) and isinstance(column.expression, Attribute)
    ]
    return [schema.time, *plain]
