"""Inputs of a stream that are no events: refused in words, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import nestream
from tests.runtime.streams import START, spans, stream_of


class Frame:
    """Looks like a DataFrame of Spark."""


Frame.__module__ = "pyspark.sql.dataframe"
TWICE = pa.table([[1], ["A"], [1], [2]], names=["ts", "type", "x", "x"])
ODD: dict[str, tuple[Any, str]] = {
    "None": (None, "cannot read events from a NoneType"),
    "a text": ("events", "cannot read events from a str"),
    "a number": (5, "cannot read events from an int"),
    "numbers": ([1, 2], "event 0 is an int, not a dictionary"),
    "an event and None": ([{"ts": 1, "type": "A"}, None], "event 1 is a NoneType, not a dictionary"),
    "a DataFrame of Spark": (Frame(), r"`match\(df\)`"),
    "DataFrames of Spark by type": ({"A": Frame()}, r"type `A`: .*`match\(df\)`"),
    "a column twice": (TWICE, "several columns named `x`"),
    "a column of pandas": (pd.Series([1, 2]), "cannot read events from a Series"),
    "a column of mixed objects": (pd.DataFrame({"ts": [1, 2], "type": ["A", 5]}), "`type` holds strings"),
    "one event": ({"ts": 1, "type": "A"}, "`ts` holds an int"),
    "names that are numbers": ([{1: 2}], "an attribute named 1, but a name must be a string"),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_batch_of_anything_else_is_refused_in_words_and_nothing_is_lost(odd: str, many: bool) -> None:
    events, words = ODD[odd]
    stream = stream_of("SEQ(A a, B b) WITHIN 10", many)
    stream.push({"ts": 1, "type": "A"})
    with pytest.raises(nestream.EventError, match=words):
        stream.push_batch(events)
    assert spans(stream.push({"ts": 2, "type": "B"})) == [(1, 2)]


@pytest.mark.parametrize("odd", ["a number", "a DataFrame of Spark", "a column twice", "one event"])
def test_a_stream_over_anything_else_is_refused_in_words_at_once(odd: str) -> None:
    events, words = ODD[odd]
    with pytest.raises(nestream.EventError, match=words):
        nestream.query("A a").stream(events)


@pytest.mark.parametrize("table", [TWICE, pd.DataFrame({"ts": [1], "type": ["A"]}), Frame()])
def test_a_table_is_not_pushed_as_one_event(table: Any) -> None:
    stream = stream_of("A a")
    with pytest.raises(nestream.EventError, match="push_batch"):
        stream.push(table)
    assert stream.dead_count == 0


def test_an_iterable_may_have_events_batches_and_dead_letters() -> None:
    def source() -> Iterator[Any]:
        yield {"ts": 1, "type": "A"}
        yield None
        yield pd.DataFrame({"ts": [2], "type": ["B"]})
        yield "B"
        yield ({"ts": ts, "type": "B"} for ts in (3, 4))

    dead: list[Any] = []
    found = nestream.query("SEQ(A a, B b) WITHIN 10").stream(
        source(), dead_letter=lambda x, _: dead.append(x)
    )
    assert (spans(list(found)), dead) == ([(1, 2), (1, 3), (1, 4)], [None, "B"])


def test_an_event_without_any_attribute_is_a_dead_letter_in_a_batch_too() -> None:
    stream = stream_of("A a", dead_letter=lambda *_: None)
    stream.push_batch([{}])
    stream.push_batch([{}, {"ts": 1, "type": "A"}])
    assert (stream.dead_count, stream.matches_out) == (2, 1)


def test_a_state_is_not_restored_into_a_stream_of_other_columns() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN 10")
    stream = query.stream()
    stream.push({"ts": 1, "type": "A", "x": 1})
    other = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("x", pa.string())])
    with pytest.raises(nestream.StateError, match="`x` is string"):
        query.stream(schema=other).restore(stream.save())
    with pytest.raises(nestream.StateError, match="no column `at`"):
        query.stream(time="at").restore(stream.save())


def test_a_declared_column_takes_only_what_it_holds_exactly() -> None:
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("x", pa.float32()), ("n", pa.int8())])
    dead: list[str] = []
    stream = stream_of("SEQ(A a, B b) WITHIN 10", schema=schema, dead_letter=lambda _, why: dead.append(why))
    for ts, x, n in ((1, 0.5, 1), (2, 0.1, 1), (3, 2, 300), (4, float("nan"), -128.0)):
        stream.push({"ts": ts, "type": "A", "x": x, "n": n})
    assert spans(stream.push({"ts": 5, "type": "B"})) == [(1, 5), (4, 5)]
    assert ["0.1 does not fit" in dead[0], "300 does not fit" in dead[1]] == [True, True]


def test_a_moment_that_python_has_no_date_for_does_not_stop_a_dead_letter() -> None:
    dead: list[Any] = []
    stream = stream_of("A a", dead_letter=lambda event, _: dead.append(event))
    stream.push_batch(
        pa.table(
            {"ts": pa.array([None], pa.int64()), "type": ["A"], "x": pa.array([2**60], pa.timestamp("s"))}
        )
    )
    assert len(dead) == 1


def test_zones_may_differ_and_are_told_in_the_first() -> None:
    stream = stream_of("SEQ(A a, B b, a.x = b.x) WITHIN 10")
    moment = START.replace(tzinfo=UTC)
    stream.push({"ts": 1, "type": "A", "x": moment})
    elsewhere = pd.Timestamp(moment).tz_convert("Europe/Paris")
    (match,) = stream.push({"ts": 2, "type": "B", "x": elsewhere})
    assert match["a"]["x"] == match["b"]["x"] == moment
