"""Each kernel, interpreted and compiled, does what a slow version of a few lines does."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestream.engine.kernels import (
    Kernel,
    chain,
    order,
    ranges,
    saved,
    scan,
    search,
    stack,
    staircase,
    sums,
    warm,
)
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
    wanted = in_form(stack.keys_between, form)(ints(range(len(numbers))), ints(numbers), 4, 3, 9)
    assert wanted.tolist() == [key in numbers[3:9] for key in range(4)]
    some, _ = in_form(stack.between_by_key, form)(ints(range(len(numbers))), ints(numbers), wanted, 2, 12)
    assert some.tolist() == [row for key in by_key for row in key if 2 <= row < 12 and wanted[numbers[row]]]
    keys = in_form(stack.key_of_place, form)(begin, len(rows))
    assert keys.tolist() == [numbers[row] for row in rows]


@FORMS
@few
@given(stretches, st.integers(0, 30), st.integers(0, 30))
def test_the_places_of_some_rows_come_key_by_key(
    form: str, keys: list[list[int]], first: int, end: int
) -> None:
    rows, begin = flat(keys), begins(list(map(len, keys)))
    found = in_form(stack.places_between, form)(rows, begin, first, end)
    assert found.tolist() == [place for place, row in enumerate(rows) if first <= row < end]
    assert in_form(stack.taken, form)(rows, found).tolist() == [rows[place] for place in found]
    by_row = in_form(stack.in_row_order, form)(ints([9, 20, 7, 30, 5, 31, 8]), 1, 6, 6, 31)
    assert by_row.tolist() == [2, 1, 3]
    unbound = in_form(stack.taken_or_none, form)(rows, ints([-1, *found]))
    assert unbound.tolist() == [-1, *(rows[place] for place in found)]


@FORMS
@few
@given(st.lists(st.integers(0, 9), min_size=1, max_size=15).map(sorted), st.integers(0, 5))
def test_ties_and_windows_are_found_in_one_pass(form: str, times: list[int], size: int) -> None:
    array = np.array(times, np.int64)
    first = in_form(stack.first_of_time, form)(array)
    assert first.tolist() == [times.index(time) for time in times]
    starts = in_form(stack.window_starts, form)(array, size, 0)
    assert starts.tolist() == [bisect_left(times, time - size) for time in times]
    least = np.array([-(2**63), -(2**63) + 5, 2**63 - 1], np.int64)
    assert in_form(stack.window_starts, form)(least, 5, 0).tolist() == [0, 0, 2]


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
    back = data.draw(st.integers(1, 3))
    before = in_form(search.rows_back, form)(values, begin, number, found, back)
    assert before.tolist() == [
        values[p - back] if k >= 0 and p - back >= begin[k] else -1
        for p, (k, _) in zip(expected, queries, strict=True)
    ]
    starts = ints(range(len(values)))
    last = in_form(search.latest, form)(values, begin, starts, number, wanted)
    assert last.tolist() == [
        p - 1 if k >= 0 and p > begin[k] else -1 for p, (k, _) in zip(expected, queries, strict=True)
    ]


@FORMS
@few
@given(st.data())
def test_a_step_keeps_the_events_that_some_prefix_reaches(form: str, data: st.DataObject) -> None:
    """Law: the last predecessor has the latest start, and those in the window are the last ones."""
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
        before = [p for p in before if rows[0][p] >= reach[row]]
        if before:
            expected.append((place, max(rows[0][p] for p in before), before[0], before[-1] + 1))
    assert list(zip(*(c.tolist() for c in (stay, start, lowest, end)), strict=True)) == expected
    assert begin.tolist() == [0, len(expected)]


@FORMS
@few
@given(st.data())
def test_a_step_of_composites_of_several_keys_keeps_those_that_some_prefix_reaches(
    form: str, data: st.DataObject
) -> None:
    """Composites come in the order of their ends, so their first events, and the ranges, may move back."""
    count, window = data.draw(st.integers(2, 12)), data.draw(st.integers(0, 12))
    row = st.integers(0, count - 1)
    before = [sorted(key) for key in data.draw(st.lists(st.sets(row), min_size=1, max_size=3))]
    pairs = st.lists(st.tuples(row, row).map(sorted), max_size=6)
    keys = [sorted(data.draw(pairs), key=lambda pair: pair[1]) for _ in before]
    starts = [sorted(data.draw(st.integers(0, row)) for row in key) for key in before]
    composites = [pair for key in keys for pair in key]
    reach = ints(max(0, row - window) for row in range(count))
    low = ints(range(count))
    bound = ints(data.draw(st.integers(-1, count)) for _ in composites)
    offset, own = begins(list(map(len, before))), begins(list(map(len, keys)))
    firsts, ends = ints(first for first, _ in composites), ints(end for _, end in composites)
    stay, begin, start, lowest, end = in_form(chain.extend_prefixes, form)(
        flat(before), offset, flat(starts), ends, own, firsts, bound, low, reach
    )
    expected: list[tuple[int, ...]] = []
    lengths: list[int] = []
    for key in range(len(before)):
        for place in range(own[key], own[key + 1]):
            allowed = [
                int(offset[key]) + n
                for n, (event, since) in enumerate(zip(before[key], starts[key], strict=True))
                if bound[place] <= event < firsts[place] and since >= reach[ends[place]]
            ]
            if allowed:
                latest = starts[key][allowed[-1] - int(offset[key])]
                expected.append((place, latest, allowed[0], allowed[-1] + 1))
        lengths.append(len(expected) - sum(lengths))
    assert list(zip(*(c.tolist() for c in (stay, start, lowest, end)), strict=True)) == expected
    assert begin.tolist() == begins(lengths).tolist()


@FORMS
@few
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=8))
def test_partial_matches_are_extended_by_their_ranges(form: str, drawn: list[tuple[int, int, int]]) -> None:
    lowest, size, window = (ints(column) for column in zip(*drawn, strict=True))
    end, here = lowest + size, ints(range(len(drawn)))
    expected = [
        (place, number)
        for number in here
        for place in range(max(lowest[number], window[number]), end[number])
    ]
    longer, origin = in_form(chain.extend, form)(here.reshape(1, -1), window, lowest, end, len(expected))
    assert list(zip(*longer.tolist(), strict=True)) == expected
    assert origin.tolist() == [number for _, number in expected]


@FORMS
@few
@given(st.data())
def test_chains_are_built_in_pieces_of_any_size(form: str, data: st.DataObject) -> None:
    """Law: latest starts do not go down, so what a window allows of a range is its tail."""
    count = data.draw(st.integers(3, 12))
    kinds = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    bound = data.draw(st.integers(0, count))
    steps = [
        [row for row in range(count) if kinds[row] == step] for step in range(data.draw(st.integers(2, 4)))
    ]
    offset = begins(list(map(len, steps)))
    window = data.draw(st.integers(0, count))
    start, lowest, end = (ints([0] * int(offset[-1])) for _ in range(3))
    start[: len(steps[0])] = steps[0]
    kept = [list(range(len(steps[0])))]
    for number, rows in enumerate(steps[1:], 1):
        kept.append([])
        for n, row in enumerate(rows):
            place = int(offset[number]) + n
            earliest = bound if number == len(steps) - 1 else 0  # of the last step, something limits the gap
            before = [
                p
                for p in kept[number - 1]
                if earliest <= steps[number - 1][p - int(offset[number - 1])] < row
            ]
            lowest[place], end[place] = (before[0], before[-1] + 1) if before else (0, 0)
            if before:
                start[place] = start[before[-1]]
                kept[number].append(place)
        # a step holds only what some prefix reaches: leave the others out
        if len(kept[number]) < len(rows):
            steps[number] = [row for n, row in enumerate(rows) if int(offset[number]) + n in kept[number]]
            first = int(offset[number])
            for n, place in enumerate(kept[number]):
                for column in (start, lowest, end):
                    column[first + n] = column[place]
            kept[number] = [first + n for n in range(len(kept[number]))]
    last = len(steps) - 1
    reach = ints(max(0, row - window) for row in steps[last])
    triggers = ints(kept[last])
    inside = [n for n, place in enumerate(kept[last]) if start[place] >= reach[n]]
    columns, reach = triggers[inside].reshape(1, -1), reach[inside]

    def backward(place: int, level: int, since: int) -> list[tuple[int, ...]]:
        if level == 0:
            return [(place,)]
        before = [p for p in range(int(lowest[place]), int(end[place])) if start[p] >= since]
        return [(*found, place) for p in before for found in backward(p, level - 1, since)]

    expected = [m for n, place in enumerate(columns[0]) for m in backward(int(place), last, int(reach[n]))]
    at, until = np.zeros((2, last + 1), np.int32)
    room, built = data.draw(st.integers(1, 5)), []
    arguments = (columns, reach, start, lowest, end, last, 0)
    while at[last] < columns.shape[1]:
        found = np.empty((last + 1, room), np.int32)
        some = in_form(chain.extend_through, form)(*arguments, at, until, ints([]), found)
        built += list(zip(*found[:, :some].tolist(), strict=True))
    assert built == expected
    total = counted = 0
    while counted < columns.shape[1]:
        more, counted = in_form(chain.count_through, form)(*arguments, counted, room, at, until)
        total += more
    assert total == len(expected)
    latest = np.empty((last + 1, columns.shape[1]), np.int32)
    in_form(chain.fill_latest, form)(columns[0], end, ints(range(int(offset[-1]))), latest)
    by_last = {match[-1]: match for match in sorted(expected)}
    assert list(zip(*latest.tolist(), strict=True)) == [by_last[place] for place in columns[0].tolist()]
    following = np.zeros(int(offset[-1]), np.int32)
    spans = [ints((first, first + len(own))) for first, own in zip(offset[:-1], kept, strict=True)]
    for number in range(last - 1):
        in_form(chain.followers, form)(spans[number], spans[number + 1], end, following)
    at, until = np.zeros((2, last + 1), np.int32)
    places, built = ints(range(int(offset[-1]))), []
    by_place = np.zeros(int(offset[-1]), np.int32)  # the events are their own rows here
    by_place[columns[0]] = reach
    for place, since in zip(columns[0], reach, strict=True):  # the forward pass leaves out what is outside
        lowest[place] += int(np.argmax(start[lowest[place] : end[place]] >= since))
    while at[last] < columns.shape[1]:
        found = np.empty((last + 1, room), np.int32)
        some = in_form(chain.fill_in_order, form)(
            columns[0], by_place, start, lowest, end, following, places, at, until, found
        )
        built += list(zip(*found[:, :some].tolist(), strict=True))
    assert built == sorted(expected, key=lambda match: (match[-1], match))


@FORMS
@few
@given(st.data())
def test_the_first_match_of_each_first_event_is_built(form: str, data: st.DataObject) -> None:
    """Law: the first successor that reaches the last step does so at the earliest event."""
    count, keys = data.draw(st.integers(0, 14)), data.draw(st.integers(1, 2))
    steps, window = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 14))
    first, end = (data.draw(st.integers(0, count)) for _ in range(2))
    drawn = [
        (data.draw(st.integers(0, steps - 1)), data.draw(st.integers(0, keys - 1))) for _ in range(count)
    ]
    places = sorted(range(count), key=lambda row: (drawn[row], row))
    begins = np.array(
        [[sum(one < (step, key) for one in drawn) for key in range(keys + 1)] for step in range(steps)],
        np.int32,
    )
    low = list(accumulate([data.draw(st.integers(0, row)) for row in range(count)], max))
    bound = ints(data.draw(st.integers(-1, row)) for row in places)
    if data.draw(st.booleans()):
        bound = np.sort(bound)
    limit = {row: int(bound[place]) for place, row in enumerate(places)}
    falls = any(
        drawn[left] == drawn[right] and limit[left] > limit[right] and drawn[left][0] > 0
        for left, right in pairwise(places)
    )
    reach = ints(max(0, row - window) for row in range(count))
    found, is_right = in_form(chain.first_matches, form)(
        begins, ints(places), bound, ints(low[row] for row in places), reach, first, end
    )
    assert is_right is not falls
    if falls:
        return
    kept: dict[int, tuple[int, ...]] = {}
    for match in product(*([row for row in range(count) if drawn[row][0] == step] for step in range(steps))):
        related = all(drawn[a][1] == drawn[b][1] and limit[b] <= a < low[b] for a, b in pairwise(match))
        if related and reach[match[-1]] <= match[0]:
            kept[match[0]] = min(kept.get(match[0], match), match, key=lambda m: (m[-1], m))
    expected = sorted(kept.values(), key=lambda match: (match[-1], match))
    assert list(zip(*found.tolist(), strict=True)) == [m for m in expected if first <= m[-1] < end]


@FORMS
@few
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2), st.integers(0, 1)), max_size=15, unique=True),
    st.integers(0, 9),
    st.integers(0, 12),
)
def test_the_events_of_other_parts_before_one_within_its_window_are_ranges(
    form: str, drawn: list[tuple[int, int, int]], window: int, since: int
) -> None:
    """Each event is a row, a part and a key; a row may serve several parts."""
    stacks = [
        [[r for r, p, k in sorted(drawn) if (p, k) == (part, key)] for key in (0, 1)] for part in range(3)
    ]
    rows = flat([row for part in stacks for row in part])
    ends = begins([len(own) for part in stacks for own in part])
    begin = ints([ends[0:3], ends[2:5], ends[4:7]]) if len(ends) else ends
    reach = ints(max(0, row - window) for row in range(13))
    events, parts, number = (
        (ints(column) for column in zip(*sorted(drawn), strict=True)) if drawn else [ints([])] * 3
    )
    found, lows, highs, counts = in_form(products.ranges_before, form)(
        events, parts, number, begin, reach, since
    )
    expected = {}
    for place, (row, part, key) in enumerate(sorted(drawn)):
        inside = [[x for x in stacks[p][key] if reach[row] <= x < row] for p in range(3) if p != part]
        if row >= since and all(inside):
            expected[place] = inside
    assert found.tolist() == list(expected)
    ranges = [
        [rows[low:high].tolist() for low, high in zip(*both, strict=True)]
        for both in zip(lows.T, highs.T, strict=True)
    ]
    assert ranges == list(expected.values())
    assert counts.tolist() == [len(list(product(*inside))) for inside in expected.values()]


@FORMS
@few
@given(stretches, st.data())
def test_a_staircase_raises_the_bounds_of_its_key(
    form: str, keys: list[list[int]], data: st.DataObject
) -> None:
    ends, begin = flat(keys), begins(list(map(len, keys)))
    starts = np.maximum(ends - 2, 0)
    queries = data.draw(st.lists(st.tuples(st.integers(-1, len(keys) - 1), st.integers(0, 30)), max_size=8))
    number, rows = ints(key for key, _ in queries), ints(row for _, row in queries)
    low = ints(range(31))
    bound = ints([3] * len(rows)) if data.draw(st.booleans()) else ints([])
    found = in_form(search.raised_bounds, form)(ends, begin, starts, number, low, rows, bound)
    expected = [
        max([max(end - 2, 0) for end in keys[key] if key >= 0 and end < row] or [-1]) for key, row in queries
    ]
    assert found.tolist() == [max(value, 3) if len(bound) else value for value in expected]


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
    st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)), max_size=9),
        min_size=2,
        max_size=2,
    )
)
def test_a_conjunction_of_staircases_holds_the_earlier_of_their_latest_starts(
    form: str, drawn: list[list[tuple[int, int, int]]]
) -> None:
    stairs = []
    for matches in drawn:
        matches.sort(key=lambda match: (match[0], match[2]))
        begin = ints(bisect_left([key for key, *_ in matches], key) for key in range(4))
        starts, ends = ints(match[1] for match in matches), ints(match[2] for match in matches)
        stairs.append(in_form(staircase.latest_starts, form)(ints(range(len(matches))), begin, starts, ends))
    both = in_form(staircase.both_ended, form)(*stairs[0], *stairs[1])
    for key, before in product(range(3), range(11)):
        latest = [
            max((start for k, start, end in matches if k == key and end < before), default=-1)
            for matches in drawn
        ]
        places = range(both[1][key], both[1][key + 1])
        found = [int(both[2][place]) for place in places if both[0][place] < before]
        assert max(found, default=-1) == min(latest)
        assert found == sorted(found)


@FORMS
@few
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=2), max_size=5),
    st.data(),
)
def test_a_product_has_every_combination_in_order(
    form: str, drawn: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    lows = ints(low for ranges in drawn for low, _ in ranges).reshape(-1, 2).T.copy()
    highs = lows + ints(size for ranges in drawn for _, size in ranges).reshape(-1, 2).T
    last = data.draw(st.integers(0, 2))
    rows, events = ints(range(20, 30)), ints(range(100, 100 + len(drawn)))
    expected = [
        tuple(int(row) for row in np.insert(rows[list(places)], last, events[number]))
        for number, ranges in enumerate(drawn)
        for places in product(*(range(low, low + size) for low, size in ranges))
    ]
    parts = ints([last] * len(drawn))
    found = in_form(products.combine, form)(rows, lows, highs, events, parts, len(expected))
    assert list(zip(*found.tolist(), strict=True)) == expected


@few
@given(st.data())
def test_matches_are_ordered_by_the_time_of_their_end_then_by_their_events(data: st.DataObject) -> None:
    times = sorted(data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=10)))
    row = st.integers(-1, len(times) - 1)
    drawn = data.draw(
        st.lists(st.tuples(row, row, row).filter(lambda match: max(match) >= 0), max_size=12, unique=True)
    )
    columns = np.array([[match[n] for match in drawn] for n in range(3)], np.int32)
    moments = stack.first_of_time(np.array(times, np.int64))
    found = in_output_order(columns, moments if len(set(times)) < len(times) else ints([]))
    assert list(zip(*(c.tolist() for c in found), strict=True)) == sorted(
        drawn, key=lambda match: (times[max(match)], match)
    )


@FORMS
def test_matches_of_many_variables_are_in_order(form: str) -> None:
    wanted = [[*places, 9] for places in product((0, 1, 2), *[(3, 5)] * 3, *[(6, 7)] * 8)][::97]
    columns = np.array(wanted[::-1], np.int32).T.copy()
    begin, moments, _, in_order, *spans = in_form(order.groups_of, form)(columns, ints([]))
    found = in_form(order.by_group, form)(
        columns, begin, moments, in_order, ints(range(len(moments))), *spans
    )
    assert found.T.tolist() == wanted


@FORMS
@few
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=60))
def test_groups_of_one_moment_are_sorted_together(form: str, drawn: list[tuple[int, int]]) -> None:
    columns = np.array([[v for _, v in drawn], [10 + g for g, _ in drawn]], np.int32)
    begin, moments, growing, in_order, *spans = in_form(order.groups_of, form)(columns, ints([]))
    assert growing == (moments.tolist() == sorted(moments))
    groups = ints(np.argsort(moments, kind="stable"))
    found = in_form(order.by_group, form)(columns, begin, moments, in_order, groups, *spans)
    assert found[0].tolist() == [value for _, value in sorted(drawn)]


@FORMS
@few
@given(st.lists(st.tuples(*[st.sampled_from((-1, 0, 1, 2**30, 2**31 - 3))] * 4), max_size=60))
def test_matches_of_one_moment_are_sorted_however_far_apart_their_rows_are(
    form: str, drawn: list[tuple[int, ...]]
) -> None:
    last = 2**31 - 2
    columns = np.array([(*match, last) for match in drawn], np.int32).reshape(-1, 5).T.copy()
    begin, moments, _, in_order, *spans = in_form(order.groups_of, form)(columns, ints([]))
    found = in_form(order.by_group, form)(
        columns, begin, moments, in_order, ints(range(len(moments))), *spans
    )
    assert [tuple(match) for match in found[:4].T.tolist()] == sorted(drawn)


@FORMS
@pytest.mark.parametrize(("length", "others"), [(40, 6), (256, 4), (250, 4), (1200, 4)])
def test_a_product_of_ranges_does_not_overflow(form: str, length: int, others: int) -> None:
    events, last = ints(range(length * others + 1)), length * others
    parts = ints(event // length for event in events)
    begin = ints((part * length, min((part + 1) * length, last + 1)) for part in range(others + 1))
    found, _, _, counts = in_form(products.ranges_before, form)(
        events, parts, np.zeros_like(events), begin, np.zeros_like(events), 0
    )
    assert found.tolist() == [last]
    assert counts.tolist() == [min(length**others, products.MOST)]


def test_every_kernel_is_compiled_in_advance() -> None:
    called = {kernel.__name__ for kernel, _ in warm.CALLS}
    inner = {
        "first_at_least",
        "next_at_least",
        "first_at_least_near",
        "first_in_window",
        "bits_of",
        "sort_numbers",
        "sort_part",
    }  # only other kernels call these
    modules = (chain, order, products, ranges, scan, search, stack, staircase, sums)
    declared = {
        name for module in modules for name, value in vars(module).items() if isinstance(value, Kernel)
    }
    assert called | inner == declared


def test_the_calls_that_compile_kernels_stay_within_their_arrays() -> None:
    for kernel, arguments in warm.CALLS:
        kernel.function(*warm.fresh(arguments))  # interpreted, where a wrong index raises


COMPILED = """
import sys, time
import numpy as np
from numba.core.caching import IndexDataCacheFile
from nestream.engine.kernels.search import places
from nestream.engine.kernels.stack import window_starts

