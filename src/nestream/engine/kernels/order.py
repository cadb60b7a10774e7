"""Sorts matches into output order: by the time of their end, then by their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel

MOST = (1 << 31) - 1
"""The greatest number of a row."""
RUN = 16
"""Runs of this length are sorted by insertion."""


@kernel
def groups_of(columns: Any, moment: Any) -> Any:
    """Find runs of matches that end at one moment: where each begins, the moments, and whether they increase.

    Also returns whether each run is already in order, and by how many rows at most a match begins before its
    moment and ends after it. `moment` holds for each row the first row with its time; it may be
    empty where all times differ.
    """
    begin = np.empty(columns.shape[1] + 1, np.int32)
    moments = np.empty(columns.shape[1], np.int32)
    in_order = np.empty(columns.shape[1], np.bool_)
    count = 0
    growing = True
    before = 0
    after = 0
    for i in range(columns.shape[1]):
        last = columns[0, i]
        least = last & MOST
        for step in range(1, columns.shape[0]):
            last = max(last, columns[step, i])
            least = min(least, columns[step, i] & MOST)  # -1 is the greatest
        own = moment[last] if len(moment) else last
        before = max(before, own - least)
        after = max(after, last - own)
        if count == 0 or moments[count - 1] != own:
            if count and own < moments[count - 1]:
                growing = False
            begin[count] = i
            moments[count] = own
            in_order[count] = True
            count += 1
        else:
            step = 0
            while step < columns.shape[0] and columns[step, i] == columns[step, i - 1]:
                step += 1
            in_order[count - 1] &= step == columns.shape[0] or columns[step, i] > columns[step, i - 1]
    begin[count] = columns.shape[1]
    return begin[: count + 1], moments[:count], growing, in_order[:count], before, after


@kernel
def bits_of(number: int) -> int:
    """The number of bits of a non-negative number."""
    bits = 0
    while number >> bits:
        bits += 1
    return bits


@kernel
def sort_numbers(numbers: Any, spare: Any, count: int) -> None:
    """Sort the first `count` numbers: short runs by insertion, then merges of neighbouring runs."""
    for first in range(0, count, RUN):
        for unsorted in range(first + 1, min(first + RUN, count)):
            number, at = numbers[unsorted], unsorted
            while at > first and number < numbers[at - 1]:
                numbers[at] = numbers[at - 1]
                at -= 1
            numbers[at] = number
    width = RUN
    while width < count:
        for first in range(0, count - width, 2 * width):
            middle = first + width
            end = min(middle + width, count)
            if numbers[middle - 1] <= numbers[middle]:
                continue
            for place in range(width):
                spare[place] = numbers[first + place]
            left, right, place = 0, middle, first
            while left < width and right < end:  # branch-free, because the branch would be unpredictable
                smaller = numbers[right] < spare[left]
                numbers[place] = numbers[right] if smaller else spare[left]
                right += smaller
                left += not smaller
                place += 1
            while left < width:
                numbers[place] = spare[left]
                left += 1
                place += 1
        width *= 2


@kernel
def sort_part(
    columns: Any, base: int, width: int, order: Any, numbers: Any, spare: Any, first: int, end: int
) -> None:
    """Sort the numbers of matches in `order[first:end]` by their rows, variable by variable.

    The rows of matches that end at one moment are close together: minus `base`, they have `width` bits. So
    the rows of several variables and the place of the match fit in one number of 63 bits, and these numbers
    are sorted. Where not all variables fit, the last ones are sorted first; the sort is stable.
    """
    count = end - first
    bits = bits_of(count - 1)
    fitting = (63 - bits) // width
    step = columns.shape[0]
    while step > 0:
        since = max(0, step - fitting)
        growing = True
        for i in range(count):
            match = order[first + i]
            number = 0
            for variable in range(since, step):
                number = number << width | max(int(columns[variable, match]) - base, 0)
            numbers[i] = number << bits | i
            growing &= i == 0 or numbers[i - 1] < numbers[i]
        step = since
        if not growing:
            sort_numbers(numbers, spare, count)
            for i in range(count):
                spare[i] = order[first + (numbers[i] & ((1 << bits) - 1))]
            for i in range(count):
                order[first + i] = spare[i]


@kernel
def by_group(
    columns: Any, begin: Any, moments: Any, in_order: Any, groups: Any, before: int, after: int
) -> Any:
    """The matches in the order of their groups, and by their rows within those that end at one moment."""
    found = np.empty((columns.shape[0], columns.shape[1]), np.int32)
    order = np.empty(columns.shape[1], np.int32)
    numbers = np.empty(columns.shape[1], np.int64)
    spare = np.empty(columns.shape[1], np.int64)
    width = bits_of(before + after + 1)
    count = 0
    group = 0
    while group < len(groups):
        first = count
        moment = moments[groups[group]]
        ordered = in_order[groups[group]]
        while group < len(groups) and moments[groups[group]] == moment:
            for match in range(begin[groups[group]], begin[groups[group] + 1]):
                order[count] = match
                count += 1
            group += 1
            ordered &= group == len(groups) or moments[groups[group]] != moment
        if not ordered:
            # 0 is for an unbound variable; interpreted, a NumPy integer would make the packed numbers 32 bits
            base = int(moment) - int(before) - 1
            sort_part(columns, base, width, order, numbers, spare, first, count)
    for step in range(columns.shape[0]):
        for place in range(count):
            found[step, place] = columns[step, order[place]]
    return found
