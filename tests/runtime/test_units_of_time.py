"""Streams whose times come in several units, or are at the ends of 64 bits."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import nestream
from nestream.model.columns import to_table
from tests.runtime.streams import GREATEST, LEAST, START, spans, stream_of


@pytest.mark.parametrize("lateness", [0, "20 s"])
@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.duration("ns"), pa.timestamp("ns", "UTC")])
@pytest.mark.parametrize("restart", [False, True])
def test_all_times_move_to_nanoseconds_together(lateness: Any, kind: Any, restart: bool, many: bool) -> None:
    text = "SEQ(A a, B b, !(C c)) WITHIN 1 minutes"
    events = [
        {"ts": START + timedelta(seconds=second), "type": type}
        for second, type in ((0, "A"), (10, "B"), (61, "Z"), (70, "C"), (75, "A"), (80, "B"), (200, "Z"))
    ]
    for cut in range(1, len(events)):
        stream, found = stream_of(text, many, lateness=lateness), []
        for place, event in enumerate(events):
            table = to_table([event])
            if place == cut:
                table = table.append_column("fine", pa.array([1], kind))
                if restart:
                    stream = stream_of(text, many, lateness=lateness).restore(stream.save())
            found += stream.push_batch(table).to_pylist()
        found += stream.finish()
        assert spans(found) == [
            (START, START + timedelta(seconds=10)),
            (START + timedelta(seconds=75), START + timedelta(seconds=80)),
        ]
        assert stream.late_count == 0


def test_a_finer_time_is_taken_where_it_is_whole_in_the_unit_of_the_others() -> None:
    stream = stream_of("SEQ(A a, B b) WITHIN 1 hours")
    stream.push({"ts": START, "type": "A"})
    with pytest.raises(nestream.EventError, match="`ts` holds timestamps without zone"):
        stream.push_batch([{"ts": pd.Timestamp(START) + pd.Timedelta(1, "ns"), "type": "B"}])
    whole = pa.array([START + timedelta(seconds=1)], pa.timestamp("ns"))
    assert stream.push_batch(pa.table({"ts": whole, "type": ["B"]})).num_rows == 1


def test_times_that_do_not_fit_in_nanoseconds_refuse_a_column_in_nanoseconds(many: bool) -> None:
    stream = stream_of("SEQ(A a, B b) WITHIN 1 hours", many)
    far = datetime(2500, 1, 1)
    stream.push({"ts": far, "type": "A"})
    before = stream.save()
    fine = to_table([{"ts": far, "type": "B"}]).append_column("fine", pa.array([1], pa.timestamp("ns")))
    with pytest.raises(nestream.EventError, match="nanoseconds"):
        stream.push_batch(fine)
    assert stream.save() == before
    assert len(stream.push({"ts": far + timedelta(seconds=1), "type": "B"})) == 1


def test_integer_times_stay_what_they_are_when_nanoseconds_come() -> None:
    stream = stream_of("SEQ(A a, B b) WITHIN 10")
    stream.push({"ts": 1, "type": "A"})
    table = to_table([{"ts": 2, "type": "B"}]).append_column("fine", pa.array([1], pa.timestamp("ns")))
    assert spans(stream.push_batch(table)) == [(1, 2)]


@pytest.mark.parametrize("lateness", [0, 3, 2**62, GREATEST])
@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, B b) WITHIN 10",
        "SEQ(A a, B b, !(C c, c.id = a.id)) WITHIN 9223372036854775807",
        "AND(A a, B b, !C c) WITHIN 5",
        "SEQ(!C c, A a, B b) WITHIN 4611686018427387904",
        "SEQ(A a, B b, !C c) WITHIN 3 EVENTS",
    ],
)
def test_times_at_the_ends_of_64_bits_are_matched_as_the_reference_does(text: str, lateness: int) -> None:
    times = [LEAST, LEAST + 1, LEAST + 9, -1, 0, 2**62, GREATEST - 9, GREATEST - 2, GREATEST - 1]
    query = nestream.query(text)
    for shift in range(4):
        events = [
            {"ts": ts, "type": "ABCA"[(place * place + shift) % 4], "id": place % 2}
            for place, ts in enumerate(times)
        ]
        expected = sorted(spans(query.match(events, strategy="reference")))
        assert sorted(spans(query.match(events))) == expected
        assert query.count(events) == len(expected)
        for many in (False, True):
            stream = stream_of(text, many, lateness=lateness)
            found = [match for event in events for match in stream.push(event)]
            assert sorted(spans([*found, *stream.finish()])) == expected
            assert stream.late_count == 0


def test_the_greatest_integer_is_no_time_in_a_stream_as_it_ends_all_time(many: bool) -> None:
    dead: list[str] = []
    stream = stream_of("AND(A a, B b, !C c) WITHIN 5", many, dead_letter=lambda _, why: dead.append(why))
    stream.push({"ts": GREATEST - 2, "type": "A"})
    stream.push({"ts": GREATEST, "type": "B"})
    with pytest.raises(nestream.EventError, match="end of time"):
        stream.push_batch([{"ts": GREATEST, "type": "B"}])
    assert "end of time" in dead[0]
    stream.push({"ts": GREATEST - 1, "type": "B"})
    assert spans(stream.finish()) == [(GREATEST - 2, GREATEST - 1)]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_timestamps_beyond_64_bits_of_microseconds_are_refused(unit: str, many: bool) -> None:
    table = pa.table({"ts": pa.array([2**62], pa.timestamp(unit)), "type": ["A"]})
    query = nestream.query("A a WITHIN 1 hours")
    for run in (query.match, query.count, stream_of("A a WITHIN 1 hours", many).push_batch):
        with pytest.raises(nestream.EventError, match="`ts`"):
            run(table)
