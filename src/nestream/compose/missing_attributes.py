"""Infers from events which attributes the types of a SASE query lack.

A variable of several types, `ANY(Shelf, Counter) z`, may read an attribute that only some of them have; for
the others, SASE treats a comparison on it as true. If the types are not declared, an attribute that is NULL
in every event of a type, but not of the variable's other types, counts as lacking in that type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nestream.logical.nodes import Plan, expressions, leaves
from nestream.model.expression import TIME_ATTRIBUTE, TYPE_ATTRIBUTE, attributes, column_name
from nestream.model.lazy import pa

Counts = Mapping[str, Mapping[str, int]]
"""For each type that occurs, how many of its events have a value in each column."""


def read_by_several(plan: Plan) -> set[tuple[tuple[str, ...], str]]:
    """The types of each variable of several types in a SASE query, with each attribute it reads."""
    if not plan.exclusive:
        return set()
    several = {leaf.variable: leaf.types for leaf in leaves(plan.root) if len(leaf.types) > 1}
    return {
        (several[part.variable], column_name(part.name))
        for expression in expressions(plan)
        for part in attributes(expression)
        if part.variable in several and part.name not in (TIME_ATTRIBUTE, TYPE_ATTRIBUTE)
    }


def lacking(plan: Plan, counts: Counts) -> Iterator[tuple[str, str]]:
    """The types with the attributes that they lack, as far as the query reads them."""
    found = set()
    for types, name in read_by_several(plan):
        present = {kind: counts[kind].get(name, 0) for kind in types if kind in counts}
        if any(present.values()):
            found |= {(kind, name) for kind, values in present.items() if not values}
    yield from sorted(found)


def counted(table: Any, type_column: str, columns: list[str]) -> Counts:
    """The number of values of each type in some columns, of an Arrow table or a Spark DataFrame."""
    if not columns:
        return {}
    if isinstance(table, pa.Table):
        narrow = table.select([type_column, *columns])
        narrow = narrow.set_column(0, type_column, narrow.column(0).cast(pa.string()))
        found = narrow.group_by(type_column).aggregate([(name, "count") for name in columns]).to_pylist()
        return {row[type_column]: {name: row[f"{name}_count"] for name in columns} for row in found}
    grouped = table.groupBy(f"`{type_column}`").agg({f"`{name}`": "count" for name in columns})
    return {row[0]: {name: row[f"count({name})"] for name in columns} for row in grouped.collect()}
