"""Stacks, and the ranges of them that are expanded, split and cut into pieces."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestream_papers.engine.join import _pieces, _split
from nestream_papers.engine.stack import Stack, by_number, expand
from tests.papers.tools import SCHEMA, evaluation_over, events

few = settings(max_examples=100, deadline=None)


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


# -- stacks ----------------------------------------------------------------------------------------------


def test_a_stack_is_ordered_by_key_then_by_position_and_leaves_null_out() -> None:
    table = pa.table({"ts": [1, 2, 3, 4, 5], "type": ["A"] * 5, "id": [2, 1, None, 2, 1], "x": [0] * 5})
    evaluation = evaluation_over("SEQ(A a, A b, a.id = b.id) WITHIN 5", table.cast(SCHEMA))
    stack = evaluation.stack(0, ("id",))
    assert stack.rows.tolist() == [1, 4, 0, 3]
    assert (np.diff(stack.pos) > 0).all()


@pytest.mark.parametrize("most", [1 << 10, 1 << 16, 1 << 20, 1 << 32, 1 << 34])
@pytest.mark.parametrize("count", [0, 7, 5000])
def test_numbers_are_sorted_and_equal_ones_stay_as_they_stand(most: int, count: int) -> None:
    numbers = np.random.default_rng(most + count).integers(0, most, count)
    numbers[: count // 2] = numbers[count - count // 2 :]
    assert (by_number(numbers) == np.argsort(numbers, kind="stable")).all()


def test_the_coordinates_of_an_event_are_its_position_its_tie_and_its_reach() -> None:
    evaluation = evaluation_over("SEQ(A a, B b) WITHIN 3", events("a1 a1 b2 a5 b5"))
    stack = Stack(evaluation.store, np.arange(5), None, evaluation.stride)
    assert stack.pos.tolist() == [0, 1, 2, 3, 4]
    assert stack.low.tolist() == [0, 0, 2, 3, 3]
    assert stack.reach.tolist() == [0, 0, 0, 2, 2]
