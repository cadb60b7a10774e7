"""Each kernel, interpreted and compiled, does what a slow version of a few lines does."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestream.engine.kernels import Kernel, chain, order, ranges, scan, search, stack, staircase, sums, warm
from nestream.engine.kernels import product as products
from nestream.engine.ordering import in_output_order

few = settings(max_examples=60, deadline=None)
FORMS = pytest.mark.parametrize("form", ["interpreted", "compiled"])
Form = Callable[..., Any]


def in_form(kernel: Kernel, form: str) -> Form:
    """The kernel as it stands, where a wrong index raises, or compiled."""
    return kernel.function if form == "interpreted" else kernel.compile()


def ints(values: Any) -> Any:
    return np.array(list(values), np.int32)


def begins(sizes: list[int]) -> Any:
    return ints([0, *np.cumsum(sizes)])


stretches = st.lists(st.lists(st.integers(0, 30), max_size=6).map(sorted), min_size=1, max_size=4)


def flat(lists: list[list[int]]) -> Any:
    return ints(value for values in lists for value in values)


@FORMS
@few
@given(st.lists(st.integers(0, 4), max_size=20), st.lists(st.integers(-1, 3), min_size=5, max_size=5))
def test_the_rows_of_known_types_are_found(form: str, codes: list[int], known: list[int]) -> None:
    found, rows = in_form(scan.of_known_types, form)(np.array(codes, np.int8), np.array(known, np.int16))
    expected = [(known[code], row) for row, code in enumerate(codes) if known[code] >= 0]
    assert list(zip(found.tolist(), rows.tolist(), strict=True)) == expected


@FORMS
@few
@given(st.lists(st.integers(-1, 3), max_size=20))
def test_rows_are_sorted_by_key_and_keep_their_order(form: str, numbers: list[int]) -> None:
    rows, begin = in_form(stack.sorted_by_key, form)(ints(range(len(numbers))), ints(numbers), 4)
    by_key = [[row for row, number in enumerate(numbers) if number == key] for key in range(4)]
    assert rows.tolist() == [row for key in by_key for row in key]
    assert begin.tolist() == begins([len(key) for key in by_key]).tolist()
    keys = in_form(stack.key_of_place, form)(begin, len(rows))
    assert keys.tolist() == [numbers[row] for row in rows]


@FORMS
@few
@given(st.permutations(range(12)), st.integers(0, 12), st.integers(0, 12))
def test_places_come_in_the_order_of_their_rows(form: str, rows: list[int], first: int, end: int) -> None:
    found = in_form(stack.in_row_order, form)(ints(rows), first, end)
    assert [rows[place] for place in found] == list(range(first, end))


@FORMS
@few
@given(st.lists(st.integers(0, 9), min_size=1, max_size=15).map(sorted), st.integers(0, 5))
def test_ties_and_windows_are_found_in_one_pass(form: str, times: list[int], size: int) -> None:
    array = np.array(times, np.int64)
    assert in_form(stack.first_of_time, form)(array).tolist() == [times.index(time) for time in times]
    starts = in_form(stack.window_starts, form)(array, array - size)
    assert starts.tolist() == [bisect_left(times, time - size) for time in times]


@FORMS
@few
@given(stretches, st.data())
def test_places_and_latest_starts_are_found_within_a_key(
    form: str, keys: list[list[int]], data: st.DataObject
) -> None:
    values, begin = flat(keys), begins(list(map(len, keys)))
    queries = data.draw(st.lists(st.tuples(st.integers(-1, len(keys) - 1), st.integers(-1, 32)), max_size=8))
    number, wanted = ints(key for key, _ in queries), ints(value for _, value in queries)
    found = in_form(search.places, form)(values, begin, number, wanted)
    expected = [0 if k < 0 else int(begin[k]) + bisect_left(keys[k], value) for k, value in queries]
    assert found.tolist() == expected
    starts = ints(range(len(values)))
    last = in_form(search.latest, form)(values, begin, starts, number, wanted)
    assert last.tolist() == [
        p - 1 if k >= 0 and p > begin[k] else -1 for p, (k, _) in zip(expected, queries, strict=True)
    ]


@FORMS
@few
@given(st.data())
def test_a_step_keeps_the_events_that_some_prefix_reaches(form: str, data: st.DataObject) -> None:
    """Law: the latest start of the range's last predecessor is the latest of all of them."""
    count = data.draw(st.integers(1, 14))
    low = ints(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    low = np.maximum(np.arange(count, dtype=np.int32) - low, 0)
    low = ints(np.maximum.accumulate(low))
    rows = [data.draw(st.lists(st.integers(0, count - 1), unique=True).map(sorted)) for _ in range(2)]
    bound = data.draw(st.lists(st.integers(-1, count), min_size=len(rows[1]), max_size=len(rows[1])))
    window = data.draw(st.integers(0, count))
    reach = ints(max(0, row - window) for row in range(count))
    one = begins([len(rows[0])]), begins([len(rows[1])])
    stay, begin, start, lowest, end = in_form(chain.extend_prefixes, form)(
        ints(rows[0]), one[0], ints(rows[0]), ints(rows[1]), one[1], ints(rows[1]), ints(bound), low, reach
    )
    expected = []
    for place, row in enumerate(rows[1]):
        before = [p for p, other in enumerate(rows[0]) if other < low[row] and other >= bound[place]]
        if before and max(rows[0][p] for p in before) >= reach[row]:
            expected.append((place, max(rows[0][p] for p in before), before[0], before[-1] + 1))
    assert list(zip(*(c.tolist() for c in (stay, start, lowest, end)), strict=True)) == expected
    assert begin.tolist() == [0, len(expected)]


@FORMS
@few
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=8))
def test_partial_matches_are_extended_by_their_ranges(form: str, drawn: list[tuple[int, int, int]]) -> None:
    lowest, size, window = (ints(column) for column in zip(*drawn, strict=True))
    end, here = lowest + size, ints(range(len(drawn)))
    counts = in_form(chain.count_extensions, form)(here, window, lowest, end)
    expected = [
        (place, number)
        for number in here
        for place in range(max(lowest[number], window[number]), end[number])
    ]
    assert counts.sum() == len(expected)
    longer, origin = in_form(chain.extend, form)(here.reshape(1, -1), window, lowest, end, len(expected))
    assert list(zip(*longer.tolist(), strict=True)) == expected
    assert origin.tolist() == [number for _, number in expected]


