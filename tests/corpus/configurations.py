"""The ways to run a query: every case of the corpus is run in each of them and must give the same matches.

A new way to run is one more entry: a name and a callable from the query, the table of events and the options
`order`, `types`, `time` and `type` to the table of matches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import pyarrow as pa

from nestream.model.schema import Schema
from nestream.query import Query
from nestream_papers.options import Options
from nestream_papers.sase.plan import BASIC, PAPER
from tests.property.sets import is_endless
from tests.strategies import VIEWS

Run = Callable[..., pa.Table]


def reference(query: Query, table: pa.Table, **options: Any) -> pa.Table:
    """The reference evaluator: expectations are regenerated with it."""
    return query.match(table, strategy="reference", **options)


def engine(**switches: Any) -> Run:
    """The columnar engine, with techniques switched off where asked."""

    def run(query: Query, table: pa.Table, **options: Any) -> pa.Table:
        return query.match(table, options=Options(**switches), **options)

    return run


def by(strategy: str, **switches: Any) -> Run:
    """A strategy, with techniques switched off where asked."""

    def run(query: Query, table: pa.Table, **options: Any) -> pa.Table:
        return query.match(table, strategy=strategy, options=switches or None, **options)

    return run


def one_event_a_batch(query: Query, table: pa.Table, strategy: str = "auto", **options: Any) -> pa.Table:
    """The engine on a stream, an event a batch, late events waited for; on a table if a stream refuses it."""
    if is_endless(query):
        return query.match(table, strategy=strategy, **options)
    types = options.pop("types", None)
    times = table.column(options.get("time", "ts")).cast("int64").to_pylist()
    lateness = max((max(times[:n]) - times[n] for n in range(1, len(times))), default=0)
    schema = Schema.of(table.schema, options.get("time", "ts"), options.get("type", "type"), types)
    stream = query.stream(schema=schema, lateness=max(lateness, 0), strategy=strategy, **options)
    parts = [stream.push_batch(table.slice(row, 1)) for row in range(table.num_rows)]
    matches = pa.concat_tables([*parts, stream.finish_batch()])
    return _in_order_of(matches, reference(query, table, types=types, **options))


def _in_order_of(matches: pa.Table, wanted: pa.Table) -> pa.Table:
    """The matches in the order of the wanted ones, where they are the same: a stream promises no order."""
    rows, order = matches.to_pylist(), wanted.to_pylist()
    if sorted(map(repr, rows)) != sorted(map(repr, order)):
        return matches
    return wanted.cast(matches.schema)


CONFIGURATIONS: Mapping[str, Run] = {
    "reference": reference,
    "native": by("native"),
    "engine": engine(),
    "engine, one event a batch": one_event_a_batch,
    "engine, no bounds": engine(bounds=False),
    "engine, no partition": engine(partition=False),
    "engine, no reach": engine(reach=False),
    "engine, no ordering": engine(ordering=False),
    "engine, no narrowing": engine(narrowing=False),
    "SASE's basic plan": engine(**asdict(BASIC)),
    "SASE's Multi-PAIS": engine(**{**asdict(PAPER), "multiple": True, "filtering": False}),
    "nested": by("nested"),
    "flat": by("flat"),
    "flat, grouped by rows": by("flat", cost_in_time=False),
    **{name: by(name) for name in VIEWS},
    "views-balanced, one event a batch": partial(one_event_a_batch, strategy="views-balanced"),
    "flat, one event a batch": partial(one_event_a_batch, strategy="flat"),
}

GROUPED = frozenset(("reference", "native", "engine, one event a batch"))
"""The configurations that run groups; the papers' strategies refuse them."""
EVERY_TIME = frozenset(
    (
        "reference",
        "engine",
        "engine, one event a batch",
        "nested",
        "flat",
        "views-balanced",
        "engine, no bounds",
    )
)
"""The ways that run on every change; `scripts/slow-test` runs the others. Random cases run in all of them."""
