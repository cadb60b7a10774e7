"""The small parts of the engine: order of the output, expansion, numbering of keys, distinct matches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestream.engine import distinct as distinct_module
from nestream.engine import keys as keys_module
from nestream.engine.distinct import Given
from nestream.engine.events import Events
from nestream.engine.keys import Keys, attribute_groups
from nestream.engine.store import Store
from nestream.model.schema import Schema
from nestream.papers.engine.join import _pieces, _split
from nestream.papers.engine.stack import Stack, by_number, expand
from tests.papers.tools import SCHEMA, events, program, round_over

few = settings(max_examples=100, deadline=None)


def store_of(times: list[int]) -> Store:
    table = pa.table({"ts": pa.array(times, pa.int64()), "type": ["A"] * len(times), "id": times, "x": times})
    return round_over("SEQ(A a, A b) WITHIN 5", table.cast(SCHEMA)).store


# -- ranges ------------------------------------------------------------------------------------------------

runs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 50)), min_size=1, max_size=12)


@few
@given(runs)
def test_expanding_ranges_gives_their_places_one_after_the_other(drawn: list[tuple[int, int]]) -> None:
    counts, first = (np.array(column, np.int64) for column in zip(*drawn, strict=True))
    number, place = expand(counts, first)
    expected = [(n, start + k) for n, (count, start) in enumerate(drawn) for k in range(count)]
    assert list(zip(number.tolist(), place.tolist(), strict=True)) == expected


@few
@given(runs, st.integers(1, 5))
def test_split_ranges_are_short_and_cover_the_same_places(drawn: list[tuple[int, int]], limit: int) -> None:
    counts, first = (np.array(column, np.int64) for column in zip(*drawn, strict=True))
    which, start, length = _split(first, counts, limit)
    assert (length <= limit).all()
    covered = [(w, s + k) for w, s, c in zip(which, start, length, strict=True) for k in range(c)]
    assert covered == [(n, s + k) for n, (count, s) in enumerate(drawn) for k in range(count)]


@few
@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 12))
def test_pieces_cover_all_and_none_is_larger_than_the_limit_unless_it_is_one(
    drawn: list[int], limit: int
) -> None:
    pieces = list(_pieces(np.array(drawn, np.int64), limit))
    assert [n for piece in pieces for n in range(piece.start, piece.stop)] == list(range(len(drawn)))
    assert all(sum(drawn[piece]) <= limit or piece.stop - piece.start == 1 for piece in pieces)


# -- stacks and keys ---------------------------------------------------------------------------------------


def test_a_stack_is_ordered_by_key_then_by_position_and_leaves_null_out() -> None:
    table = pa.table({"ts": [1, 2, 3, 4, 5], "type": ["A"] * 5, "id": [2, 1, None, 2, 1], "x": [0] * 5})
    round = round_over("SEQ(A a, A b, a.id = b.id) WITHIN 5", table.cast(SCHEMA))
    stack = round.stack(0, ("id",))
    assert stack.rows.tolist() == [1, 4, 0, 3]
    assert (np.diff(stack.pos) > 0).all()


@pytest.mark.parametrize("most", [1 << 10, 1 << 16, 1 << 20, 1 << 32, 1 << 34])
@pytest.mark.parametrize("count", [0, 7, 5000])
def test_numbers_are_sorted_and_equal_ones_stay_as_they_stand(most: int, count: int) -> None:
    numbers = np.random.default_rng(most + count).integers(0, most, count)
    numbers[: count // 2] = numbers[count - count // 2 :]
    assert (by_number(numbers) == np.argsort(numbers, kind="stable")).all()


def test_the_coordinates_of_an_event_are_its_position_its_tie_and_its_reach() -> None:
    round = round_over("SEQ(A a, B b) WITHIN 3", events("a1 a1 b2 a5 b5"))
    stack = Stack(round.store, np.arange(5), None, round.stride)
    assert stack.pos.tolist() == [0, 1, 2, 3, 4]
    assert stack.low.tolist() == [0, 0, 2, 3, 3]
    assert stack.reach.tolist() == [0, 0, 0, 2, 2]


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
    round = round_over("SEQ(A a, A b, a.id = b.ref) WITHIN 5", table)
    numbers = [*round.keys.numbers(("id",)).tolist(), *round.keys.numbers(("ref",)).tolist()]
    known = [None if value != value else value for value in (*left, *right)]
    for number, value in zip(numbers, known, strict=True):
        assert (number < 0) == (value is None)
        for other, another in zip(numbers, known, strict=True):
            assert value is None or (number == other) == (value == another)


@pytest.mark.parametrize("most", [1, 5, 1 << 36])
@few
@given(st.data())
def test_combined_numbers_are_equal_exactly_where_all_values_are(most: int, data: st.DataObject) -> None:
    drawn = data.draw(
        st.lists(st.tuples(*[st.none() | st.sampled_from([1, 2, 3_000_000])] * 4), min_size=1, max_size=10)
    )
    columns = {name: pa.array([row[n] for row in drawn], pa.int64()) for n, name in enumerate("pqrs")}
    table = pa.table({"ts": range(len(drawn)), "type": ["A"] * len(drawn), **columns})
    round = round_over("SEQ(A a, A b, a.p = b.r, a.q = b.s) WITHIN 5", table)
    before, keys_module._MOST = keys_module._MOST, most
    try:
        fresh = [Keys(round.store.events, round.keys.groups) for _ in range(2)]
        numbers = [*fresh[0].numbers(("p", "q")), *fresh[1].numbers(("r", "s"))]
    finally:
        keys_module._MOST = before
    pairs = [(row[0], row[1]) for row in drawn] + [(row[2], row[3]) for row in drawn]
    for number, pair in zip(numbers, pairs, strict=True):
        assert (number < 0) == (None in pair)
        for other, another in zip(numbers, pairs, strict=True):
            assert None in pair or (number == other) == (pair == another)


def test_attributes_that_are_compared_share_one_numbering() -> None:
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string()), *((n, pa.int64()) for n in "pqr")])
    made = program("SEQ(A a, !(C c, c.r = a.p), B b, a.p = b.q) WITHIN 5", schema)
    groups = attribute_groups([made])
    assert groups["p"] == groups["q"] == groups["r"]


# -- distinct matches --------------------------------------------------------------------------------------


def test_what_was_given_is_not_given_again_until_it_cannot_come() -> None:
    store = store_of([1, 2, 3])
    given_so_far = Given(["a", "b"])
    twice = [np.array([0, 0, 1]), np.array([-1, -1, 2])]
    first = given_so_far.new(twice, store)
    assert [column.tolist() for column in first] == [[0, 1], [-1, 2]]
    assert [column.tolist() for column in given_so_far.new(twice, store)] == [[], []]
    given_so_far.forget_before(1)
    assert given_so_far.positions.tolist() == [[1, 2]]


def test_only_the_events_of_some_leaf_are_stored() -> None:
    table = events("a1 z2 b3 b4")
    made = program("SEQ(A a, (B b : b.ts > 3)) WITHIN 5")
    store = Events(made.leaves, Schema.of(SCHEMA), "us", ["id"])
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
        given_so_far = Given(["a", "b", "c"])
        given_out: list[tuple[int, ...]] = []
        for piece in pieces:
            columns = [np.array([match[n] for match in piece], np.int64) for n in range(3)]
            new = given_so_far.new(columns, store)
            given_out += zip(*(column.tolist() for column in new), strict=True)
    finally:
        distinct_module._MOST_BITS = before
    assert sorted(given_out) == sorted({match for piece in pieces for match in piece})
