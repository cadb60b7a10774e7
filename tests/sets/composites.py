"""Random query sets with INTO, random events for them, and their matches by the definition."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

import nestream

SCHEMA = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64()), ("x", pa.int64())])
WIDE = SCHEMA.append(pa.field("start", pa.int64()))
RAW = ("A", "B", "C")
SHAPES = (
    "SEQ({0} a, {1} b{same}) WITHIN {w}",
    "SEQ({0} a, !({2} n, n.id = a.id), {1} b{same}) WITHIN {w}",
    "SEQ({0} a, {1} b, !{2} n{same}) WITHIN {w}",
    "SEQ(!{2} n, {0} a, {1} b{same}) WITHIN {w}",
    "AND({0} a, {1} b, !{2} n{same}) WITHIN {w}",
    "AND({1} b, {0} a{same}) WITHIN {w}",
    "SEQ({0} a, {2}+ g, {1} b{same}) WITHIN {w}",
    "SEQ({0} a, {1} b, {2}* g{same}) WITHIN {w}",
    "SEQ({0} a, {1} b{same}) WITHIN {w} EVENTS",
    "SEQ({0} a, {1} b, !{2} n) WITHIN {w} EVENTS",
    "SEQ({0} a, NEXT {1} b{same}) WITHIN {w}",
    "SEQ({0} a, DIRECTLY {1} b) WITHIN {w}",
    "SEQ({0} a, ANY c, {1} b{same}) WITHIN {w}",
    "EXISTS c : SEQ({0} a, {2} c, {1} b{same}) WITHIN {w}",
    "SEQ({0} a, OR({1} b, {2} c)) WITHIN {w}",
    "SEQ({0} a, {1} b, a.x < b.x) WITHIN {w}",
    "SEQ({0} a, {1} b, a.ts < b.start) WITHIN {w}",
)
KEEPS = ("", "", "", "", " KEEP FIRST PER a", " KEEP LAST PER a", " KEEP SHORTEST PER a", " KEEP DISJOINT")


def random_set(random: Random, depth: int) -> dict[str, str]:
    """Queries by name, in any order: one or two in each of `depth` layers."""
    types, made = list(RAW), list[str]()
    found = []
    for layer in range(depth):
        fresh = []
        for place in range(random.randint(1, 2)):
            last = layer + 1 == depth
            kind = f"{'PQ'[place]}{layer}"
            shape = random.choice(SHAPES if layer else SHAPES[:-1])
            if layer == 0 and random.random() < 0.1:
                kind = "D"  # events of this type arrive too
            parts = [random.choice(types) for _ in range(3)]
            if made:
                parts[random.randrange(2)] = random.choice(made)
            same = random.choice((", a.id = b.id", "")) if "OR(" not in shape else ""
            text = shape.format(*parts, same=same, w=random.randint(2, 12))
            later = "a.x" if "OR(" in shape else "b.x - a.x"
            text += f" RETURN a.id AS id, {later} AS x"
            text += "" if last and random.random() < 0.7 else f" INTO {kind}"
            text += random.choice(KEEPS)
            fresh.append(kind)
            found.append((f"q{layer}{place}", text))
        made += fresh
        types += fresh
    random.shuffle(found)
    return dict(found)


def random_events(random: Random, count: int) -> pa.Table:
    """Events with many equal times, some of a type that queries make."""
    times = sorted(random.randint(0, count * 2 // 3) for _ in range(count))
    rows = [
        {
            "ts": time,
            "type": random.choice((*RAW, *RAW, "D")),
            "id": random.choice((1, 1, 2, None)),
            "x": random.randint(0, 5),
        }
        for time in times
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def by_definition(
    texts: dict[str, str], events: pa.Table, order: str, wide: pa.Schema = WIDE
) -> dict[str, pa.Table]:
    """The matches of each query: those of it alone, over the events and the composite events it names.

    `wide` has the columns of both.
    """
    queries = {name: nestream.query(text) for name, text in texts.items()}
    found: dict[str, pa.Table] = {}

    def matches(name: str) -> pa.Table:
        if name not in found:
            rows = [{**row, "start": None} for row in events.to_pylist()]
            for other, query in queries.items():
                into = query.plan.output.into
                if into in queries[name].event_types:
                    rows += [_composite(into, row) for row in matches(other).to_pylist()]
            rows.sort(key=lambda row: row["ts"])  # stable: the others of a time come first
            history = pa.Table.from_pylist(rows, wide)
            found[name] = queries[name].match(history, order=order, strategy="reference")
        return found[name]

    return {name: matches(name) for name in queries}


def _composite(kind: str, row: dict[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in row.items() if name not in ("match_start", "match_end")}
    return {"ts": row["match_end"], "type": kind, "start": row["match_start"], **own}
