"""Events that are complete up to a time: every way to run a query agrees about what is still open."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.logical.nodes import leaves
from nestream.model.columns import computable
from nestream.reference import Order, evaluate, history
from tests.property.cases import Case, random_case

MISSING = "SEQ(Order o, !(Delivery d, d.id = o.id)) WITHIN 5 RETURN o.id AS missing"
EVENTS = [
    {"ts": 1, "type": "Order", "id": 1},
    {"ts": 2, "type": "Order", "id": 2},
    {"ts": 4, "type": "Delivery", "id": 1},
    {"ts": 6, "type": "Order", "id": 3},
]


def missing(as_of: int, text: str = MISSING, **options: Any) -> list[int]:
    return [row["missing"] for row in nestream.query(text).as_of(as_of).match(EVENTS, **options).to_pylist()]


@pytest.mark.parametrize("strategy", ["auto", "reference", "nested", "flat"])
def test_a_window_that_is_open_is_not_reported(strategy: str) -> None:
    assert [row["missing"] for row in nestream.query(MISSING).match(EVENTS).to_pylist()] == [2, 3]
    assert missing(6, strategy=strategy) == []
    assert missing(7, strategy=strategy) == [2]
    assert missing(10, strategy=strategy) == [2]
    assert missing(11, strategy=strategy) == [2, 3]


def test_events_after_the_time_are_left_out() -> None:
    query = nestream.query("SEQ(Order o, Delivery d, o.id = d.id) WITHIN 5 RETURN o.id AS id").as_of(3)
    assert query.match(EVENTS).num_rows == 0
    late = [*EVENTS, {"ts": 7, "type": "Delivery", "id": 2}]
    assert nestream.query(MISSING).as_of(7).match(late).num_rows == 0
    assert nestream.query(MISSING).as_of(6).match(late).num_rows == 0


def test_a_set_and_a_count_know_the_time_too() -> None:
    assert nestream.query(MISSING).match(EVENTS, as_of=7).num_rows == 1
    assert nestream.queries({"missing": MISSING}).match(EVENTS, as_of=7).num_rows == 1
    rules = nestream.queries({"missing": MISSING}).as_of(7)
    assert rules.match(EVENTS).num_rows == 1
    assert rules.count(EVENTS) == {"missing": 1}
    assert nestream.query(MISSING).as_of(7).count(EVENTS) == 1


def test_a_time_is_a_datetime_or_its_text_for_timestamps() -> None:
    text = MISSING.replace("WITHIN 5", "WITHIN 5 s")
    events = [{**event, "ts": datetime(2026, 1, 5, 8, 0, event["ts"])} for event in EVENTS]  # type: ignore[arg-type]
    for time in (datetime(2026, 1, 5, 8, 0, 7), "2026-01-05T08:00:07", "2026-01-05 08:00:07"):
        assert nestream.query(text).as_of(time).match(events).num_rows == 1
    zoned = pa.Table.from_pylist(events).cast(
        pa.schema([("ts", pa.timestamp("us", "Europe/Berlin")), ("type", pa.string()), ("id", pa.int64())])
    )
    assert nestream.query(text).as_of("2026-01-05T08:00:07Z").match(zoned).num_rows == 1
    assert nestream.query(text).as_of("2026-01-05T09:00:07").match(zoned).num_rows == 1
    assert nestream.query(text).as_of("2026-01-05T09:00:06").match(zoned).num_rows == 0


@pytest.mark.parametrize(
    ("text", "as_of", "said"),
    [
        (MISSING, "2026-01-05", "needs a number"),
        (MISSING.replace("WITHIN 5", "WITHIN 5 s"), 7, "needs a time"),
        (MISSING, "soon", "not a time"),
        (MISSING, None, "hint: pass a datetime"),
        (MISSING.replace("WITHIN 5", "WITHIN 5 EVENTS"), 7, "window of events"),
    ],
)
def test_a_time_that_cannot_be_used_is_refused_with_what_to_write(text: str, as_of: Any, said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        nestream.query(text).as_of(as_of)


def test_without_a_window_a_trailing_negation_is_never_decided() -> None:
    assert missing(10**6, MISSING.replace("WITHIN 5", "WITHIN UNBOUNDED")) == []


def test_the_time_is_that_of_the_events_where_a_column_is_named_ts_too() -> None:
    events = [{**event, "at": event["ts"], "ts": 0} for event in EVENTS]
    found = nestream.query(MISSING).as_of(7).match(events, time="at").to_pylist()
    assert [row["missing"] for row in found] == [2]


def positions(case: Case, as_of: int) -> list[Any]:
    """What the reference evaluator gives of the plan that knows nothing of the time."""
    query = nestream.query(case.text)
    run = query.prepare(case.table, order=case.order, strategy="reference")
    schema, unit = run.schema, run.schema.unit
    times = computable(run.table.column("ts"), unit, "ts").to_pylist()
    columns = {name: computable(run.table.column(name), unit, name).to_pylist() for name in schema.columns}
    rows = [{name: column[row] for name, column in columns.items()} for row in range(run.table.num_rows)]
    events = history(times, [str(row["type"]) for row in rows], rows)
    scale = schema.per_microsecond
    limit = as_of * scale if pa.types.is_timestamp(schema.columns["ts"]) else as_of
    found = evaluate(run.plan, events, Order(case.order), scale, limit)[: run.plan.limit]
    return [sorted((name, event.ts) for name, event in match.events.items()) for match in found]


@pytest.mark.parametrize("index", range(120))
def test_random_queries_agree_with_the_reference_about_what_is_open(index: int) -> None:
    case = random_case(99, index)
    query = nestream.query(case.text)
    assert list(leaves(query.plan.root))
    times = case.table.column("ts")
    if not case.table.num_rows or not (pa.types.is_integer(times.type) or pa.types.is_timestamp(times.type)):
        pytest.skip("no times")
    numbers = (
        times.cast(pa.int64()).to_pylist()
        if pa.types.is_integer(times.type)
        else times.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    )
    chosen = Random(index).randint(min(numbers), max(numbers) + 5)
    as_of: Any = chosen
    if pa.types.is_timestamp(times.type):
        as_of = pa.scalar(chosen, pa.timestamp("us")).as_py()
    try:
        open_query = query.as_of(as_of)
    except ValueError:
        assert "EVENTS" in case.text
        pytest.skip("a window of events")
    expected = len(positions(case, chosen))
    options: dict[str, Any] = {"order": case.order}
    for strategy in ("auto", "reference", "nested", "flat"):
        assert open_query.match(case.table, strategy=strategy, **options).num_rows == expected, str(case)
    assert open_query.count(case.table, **options) == expected