def slow(*given, read=IndexDataCacheFile._load_index):
    found = read(*given)
    time.sleep(0.2)
    return found

IndexDataCacheFile._load_index = slow
whole = np.dtype(sys.argv[1])
values, begin = np.arange(9, dtype=np.int32), np.array((0, 9), np.int32)
window_starts.compile(), places.compile()
print("ready", flush=True)
input()
print(places(values, begin, np.zeros(2, np.int32), np.array((3, 7), whole)).tolist())
print(window_starts(np.array((1, 5, 6, 9), whole), 3, 0).tolist())
"""


def test_processes_that_compile_for_different_types_at_once_keep_their_own_machine_code(
    tmp_path: Path,
) -> None:
    found = []
    for _ in range(2):  # compiled, then loaded
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", COMPILED, whole],
                env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for whole in ("int32", "int64", "int16")
        ]
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        found += [process.communicate() for process in processes]
    assert [out.splitlines() for out, _ in found] == [["[3, 7]", "[0, 1, 1, 2]"]] * 6, found
    reports = ["Compiling the engine" in errors for _, errors in found]
    assert reports == [True] * 3 + [False] * 3


UNSAVED = """
import resource, sys
import numba.core.caching, numpy as np
from nestream.engine.kernels.search import places
if sys.argv[1] == "full disk":
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
else:
    numba.core.caching.CacheImpl._locator_classes = []
