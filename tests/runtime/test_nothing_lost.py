"""What a stream holds stays held: bad events and batches, units that change, times at the ends of 64 bits."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import nestream
from nestream.compose.spark import microseconds_of
from nestream.model.columns import to_table
from nestream.runtime.stream import Stream

BIG = 2**60 + 1
LEAST, GREATEST = -(2**63), 2**63 - 1
START = datetime(2026, 1, 31, 12)


@pytest.fixture(params=["query", "set"])
def many(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "set")


def stream_of(text: str, many: bool = False, **options: Any) -> Stream:
    query = nestream.queries({"q": text}) if many else nestream.query(text)
    stream: Stream = query.stream(**options)
    return stream


def spans(matches: Any) -> list[tuple[Any, Any]]:
    rows = matches.to_pylist() if isinstance(matches, pa.Table) else matches
    return [(row["match_start"], row["match_end"]) for row in rows]


# -- whatever an event is like -----------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["id", "shown"])
@pytest.mark.parametrize("bad", [0.5, "x", True, 2**70, [1], START, b"x", 1e300])
def test_large_integers_stay_held_whatever_comes_after_them(column: str, bad: Any, many: bool) -> None:
    text = "SEQ(A a, B b, a.id = b.id) WITHIN 10"
    stream = stream_of(text, many, dead_letter=lambda *_: None)
    stream.push({"ts": 1, "type": "A", "id": BIG, "shown": BIG})
    event = {"ts": 2, "type": "B", "id": BIG, "shown": BIG, column: bad}
    before = stream.save()
    with pytest.raises(nestream.EventError, match=column):
        stream.push_batch([event])
    assert stream.save() == before
    assert stream.push(event) == []
    assert stream.dead_count == 1
    assert spans(stream.push({"ts": 3, "type": "B", "id": BIG, "shown": BIG})) == [(1, 3)]


def test_a_column_that_the_query_neither_reads_nor_shows_does_not_matter(many: bool) -> None:
    stream = stream_of("SEQ(A a, B b, a.id = b.id) WITHIN 10 RETURN a.id AS id", many)
    for ts, other in enumerate([BIG, 0.5, "x", START]):
        stream.push({"ts": ts, "type": "A", "id": BIG, "other": other})
        stream.push_batch([{"ts": ts, "type": "A", "id": BIG, "other": other}])
    assert len(stream.push({"ts": 5, "type": "B", "id": BIG, "other": [1]})) == 8
    assert stream.dead_count == 0


def test_a_set_of_queries_that_show_no_events_gives_their_values() -> None:
    events = [{"ts": 1, "type": "A", "id": 1}, {"ts": 2, "type": "B", "id": 1}]
    found = nestream.queries(["SEQ(A a, B b, a.id = b.id) WITHIN 10 RETURN a.id AS id"]).match(events)
    assert [(row["events"], row["values"]) for row in found.to_pylist()] == [([], [("id", "1")])]


@pytest.mark.parametrize("missing", [float("nan"), None, pd.NA, np.float32("nan")])
def test_a_column_of_large_integers_takes_nan_as_null_and_stays_as_it_is(missing: Any, many: bool) -> None:
    stream = stream_of("SEQ(A a, B b, a.id = b.id) WITHIN 10", many)
    stream.push({"ts": 1, "type": "A", "id": BIG})
    stream.push({"ts": 2, "type": "B", "id": missing})
    stream.push_batch(pa.table({"ts": [2], "type": ["B"], "id": pa.array([float("nan")])}))
    assert spans(stream.push({"ts": 3, "type": "B", "id": BIG})) == [(1, 3)]
    assert stream.dead_count == 0


def test_a_batch_is_taken_as_a_whole_or_not_at_all() -> None:
    dead: list[Any] = []
    stream = stream_of(
        "SEQ(A a, B b) WITHIN 10", dead_letter=lambda *told: dead.append(told), late=dead.append
    )
    stream.push_batch([{"ts": 5, "type": "A", "x": 1}])
    before = stream.describe()
    rows = [{"ts": None, "type": "B"}, {"ts": 1, "type": "B"}, {"ts": 6, "type": "B", "x": "text"}]
    with pytest.raises(nestream.EventError, match="`x`"):
        stream.push_batch(rows)
    assert (stream.describe(), dead) == (before, [])
    assert spans(stream.push_batch([{"ts": 7, "type": "B", "x": 2}])) == [(5, 7)]


def test_a_batch_that_the_query_cannot_compute_with_changes_nothing(many: bool) -> None:
    stream = stream_of("SEQ(A a, B b, b.x > 5) WITHIN 10", many)
    stream.push_batch([{"ts": 1, "type": "A"}])
    before = stream.save()
    with pytest.raises(nestream.QueryError, match="cannot compare"):
        stream.push_batch([{"ts": 2, "type": "B", "x": "text"}])
    assert stream.save() == before
    assert spans(stream.push_batch([{"ts": 3, "type": "B", "x": 6}])) == [(1, 3)]


def test_an_integer_beyond_64_bits_that_the_query_computes_with_is_refused_when_it_arrives(
    many: bool,
) -> None:
    stream = stream_of("SEQ(A a, B b, a.x < b.x) WITHIN 10", many, lateness=5)
    column = pa.array([1], pa.uint64())
    stream.push_batch(pa.table({"ts": [1], "type": ["A"], "x": column}))
    with pytest.raises(nestream.EventError, match="`x`"):
        stream.push_batch(pa.table({"ts": [2], "type": ["B"], "x": pa.array([2**64 - 1], pa.uint64())}))
    stream.push_batch(pa.table({"ts": [3], "type": ["B"], "x": pa.array([2], pa.uint64())}))
    assert spans(stream.finish()) == [(1, 3)]


def test_an_event_is_taken_as_it_was_when_it_was_pushed() -> None:
    stream = stream_of("SEQ(A a, B b) WITHIN 10")
    event: dict[str, Any] = {"ts": 0, "type": "Z"}
    stream.push(event)
    for ts in (1, 2):
        event.update(ts=ts, type="A")
        stream.push(event)  # the same dictionary, used again
    assert spans(stream.push({"ts": 3, "type": "B"})) == [(1, 3), (2, 3)]


def test_words_of_small_dictionaries_join_beyond_their_room() -> None:
    stream = stream_of("SEQ(A a, B b, a.id = b.id) WITHIN 1000")
    for start in (0, 100, 200):
        words = pa.array([f"w{n}" for n in range(start, start + 100)]).dictionary_encode()
        small = words.cast(pa.dictionary(pa.int8(), pa.string()))
        table = pa.table({"ts": range(start, start + 100), "type": ["A"] * 100, "id": small})
        stream.push_batch(table)
    assert spans(stream.push({"ts": 300, "type": "B", "id": "w7"})) == [(7, 300)]


def test_a_type_that_is_a_null_word_of_a_dictionary_is_no_type() -> None:
    types = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["A", None]))
    table = pa.table({"ts": [1, 2], "type": types})
    stream = stream_of("A a", dead_letter=lambda *_: None)
    assert stream.push_batch(table).num_rows == 1
    assert stream.dead_count == 1
    with pytest.raises(nestream.EventError, match="row 1 has no type"):
        nestream.query("A a").match(table)


@pytest.mark.parametrize("ending", [None, float("nan")])
def test_a_time_that_is_missing_among_integers_is_a_dead_letter(ending: Any) -> None:
    stream = stream_of("SEQ(A a, B b) WITHIN 10", dead_letter=lambda *_: None)
    stream.push_batch([{"ts": 1, "type": "A"}])
    found = stream.push_batch(pa.table({"ts": pa.array([2.0, ending], pa.float64()), "type": ["B", "B"]}))
    assert (spans(found), stream.dead_count) == ([(1, 2)], 1)


def test_tables_by_type_keep_their_values_or_are_refused() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN 10")
    found = query.match({"A": [{"ts": 1, "x": 1}], "B": [{"ts": 2, "x": 0.5}]}).to_pylist()
    assert (found[0]["a"]["x"], found[0]["b"]["x"]) == (1.0, 0.5)
    for one, other in ((BIG, 0.5), (START.date(), START), (True, 2), (1, "1")):
        with pytest.raises(nestream.EventError, match="`x`"):
            query.match({"A": [{"ts": 1, "x": one}], "B": [{"ts": 2, "x": other}]})


# -- units of time -----------------------------------------------------------------------------------------


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


# -- the ends of 64 bits -----------------------------------------------------------------------------------


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


# -- late events -------------------------------------------------------------------------------------------


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


# -- odd inputs --------------------------------------------------------------------------------------------


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
    "names that are numbers": ([{1: 2}], "an attribute named 1, and a name is a string"),
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
