"""Good and bad events and batches in any order, with restarts: the matches are those of the good ones."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nestream
from nestream.runtime.stream import Stream

QUERIES = [
    "SEQ(A a, B b, a.id = b.id) WITHIN 6",
    "SEQ(A a, !(C c, c.id = a.id), B b) WITHIN 6",
    "SEQ(A a, B b, !(C c)) WITHIN 4",
    "AND(A a, B b, !C c) WITHIN 4",
    "SEQ(A a, B b) WITHIN 5 RETURN a",
    "SEQ(A a, B b) WITHIN 5 RETURN a.id AS id, b.x AS x",
]

GOOD = st.fixed_dictionaries(
    {"type": st.sampled_from("ABCZ"), "id": st.sampled_from([None, 1, 2, 1.0, 2.5, float("nan")])},
    optional={"x": st.sampled_from([2**60, 2**60 + 1, None]), "note": st.sampled_from(["a", "b"])},
)
"""Events that fit whatever came before, but for their time."""

FAULTS: dict[str, Any] = {
    "no time": {"ts": None},
    "no type": {"type": None},
    "a time of another kind": {"ts": "now"},
    "a fraction of a time": {"ts": 2.5},
    "a time beyond all": {"ts": 2**63 - 1},
    "a type of another kind": {"type": 5},
    "a text for a number": {"id": "one"},
    "a truth for a number": {"id": True},
    "a moment for a number": {"id": datetime(2026, 1, 31)},
    "a number for a text": {"note": 5},
    "too large": {"id": 2**80},
}
ARRIVALS = st.lists(
    st.tuples(
        st.sampled_from(["push", "batch", "batch", "restart"]),
        st.lists(
            st.tuples(st.integers(-3, 3), GOOD, st.sampled_from([None, None, None, *FAULTS])),
            min_size=1,
            max_size=3,
        ),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("many", [False, True], ids=["query", "set"])
@pytest.mark.parametrize("text", QUERIES)
@given(arrivals=ARRIVALS, lateness=st.sampled_from([0, 2]))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_bad_events_change_nothing_for_the_good_ones(
    text: str, many: bool, lateness: int, arrivals: list[tuple[str, list[tuple[int, Any, str | None]]]]
) -> None:
    query = nestream.queries({"q": text}) if many else nestream.query(text)
    aside: list[Any] = []

    def start() -> Stream:
        stream: Stream = query.stream(
            lateness=lateness, late=aside.append, dead_letter=lambda event, _: aside.append(event)
        )
        return stream

    stream = start()
    first = {"ts": 0, "type": "A", "id": 1, "x": 2**60, "note": "a"}
    taken, found, now = [first], stream.push(first), 0
    for how, parts in arrivals:
        events = []
        for step, good, fault in parts:
            events.append({"ts": max(now + step, 0), **good, **(FAULTS[fault] if fault else {})})
            now = max(now, now + step)
        if how == "restart":
            stream = start().restore(stream.save())
        if how == "batch":
            before, aside_before = stream.save(), len(aside)
            try:
                found += stream.push_batch(events).to_pylist()
            except nestream.EventError:
                assert (stream.save(), len(aside)) == (before, aside_before)
                assert any(fault not in (None, "no time", "no type") for _, _, fault in parts)
                continue
            left = stream.dead_count + stream.late_count
            assert left == len(aside)
            taken += _without(events, aside[aside_before:])
            continue
        for event, (_, _, fault) in zip(events, parts, strict=True):
            aside_before = len(aside)
            found += stream.push(event)
            found += stream.flush()
            if len(aside) == aside_before:
                assert fault is None or (fault == "a number for a text" and "RETURN a.id" in text)
                taken.append(event)
    found += stream.finish()
    assert stream.events_in == len(taken) + stream.late_count
    if "RETURN a.id" in text:  # it does not use the notes
        taken = [{name: value for name, value in event.items() if name != "note"} for event in taken]
    expected = nestream.query(text).match(taken, strategy="reference").to_pylist()
    assert sorted(map(_seen, found)) == sorted(map(_seen, expected))


def _without(events: list[Any], aside: list[Any]) -> list[Any]:
    """The events that were not set aside; of those that are equal it does not matter which."""
    left = list(events)
    for event in aside:
        shown = _plain(event)
        left.remove(next(one for one in left if _plain(one) == shown))
    return left


def _plain(event: Any) -> Any:
    return {
        n: float(v) if isinstance(v, int) and n == "id" else v
        for n, v in event.items()
        if v == v and v is not None
    }


def _seen(match: dict[str, Any]) -> str:
    """A match to compare: its span, its events by variable, and what it returns."""
    if "query" in match:
        shown = {part["variable"]: part["event"] for part in match["events"]}
        values = {name: value for name, value in match["values"] if value not in (None, "nan")}
    else:
        shown = {name: value for name, value in match.items() if isinstance(value, dict)}
        own = {*shown, "match_start", "match_end"}
        values = {n: str(v) for n, v in match.items() if n not in own and v is not None and v == v}
    events = {name: sorted(_plain(event).items()) for name, event in sorted(shown.items())}
    numbers = {name: float(value) for name, value in values.items()}
    return repr((match["match_start"], match["match_end"], events, numbers))