values, begin = np.arange(9, dtype=np.int32), np.array((0, 9), np.int32)
for _ in range(2):
    print(places(values, begin, np.zeros(2, np.int32), np.array((3, 7), np.int32)).tolist())
"""


@pytest.mark.parametrize("why", ["full disk", "no folder"])
def test_a_kernel_whose_machine_code_cannot_be_saved_runs_nevertheless(tmp_path: Path, why: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNSAVED, why],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["[3, 7]", "[3, 7]"], done.stderr


IN_ADVANCE = """
import warnings
from itertools import islice
import nestream
import pyarrow as pa
from nestream.engine.kernels import warm
from tests.property.cases import random_case
from tests.property.runners import RUNNERS
from tests.spark.stream.cases import stream_cases
from tests.spark.stream.test_job import simulated

warnings.simplefilter("ignore")
warm.compile_all()
before = {kernel: set(kernel.compile().signatures) for kernel, _ in warm.CALLS}
for runner in ("engine", "engine-one-by-one", "engine-small-memory", "set"):
    for index in range(120):
        case = random_case(7, index, groups=index % 2 == 1)
        RUNNERS[runner].run(case.text, case.table, order=case.order, seed=case.seed)
for case in islice(stream_cases(7, 0), 30):
    simulated(case.text, case.table, order=case.order, seed=case.seed)
