"""A query run as one of a set: with random others, over the whole table or in random batches."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from nestream.compose.run import refuse_endless
from nestream.model.diagnostics import QueryError
from nestream.model.output import EventColumn
from nestream.queries import Queries
from nestream.query import Query, query
from nestream.runtime.stream import Stream
from tests.generators.queries import random_query

NAME = "the one"


def is_endless(chosen: Query) -> bool:
    """Whether a stream refuses the query, as it would never know what KEEP keeps."""
    try:
        refuse_endless(chosen.plan, chosen.text)
    except QueryError:
        return True
    return False


def set_of(text: str, table: pa.Table, order: str, chance: random.Random) -> Queries:
    """The query with up to four others that fit the events, at a random place; some share its parts."""
    others: list[Query] = []
    for _ in range(chance.randrange(5)):
        drawn = query(text) if chance.random() < 0.2 else query(random_query(chance))
        try:
            drawn.prepare(table, order=order)
        except QueryError:
            continue
        if drawn.plan.limit is None and not is_endless(drawn):
            others.append(drawn)
    members = {f"q{number}": other for number, other in enumerate(others)}
    names = [*members, NAME]
    chance.shuffle(names)
    return Queries({name: members.get(name) or query(text) for name in names})


def together(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """The whole table, a table for each query."""
    return set_of(text, table, order, random.Random(seed)).match_each(table, order=order)[NAME]


def together_split(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """Random batches with events as late as they may be and state saved on the way, one output for all.

    RETURN gives text there, and LIMIT is refused: such queries are run over the whole table.
    """
    chance = random.Random(seed)
    chosen = set_of(text, table, order, chance)
    one = chosen[NAME]
    if one.plan.limit is not None or not _shows_events(one) or is_endless(one):
        return together(text, table, order=order, seed=seed)
    times = table.column("ts").to_pylist()
    lateness = max((max(times[:n]) - times[n] for n in range(1, len(times))), default=0)

    def start() -> Stream:
        started: Stream = chosen.stream(schema=table.schema, order=order, lateness=max(lateness, 0))
        return started

    stream, rows, done = start(), list[dict[str, Any]](), 0
    while done < table.num_rows:
        size = chance.choice((1, 2, 5, 100))
        rows += stream.push_batch(table.slice(done, size)).to_pylist()
        done += size
        if chance.random() < 0.3:
            stream = start().restore(stream.save())
    rows += stream.finish_batch().to_pylist()
    wanted = one.match(table.slice(0, 0), order=order).schema
    own = [_as_alone(row) for row in rows if row["query"] == NAME]
    return pa.Table.from_pylist(own, schema=wanted)


def _shows_events(one: Query) -> bool:
    return all(isinstance(column, EventColumn) for column in one.plan.output.columns)


def _as_alone(row: dict[str, Any]) -> dict[str, Any]:
    """A match of a set in the columns of its query."""
    events = {entry["variable"]: entry["event"] for entry in row["events"]}
    return {**events, "match_start": row["match_start"], "match_end": row["match_end"]}
