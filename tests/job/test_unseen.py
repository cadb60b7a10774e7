"""What running queries name and no event has had so far: when it is reported, and when not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.job import Unseen
from nestream.job.unseen import ENOUGH


def unseen(text: str, **columns: Any) -> Unseen:
    query = nestream.query(text)
    found = Unseen(lambda: query, "ts", "type")
    found.note(pa.table(columns))
    return found


def told(found: Unseen, *, ended: bool = False) -> list[str]:
    return found.sentences(ended=ended).get("query", [])


def test_a_misspelt_attribute_is_reported_after_one_event_and_a_new_one_after_some_or_at_the_end() -> None:
    close = unseen("SEQ(A a, a.speeed > 3) WITHIN 9", ts=[1], type=["A"], speed=[1])
    assert told(close) == ["no A event so far has `speeed`; did you mean `a.speed`?"]
    other = unseen("SEQ(A a, a.error > 3) WITHIN 9", ts=[1], type=["A"], speed=[1])
    sentence = "no A event so far has `error`; the attributes are `speed`, `ts`, `type`"
    assert told(other) == []
    assert told(other, ended=True) == [sentence]
    other.note(pa.table({"ts": [2] * ENOUGH, "type": ["A"] * ENOUGH}))
    assert told(other) == [sentence]
    other.note(pa.table({"ts": [3], "type": ["A"], "error": [7]}))
    assert told(other) == []


def test_an_attribute_of_any_type_is_reported_after_some_events_or_at_the_end() -> None:
    found = unseen("SEQ(A a, ANY x, x.error > 3) WITHIN 9", ts=[1], type=["A"], speed=[1])
    sentence = "no event so far has `error`; the attributes are `speed`, `ts`, `type`"
    assert told(found) == []
    assert told(found, ended=True) == [sentence]
    found.note(pa.table({"ts": [2] * ENOUGH, "type": [*"AB"] * (ENOUGH // 2)}))
    assert told(found) == [sentence]


def test_a_type_is_reported_if_one_with_a_close_name_has_come_often() -> None:
    few = unseen("SEQ(LoginOk a, Logout b) WITHIN 9", ts=[1], type=["LoginFail"])
    assert told(few) == []
    few.note(pa.table({"ts": [1] * ENOUGH, "type": ["LoginFail"] * ENOUGH}))
    assert "no event so far has the type `LoginOk`; did you mean `LoginFail`?" in told(few)
    few.note(pa.table({"ts": [2, 2], "type": ["LoginOk", "Logout"]}))
    assert told(few) == []


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_times_as_text_and_types_as_words_are_taken(kind: pa.DataType) -> None:
    found = unseen("SEQ(A a, a.n > 3) WITHIN 1 hour", ts=["2026-01-05"], type=pa.array(["A"], kind))
    assert told(found, ended=True) == ["no A event so far has `n`; the attributes are `ts`, `type`"]


def test_nothing_is_said_of_events_whose_beginning_is_unknown() -> None:
    """A checkpoint of an earlier version does not know which columns and types came."""
    found = unseen("SEQ(A a, a.speeed > 3) WITHIN 9", ts=[1], type=["A"], speed=[1])
    again = unseen("SEQ(A a, a.speeed > 3) WITHIN 9", ts=[1], type=["A"], speed=[1])
    again.go_on(found.json())
    assert told(again) == told(found) != []
    again.go_on({})
    assert told(again, ended=True) == []
    assert again.json() == {}
