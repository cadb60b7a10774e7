"""Every kind of value after every other: a stream keeps both as they are, or refuses the second in words."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import product
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import nestream
from nestream.model.columns import to_table, with_columns
from nestream.runtime.intake import grown
from nestream.runtime.stream import Stream


class Strange:
    """A value that no column holds."""

    def __repr__(self) -> str:
        return "strange"


NOON = datetime(2026, 1, 31, 12, 30, 15, 123456)
QUERY = nestream.query("SEQ(A a, B b) WITHIN 10")

KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "null": (pa.null(), [None]),
    "bool": (pa.bool_(), [True, False]),
    **{
        f"{sign}int{bits}": (
            getattr(pa, f"{sign}int{bits}")(),
            [0, 2, 2**bits - 1] if sign else [2, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))],
        )
        for bits in (8, 16, 32, 64)
        for sign in ("", "u")
    },
    "float16": (pa.float16(), [2.0, 0.5, float("nan")]),
    "float32": (pa.float32(), [2.0, 0.5, float("nan"), float("inf")]),
    "float64": (pa.float64(), [2.0, 0.1, float("nan"), 1e300, float("-inf")]),
    "decimal(4,2)": (pa.decimal128(4, 2), [Decimal("2.00"), Decimal("10.25")]),
    "decimal(30,0)": (pa.decimal128(30, 0), [Decimal(2), Decimal(10**29)]),
    "decimal(60,30)": (pa.decimal256(60, 30), [Decimal(2), Decimal("1e-30")]),
    "string": (pa.string(), ["2", "true", "2026-01-31"]),
    "large string": (pa.large_string(), ["2"]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["2", "x"]),
    "dictionary of integers": (pa.dictionary(pa.int8(), pa.int64()), [2, 2**60]),
    "binary": (pa.binary(), [b"2"]),
    "large binary": (pa.large_binary(), [b"2"]),
    "binary(1)": (pa.binary(1), [b"2"]),
    "binary(2)": (pa.binary(2), [b"22"]),
    "date32": (pa.date32(), [date(2026, 1, 31)]),
    "date64": (pa.date64(), [date(2026, 1, 31)]),
    **{
        f"timestamp {unit} {zone}": (
            pa.timestamp(unit, zone),
            [pa.scalar(2 * 10**9, pa.timestamp(unit, zone)), pa.scalar(moment, pa.timestamp(unit, zone))],
        )
        for unit, moment in (("s", 10**11), ("ms", 2**45 + 1), ("us", 2**50 + 1), ("ns", 2**60 + 1))
        for zone in (None, "UTC", "Europe/Paris")
    },
    "time32 s": (pa.time32("s"), [time(12, 30)]),
    "time32 ms": (pa.time32("ms"), [time(12, 30, 0, 1000)]),
    "time64 us": (pa.time64("us"), [time(12, 30, 0, 1)]),
    "time64 ns": (pa.time64("ns"), [time(12, 30, 0, 1)]),
    **{
        f"duration {unit}": (
            pa.duration(unit),
            [pa.scalar(2**45 + 1, pa.duration(unit)), pa.scalar(2, pa.duration(unit))],
        )
        for unit in ("s", "ms", "us", "ns")
    },
    "list of nulls": (pa.list_(pa.null()), [[], [None]]),
    "list of integers": (pa.list_(pa.int64()), [[2], [2**60]]),
    "list of floats": (pa.list_(pa.float64()), [[0.5]]),
    "list of strings": (pa.list_(pa.string()), [["2"]]),
    "struct x": (pa.struct([("x", pa.int64())]), [{"x": 2}, {"x": 2**60}]),
    "struct xy": (pa.struct([("x", pa.int64()), ("y", pa.string())]), [{"x": 2, "y": "2"}]),
    "struct of floats": (pa.struct([("x", pa.float64())]), [{"x": 0.5}]),
    "struct of strings": (pa.struct([("x", pa.string())]), [{"x": "2"}]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("x", 2)]]),
    "map of floats": (pa.map_(pa.string(), pa.float64()), [[("x", 0.5)]]),
}

FAMILIES = [
    {"bool"},
    {name for name in KINDS if "int" in name and " " not in name} | {"float16", "float32", "float64"},
    {name for name in KINDS if ("int" in name and " " not in name) or "decimal" in name},
    {"dictionary of integers"} | {name for name in KINDS if "int" in name and " " not in name},
    {"dictionary of integers", "float16", "float32", "float64"},
    {"dictionary of integers", "decimal(4,2)", "decimal(30,0)", "decimal(60,30)"},
    {"string", "large string", "dictionary"},
    {"binary", "large binary", "binary(1)", "binary(2)"},
    {"date32", "date64"},
    {name for name in KINDS if name.startswith("timestamp") and name.endswith("None")},
    {name for name in KINDS if name.startswith("timestamp") and not name.endswith("None")},
    {name for name in KINDS if name.startswith(("time32", "time64"))},
    {name for name in KINDS if name.startswith("duration")},
    {"list of nulls", "list of integers", "list of floats"},
    {"list of nulls", "list of strings"},
    {"struct x", "struct xy", "struct of floats"},
    {"struct of strings"},
    {"map", "map of floats"},
]
"""The kinds that mix, as docs/reference/events.md says; all others are refused."""


def mix(held: str, arriving: str) -> bool:
    alone = held == arriving or "null" in (held, arriving)
    return alone or any({held, arriving} <= family for family in FAMILIES)


def columns(kind: str) -> list[pa.Array]:
    datatype, values = KINDS[kind]
    if any(isinstance(value, pa.Scalar) for value in values):
        return [pa.array([value.value], pa.int64()).cast(datatype) for value in values]
    if pa.types.is_dictionary(datatype):
        return [pa.array([value], datatype.value_type).dictionary_encode().cast(datatype) for value in values]
    return [pa.array([value], datatype) for value in values]


def batch(ts: int, type: str, x: pa.Array) -> pa.Table:
    return pa.table({"ts": [ts], "type": [type], "x": x})


def seen(value: Any) -> Any:
    """A value as it is compared: NaN is NULL, and moments are what they are in any zone."""
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, list):
        return [seen(part) for part in value]
    if isinstance(value, tuple):
        return tuple(seen(part) for part in value)
    if isinstance(value, dict):
        return {name: seen(part) for name, part in value.items() if part is not None}
    if isinstance(value, bool):
        return ("bool", value)
    return value


@pytest.mark.parametrize("held", KINDS)
def test_a_column_takes_values_of_any_other_type_as_they_are_or_refuses_them_in_words(held: str) -> None:
    for arriving in KINDS:
        taken = 0
        refused: list[str] = []
        for first, second in product(columns(held), columns(arriving)):
            tables = [to_table(batch(1, "A", first)), to_table(batch(2, "B", second))]
            known = dict(zip(tables[0].column_names, tables[0].schema.types, strict=True))
            try:
                wide = grown(known, tables[1], ("ts", "type"), ())
                kept = [with_columns(table, wide).column("x").to_pylist()[0] for table in tables]
            except nestream.EventError as problem:
                refused.append(str(problem))
                continue
            assert [seen(value) for value in kept] == [seen(x.to_pylist()[0]) for x in (first, second)]
            taken += 1
        assert (taken > 0) == mix(held, arriving), f"{arriving} after {held}"
        assert all(re.search("column `x` holds .*not fit", words) for words in refused)


USUAL = [
    "null",
    "bool",
    "int32",
    "int64",
    "uint64",
    "float64",
    "decimal(4,2)",
    "string",
    "dictionary",
    "binary",
    "date32",
    "timestamp s UTC",
    "timestamp us None",
    "timestamp ns None",
    "time64 us",
    "duration us",
    "duration ns",
    "list of integers",
    "struct xy",
]


@pytest.mark.parametrize("held", USUAL)
@pytest.mark.parametrize("many", [False, True], ids=["query", "set"])
def test_a_stream_gives_what_the_batch_gives_or_refuses_and_stays_as_it_was(held: str, many: bool) -> None:
    """With the last value of each kind, which is its most demanding."""
    query = nestream.queries([QUERY.text]) if many else QUERY
    first = columns(held)[-1]
    begun = query.stream()
    begun.push_batch(batch(1, "A", first))
    before = begun.save()
    for arriving in USUAL:
        second = columns(arriving)[-1]
        stream: Stream = query.stream().restore(before)
        try:
            found = stream.push_batch(batch(2, "B", second)).to_pylist()
        except nestream.EventError:
            assert stream.save() == before  # as if it had not come
        else:
            assert mix(held, arriving)
            assert events_of(found) == [("A", seen(first.to_pylist()[0])), ("B", seen(second.to_pylist()[0]))]
        stream = query.stream().restore(stream.save())
        last = stream.push_batch(batch(3, "B", first)).to_pylist()
        assert events_of(last)[0] == ("A", seen(first.to_pylist()[0]))


def events_of(matches: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """The type and value of the events of the first match, of a query or a set."""
    match = matches[0]
    events = [part["event"] for part in match["events"]] if "events" in match else [match["a"], match["b"]]
    return [(event["type"], seen(event["x"])) for event in events]


PYTHON = [
    None,
    True,
    2**60,
    0.5,
    2.0,
    float("nan"),
    Decimal("100.25"),
    "2",
    b"2",
    date(2026, 1, 31),
    NOON,
    NOON.replace(tzinfo=UTC),
    pd.Timestamp(NOON) + pd.Timedelta(1, "ns"),
    pd.NaT,
    time(12, 30),
    timedelta(seconds=2),
    [],
    ["2"],
    {"x": 2},
    {"y": 0.5},
    2**70,
    Strange(),
    "\ud800",
]


def exact(value: Any) -> Any:
    """A value with what Python takes for equal and is not."""
    if value is pd.NaT or seen(value) is None:
        return None
    return (isinstance(value, bool), isinstance(value, datetime), seen(value))


def _note(dead: list[tuple[Any, str]], event: Any, reason: str) -> None:
    dead.append((event, reason))


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "pending together"])
@pytest.mark.parametrize("held", PYTHON, ids=repr)
def test_pushed_values_are_kept_as_they_are_or_become_dead_letters(held: Any, together: bool) -> None:
    query = nestream.query("SEQ(A a, C c) WITHIN 10")
    for arriving in PYTHON:
        dead: list[tuple[Any, str]] = []
        stream = query.stream(dead_letter=partial(_note, dead))
        events = [{"ts": 1, "type": "A", "x": held}, {"ts": 2, "type": "A", "x": arriving}]
        stream.push({"ts": 0, "type": "A"})
        for event in events:
            stream.push(event)
            if not together:
                stream.flush()
        found = {match["a"]["ts"]: match["a"].get("x") for match in stream.push({"ts": 3, "type": "C"})}
        assert len(found) + len(dead) == 3
        assert all("`x`" in why for _, why in dead)
        for event in events:
            if event["ts"] in found:
                assert exact(found[event["ts"]]) == exact(event["x"])
            else:
                assert event in [row for row, _ in dead]


@pytest.mark.parametrize("held", PYTHON, ids=repr)
def test_values_of_dictionaries_make_a_column_that_keeps_them_or_none(held: Any) -> None:
    for arriving in PYTHON:
        try:
            table = to_table([{"ts": 1, "type": "A", "x": held}, {"ts": 2, "type": "B", "x": arriving}])
        except nestream.EventError:
            continue
        else:
            assert [exact(value) for value in table.column("x").to_pylist()] == [exact(held), exact(arriving)]
