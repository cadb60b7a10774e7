"""Composite events for a query in the editor: what the job's queries with INTO make of its events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import nestream


def makers_of(request: Mapping[str, Any], query: nestream.Query) -> dict[str, nestream.Query]:
    """The job's queries that make composite events, if the query of a request reads some of these."""
    texts = request.get("makers") or {}
    makers = {name: nestream.query(text) for name, text in texts.items() if name != request.get("name")}
    made = {maker.plan.output.into for maker in makers.values()}
    return makers if made & set(query.event_types) else {}


def with_composites(table: pa.Table, makers: Mapping[str, nestream.Query], time: str, type: str) -> pa.Table:
    """The events followed by the composite events, so that the events keep their places."""
    if not makers:
        return table
    place = table.schema.get_field_index(type)
    parts = [table.set_column(place, type, table[type].cast(pa.string()))]
    names = {"match_end": time, "match_start": "start"}
    for name, found in nestream.queries(makers).match_each(table, time=time, type=type).items():
        made = found.rename_columns([names.get(column, column) for column in found.column_names])
        into = pa.array([makers[name].plan.output.into] * made.num_rows, pa.string())
        parts.append(made.append_column(type, into))
    return pa.concat_tables(parts, promote_options="permissive")
