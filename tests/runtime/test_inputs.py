"""What events may come as: frames of pandas, dictionaries of mixed values, and what is refused."""

from __future__ import annotations

import enum
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import nestream


class Strange:
    """A value that no column holds."""

    def __repr__(self) -> str:
        return "strange"


PAIR = nestream.query("SEQ(A a, B b, a.v = b.v) WITHIN UNBOUNDED RETURN a.n AS one, b.n AS two")
SHOWN = nestream.query("SEQ(A a, B b) WITHIN UNBOUNDED RETURN a.v AS one, b.v AS two")
ANY = nestream.query("SEQ(A a, B b) WITHIN UNBOUNDED RETURN a.n AS one, b.n AS two")
NAIVE, AWARE = datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)


def rows(one: Any, two: Any) -> list[dict[str, Any]]:
    return [
        {"ts": 1, "type": "A", "n": 0, "v": one},
        {"ts": 2, "type": "B", "n": 1, "v": two},
        {"ts": 3, "type": "B", "n": 2, "v": one},
    ]


def pairs(events: Any) -> list[tuple[int, int]]:
    """The pairs of events with equal `v`, which every way to run the query finds."""
    found = [(row["one"], row["two"]) for row in PAIR.match(events).to_pylist()]
    assert [(r["one"], r["two"]) for r in PAIR.match(events, strategy="reference").to_pylist()] == found
    assert PAIR.count(events) == len(found)
    return found


@pytest.mark.parametrize(
    "values",
    [
        pd.array([1, 2, None], "Int64"),
        pd.array([1, 2, None], "UInt8"),
        pd.array([1.5, 2.5, None], "Float32"),
        pd.array([True, False, None], "boolean"),
        pd.array(["x", "y", None], "string"),
        pd.array(["x", "y", None], "string[pyarrow]"),
        pd.Categorical(["x", "y", None]),
        pd.Categorical([1, 2, None], ordered=True),
        pd.Categorical([NAIVE, NAIVE + timedelta(1), None]),
        pd.Series(["x", "y", None], dtype=object),
        pd.Series([1, 2.5, None], dtype=object),
        pd.Series([Decimal("1.1"), Decimal("2"), None], dtype=object),
        pd.Series([date(2026, 1, 1), date(2026, 1, 2), None], dtype=object),
        pd.Series([NAIVE, NAIVE + timedelta(1), pd.NaT]),
        pd.Series([NAIVE, NAIVE + timedelta(1), pd.NaT], dtype="datetime64[s]"),
        pd.Series([AWARE, AWARE + timedelta(1), pd.NaT]).dt.tz_convert("Asia/Tokyo"),
        pd.Series([timedelta(1), timedelta(2), pd.NaT]),
        pd.array([1, 2, None], pd.ArrowDtype(pa.int16())),
        pd.array(["x", "y", None], pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
        pd.array([NAIVE, NAIVE + timedelta(1), None], pd.ArrowDtype(pa.timestamp("ms"))),
        pd.array([Decimal("1.1"), Decimal("2"), None], pd.ArrowDtype(pa.decimal128(5, 1))),
        pd.Series([np.float16(1.5), np.float16(2), None], dtype="float16"),
    ],
    ids=lambda values: str(values.dtype),
)
def test_pandas_columns_of_any_dtype_are_joined(values: Any) -> None:
    frame = pd.DataFrame({"ts": [1, 2, 3], "type": ["A", "B", "B"], "n": [0, 1, 2], "v": values})
    for order, expected in (([0, 1, 0], [(0, 2)]), ([0, 1, 2], []), ([2, 0, 2], [])):
        chosen = frame.assign(v=frame["v"].iloc[order].array)
        assert pairs(chosen) == expected


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        (NAIVE, AWARE, "timestamps without zone (timestamp[us]): timestamps with zone"),
        (AWARE, NAIVE, "timestamps with zone (timestamp[us, tz=UTC]): timestamps without zone"),
        (date(2026, 1, 1), NAIVE + timedelta(hours=5), "dates (date32[day]): timestamps without zone"),
        (NAIVE, date(2026, 1, 1), "timestamps without zone (timestamp[us]): dates"),
        ("x", b"x", "strings (string): bytes (binary) do not fit"),
        (1.5, True, "floats (double): booleans (bool) do not fit"),
        (1, True, "integers (int64): booleans (bool) do not fit"),
        (1, "x", "integers (int64): strings (string) do not fit"),
        ([NAIVE], [AWARE], "has parts of different types"),
        ([1, "x"], None, "[1, 'x'] has parts of different types"),
        ({"at": NAIVE}, {"at": AWARE}, "has parts of different types"),
        (2**70, 1, "the integer 1180591620717411303424 does not fit in 64 bits"),
        (Strange(), 1, "no column holds strange, a value of type Strange"),
        (enum.Enum("Colour", "red").red, None, "a value of type Colour"),  # type: ignore[attr-defined]
        (1j, None, "no column holds 1j, a value of type complex"),
        (time(1, tzinfo=UTC), None, "has a zone, which a time of day cannot keep"),
        ("\ud800", None, "'\\ud800' is not valid Unicode"),
        ({1: 2}, None, "{1: 2} has keys that are not strings"),
    ],
    ids=repr,
)
def test_values_that_arrow_would_change_or_refuse_are_refused_with_a_sentence(
    one: Any, two: Any, told: str
) -> None:
    frame = pd.DataFrame({**pd.DataFrame(rows(0, 0)), "v": pd.Series([one, two, one], dtype=object)})
    for events in (rows(one, two), {"A": rows(one, two)}, frame):
        with pytest.raises(nestream.EventError) as refused:
            ANY.match(events)
        assert "`v" in str(refused.value)
        assert told in str(refused.value)
        assert "hint" in str(refused.value)


