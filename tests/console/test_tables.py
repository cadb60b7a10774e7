"""Events that come as JSON as a table: a value that fits no column is left out, and no other with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.console.operations import Operations
from nestream.console.tables import Events
from tests.console.served import RULE, event

LONE = "\ud800"
LIVE = [event(1, "Recycle", id=7), event(3, "Operating", id=7)]
HOSTILE: list[dict[str, Any]] = [
    {"type": f"Wash{LONE}ing"},
    {"type": LONE},
    {"type": 7},
    {"type": None},
    {"id": LONE},
    {"id": 10**400},
    {"id": 2**63},
    {"id": 1.5},
    {"room": {"deep": [LONE]}},
    {LONE: 1},
    {"ts": LONE},
    {"ts": 10**400},
    {"ts": 2**63},
    {"ts": 1.5},
    {"ts": float("nan")},
    {"ts": True},
    {"ts": "9999-12-31T23:59:59-14:00"},
    {"ts": "0001-01-01T00:00:00+14:00"},
    {"ts": None},
]


@pytest.mark.parametrize("wrong", HOSTILE, ids=lambda wrong: ascii(wrong)[:40])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_hostile_event_keeps_no_query_from_the_others(wrong: dict[str, Any], place: int) -> None:
    events = list(LIVE)
    events.insert(place, {**event(2, "Hall", id=9), **wrong})
    table = Events("ts", "type").table(events)
    assert table.num_rows == 3
    table.validate(full=True)
    operations = Operations({})
    request = {"text": RULE, "events": events, "time": "ts", "type": "type"}
    answer = operations.answer({"operation": "run", **request})
    assert answer.get("error") is None
    assert answer["total"] == 1
    plan = operations.answer({"operation": "plan", **request})
    assert plan.get("error") is None
    picked = [row for row in range(3) if row != place]
    why = operations.answer({"operation": "why", "picked": picked, **request})
    assert why.get("error") is None
    assert why["why"]["matched"] is True
    started = {"operation": "start", "name": "trial", "text": RULE, "time": "ts", "type": "type"}
    assert operations.answer(started)["ok"] is True
    for some in (events, [event(9, "Hall")], [{**event(10, "Hall", id=9), **wrong}], [event(4000, "Hall")]):
        pushed = operations.answer({"operation": "push", "events": some})
        assert pushed.get("error") is None


def test_the_kind_of_most_times_is_that_of_the_column() -> None:
    texts = Events("ts", "type").table([{"ts": 5}, event(1, "A"), event(2, "A")])
    assert texts.column("ts").to_pylist()[0] is None
    assert texts.column("ts").to_pylist()[1] == datetime(2026, 1, 5, 7, 0, 1, tzinfo=UTC)
    whole = Events("ts", "type").table([{"ts": "2026-01-05"}, {"ts": 5}, {"ts": 6.0}, {"ts": 2**63}])
    assert whole.column("ts").to_pylist() == [None, 5, 6, None]


def test_times_that_are_fractions_are_refused_in_words() -> None:
    table = Events("ts", "type").table([{"ts": 1.5, "type": "A"}, {"ts": 2.5, "type": "B"}])
    assert table.schema.field("ts").type == pa.float64()
    with pytest.raises(nestream.EventError, match="a time must be an integer, a timestamp or a date"):
        nestream.query("SEQ(A a, B b) WITHIN 5").match(table)


def test_a_number_too_large_for_its_column_leaves_the_others_as_they_are() -> None:
    column = Events("ts", "type").table([{"id": 2**53 + 1}, {"id": 10**30}, {"id": 3}]).column("id")
    assert column.to_pylist() == [2**53 + 1, None, 3]
    mixed = Events("ts", "type").table([{"id": 1.5}, {"id": 10**400}, {"id": 3}]).column("id")
    assert mixed.to_pylist() == [1.5, None, 3.0]


def test_half_a_character_is_replaced_and_the_rest_of_the_text_stays() -> None:
    (found,) = Events("ts", "type").table([{"type": f"Wash{LONE}ing \U0001f3e5"}]).column("type").to_pylist()
    assert found == "Wash\ufffding \U0001f3e5"


def test_events_become_a_table_though_their_values_do_not_fit() -> None:
    events = Events("ts", "type")
    first = events.table([event(1, "A", id=1), event(2, "A", id=None)])
    later = events.table([event(3, "A", id="seven"), event(4, "A", id=8), {"ts": 5, "type": 7, "more": []}])
    assert later.schema.field("id").type == first.schema.field("id").type
    assert later.column("id").to_pylist() == [None, 8, None]
    assert later.column("ts").to_pylist()[2] is None


def test_why_tells_events_by_their_numbers_though_one_before_them_is_none() -> None:
    events = [{"ts": None, "type": "Recycle"}, *LIVE]
    request = {"operation": "why", "text": RULE, "events": events, "time": "ts", "type": "type"}
    found = Operations({}).answer({**request, "picked": [1, 2]})
    assert found["why"]["events"]["2"]["event"] == 3
    refused = Operations({}).answer({**request, "picked": [0, 2]})
    assert "no time or type" in refused["error"]


def test_a_run_tells_how_many_events_had_no_time_or_type() -> None:
    request = {"operation": "run", "text": RULE, "events": [*LIVE, {"ts": "?"}, {"type": "A"}]}
    answer = Operations({}).answer({**request, "time": "ts", "type": "type"})
    assert (answer["events"], answer["left_out"]) == (2, 2)


def test_why_speaks_of_live_events_by_their_numbers_and_leaves_their_texts_alone() -> None:
    said = "#1 at #2 ("  # what looks like the number of an event, and is none
    events = [event(1, "Recycle", id=said), event(2, "Washing", id=said), event(3, "Operating", id=said)]
    request = {"operation": "why", "events": events, "time": "ts", "type": "type", "first": 500}

    def obstacle(text: str) -> dict[str, Any]:
        answer = Operations({}).answer({**request, "text": text, "picked": [0, 2]})
        (found,) = answer["why"]["alternatives"][0]["obstacles"]
        return dict(found)

    assert "#501 (Washing" in obstacle(RULE)["text"]
    assert obstacle(RULE)["events"] == [1]
    assert said in obstacle("SEQ(Recycle r, Operating o, r.id != o.id) WITHIN 5 hours")["text"]
