"""What users meet at the edges: widening columns, values that do not fit, huge windows, no events."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pandas as pd
import pytest

import nestream


def test_a_column_of_integers_becomes_one_of_floats_when_a_fraction_comes() -> None:
    events = [{"ts": 1, "type": "A", "price": 10}, {"ts": 2, "type": "B", "price": 10.5}]
    query = nestream.query("SEQ(A a, B b) WITHIN 10")
    assert [(m["a"]["price"], m["b"]["price"]) for m in query.stream(events)] == [(10.0, 10.5)]
    stream = query.stream()
    parts = [stream.push_batch([event]).num_rows for event in events]
    assert sum(parts) + len(stream.finish()) == 1
    assert stream.dead_count == 0


def test_a_value_that_the_query_cannot_compute_with_is_a_dead_letter_and_nothing_else_is_lost() -> None:
    dead: list[tuple[Any, str]] = []
    query = nestream.query("SEQ(A a, C c, a.x > 3 OR a.y = 1) WITHIN 10")
    stream = query.stream(dead_letter=lambda event, reason: dead.append((event, reason)))
    events: list[Any] = [
        {"ts": 1, "type": "Z"},
        {"ts": 2, "type": "A", "y": 1},
        {"ts": 3, "type": "A", "x": "bad"},
        {"ts": 4, "type": "C"},
        [1],
        {"ts": 5, "type": "C"},
    ]
    matches = [match for event in events for match in stream.push(event)]
    assert [match["c"]["ts"] for match in [*matches, *stream.finish()]] == [4, 5]
    assert [event for event, _ in dead] == [events[2], [1]]
    assert "compare" in dead[0][1]
    assert "dictionary" in dead[1][1]


def test_the_first_dead_letter_without_a_place_for_it_gives_a_warning() -> None:
    stream = nestream.query("A a").stream()
    with pytest.warns(UserWarning, match="dead_letter"):
        stream.push({"type": "A"})
    assert stream.dead_count == 1


def test_a_lateness_that_does_not_fit_the_times_is_said_at_once() -> None:
    stream = nestream.query("A a").stream(lateness=timedelta(seconds=1))
    with pytest.raises(ValueError, match="lateness"):
        stream.push({"ts": 1, "type": "A"})


def test_a_stream_that_has_taken_events_does_not_restore() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN 10")
    saved = query.stream().save()
    stream = query.stream()
    stream.push({"ts": 1, "type": "A"})
    with pytest.raises(nestream.StateError, match="new stream"):
        stream.restore(saved)


@pytest.mark.parametrize("strategy", ["auto", "reference"])
def test_a_window_may_reach_beyond_the_least_time(strategy: str) -> None:
    events = [{"ts": -10, "type": "A"}, {"ts": -5, "type": "C"}]
    query = nestream.query("SEQ(A a, C c) WITHIN 9223372036854775807")
    assert query.match(events, strategy=strategy).num_rows == 1


@pytest.mark.parametrize("weeks", [13_000, 20_000])
def test_windows_of_centuries_hold_nanoseconds(weeks: int) -> None:
    events = pd.DataFrame({"ts": pd.to_datetime(["1900-01-01", "1901-01-01"]), "type": ["A", "C"]})
    query = nestream.query(f"SEQ(A a, C c) WITHIN {weeks} weeks")
    found = [query.match(events).num_rows, query.match(events, strategy="reference").num_rows]
    assert [*found, len(list(query.stream(events.to_dict("records"))))] == [1, 1, 1]


def test_no_events_have_no_matches_whatever_the_query_reads() -> None:
    query = nestream.query("SEQ(A a, C c, a.x > 3, a.id = c.id) WITHIN 10 RETURN a.x AS x")
    assert query.match([]).column_names == ["x", "match_start", "match_end"]
    assert query.count([]) == 0


def test_what_is_wrong_in_reading_and_in_meaning_is_said_at_once() -> None:
    text = "SEQ(A a, A a, !B b, C c, a.id = b.id, q.x = 1, foo(a.id) = 2) WITHIN 5 fortnights RETURN zz"
    with pytest.raises(nestream.QueryError) as error:
        nestream.query(text)
    assert [diagnostic.code for diagnostic in error.value.diagnostics] == [
        "duplicate-variable",
        "negated-variable",
        "unknown-variable",
        "unknown-function",
        "unknown-unit",
        "cannot-return",
    ]
