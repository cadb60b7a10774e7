"""Runs the columnar engine in this process: over a finite table, in batches of matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nestream.engine.context import Bindings
from nestream.engine.events import Events
from nestream.engine.matcher import END, Matcher, Matches
from nestream.engine.program import Block, Decided, Measure, Program
from nestream.engine.values import Vector
from nestream.model.columns import computable
from nestream.model.expression import Attribute
from nestream.model.output import EventColumn, Output, ValueColumn, build_matches, output_schema
from nestream.model.schema import Kind, Schema

POSITION, TIME, TYPE = "nestream position", "nestream time", "nestream type"
"""The columns beside the events' own in a saved state."""


class LocalRun:
    """One program over events of one schema, giving matches as Arrow tables."""

    def __init__(
        self, output: Output, program: Program, schema: Schema, kinds: Mapping[str, Kind], unit: str
    ) -> None:
        self.output = output
        self.program = program
        self.schema = schema
        self.unit = unit
        self.events = pa.schema(list(schema.columns.items()))
        self.wanted = output_schema(output, schema, kinds, unit)
        self.store = Events(
            program.leaves,
            schema,
            unit,
            held_columns(output, program, schema),
            by_arrival=program.by_arrival,
        )
        self.matcher = Matcher(program, self.store)

    def append(self, events: pa.Table | pa.RecordBatch) -> None:
        """Take events in the order of time and arrival."""
        self.store.append(events)

    def advance(self, watermark: int) -> Iterator[pa.Table]:
        """The matches decided by a watermark."""
        for matches in self.matcher.advance(watermark):
            yield self.table(matches)

    def finish(self) -> Iterator[pa.Table]:
        """The matches decided at the end of the events."""
        return self.advance(END)

    def within(self, first: int, end: int) -> Iterator[pa.Table]:
        """The matches that end in a range of times, when all the events have arrived."""
        for matches in self.matcher.between(first, end):
            yield self.table(matches)

    def over(self, events: pa.Table) -> Iterator[pa.Table]:
        """The matches over a finite table of events, in any order of arrival."""
        self.append(self._in_order(events))
        if self.program.distinct:  # what is kept of a match may be older than what decides it
            yield from map(self.table, self.matcher.ordered(self.matcher.advance(END)))
        else:
            yield from self.finish()

    def count(self, events: pa.Table) -> int:
        """How many matches there are over a finite table."""
        self.append(self._in_order(events))
        return self.matcher.count()

    def _in_order(self, events: pa.Table) -> pa.Table:
        """The events by time and arrival; looked at chunk by chunk, as most tables are so already."""
        column = events.column(self.schema.time)
        last: int | None = None
        for chunk in column.chunks:
            times = self._times(chunk)
            if len(times) and ((times[1:] < times[:-1]).any() or (last is not None and times[0] < last)):
                return events.take(pa.array(np.argsort(self._times(column), kind="stable")))
            last = int(times[-1]) if len(times) else last
        return events

    def _times(self, column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        times = computable(column, self.unit, self.schema.time).to_numpy(zero_copy_only=False)
        return np.asarray(times, np.int64)

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
        matcher = self.matcher
        self.store.seal()
        store = self.store
        held = store.payload.append_column(POSITION, pa.array(store.pos + store.base))
        held = held.append_column(TIME, pa.array(store.ts)).append_column(TYPE, store.type_names())
        numbers = {"seen": self.store.seen, "decided": matcher.decided, "watermark": matcher.watermark}
        tables = {"held": held}
        if matcher.given is not None:
            given = matcher.given.positions
            names = [str(place) for place in range(given.shape[1])]
            tables["given"] = pa.table([np.ascontiguousarray(given[:, n]) for n in range(len(names))], names)
        return numbers, tables

    def load(self, numbers: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Go on from a saved state of the same query."""
        matcher, held = self.matcher, tables["held"]
        self.store.seen = numbers["seen"]
        matcher.decided = list(numbers["decided"])
        matcher.watermark = numbers["watermark"]
        self.store.restore(
            held.select(self.store.columns),
            pa.array(held.column(TYPE).to_pylist(), pa.string()),
            held.column(TIME).to_numpy(),
            held.column(POSITION).to_numpy(),
        )
        if matcher.given is not None and "given" in tables:
            given = tables["given"]
            matcher.given.positions = np.column_stack([column.to_numpy() for column in given.columns])

    def describe(self) -> dict[str, Any]:
        """What is held, for a person or a monitor."""
        store = self.store
        store.seal()
        oldest = None
        if len(store):
            oldest = store.ts[0].item()
        return {
            "events": len(store),
            "leaves": {label: len(store.leaf_rows[leaf]) for label, leaf in self._labels()},
            "bytes": store.payload.nbytes + store.pos.nbytes + store.ts.nbytes + store.type.nbytes,
            "oldest": oldest,
            "watermark": self.matcher.watermark,
            "position": self.store.seen,
        }

    def _labels(self) -> Iterator[tuple[str, int]]:
        """A name for each leaf: its variables and types."""
        users: dict[int, list[str]] = {}
        for block in self.program.blocks:
            for name, leaf in all_leaves(block):
                if name not in users.setdefault(leaf, []):
                    users[leaf].append(name)
        for leaf, names in users.items():
            yield f"{' | '.join(self.program.leaves[leaf].types)} {', '.join(names)}", leaf

    @cached_property
    def awaited_types(self) -> frozenset[str]:
        """The types of the events that can be the last of a match."""
        last = set()
        for block in self.program.blocks:
            earlier = {x for x, y in block.order}
            last |= {leaf for name, leaf in block.leaves.items() if name not in earlier}
        return frozenset(name for leaf in last for name in self.program.leaves[leaf].types)

    @cached_property
    def awaits_time(self) -> bool:
        """Whether some matches are decided by the passing of time, not by an event of theirs."""
        return any(decided is not Decided.LAST for decided in self.program.decided)

    def table(self, matches: Matches) -> pa.Table:
        """Matches as a table."""
        store = self.store
        bound = Bindings(matches.rows, matches.count)

        def values(column: ValueColumn) -> pa.Array:
            return self._values(column, bound)

        return build_matches(self.output, self.wanted, store.payload, matches.rows, self.schema, values)

    def _values(self, column: ValueColumn, bound: Bindings) -> pa.Array:
        """The values of a returned expression, NULL where a variable in it is unbound."""
        store = self.store

        def fetch(variable: str, attribute: str) -> Vector:
            rows = bound.rows[variable]
            vector = store.attribute(attribute).take(np.maximum(rows, 0))
            missing = rows < 0
            if not missing.any():
                return vector
            if vector.is_string:
                nothing = pa.scalar(None, vector.values.type)
                return Vector(pc.if_else(pa.array(missing), nothing, vector.values))
            valid = ~missing if vector.valid is None else vector.valid & ~missing
            return Vector(vector.values, valid)

        vector = store.evaluator.value(column.expression, fetch)
        datatype = self.wanted.field(column.name).type
        if vector.is_string:
            values = vector.values
            return (
                pa.array([values.as_py()] * bound.count, datatype)
                if isinstance(values, pa.Scalar)
                else values
            )
        values = np.broadcast_to(vector.values, (bound.count,))
        mask = None if vector.valid is None else ~np.broadcast_to(vector.valid, (bound.count,))
        plain = pa.array(np.ascontiguousarray(values), mask=mask)
        return plain.view(datatype) if pa.types.is_temporal(datatype) else plain.cast(datatype)


def all_leaves(block: Block) -> Iterator[tuple[str, int]]:
    """The variables of a block with their leaves, those under negation included."""
    yield from block.leaves.items()
    for negation in block.negations:
        yield from all_leaves(negation.block)


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
