"""Runs the columnar engine in this process: over a finite table, in batches of matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nestream.engine.context import Bindings, Round
from nestream.engine.matcher import END, Matcher, Matches
from nestream.engine.program import Program
from nestream.logical.nodes import EventColumn, Plan, ValueColumn
from nestream.model.columns import computable
from nestream.model.expression import Attribute
from nestream.model.schema import Kind, Schema
from nestream.runtime.output import build_matches, output_schema


class LocalRun:
    """One program over events of one schema, giving matches as Arrow tables."""

    def __init__(
        self, plan: Plan, program: Program, schema: Schema, kinds: Mapping[str, Kind], unit: str
    ) -> None:
        self.plan = plan
        self.program = program
        self.schema = schema
        self.unit = unit
        self.wanted = output_schema(plan.output, schema, kinds, unit)
        self.matcher = Matcher(program, schema, unit, shown_columns(plan, schema))

    def append(self, events: pa.Table | pa.RecordBatch) -> None:
        """Take events in the order of time and arrival."""
        self.matcher.append(events)

    def advance(self, watermark: int) -> Iterator[pa.Table]:
        """The matches decided by a watermark."""
        for matches in self.matcher.advance(watermark):
            yield self.table(matches)

    def finish(self) -> Iterator[pa.Table]:
        """The matches decided at the end of the events."""
        return self.advance(END)

    def over(self, events: pa.Table) -> Iterator[pa.Table]:
        """The matches over a finite table of events, in any order of arrival."""
        times = computable(events.column(self.schema.time), self.unit, self.schema.time)
        self.append(in_order(events, times.to_numpy(zero_copy_only=False)))
        yield from self.finish()

    def table(self, matches: Matches) -> pa.Table:
        """Matches as a table."""
        store = self.matcher.store
        bound = Bindings(matches.rows, matches.count)

        def values(column: ValueColumn) -> pa.Array:
            return self._values(column, bound)

        return build_matches(self.plan.output, self.wanted, store.payload, matches.rows, self.schema, values)

    def _values(self, column: ValueColumn, bound: Bindings) -> pa.Array:
        """The values of a returned expression, NULL where a variable in it is unbound."""
        store = self.matcher.store
        round = Round(store)

        def fetch(variable: str, attribute: str):  # type: ignore[no-untyped-def]
            rows = bound.rows[variable]
            vector = store.attribute(attribute).take(np.maximum(rows, 0))
            missing = rows < 0
            if not missing.any():
                return vector
            if vector.is_string:
                nothing = pa.scalar(None, vector.values.type)
                return type(vector)(pc.if_else(pa.array(missing), nothing, vector.values))
            valid = ~missing if vector.valid is None else vector.valid & ~missing
            return type(vector)(vector.values, valid)

        vector = round.store.evaluator.value(column.expression, fetch)
        datatype = self.wanted.field(column.name).type
        if vector.is_string:
            values = vector.values
            return pa.array([values.as_py()] * bound.count, datatype) if isinstance(values, pa.Scalar) else values
        values = np.broadcast_to(vector.values, (bound.count,))
        mask = None if vector.valid is None else ~np.broadcast_to(vector.valid, (bound.count,))
        plain = pa.array(np.ascontiguousarray(values), mask=mask)
        return plain.view(datatype) if pa.types.is_temporal(datatype) else plain.cast(datatype)


def shown_columns(plan: Plan, schema: Schema) -> list[str]:
    """The columns that the output shows of an event: all for a variable, else those it returns."""
    if any(isinstance(column, EventColumn) for column in plan.output.columns):
        return list(schema.columns)
    plain = [
        schema.column(column.expression.name)
        for column in plan.output.columns
        if isinstance(column, ValueColumn) and isinstance(column.expression, Attribute)
    ]
    return list(dict.fromkeys([schema.time, *plain]))


def in_order(table: pa.Table, times: np.ndarray) -> pa.Table:  # type: ignore[type-arg]
    """The events by time and arrival."""
    if len(times) < 2 or bool((times[1:] >= times[:-1]).all()):
        return table
    return table.take(pa.array(np.argsort(times, kind="stable")))