@FORMS
@few
@given(stretches)
def test_a_running_maximum_starts_anew_with_each_key(form: str, keys: list[list[int]]) -> None:
    shuffled = [values[::-1] for values in keys]
    found = in_form(chain.running_maximum, form)(flat(shuffled), begins(list(map(len, keys))))
    assert found.tolist() == [max(values[: n + 1]) for values in shuffled for n in range(len(values))]


@FORMS
@few
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_a_staircase_holds_the_latest_start_at_each_end(
    form: str, matches: list[tuple[int, int, int]]
) -> None:
    matches = sorted(matches, key=lambda match: (match[0], match[2]))
    begin = ints(bisect_left([key for key, *_ in matches], key) for key in range(4))
    starts, ends = ints(match[1] for match in matches), ints(match[2] for match in matches)
    stair = in_form(staircase.latest_starts, form)(ints(range(len(matches))), begin, starts, ends)
    for key, before in product(range(3), range(11)):
        expected = max((start for k, start, end in matches if k == key and end < before), default=-1)
        places = range(stair[1][key], stair[1][key + 1])
        assert max((int(stair[2][p]) for p in places if stair[0][p] < before), default=-1) == expected


@FORMS
@few
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=2), max_size=5)
)
def test_a_product_has_every_combination_in_order(form: str, drawn: list[list[tuple[int, int]]]) -> None:
    lows = ints(low for ranges in drawn for low, _ in ranges).reshape(-1, 2).T.copy()
    highs = lows + ints(size for ranges in drawn for _, size in ranges).reshape(-1, 2).T
    counts = in_form(products.combinations, form)(lows, highs)
    expected = [
        (*places, number)
        for number, ranges in enumerate(drawn)
        for places in product(*(range(low, low + size) for low, size in ranges))
    ]
    assert counts.sum() == len(expected)
    found, origin = in_form(products.combine, form)(lows, highs, len(expected))
    assert list(zip(*found.tolist(), origin.tolist(), strict=True)) == expected


@few
@given(st.data())
def test_matches_are_ordered_by_the_time_of_their_end_then_by_their_events(data: st.DataObject) -> None:
    times = sorted(data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=10)))
    row = st.integers(-1, len(times) - 1)
    drawn = data.draw(
        st.lists(st.tuples(row, row, row).filter(lambda match: max(match) >= 0), max_size=12, unique=True)
    )
    columns = [ints(match[n] for match in drawn) for n in range(3)]
    found = in_output_order(columns, stack.first_of_time(np.array(times, np.int64)))
    assert list(zip(*(c.tolist() for c in found), strict=True)) == sorted(
        drawn, key=lambda match: (times[max(match)], match)
    )


@FORMS
@few
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=30))
def test_sorting_within_groups_leaves_groups_in_place(form: str, drawn: list[tuple[int, int]]) -> None:
    drawn = sorted(drawn, key=lambda match: match[0])
    columns, groups = ints(v for _, v in drawn).reshape(1, -1), ints(g for g, _ in drawn)
    numbers = ints(range(len(drawn)))
    moved = in_form(order.sort_within, form)(columns, groups, numbers, numbers.copy())
    assert [drawn[n] for n in numbers] == sorted(drawn)
    assert moved == (numbers.tolist() != list(range(len(drawn))))


def test_every_kernel_is_compiled_in_advance() -> None:
    called = {kernel.__name__ for kernel, _ in warm.CALLS}
    inner = {"first_at_least", "before"}  # only other kernels call these
    modules = (chain, order, products, ranges, scan, search, stack, staircase, sums)
    declared = {
        name for module in modules for name, value in vars(module).items() if isinstance(value, Kernel)
    }
    assert called | inner == declared
