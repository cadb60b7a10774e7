"""What a stream holds stays held, whatever an event or a batch is like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import nestream
from tests.runtime.streams import BIG, START, spans, stream_of


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