def test_a_stream_puts_values_aside_that_arrow_would_change() -> None:
    letters: list[tuple[Any, str]] = []
    stream = SHOWN.stream(dead_letter=lambda event, reason: letters.append((event["v"], reason)))
    for number, value in enumerate([NAIVE, AWARE, date(2026, 1, 1), NAIVE + timedelta(hours=1), b"x"]):
        stream.push({"ts": number, "type": "A", "n": number, "v": value})
    stream.finish()
    assert [value for value, _ in letters] == [AWARE, date(2026, 1, 1), b"x"]
    assert all("`v`" in reason for _, reason in letters)


def test_nanoseconds_of_pandas_values_are_kept() -> None:
    late, early = pd.Timestamp(1), pd.Timestamp(0)
    assert pairs(rows(late, early)) == [(0, 2)]
    assert pairs(rows(pd.Timedelta(1), pd.Timedelta(0))) == [(0, 2)]


def test_pandas_words_for_null_in_dictionaries_are_null() -> None:
    for nothing in (pd.NA, pd.NaT, None, float("nan")):
        assert pairs(rows(nothing, 1 if nothing is not pd.NaT else NAIVE)) == []


def test_a_uuid_rides_along_and_is_compared() -> None:
    one, two = uuid.uuid4(), uuid.uuid4()
    assert SHOWN.match(rows(one, two)).to_pylist()[0]["two"] == two
    assert pairs(rows(one, two)) == [(0, 2)]


# -- columns of the same name ------------------------------------------------------------------------------


def twice(name: str) -> pa.Table:
    events = pa.Table.from_pylist(rows(1, 2))
    return events.append_column(name, events.column(name))


@pytest.mark.parametrize("name", ["ts", "type", "v"])
def test_columns_of_the_same_name_are_refused_wherever_they_come_from(name: str) -> None:
    table = twice(name)
    frame = pd.concat([pd.DataFrame(rows(1, 2)), pd.DataFrame(rows(1, 2))[[name]]], axis=1)
    sources: list[Any] = [table, table.to_batches()[0], {"A": table}, frame, {"A": frame}]
    for events in sources:
        for run in (ANY.match, ANY.count, ANY.stream().push_batch, nestream.queries({"q": ANY.text}).match):
            with pytest.raises(nestream.EventError, match=f"several columns named `{name}`") as refused:
                run(events)
            assert "hint" in str(refused.value)
    with pytest.raises(nestream.EventError, match=f"several columns named `{name}`"):
        ANY.stream(schema=table.schema)


def test_children_of_the_same_name_are_refused_at_any_depth() -> None:
    child = pa.StructArray.from_arrays([pa.array([1, 2, 3])] * 2, names=["x", "x"])
    deeper = pa.StructArray.from_arrays([child], names=["y"])
    lists = pa.ListArray.from_arrays([0, 1, 2, 3], child)
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), child)
    for column in (child, deeper, lists, coded):
        events = pa.Table.from_pylist(rows(1, 2)).set_column(3, "v", column)
        with pytest.raises(nestream.EventError, match="`v` holds structs with several children named `x`"):
            ANY.match(events)


# -- what is no table --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ({"ts": 1, "type": "A"}, "`ts` holds an int\n  hint: put a single event in a list"),
        ({"A": {"ts": 1}}, "`A` holds a dict"),
        ({"ts": [1, 2], "type": ["A", "B"]}, "event 0 is an int, not a dictionary"),
        ({1: [{"ts": 1}]}, "a type 1, but a type must be a string"),
        ({"A": [{"ts": 1, "v": 1}], "B": [{"ts": 2, "v": "x"}]}, "`v` holds integers (int64): strings"),
        (5, "cannot read events from an int"),
        (None, "cannot read events from a NoneType"),
        ([1, 2], "event 0 is an int, not a dictionary"),
        ([{1: 2}], "an attribute named 1"),
        (np.zeros(3), "cannot read events from a ndarray"),
        (pd.Series([1, 2]), "cannot read events from a Series"),
        (pa.array([1, 2]), "not a dictionary"),
        (pa.chunked_array([[1, 2]]), "not a dictionary"),
        (
            pd.DataFrame({"ts": [1], "v": pd.arrays.SparseArray([1])}),
            "column `v` holds Sparse",
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value[:20],
)
def test_what_is_no_table_of_events_is_refused_with_a_sentence(events: Any, told: str) -> None:
    for run in (ANY.match, ANY.count, lambda events: ANY.why(events, [0])):
        with pytest.raises(nestream.EventError) as refused:
            run(events)
        assert told in str(refused.value)
        assert "hint" in str(refused.value)
