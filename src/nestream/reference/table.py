"""Runs the evaluator over a table of events, for `strategy="reference"`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from nestream.logical.nodes import Group, Plan, expressions, groups, targets_in_order
from nestream.model.columns import computable, field_of
from nestream.model.expression import COLUMN_MARK, PATH_MARK, attributes
from nestream.model.match_table import MatchTables, TableOfEvents
from nestream.model.output import UNBOUND, Members, ValueColumn, output_schema
from nestream.model.plain import empty_table
from nestream.model.schema import Kind, Schema
from nestream.model.vector import column_of
from nestream.reference.events import history
from nestream.reference.matching import Match, evaluate
from nestream.reference.values import value


def match_reference(plan: Plan, table: pa.Table, schema: Schema, kinds: Mapping[str, Kind]) -> pa.Table:
    """The matches of the plan over the table, found by the reference evaluator."""
    unit, scale = schema.unit, schema.per_microsecond
    times = computable(table.column(schema.time), unit, schema.time).to_pylist()
    computed = {
        name: computable(table.column(name), unit, name).to_pylist()
        for name, datatype in schema.columns.items()
    }
    computed |= {COLUMN_MARK + name: computed[name] for name in schema.shadowed}
    for name in {part.name for expression in expressions(plan) for part in attributes(expression)}:
        if PATH_MARK in name:
            field = field_of(table.column(schema.column(name)), name)
            computed[name] = computable(field, unit, name).to_pylist()
    rows = [{name: column[row] for name, column in computed.items()} for row in range(table.num_rows)]
    events = history(times, [str(row[schema.type]) for row in rows], rows)
    matches = evaluate(plan, events, schema.order, scale)[: plan.limit]
    arrival = table.take(np.array([event.row for event in events], dtype=np.int64))
    bound = {
        name: np.array(
            [match.events[name].pos if name in match.events else UNBOUND for match in matches], dtype=np.int64
        )
        for name in plan.output.kept
    }
    wanted = output_schema(plan.output, schema, kinds)

    def values(column: ValueColumn) -> pa.Array:
        computed = [value(column.expression, match.events, scale, match.groups) for match in matches]
        return column_of(computed, wanted.field(column.name).type)

    if not matches:
        return empty_table(wanted)
    members = {
        group.variable: _members(group, matches)
        for group in groups(plan.root)
        if group.variable in plan.output.groups
    }
    tables = MatchTables(plan.output, wanted, schema)
    return tables.build(TableOfEvents(arrival), bound, values, members)


def _members(group: Group, matches: list[Match]) -> Members:
    """The members of a group in all matches."""
    found = [match.groups.get(group.variable) for match in matches]
    counts = [-1 if members is None else len(members) for members in found]
    names = targets_in_order(group.body)
    rows = {
        name: np.array(
            [
                member[name].pos if name in member else UNBOUND
                for members in found
                for member in members or ()
            ],
            dtype=np.int64,
        )
        for name in names
    }
    return Members(np.array(counts, dtype=np.int64), rows)
