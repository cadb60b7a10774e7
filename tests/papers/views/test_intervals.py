"""Interval algebra: the five cases, the index of view-intervals, and what is loaded for query-intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nestream.engine.event_buffer import Ints
from nestream_papers.engine.program import Views
from nestream_papers.views.held import Facts, Results
from nestream_papers.views.intervals import Index, Intervals, Overlap, QueryInterval, ViewInterval, overlap
from nestream_papers.views.policy import wanted

Pair = tuple[int, int]
pairs = st.tuples(st.integers(0, 12), st.integers(1, 6)).map(lambda pair: (pair[0], pair[0] + pair[1]))
some = st.lists(pairs, max_size=8)


def of(given: list[Pair]) -> Intervals:
    left, right = np.array(given, np.int64).reshape(-1, 2).T
    return Intervals(left, right)


def contains(outer: Pair, inner: Pair) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


@pytest.mark.parametrize(
    ("view", "query", "case"),
    [
        ((2, 9), (2, 9), Overlap.CONTAINS),
        ((2, 9), (4, 7), Overlap.CONTAINS),
        ((2, 9), (4, 12), Overlap.LEFT),
        ((2, 9), (2, 12), Overlap.LEFT),
        ((4, 9), (2, 6), Overlap.RIGHT),
        ((4, 9), (2, 9), Overlap.RIGHT),
        ((4, 6), (2, 9), Overlap.CONTAINED),
        ((2, 4), (4, 9), Overlap.NONE),
        ((9, 12), (4, 9), Overlap.NONE),
    ],
)
def test_the_five_cases_of_overlap(view: Pair, query: Pair, case: Overlap) -> None:
    assert overlap(ViewInterval(*view), QueryInterval(*query)) is case
    assert Index(of([view])).cases(of([query]))[0] == case


@given(pairs, pairs)
def test_each_pair_of_intervals_is_in_exactly_the_case_that_its_common_rows_say(
    view: Pair, query: Pair
) -> None:
    held, asked = set(range(*view)), set(range(*query))
    case = overlap(ViewInterval(*view), QueryInterval(*query))
    assert (case is Overlap.CONTAINS) == (asked <= held)
    assert (case is Overlap.NONE) == (not asked & held)
    if case in (Overlap.LEFT, Overlap.RIGHT, Overlap.CONTAINED):
        assert (case is Overlap.LEFT) == (min(asked) in held)
        assert (case is Overlap.CONTAINED) == (
            held < asked and min(asked) not in held and max(asked) not in held
        )


@given(some)
def test_the_index_keeps_the_intervals_that_no_other_contains_sorted_by_both_ends(given: list[Pair]) -> None:
    kept = Index(of(given)).intervals
    found = list(zip(kept.left.tolist(), kept.right.tolist(), strict=True))
    assert set(found) == {one for one in given if not any(contains(o, one) and o != one for o in given)}
    assert len(found) == len(set(found))
    assert found == sorted(found)
    assert kept.right.tolist() == sorted(kept.right.tolist())


@given(some, st.lists(pairs, min_size=1, max_size=8))
def test_the_index_finds_the_best_case_by_binary_search(views: list[Pair], queries: list[Pair]) -> None:
    index = Index(of(views))
    for query, case, covered in zip(
        queries, index.cases(of(queries)), index.covers(of(queries)), strict=True
    ):
        cases = {overlap(ViewInterval(*view), QueryInterval(*query)) for view in views}
        assert covered == (Overlap.CONTAINS in cases)
        if cases <= {Overlap.NONE}:
            assert case == Overlap.NONE
        else:
            assert case == min(cases - {Overlap.NONE}) or {case, *cases} >= {Overlap.RIGHT, Overlap.CONTAINED}
            assert case in cases


@given(some, st.lists(pairs, min_size=1))
def test_everything_that_begins_at_a_row_is_known_up_to_the_furthest_end(
    views: list[Pair], queries: list[Pair]
) -> None:
    index = Index(of(views))
    for query, until in zip(queries, index.known_until(of(queries).left), strict=True):
        ends = [right for left, right in views if left <= query[0] < right]
        assert until == max(ends, default=query[0])


@given(st.lists(st.tuples(pairs, st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=10))
def test_what_is_loaded_answers_every_query(asked: list[tuple[Pair, int, int]]) -> None:
    stride = 64
    part, trigger = (np.array([one[place] for one in asked], np.int64) for place in (1, 2))
    rows = of([one[0] for one in asked])
    queries = Intervals(part * stride + rows.left, part * stride + rows.right)
    for kind in Views:
        loaded, served = wanted(kind, queries, np.arange(len(asked)), part, trigger, part * stride)
        assert Index(loaded).covers(queries).all()
        assert len(Index(loaded)) == len(loaded), "none contains another"
        assert (loaded.left // stride == part[served]).all(), "each serves its own partition"
        if kind is Views.PASSIVE:
            assert set(_list(loaded)) <= set(_list(queries)), "nothing is loaded that was not asked for"
        if kind is Views.BALANCED:
            rows_asked = {(one[1], row) for one in asked for row in range(*one[0])}
            assert {
                (left // stride, row % stride) for left, right in _list(loaded) for row in range(left, right)
            } <= (rows_asked), "no row is loaded that no query-interval has"
        if kind is Views.AGGRESSIVE:
            assert len(loaded) == len(set(part.tolist()))
            assert (loaded.left % stride == 0).all()


def _list(intervals: Intervals) -> list[Pair]:
    return list(zip(intervals.left.tolist(), intervals.right.tolist(), strict=True))


# -- facts and results -------------------------------------------------------------------------------------


@given(st.lists(st.tuples(pairs, st.integers(0, 2)), max_size=10), st.lists(pairs, min_size=1))
def test_an_interval_is_empty_exactly_if_no_result_lies_in_it(
    results: list[tuple[Pair, int]], queries: list[Pair]
) -> None:
    stride, facts = 64, Facts()
    for (start, right), part in results:  # in pieces, as they are computed
        facts.add(np.array([start]), np.array([right - 1]), np.array([part]), stride)
    for part in range(3):
        asked = of(queries)
        found = facts.has(Intervals(part * stride + asked.left, part * stride + asked.right), stride)
        for query, is_known in zip(queries, found, strict=True):
            assert is_known == any(contains(query, result) for result, own in results if own == part)


@given(st.lists(st.tuples(pairs, st.integers(0, 2)), max_size=10))
def test_facts_are_no_more_than_the_least_intervals(results: list[tuple[Pair, int]]) -> None:
    facts = Facts()
    start, right, part = (
        (
            np.array([number], np.int64).reshape(-1)
            for number in zip(*((*pair, own) for pair, own in results), strict=True)
        )
        if results
        else (np.empty(0, np.int64),) * 3
    )
    facts.add(start, right - 1, part, 64)
    least = {
        (pair, own)
        for pair, own in results
        if not any(contains(pair, other) and other != pair for other, its in results if its == own)
    }
    held = zip(facts.start.tolist(), (facts.end + 1).tolist(), facts.part.tolist(), strict=True)
    assert {((left, end), own) for left, end, own in held} == least


def test_results_are_found_by_their_ends_within_their_partition() -> None:
    held = Results(("b", "c"))

    def numbers(*values: int) -> Ints:
        return np.array(values, np.int64)

    rows = {"b": numbers(1, 4, 2), "c": numbers(5, 5, 3)}
    held.add(rows, numbers(1, 4, 2), numbers(5, 5, 3), numbers(1, 0, 1), 64)
    first, count = held.within(Intervals(numbers(64 + 2, 0), numbers(64 + 6, 6)))
    assert count.tolist() == [2, 1]
    assert held.rows["b"][first[0] : first[0] + 2].tolist() == [2, 1]
    assert held.rows["b"][first[1]] == 4
