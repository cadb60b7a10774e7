"""The small parts of the core: order of the output, numbering of keys, distinct matches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestream.engine import distinct as distinct_module
from nestream.engine import keys as keys_module
from nestream.engine.distinct import EmittedMatches
from nestream.engine.event_buffer import EventBuffer
from nestream.engine.keys import Numbering, key_classes
from nestream.engine.windowed_events import WindowedEvents
from nestream.model.schema import Schema
from tests.papers.tools import SCHEMA, evaluation_over, events, program

few = settings(max_examples=100, deadline=None)


def store_of(times: list[int]) -> WindowedEvents:
    table = pa.table({"ts": pa.array(times, pa.int64()), "type": ["A"] * len(times), "id": times, "x": times})
    return evaluation_over("SEQ(A a, A b) WITHIN 5", table.cast(SCHEMA)).store


# -- keys --------------------------------------------------------------------------------------------------

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)]),
    "float64": st.sampled_from([0.0, -0.0, 0.5, 1e300, float("inf"), float("nan")]),
    "string": st.sampled_from(["", "u", "U", "ü", "uu"]),
    "bool": st.booleans(),
}


@pytest.mark.parametrize("kind", VALUES)
@few
@given(st.data())
def test_equal_values_have_equal_numbers_across_the_attributes_compared(
    kind: str, data: st.DataObject
) -> None:
    values = st.none() | VALUES[kind]
    pairs = data.draw(st.lists(st.tuples(values, values), min_size=1, max_size=12))
    datatype = pa.type_for_alias(kind)
    left, right = ([pair[n] for pair in pairs] for n in (0, 1))
    table = pa.table(
        {
            "ts": range(len(pairs)),
            "type": ["A"] * len(pairs),
            "id": pa.array(left, datatype),
            "ref": pa.array(right, datatype),
        }
    )
    evaluation = evaluation_over("SEQ(A a, A b, a.id = b.ref) WITHIN 5", table)
    numbers = [*evaluation.keys.numbers(("id",)).tolist(), *evaluation.keys.numbers(("ref",)).tolist()]
    known = [None if value != value else value for value in (*left, *right)]
    for number, value in zip(numbers, known, strict=True):
        assert (number < 0) == (value is None)
        for other, another in zip(numbers, known, strict=True):
            assert value is None or (number == other) == (value == another)


@pytest.mark.parametrize("most", [0, 2, 1 << 20])
@few
@given(st.data())
def test_combined_numbers_are_equal_exactly_where_all_values_are(most: int, data: st.DataObject) -> None:
    drawn = data.draw(
        st.lists(st.tuples(*[st.none() | st.sampled_from([1, 2, 3_000_000])] * 4), min_size=1, max_size=10)
    )
    columns = {name: pa.array([row[n] for row in drawn], pa.int64()) for n, name in enumerate("pqrs")}
    table = pa.table({"ts": range(len(drawn)), "type": ["A"] * len(drawn), **columns})
    evaluation = evaluation_over("SEQ(A a, A b, a.p = b.r, a.q = b.s) WITHIN 5", table)
    before, keys_module._FEW = keys_module._FEW, most
    try:
        fresh = [Numbering(evaluation.store.events, evaluation.keys.key_classes) for _ in range(2)]
        numbers = [*fresh[0].of(("p", "q")), *fresh[1].of(("r", "s"))]
    finally:
        keys_module._FEW = before
    pairs = [(row[0], row[1]) for row in drawn] + [(row[2], row[3]) for row in drawn]
    for number, pair in zip(numbers, pairs, strict=True):
        assert (number < 0) == (None in pair)
        for other, another in zip(numbers, pairs, strict=True):
            assert None in pair or (number == other) == (pair == another)


def test_attributes_that_are_compared_share_one_numbering() -> None:
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string()), *((n, pa.int64()) for n in "pqr")])
    made = program("SEQ(A a, !(C c, c.r = a.p), B b, a.p = b.q) WITHIN 5", schema)
    groups = key_classes([made])
    assert groups["p"] == groups["q"] == groups["r"]


# -- distinct matches --------------------------------------------------------------------------------------


def test_what_was_given_is_not_given_again_until_it_cannot_come() -> None:
    store = store_of([1, 2, 3])
    given_so_far = EmittedMatches(["a", "b"])
    twice = [np.array([0, 0, 1]), np.array([-1, -1, 2])]
    first = given_so_far.new(twice, store)
    assert [column.tolist() for column in first] == [[0, 1], [-1, 2]]
    assert [column.tolist() for column in given_so_far.new(twice, store)] == [[], []]
    given_so_far.forget_before(1)
    assert given_so_far.positions.tolist() == [[1, 2]]


def test_only_the_events_of_some_leaf_are_stored() -> None:
    table = events("a1 z2 b3 b4")
    made = program("SEQ(A a, (B b : b.ts > 3)) WITHIN 5")
    store = EventBuffer(made.leaves, Schema.of(SCHEMA), ["id"])
    store.append(table)
    store.seal()
    assert store.pos.tolist() == [0, 3]
    assert store.payload.column_names == ["id"]
    store.drop_rows(1)
    assert (store.base, store.pos.tolist(), [rows.tolist() for rows in store.leaf_rows]) == (
        3,
        [0],
        [[], [0]],
    )


@few
@given(
    st.lists(st.lists(st.tuples(*[st.sampled_from([-1, 0, 1, 7, 40])] * 3), max_size=6), max_size=4),
    st.booleans(),
)
def test_each_match_is_given_once_however_matches_are_told_apart(
    pieces: list[list[tuple[int, int, int]]], wide: bool
) -> None:
    store = store_of(list(range(41)))
    before, distinct_module._MOST_BITS = distinct_module._MOST_BITS, 3 if wide else 62
    try:
        given_so_far = EmittedMatches(["a", "b", "c"])
        given_out: list[tuple[int, ...]] = []
        for piece in pieces:
            columns = [np.array([match[n] for match in piece], np.int64) for n in range(3)]
            new = given_so_far.new(columns, store)
            given_out += zip(*(column.tolist() for column in new), strict=True)
    finally:
        distinct_module._MOST_BITS = before
    assert sorted(given_out) == sorted({match for piece in pieces for match in piece})
