"""Columns named `ts` and `type` beside the time and the type: what is meant, and that a warning says so."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import nestream

EVENTS = [
    {"at": 1, "kind": "A", "type": 3, "ts": 5},
    {"at": 2, "kind": "B", "type": 3, "ts": 7},
    {"at": 3, "kind": "B", "type": 4, "ts": 9},
]
COLUMNS: dict[str, Any] = {"time": "at", "type": "kind"}


def test_a_warning_says_that_a_column_of_the_data_is_meant() -> None:
    query = nestream.query("SEQ(A a, B b, a.type = b.type) WITHIN 10")
    with pytest.warns(UserWarning, match="the column `type` of the events") as told:
        assert query.match(EVENTS, **COLUMNS).num_rows == 1
    assert "the type is the column `kind`" in str(told[0].message)


def test_there_is_no_warning_where_nothing_is_ambiguous() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_id = nestream.query("SEQ(A a, B b, a.kind != b.kind) WITHIN 10")
        assert by_id.match(EVENTS, **COLUMNS).num_rows == 2
        usual = [{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}]
        own = nestream.query("SEQ(A a, B b, a.type != b.type, a.ts < b.ts) WITHIN 10")
        assert own.match(usual).num_rows == 1


@pytest.mark.filterwarnings("ignore:.*the column")
def test_every_way_to_run_reads_the_column_of_the_data() -> None:
    text = "SEQ(A a, B b, a.type = b.type, b.ts - a.ts = 2) WITHIN 10 RETURN a.type AS kind, b.ts AS reading"
    query = nestream.query(text)
    expected = [{"kind": 3, "reading": 7, "match_start": 1, "match_end": 2}]
    assert query.match(EVENTS, **COLUMNS).to_pylist() == expected
    assert query.match(EVENTS, strategy="reference", **COLUMNS).to_pylist() == expected
    stream = query.stream(**COLUMNS)
    assert [match for event in EVENTS for match in stream.push(event)] + stream.finish() == expected
    assert query.why(EVENTS, [0, 1], **COLUMNS).matched
    assert "a.type = b.type: 3" in str(query.why(EVENTS, [0, 2], **COLUMNS))
    assert nestream.queries({"it": text}).match_each(EVENTS, **COLUMNS)["it"].to_pylist() == expected
    assert "\0" not in query.explain(analyze=EVENTS, verbose=True, **COLUMNS)


def test_a_column_that_would_change_the_meaning_of_a_running_stream_is_refused() -> None:
    letters: list[str] = []
    query = nestream.query("SEQ(A a, B b, a.type != b.type) WITHIN 10")
    stream = query.stream(dead_letter=lambda event, reason: letters.append(reason), **COLUMNS)
    events: list[dict[str, Any]] = [{"at": 1, "kind": "A"}, {"at": 2, "kind": "B", "type": 3}]
    assert [match for event in events for match in stream.push(event)] == []
    assert "column `type` came after the query began" in letters[0]
