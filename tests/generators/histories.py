"""Random event tables: few types and few values, ties and gaps in time, NULL and NaN, any arrival order.

The columns are `ts`, `type`, `id`, `x`, `f`, `s`, `flag`, and `n`, the number of the row, which tells events
apart that agree in everything else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.generators.choices import Choices, DrawnChoices, RandomChoices, chance, pick, weighted

TYPES = ("A", "B", "C", "D", "E")
IRRELEVANT = "Z"
SCHEMA = pa.schema(
    [
        ("ts", pa.int64()),
        ("type", pa.string()),
        ("id", pa.int64()),
        ("x", pa.int64()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("flag", pa.bool_()),
        ("n", pa.int64()),
    ]
)


FEW = 14
"""How many events a history has at most, unless more are asked for."""


def history(choices: Choices, most_events: int = FEW, types: Sequence[str] = TYPES) -> pa.Table:
    """A table of events, most of them of the given types."""
    count = weighted(choices, (2, 0), (2, 1), (6, 4), (15, 8), (25, 11), (50, FEW))
    count = max(count, most_events) if most_events > FEW else count
    count = min(choices.integer(count * 3 // 4, count), most_events)
    ids = weighted(choices, (60, 1), (28, 2), (12, 3))
    others = weighted(choices, (60, 5), (30, 15), (10, 50))
    nulls = weighted(choices, (60, 0), (30, 5), (10, 30))
    gaps = weighted(choices, (70, (1, 1, 1, 0, 2)), (15, (0, 1)), (10, (1,)), (5, (1, 0, 7)))
    start = weighted(choices, (80, 0), (10, 100), (10, -7))
    rows = []
    for _ in range(count):
        start += pick(choices, gaps)
        event_type = _type(choices, TYPES if chance(choices, others) else types)
        rows.append({"ts": start, "type": event_type, **_attributes(choices, ids, nulls)})
    if chance(choices, 25):
        rows = [rows.pop(choices.integer(0, len(rows) - 1)) for _ in range(len(rows))]
    for number, row in enumerate(rows):
        row["n"] = number
    table = pa.Table.from_pylist(rows, SCHEMA)
    if count > 1 and chance(choices, 15):  # in several chunks
        cut = choices.integer(1, count - 1)
        table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    return table


def _type(choices: Choices, types: Sequence[str]) -> str:
    return IRRELEVANT if chance(choices, 4) else pick(choices, types)


def _attributes(choices: Choices, ids: int, nulls: int) -> dict[str, Any]:
    def unless_null(value: Any) -> Any:
        return None if chance(choices, nulls) else value

    return {
        "id": unless_null(choices.integer(1, ids)),
        "x": unless_null(choices.integer(0, 3)),
        "f": unless_null(
            pick(choices, (0.0, 0.5, 1.0, 2.5, float("nan")) if nulls else (0.0, 0.5, 1.0, 2.5))
        ),
        "s": unless_null(pick(choices, ("u", "v", "U", ""))),
        "flag": unless_null(bool(choices.integer(0, 1))),
    }


def types_of(query: str) -> tuple[str, ...]:
    """The types of the histories that a query mentions, those of strings included."""
    return tuple(name for name in TYPES if re.search(rf"\b{name}\b", query)) or TYPES


def random_history(random: Random, most_events: int = FEW, types: Sequence[str] = TYPES) -> pa.Table:
    """A table of events from a seeded generator."""
    return history(RandomChoices(random), most_events, types)


@st.composite
def histories(draw: st.DrawFn, most_events: int = FEW, types: Sequence[str] = TYPES) -> pa.Table:
    """Tables of events."""
    return history(DrawnChoices(draw), most_events, types)


def labels(table: pa.Table) -> list[str]:
    """The name of each event in the notation of the corpus: `a3`, or `a3'` where that is taken."""
    names: list[str] = []
    for row in table.select(["type", "ts"]).to_pylist():
        name = f"{row['type'].lower()}{row['ts']}"
        while name in names:
            name += "'"
        names.append(name)
    return names


def compact(table: pa.Table, query: str) -> str:
    """The events in the notation of the corpus, as they arrive, with the attributes that the query reads."""
    read = [name for name in ("id", "x", "f", "s", "flag", "n") if re.search(rf"\b{name}\b", query)]
    events = []
    for label, row in zip(labels(table), table.to_pylist(), strict=True):
        values = ", ".join(f"{name}={shown(row[name])}" for name in read)
        events.append(f"{label}({values})" if values else label)
    return " ".join(events)


def shown(value: Any) -> str:
    """A value in the notation of the corpus."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return f"'{value}'"
    return str(value).lower()