table = pa.table({"ts": range(9), "type": list("ABABABABA")})
for index in (pa.int8(), pa.int16(), pa.int32(), pa.uint32()):
    types = table["type"].cast(pa.dictionary(index, pa.string()))
    nestream.query("SEQ(A a, B b) WITHIN 5").match(table.set_column(1, "type", types))
for kernel, types in before.items():
    for new in set(kernel.compile().signatures) - types:
        print(kernel.__name__, new)
"""


def test_queries_compile_nothing_that_was_not_compiled_in_advance() -> None:
    done = subprocess.run([sys.executable, "-c", IN_ADVANCE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_a_process_that_is_forked_does_not_keep_the_lock_of_the_machine_code(tmp_path: Path) -> None:
    """A thread may fork while another one reads the machine code: the child then has the file of the lock."""
    made: Any = saved.SavedCode
    code = made(search.places.function)
    code._cache_path = str(tmp_path)
    ended, end = os.pipe()
    with code._alone():
        child = os.fork()
        if not child:
            os.close(end)
            os.read(ended, 1)
            os._exit(0)
    try:
        with (tmp_path / "kernels.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.write(end, b"x")
        os.waitpid(child, 0)
        os.close(end)
        os.close(ended)


def test_no_thread_sees_a_kernel_that_does_not_save_its_machine_code_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = Kernel(search.places.function)
    seen = []
    monkeypatch.setattr(saved, "save_code", lambda *_: seen.append(kernel._compiled))
    assert kernel.compile() is not None
    assert set(seen) == {None}  # also while the kernels that it calls are compiled, unless they were before
