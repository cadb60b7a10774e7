"""Late events: which they are, where they go, and how lateness is written."""

from __future__ import annotations

import warnings
from datetime import timedelta
from typing import Any

import pytest

from nestream.compose.spark import microseconds_of
from tests.runtime.streams import START, spans, stream_of


def test_the_first_late_event_without_a_place_for_it_gives_a_warning(many: bool) -> None:
    stream = stream_of("SEQ(A a, B b) WITHIN 10", many)
    stream.push({"ts": 5, "type": "A"})
    with pytest.warns(UserWarning, match="late: `ts` is 4"):
        stream.push_batch([{"ts": 4, "type": "A"}, {"ts": 3, "type": "A"}])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.push_batch([{"ts": 2, "type": "A"}])
    assert stream.late_count == stream.describe()["late"] == 3
    assert stream_of("SEQ(A a, B b) WITHIN 10", many).restore(stream.save()).late_count == 3


def test_late_and_dead_events_are_handed_on_as_they_were_pushed() -> None:
    told: list[Any] = []
    stream = stream_of("A a", late=told.append, dead_letter=lambda event, _: told.append(event))
    events = [{"ts": 4, "type": "A", "x": 2.0}, {"type": "A", "x": START}]
    for event in [{"ts": 5, "type": "A", "x": 1, "y": 1}, *events]:
        stream.push(event)
    stream.flush()
    assert told == events


def test_after_a_restart_with_a_greater_lateness_no_event_is_before_what_was_decided() -> None:
    text = "SEQ(A a, B b) WITHIN 100"
    stream = stream_of(text)
    stream.push({"ts": 50, "type": "A"})
    stream.push({"ts": 60, "type": "B"})
    late: list[Any] = []
    later = stream_of(text, lateness=40, late=late.append).restore(stream.save())
    assert later.push({"ts": 55, "type": "B"}) == []
    assert [event["ts"] for event in late] == [55]
    assert spans(later.push({"ts": 60, "type": "B"})) == [(50, 60)]


@pytest.mark.parametrize("lateness", ["5 s", "5 seconds", "0.005 ks", timedelta(seconds=5), "5000 ms"])
def test_the_lateness_may_be_a_duration_of_the_language(lateness: Any, many: bool) -> None:
    if lateness == "0.005 ks":
        with pytest.raises(ValueError, match="unknown unit `ks`"):
            stream_of("A a", many, lateness=lateness)
        return
    stream = stream_of("SEQ(A a, B b) WITHIN 1 hours", many, lateness=lateness, late=lambda _: None)
    for second, type in ((10, "Z"), (5, "A"), (6, "B"), (4, "B")):
        stream.push({"ts": START + timedelta(seconds=second), "type": type})
    assert (len(stream.finish()), stream.late_count) == (1, 1)


@pytest.mark.parametrize("wrong", ["5", "x", "", "-5 s", "5 events", 0.5, None, True, [1], -1, timedelta(-1)])
def test_a_lateness_that_is_no_length_of_time_is_refused_at_once(wrong: Any, many: bool) -> None:
    with pytest.raises((ValueError, TypeError), match="the lateness"):
        stream_of("A a", many, lateness=wrong)


@pytest.mark.parametrize("longest", [timedelta.max, "292000 years", "15000000 weeks"])
def test_the_longest_lateness_waits_for_ever(longest: Any) -> None:
    if longest == "292000 years":
        with pytest.raises(ValueError, match="unknown unit"):
            stream_of("A a", lateness=longest)
        return
    stream = stream_of("SEQ(A a, B b) WITHIN 1 hours", lateness=longest)
    for second, type in ((10, "B"), (5, "A")):
        assert stream.push({"ts": START + timedelta(seconds=second), "type": type}) == []
    assert len(stream.finish()) == 1


def test_a_watermark_on_spark_is_a_duration_of_the_language() -> None:
    assert microseconds_of("5 s") == microseconds_of(timedelta(seconds=5)) == 5_000_000
    assert microseconds_of("1.5 ms") == 1500
    with pytest.raises(ValueError, match="the watermark: "):
        microseconds_of("soon")
    with pytest.raises(TypeError, match="without a unit"):
        microseconds_of(5)
