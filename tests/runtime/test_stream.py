"""Events that keep coming: when matches are decided, late events, dead letters, schemas that grow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.model.schema import EventError, Schema
from nestream.runtime.stream import Stream

FLAT = "SEQ(A a, B b, a.id = b.id) WITHIN 10"


def event(ts: Any, type: str, id: Any = 1, **more: Any) -> dict[str, Any]:
    return {"ts": ts, "type": type, "id": id, **more}


def start(text: str = FLAT, **options: Any) -> Stream:
    stream: Stream = nestream.query(text).stream(**options)
    return stream


def times(matches: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    return [(match["match_start"], match["match_end"]) for match in matches]


# -- iterating and pushing ---------------------------------------------------------------------------------


def test_iterating_gives_each_match_while_the_events_are_read() -> None:
    read: list[int] = []

    def source() -> Iterator[dict[str, Any]]:
        for ts, kind in enumerate("AABZB"):
            read.append(ts)
            yield event(ts, kind)

    found = nestream.query(FLAT).stream(source())
    assert times([next(found), next(found)]) == [(0, 2), (1, 2)]
    assert read == [0, 1, 2]
    assert times(list(found)) == [(0, 4), (1, 4)]


def test_a_match_has_the_shape_of_a_row_of_match() -> None:
    events = [event(1, "A"), event(2, "B", note="x")]
    chosen = nestream.query(FLAT)
    assert list(chosen.stream(events)) == chosen.match(events).to_pylist()


@pytest.mark.parametrize(
    "events",
    [
        pa.table({"ts": [1, 2], "type": ["A", "B"], "id": [1, 1]}),
        pa.RecordBatch.from_pydict({"ts": [1, 2], "type": ["A", "B"], "id": [1, 1]}),
        {"A": [{"ts": 1, "id": 1}], "B": [{"ts": 2, "id": 1}]},
        [pa.table({"ts": [1], "type": ["A"], "id": [1]}), pa.table({"ts": [2], "type": ["B"], "id": [1]})],
        [[event(1, "A")], [event(2, "B")]],
    ],
    ids=["table", "record batch", "mapping by type", "tables", "lists of dictionaries"],
)
def test_iterating_takes_whatever_match_takes_and_sequences_of_it(events: Any) -> None:
    assert times(list(nestream.query(FLAT).stream(events))) == [(1, 2)]


def test_events_pushed_one_by_one_come_before_a_batch_pushed_after_them() -> None:
    stream = start()
    for ts in (1, 2, 3):
        assert stream.push(event(ts, "A")) == []
    found = stream.push_batch([event(4, "B")])
    assert times(found.to_pylist()) == [(1, 4), (2, 4), (3, 4)]
    assert stream.late_count == 0


def test_finishing_takes_what_is_pending_as_a_list_and_as_a_table() -> None:
    for finish in (lambda s: len(s.finish()), lambda s: s.finish_batch().num_rows):
        stream = start("SEQ(A a, !B b) WITHIN 10")
        stream.push(event(1, "A"))
        stream.push(event(2, "A"))
        assert finish(stream) == 2


def test_a_finished_stream_takes_no_more_events() -> None:
    stream = start()
    stream.push(event(1, "A"))
    stream.finish()
    with pytest.raises(ValueError, match="finished"):
        stream.push(event(2, "B"))
    with pytest.raises(ValueError, match="finished"):
        stream.push_batch([event(2, "B")])


def test_a_limit_ends_the_iteration_without_reading_on() -> None:
    def source() -> Iterator[dict[str, Any]]:
        yield event(1, "A")
        yield event(2, "B")
        yield event(3, "B")
        raise AssertionError("read too far")

    assert times(list(nestream.query(FLAT + " LIMIT 2").stream(source()))) == [(1, 2), (1, 3)]


def test_a_limit_holds_over_pushes_and_over_a_restart() -> None:
    stream = start(FLAT + " LIMIT 2")
    stream.push(event(1, "A"))
    assert len(stream.push(event(2, "B"))) == 1
    stream = start(FLAT + " LIMIT 2").restore(stream.save())
    assert len(stream.push(event(3, "B"))) == 1
    assert stream.push(event(4, "B")) == []


def test_an_unknown_order_or_a_negative_lateness_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown order"):
        start(order="random")
    with pytest.raises(ValueError, match="negative"):
        start(lateness=-1)


# -- when a match is decided -------------------------------------------------------------------------------


def test_a_match_of_a_flat_sequence_comes_with_its_last_event() -> None:
    stream = start("SEQ(A a, !C c, B b) WITHIN 10")
    given = [len(stream.push(event(ts, kind))) for ts, kind in enumerate("AABCBAB")]
    assert given == [0, 0, 2, 0, 0, 0, 1]
    assert stream.finish() == []


def test_a_trailing_negation_is_decided_when_the_watermark_passes_its_window() -> None:
    stream = start("SEQ(A a, !B b) WITHIN 5")
    assert stream.push(event(1, "A")) == []
    assert stream.push(event(6, "Z")) == []  # at 6 a B could still come
    assert times(stream.push(event(7, "Z"))) == [(1, 1)]
    stream.push(event(8, "A"))
    stream.push(event(13, "B"))
    assert stream.push(event(20, "Z")) == []


def test_a_trailing_negation_of_the_sase_spelling_is_decided_at_its_exclusive_limit() -> None:
    stream = start("EVENT SEQ(A a, !(B b)) WITHIN 5")
    stream.push(event(1, "A"))
    assert stream.push(event(5, "Z")) == []
    assert times(stream.push(event(6, "Z"))) == [(1, 1)]


def test_a_negation_in_a_root_and_is_decided_when_the_time_of_the_last_event_has_passed() -> None:
    stream = start("AND(A a, B b, !C c) WITHIN 5")
    stream.push(event(1, "A"))
    assert stream.push(event(2, "B")) == []
    assert stream.push(event(2, "Z")) == []  # a C at 2 could still come
    assert times(stream.push(event(3, "Z"))) == [(1, 2)]
    stream.push(event(4, "B"))
    stream.push(event(4, "C"))
    assert stream.push(event(9, "Z")) == []


def test_by_arrival_a_negation_in_a_root_and_is_decided_with_the_last_event() -> None:
    stream = start("AND(A a, B b, !C c) WITHIN 5", order="arrival")
    stream.push(event(1, "A"))
    assert times(stream.push(event(2, "B"))) == [(1, 2)]


def test_a_count_window_is_passed_by_events_of_any_type() -> None:
    stream = start("SEQ(A a, !B b) WITHIN 3 EVENTS")
    assert [len(stream.push(event(ts, kind))) for ts, kind in enumerate("AZZZ")] == [0, 0, 1, 0]


# -- late events -------------------------------------------------------------------------------------------


def test_events_within_the_lateness_are_put_in_order() -> None:
    stream = start(lateness=3)
    matches = [
        m for ts, kind in ((5, "B"), (3, "A"), (4, "B"), (9, "Z")) for m in stream.push(event(ts, kind))
    ]
    assert times(matches) == [(3, 4), (3, 5)]
    assert stream.late_count == 0


def test_events_behind_the_watermark_are_counted_and_handed_to_the_late_output() -> None:
    late: list[dict[str, Any]] = []
    stream = start(lateness=2, late=late.append)
    for ts in (1, 5, 2, 3):
        stream.push(event(ts, "A"))
    assert [row["ts"] for row in late] == [2]
    assert stream.late_count == stream.describe()["late"] == 1
    assert len(stream.push(event(6, "B"))) + len(stream.finish()) == 3


def test_an_event_may_be_late_within_a_batch_too() -> None:
    stream = start()
    found = stream.push_batch([event(5, "A"), event(4, "A"), event(6, "B")])
    assert (found.num_rows, stream.late_count) == (1, 1)


def test_without_lateness_events_with_equal_times_are_not_late() -> None:
    stream = start(order="arrival")
    stream.push(event(1, "A"))
    assert len(stream.push(event(1, "B"))) == 1


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("lateness", ["duration", "number"])
def test_lateness_means_the_same_in_every_resolution(unit: str, lateness: str) -> None:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    moments = pa.array([ts * per_second for ts in (0, 10, 6, 4, 30)], pa.timestamp(unit))
    table = pa.table({"ts": moments, "type": list("ABBBZ")})
    stream = start(
        "SEQ(A a, B b) WITHIN 1 hour",
        lateness=timedelta(seconds=5) if lateness == "duration" else 5 * per_second,
    )
    found = stream.push_batch(table).num_rows + stream.finish_batch().num_rows
    assert (found, stream.late_count) == (2, 1)


def test_a_duration_as_lateness_needs_timestamps() -> None:
    with pytest.raises(ValueError, match="lateness is a duration"):
        start(lateness=timedelta(seconds=1)).push(event(1, "A"))
    with pytest.raises(ValueError, match="lateness is a duration"):
        start(lateness=timedelta(seconds=1)).push_batch([event(1, "A")])


# -- dead letters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"type": "A", "id": 1}, "`ts` is NULL"),
        ({"ts": 2, "id": 1}, "`type` is NULL"),
        ({"ts": 2, "type": None, "id": 1}, "`type` is NULL"),
        ({"ts": "two", "type": "A", "id": 1}, "`ts` holds integers (int64): strings (string) do not fit"),
        ({"ts": 2, "type": 7, "id": 1}, "`type` holds strings (string): integers (int64) do not fit"),
        ({"ts": 2, "type": ["A"], "id": 1}, "`type` holds strings (string): lists"),
        ({"ts": 2, "type": "A", "id": "seven"}, "`id` holds integers (int64): strings (string) do not fit"),
        ({"ts": 2, "type": "A", "id": 2**70}, "does not fit"),
        ({"ts": 2.5, "type": "A", "id": 1}, "`ts` holds integers (int64): 2.5 does not fit"),
    ],
)
def test_an_event_that_cannot_be_read_is_a_dead_letter_and_the_others_go_on(
    bad: dict[str, Any], reason: str
) -> None:
    dead: list[tuple[Any, str]] = []
    stream = start(dead_letter=lambda row, why: dead.append((row, why)))
    stream.push(event(1, "A"))
    assert stream.push(bad) == []
    assert times(stream.push(event(3, "B"))) == [(1, 3)]
    ((row, why),) = dead
    assert reason in why
    assert {name: value for name, value in row.items() if value is not None} == {
        name: value for name, value in bad.items() if value is not None
    }
    assert stream.dead_count == stream.describe()["dead_letters"] == 1


@pytest.mark.parametrize(
    "bad", [{"type": "A"}, {"ts": 1}, {"ts": "one", "type": "A"}, {"ts": 1, "type": 1}, {}]
)
def test_the_very_first_event_may_be_a_dead_letter(bad: dict[str, Any]) -> None:
    stream = start()
    assert stream.push(bad) == []
    assert stream.dead_count == 1
    stream.push(event(1, "A"))
    assert times(stream.push(event(3, "B"))) == [(1, 3)]


def test_the_rows_of_a_batch_without_time_or_type_are_dead_letters() -> None:
    dead: list[str] = []
    stream = start(dead_letter=lambda _, why: dead.append(why))
    assert stream.push_batch([{"type": "A", "id": 1}]).num_rows == 0
    rows = [event(1, "A"), event(None, "A"), event(2, None), event(3, "B")]  # type: ignore[arg-type]
    assert stream.push_batch(rows).num_rows == 1
    assert dead == ["no time: there is no column `ts`", "no time: `ts` is NULL", "no type: `type` is NULL"]


def test_a_batch_whose_column_does_not_fit_is_refused_as_a_whole() -> None:
    stream = start()
    stream.push_batch([event(1, "A")])
    with pytest.raises(EventError, match=r"column `id` holds integers .*: strings .* do not fit"):
        stream.push_batch(pa.table({"ts": [2], "type": ["B"], "id": ["seven"]}))
    assert stream.push_batch([event(3, "B")]).num_rows == 1


def test_an_event_that_contradicts_a_pending_one_does_not_take_it_along() -> None:
    stream = start()
    stream.push(event(1, "A"))
    stream.push(event(2, "A", note=1))
    assert stream.push(event(3, "B", note="text")) == []
    assert stream.dead_count == 1
    assert times(stream.push(event(4, "B", note=2))) == [(1, 4), (2, 4)]


# -- the schema grows --------------------------------------------------------------------------------------


def test_new_attributes_and_types_join_the_schema_when_they_come() -> None:
    stream = start("SEQ(A a, B b, b.x > a.y) WITHIN 10")
    assert stream.push({"ts": 1, "type": "A", "y": 1}) == []
    assert stream.push({"ts": 2, "type": "New", "z": "text"}) == []
    (match,) = stream.push({"ts": 3, "type": "B", "x": 2})
    assert match["a"] == {"ts": 1, "type": "A", "y": 1, "x": None, "z": None}
    assert match["b"] == {"ts": 3, "type": "B", "y": None, "x": 2, "z": None}


def test_a_distinct_output_remembers_what_it_gave_when_the_schema_grows() -> None:
    stream = start("SEQ(A a, B b) WITHIN 10 RETURN a")
    stream.push({"ts": 1, "type": "A"})
    assert len(stream.push({"ts": 2, "type": "B"})) == 1
    assert stream.push({"ts": 3, "type": "B", "new": 1}) == []
    stream.push({"ts": 4, "type": "A", "new": 2})
    assert len(stream.push({"ts": 5, "type": "B", "newer": 1})) == 1


def test_events_that_wait_for_the_watermark_get_the_new_columns_too() -> None:
    stream = start("SEQ(A a, B b) WITHIN 10", lateness=5)
    stream.push({"ts": 1, "type": "A"})
    stream.push({"ts": 3, "type": "B", "new": "text"})
    (match,) = stream.finish()
    assert (match["a"]["new"], match["b"]["new"]) == (None, "text")


def test_growing_keeps_which_attributes_the_types_have() -> None:
    columns = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64())])
    schema = Schema.of(columns, types={"A": ["id"], "B": []})
    text = "EVENT SEQ(A a, B b) WHERE [id] WITHIN 10"
    stream = start(text, schema=schema)
    stream.push_batch([event(1, "A")])
    restored = start(text, schema=schema).restore(stream.save())
    for going_on in (stream, restored):
        assert going_on.push_batch([event(2, "B", None, new=3)]).num_rows == 1


def test_a_query_that_does_not_fit_the_events_says_so_and_the_stream_goes_on() -> None:
    stream = start("SEQ(A a, B b, b.x > 5) WITHIN 10")
    stream.push({"ts": 1, "type": "A"})
    with pytest.warns(UserWarning, match="cannot compare"):
        stream.push({"ts": 2, "type": "B", "x": "text"})
    assert stream.dead_count == 1
    assert times(stream.push({"ts": 3, "type": "B", "x": 6})) == [(1, 3)]


def test_times_and_types_may_have_other_names_and_times_may_be_timestamps() -> None:
    morning = datetime(2026, 1, 1, 9)
    stream = start("SEQ(A a, B b) WITHIN 1 hour", time="at", type="kind")
    stream.push({"at": morning, "kind": "A"})
    assert times(stream.push({"at": morning + timedelta(minutes=60), "kind": "B"})) == [
        (morning, morning + timedelta(minutes=60))
    ]
    assert stream.push({"at": morning + timedelta(minutes=61), "kind": "B"}) == []
