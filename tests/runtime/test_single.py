"""Events pushed one at a time are matched without the columnar engine, and nothing else changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import nestream
from nestream.engine.single import search
from nestream.runtime.local import LocalRun
from nestream.runtime.stream import Stream

CHAIN = "SEQ(A a, !(B b, b.id = a.id), C c, a.id = c.id) WITHIN 10"
SCHEMA = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64())])


def events(count: int) -> list[dict[str, Any]]:
    """Events of three types that matter and one that does not, over three keys."""
    return [{"ts": n, "type": "ACBX"[(n * 7 + n // 5) % 4], "id": n % 3} for n in range(count)]


def pushed(stream: Stream, given: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """What each push emits, and the end."""
    return [*(stream.push(event) for event in given), stream.finish()]


def in_batches(query: nestream.Query, given: list[dict[str, Any]], **options: Any) -> list[Any]:
    """What the columnar engine emits for the same events, a batch each."""
    stream = query.stream(**options)
    found = [stream.push_batch(pa.Table.from_pylist([event], options.get("schema"))) for event in given]
    return [part.to_pylist() for part in [*found, stream.finish_batch()]]


@pytest.mark.parametrize(
    "text",
    [
        CHAIN,
        "SEQ(A a, C c, !(B b, b.id = a.id)) WITHIN 5",  # decided when the window has passed
        "AND(A a, C c, !(B b, b.id = a.id), a.id = c.id) WITHIN 5",  # decided when the time has passed
        "SEQ(A a, OR(B b, C c)) WITHIN 3 RETURN a.id + 1 AS next, a.id / 2 AS half, c.ts - a.ts AS length",
        "SEQ(A a, C c) WITHIN 4 EVENTS",
        "SEQ(A a, C c) WITHIN 6 LIMIT 5",
        "SEQ(A a, ANY x, C c, a.id = x.id) WITHIN 5",
    ],
)
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_each_push_emits_what_a_batch_of_one_event_emits(text: str, order: str) -> None:
    query, given = nestream.query(text), events(120)
    options = {"schema": SCHEMA, "order": order}
    assert pushed(query.stream(**options), given) == in_batches(query, given, **options)


def test_single_events_are_matched_without_a_round_of_the_engine() -> None:
    stream = nestream.query(CHAIN).stream(schema=SCHEMA)
    with patch.object(LocalRun, "advance", side_effect=AssertionError("a round")):
        found = [match for event in events(200) for match in stream.push(event)]
    assert len(found) > 10
    assert stream.describe()["matches_out"] == len(found)


def test_an_event_that_leads_to_very_many_others_is_left_to_the_engine() -> None:
    query, given = nestream.query("SEQ(A a, C c) WITHIN UNBOUNDED"), events(200)
    expected = in_batches(query, given, schema=SCHEMA)
    with patch.object(search, "MOST", 20):
        assert pushed(query.stream(schema=SCHEMA), given) == expected


def test_a_saved_state_holds_the_events_that_are_buffered() -> None:
    query, given = nestream.query(CHAIN), events(60)
    whole = pushed(query.stream(schema=SCHEMA), given)
    for cut in (1, 7, 30, 59):
        stream = query.stream(schema=SCHEMA)
        before = [stream.push(event) for event in given[:cut]]
        later = query.stream(schema=SCHEMA).restore(stream.save())
        assert before + pushed(later, given[cut:]) == whole
        assert (later.events_in, later.matches_out) == (60, sum(map(len, whole)))


def test_a_batch_between_single_events_changes_nothing() -> None:
    query, given = nestream.query(CHAIN), events(90)
    whole = [match for part in pushed(query.stream(schema=SCHEMA), given) for match in part]
    stream = query.stream(schema=SCHEMA)
    found = [match for event in given[:30] for match in stream.push(event)]
    found += stream.push_batch(pa.Table.from_pylist(given[30:40], SCHEMA)).to_pylist()
    found += [match for event in given[40:] for match in stream.push(event)]
    assert found + stream.finish() == whole


def test_an_event_that_waits_for_the_watermark_is_matched_in_the_order_of_time() -> None:
    query, given = nestream.query(CHAIN), events(80)
    given = [given[n ^ 1] for n in range(80)]
    options = {"schema": SCHEMA, "lateness": 3}
    assert pushed(query.stream(**options), given) == in_batches(query, given, **options)


def test_late_and_bad_events_among_single_ones_are_set_aside_at_once() -> None:
    late: list[Any] = []
    dead: list[Any] = []
    stream = nestream.query(CHAIN).stream(
        schema=SCHEMA, late=late.append, dead_letter=lambda event, reason: dead.append(event)
    )
    stream.push({"ts": 5, "type": "A", "id": 1})
    for number, bad in enumerate(
        ({"ts": 6, "type": "X", "id": "one"}, {"ts": None, "type": "A"}, {"ts": 7, "type": 3}, 12), 1
    ):
        stream.push(bad)
        assert stream.dead_count == len(dead) == number
    stream.push({"ts": 4, "type": "A", "id": 2})
    assert [event["id"] for event in late] == [2]
    assert len(stream.push({"ts": 8, "type": "C", "id": 1})) == 1
    assert stream.events_in == 3


@pytest.mark.parametrize("width", [pa.int64(), pa.uint64()])  # the second needs the engine
def test_an_event_with_a_name_that_is_no_text_is_a_dead_letter_and_nothing_held_is_lost(
    width: pa.DataType,
) -> None:
    dead: list[str] = []
    stream = nestream.query(CHAIN).stream(
        schema=SCHEMA.set(2, pa.field("id", width)), dead_letter=lambda event, reason: dead.append(reason)
    )
    for number in range(3):
        stream.push({"ts": number, "type": "A", "id": 1})
    assert stream.push({"ts": 3, "type": "C", "id": 2, 5: 1}) == []
    assert stream.dead_count == 1
    assert "named 5, but a name must be a string" in dead[0]
    assert len(stream.push({"ts": 4, "type": "C", "id": 1})) == 3


def test_times_at_the_ends_of_the_calendar_raise_nothing() -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "America/New_York")), ("type", pa.string())])
    stream = nestream.query("SEQ(A a, C c) WITHIN 5 s").stream(schema=schema)
    stream.push({"ts": datetime(1, 1, 1, tzinfo=UTC), "type": "A"})
    stream.push({"ts": datetime(2026, 1, 1, tzinfo=UTC), "type": "A"})
    assert len(stream.push({"ts": datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC), "type": "C"})) == 1
    stream.push({"ts": datetime(9999, 12, 31, tzinfo=UTC), "type": "C"})
    stream.finish()


def test_a_batch_after_the_limit_makes_no_event_late() -> None:
    counts = []
    for singly in (False, True):
        stream = nestream.query("SEQ(A a, C c) WITHIN 6 LIMIT 1").stream(schema=SCHEMA)
        for event in ({"ts": 1, "type": "A", "id": 1}, {"ts": 2, "type": "C", "id": 1}):
            stream.push(event) if singly else stream.push_batch([event])
        stream.push_batch([{"ts": 9, "type": "A", "id": 1}])
        stream.push({"ts": 5, "type": "A", "id": 1})
        counts.append(stream.late_count)
    assert counts[0] == counts[1]


def test_a_column_that_joins_later_is_shown_in_the_matches_after_it() -> None:
    stream = nestream.query("SEQ(A a, C c) WITHIN 10").stream()
    for n in range(6):
        stream.push({"ts": n, "type": "X"})
    stream.push({"ts": 6, "type": "A"})
    (match,) = stream.push({"ts": 7, "type": "C", "note": "new"})
    assert match["a"] == {"ts": 6, "type": "A", "note": None}
    assert match["c"]["note"] == "new"


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Vienna"])
def test_times_come_back_as_a_table_has_them(zone: str | None) -> None:
    start = datetime(2026, 11, 15, tzinfo=UTC if zone else None)
    schema = pa.schema([("ts", pa.timestamp("us", zone)), ("type", pa.string()), ("x", pa.float64())])
    given = [
        {"ts": start + timedelta(seconds=n), "type": "AC"[n % 2], "x": float("nan") if n % 3 else n / 2}
        for n in range(20)
    ]
    query = nestream.query("SEQ(A a, C c, NOT a.x > 3) WITHIN 5 s")
    found = pushed(query.stream(schema=schema), given)
    assert repr(found) == repr(in_batches(query, given, schema=schema))
    returned = nestream.query("SEQ(A a, C c) WITHIN 5 s RETURN c.ts - a.ts AS length, a.ts AS since")
    assert pushed(returned.stream(schema=schema), given) == in_batches(returned, given, schema=schema)


def test_an_event_belongs_to_the_stream_once_it_is_pushed() -> None:
    stream = nestream.query(CHAIN).stream(schema=SCHEMA)
    event = {"ts": 1, "type": "A", "id": 1}
    stream.push(event)
    event["id"] = 2
    assert len(stream.push({"ts": 2, "type": "C", "id": 1})) == 1


def test_a_set_asks_the_engine_only_for_events_that_some_query_matches() -> None:
    queries = nestream.queries({"one": CHAIN, "two": "SEQ(A a, X x, a.id = x.id) WITHIN 3"})
    given = events(100)
    single, batches = queries.stream(schema=SCHEMA), queries.stream(schema=SCHEMA)
    for event in given:
        expected = batches.push_batch(pa.Table.from_pylist([event], SCHEMA)).to_pylist()
        assert single.push(event) == expected
    assert single.finish() == batches.finish()
