"""The columns of the events held are those of a plain table, however they were added and forgotten."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import cycle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nestream
from nestream.engine.growing import Growing
from nestream.engine.held_columns import HeldColumns

VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, 0, 127],
    pa.uint8(): [0, 200, 255],
    pa.uint64(): [0, 2**64 - 1, 7],
    pa.int64(): [-(2**63), 2**63 - 1, 5],
    pa.float16(): [np.float16(0.5), np.float16(2), np.float16(-1)],
    pa.float32(): [0.5, -1.0, 3.0],
    pa.float64(): [0.5, float("inf"), -0.0],
    pa.bool_(): [True, False, True],
    pa.date32(): [date(2026, 1, 5), date(1969, 1, 1), date(2000, 2, 29)],
    pa.timestamp("us", "UTC"): [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)],
    pa.duration("ms"): [timedelta(0), timedelta(days=-1), timedelta(seconds=5)],
    pa.decimal128(9, 2): [Decimal("0.25"), Decimal("-7"), Decimal("12345.67")],
    pa.string(): ["", "ä", "long " * 9],
    pa.struct([("n", pa.int64())]): [{"n": 1}, {"n": None}, {"n": 3}],
    pa.list_(pa.int32()): [[], [1], [2, 3]],
    pa.null(): [None, None, None],
}
WORDS = ["", "b", "c", "d"]


def words(data: st.DataObject, index: pa.DataType, count: int, nulls: bool) -> pa.Array:
    """Some words in a dictionary that has them all, or only those that occur."""
    some = st.sampled_from([None, *WORDS] if nulls else WORDS)
    drawn = data.draw(st.lists(some, min_size=count, max_size=count))
    if data.draw(st.booleans()):
        numbers = [None if word is None else WORDS.index(word) for word in drawn]
        return pa.DictionaryArray.from_arrays(pa.array(numbers, index), pa.array(WORDS))
    return pa.array(drawn, pa.string()).dictionary_encode().cast(pa.dictionary(index, pa.string()))


def drawn_batch(data: st.DataObject, schema: pa.Schema) -> pa.RecordBatch:
    """Some rows, from within a batch; the indices of the words are of any width."""
    count, nulls = data.draw(st.integers(0, 5)), data.draw(st.booleans())
    columns = []
    for kind in schema.types[:-1]:
        values = st.sampled_from([*VALUES[kind], None] if nulls else VALUES[kind])
        columns.append(pa.array(data.draw(st.lists(values, min_size=count, max_size=count)), kind))
    width = data.draw(st.sampled_from([pa.int8(), pa.uint8(), pa.int16(), pa.int32()]))
    columns.append(words(data, width, count, nulls))
    batch = pa.RecordBatch.from_arrays(columns, names=schema.names)
    return batch.slice(data.draw(st.integers(0, count)))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_held_columns_are_those_of_a_table(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    fields = [pa.field(f"c{place}", kind) for place, kind in enumerate(kinds)]
    schema = pa.schema([*fields, pa.field("word", pa.dictionary(pa.int32(), pa.string()))])
    held, expected = HeldColumns(schema), schema.empty_table()
    for _ in range(data.draw(st.integers(1, 5))):
        if data.draw(st.integers(0, 3)) == 0:
            count = data.draw(st.integers(0, len(expected)))
            held.drop(count)
            expected = expected.slice(count)
        batch, taken = drawn_batch(data, schema), None
        if data.draw(st.booleans()):
            some = st.lists(st.booleans(), min_size=len(batch), max_size=len(batch))
            taken = np.flatnonzero(data.draw(some))
        held.append(batch, taken)
        added = batch if taken is None else batch.take(pa.array(taken))
        expected = pa.concat_tables([expected, pa.Table.from_batches([added]).cast(schema)])
        assert len(held) == len(expected)
        assert held.table.to_pylist() == expected.to_pylist()
        since = data.draw(st.integers(0, len(expected)))
        for name in schema.names:
            assert held.since(name, since).to_pylist() == expected.column(name).to_pylist()[since:]
        if len(expected):
            places = st.lists(st.integers(0, len(expected) - 1), min_size=1, max_size=4)
            rows = np.array(data.draw(places), np.int32)
            events = expected.take(pa.array(rows)).to_pylist()
            assert held.structs(rows, None, list(schema)).to_pylist() == events
            gone = rows % 2 == 0
            some_missing = held.structs(np.where(gone, -1, rows), gone, list(schema)).to_pylist()
            assert some_missing == [None if no else event for no, event in zip(gone, events, strict=True)]


@pytest.mark.parametrize("kind", [kind for kind in VALUES if pa.types.is_integer(kind)], ids=str)
def test_only_signed_integers_without_null_are_numbers_as_they_are_held(kind: pa.DataType) -> None:
    held = HeldColumns(pa.schema([("n", kind)]))
    held.append(pa.RecordBatch.from_arrays([pa.array(VALUES[kind], kind)], names=["n"]), None)
    found = held.integers("n")
    assert (found is None) == pa.types.is_unsigned_integer(kind)
    assert found is None or found.tolist() == VALUES[kind]
    held.append(pa.RecordBatch.from_arrays([pa.array([None], kind)], names=["n"]), None)
    assert held.integers("n") is None


PARTS = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=3)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), PARTS)))
def test_what_was_read_of_a_growing_array_never_changes(steps: list[tuple[int, list[list[int]]]]) -> None:
    found = Growing(np.empty(0, np.int64))
    expected: list[int] = []
    read: list[tuple[Any, list[int]]] = []
    for dropped, parts in steps:
        found.drop(dropped)
        found.extend(*(np.array(part, np.int64) for part in parts))
        expected = [*expected[dropped:], *(value for part in parts for value in part)]
        assert found.values.tolist() == expected
        read.append((found.values, list(expected)))
    assert all(values.tolist() == before for values, before in read)


@pytest.mark.parametrize("lateness", [0, 3])
def test_batches_with_dictionaries_of_any_width_are_one_stream(lateness: int) -> None:
    query = nestream.query("SEQ(A a, B b) WHERE [id] WITHIN 9")
    kinds, widths = cycle("AZB"), cycle([pa.int8(), pa.int32(), pa.int16()])
    batches = []
    for start in range(0, 60, 6):
        some = [next(kinds) for _ in range(6)]
        letters = pa.array(some).dictionary_encode().cast(pa.dictionary(next(widths), pa.string()))
        ids = pa.array([n % 2 for n in range(6)])
        batches.append(pa.table({"ts": range(start, start + 6), "type": letters, "id": ids}))
    plain = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64())])
    expected = query.match(pa.concat_tables(part.cast(plain) for part in batches)).to_pylist()
    stream, found = query.stream(lateness=lateness), []
    for number, part in enumerate(batches):
        found += stream.push_batch(part).to_pylist()
        if number % 4 == 3:
            stream = query.stream(lateness=lateness).restore(stream.save())
    found += stream.finish_batch().to_pylist()
    assert found == expected
    assert len(found) > 10


MANY = 400
"""With half as many words, an index of 8 bits has more than half its room taken."""


def of_many_words(first: int, index: pa.DataType, number: int) -> pa.Table:
    """Pairs of events that each have a word of their own, out of order by up to three."""
    count = 126 if index == pa.int8() else MANY
    ids = pa.array([f"w{number}.{row // 2}" for row in range(count)])
    types = pa.array(["A", "B"] * (count // 2))
    return pa.table(
        {
            "ts": [first + (row ^ 2) for row in range(count)],
            "type": types.dictionary_encode().cast(pa.dictionary(index, pa.string())),
            "id": ids.dictionary_encode().cast(pa.dictionary(index, pa.string())),
        }
    )


@pytest.mark.parametrize("lateness", [3, 700])
@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.uint16()], ids=str)
@pytest.mark.parametrize("together", [1, 3])
def test_narrow_dictionaries_may_have_many_words_in_all(
    index: pa.DataType, lateness: int, together: int
) -> None:
    query = nestream.query("SEQ(A a, B b, a.id = b.id) WITHIN 9 RETURN a.id AS id, b.ts AS ts")
    parts = [of_many_words(1000 * number, index, number) for number in range(9)]
    plain = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.string())])
    expected = query.match(pa.concat_tables(part.cast(plain) for part in parts)).to_pylist()
    stream, found = query.stream(lateness=lateness), []
    for number in range(0, len(parts), together):
        found += stream.push_batch(pa.concat_tables(parts[number : number + together])).to_pylist()
        if number % 2:
            stream = query.stream(lateness=lateness).restore(stream.save())
    found += stream.finish_batch().to_pylist()
    assert found == expected
    assert len(found) > 9 * 60
    assert query.match(pa.concat_tables(parts)).to_pylist() == expected
    assert query.match(parts).to_pylist() == expected
