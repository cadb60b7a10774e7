"""The chain: a forward pass drops what no prefix reaches, a backward pass builds the matches.

The laws are proved in docs/how-it-works/engine.md, "Chains".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel
from nestream.engine.kernels.search import first_at_least, next_at_least


@kernel
def extend_prefixes(
    previous: Any,
    previous_begin: Any,
    previous_start: Any,
    rows: Any,
    begin: Any,
    firsts: Any,
    bound: Any,
    low: Any,
    reach: Any,
) -> Any:
    """Return the events of a step that end a prefix, given those of the previous step.

    An event needs a predecessor that comes before its first event (`firsts`, itself for a single event), is
    not before its bound where `bound` is not empty, and has a prefix that starts in the event's window unless
    `reach` is empty. `low` may be empty where no times are equal. Returns the places that remain, where each
    key begins among them, the latest start of a prefix, and the range of predecessors.

    Law: `previous_start` never decreases within a key, so the last predecessor has the latest start, and the
    predecessors with a prefix in the window are the last ones.
    """
    keys = len(begin) - 1
    stay = np.empty(len(rows) + 1, np.int32)
    start = np.empty(len(rows) + 1, np.int32)
    lowest = np.empty(len(rows) + 1, np.int32)
    end = np.empty(len(rows) + 1, np.int32)
    stay_begin = np.zeros(keys + 1, np.int32)
    count = 0
    for key in range(keys):
        stay_begin[key] = count
        first = previous_begin[key]
        limit = previous_begin[key + 1]
        after = first
        for place in range(begin[key], begin[key + 1]):
            earliest = low[firsts[place]] if len(low) else firsts[place]
            if after > first and previous[after - 1] >= earliest:  # composites are in the order of their ends
                after = first_at_least(previous, previous_begin[key], after, earliest)
            after = next_at_least(previous, after, limit, earliest)
            if len(reach):
                first = next_at_least(previous_start, first, limit, reach[rows[place]])
            from_ = first
            if len(bound) and bound[place] > 0 and first < after:
                from_ = first_at_least(previous, first, after, bound[place])
            if first < after:
                stay[count] = place
                start[count] = previous_start[after - 1]
                lowest[count] = from_
                end[count] = after
                count += from_ < after  # branch-free, because the branch would be unpredictable
    stay_begin[keys] = count
    return stay[:count], stay_begin, start[:count], lowest[:count], end[:count]


@kernel
def first_in_window(start: Any, low: int, high: int, wanted: int) -> int:
    """The first place in the non-decreasing `start[low:high]` that is at least `wanted`.

    Searches from the end in growing steps: few places of a long stretch are in a window.
    """
    step = 1
    while high - step >= low and start[high - step] >= wanted:
        step *= 2
    known = high - step // 2
    return int(first_at_least(start, max(low, high - step), known, wanted))


@kernel
def extend_through(
    columns: Any,
    reach: Any,
    start: Any,
    lowest: Any,
    end: Any,
    level: int,
    stop: int,
    at: Any,
    until: Any,
    rows: Any,
    found: Any,
) -> int:
    """Extend partial matches from step `level` down to step `stop`; return how many longer ones were found.

    `columns` holds the places of each partial match from `level` on, one step per row, and `reach` the first
    row of its window. `start`, `lowest` and `end` are those of all steps one after the other. Longer matches
    go to the columns of `found`, in the order of their places from the last step to the first; as rows of
    events where `rows`, by place, is not empty.

    Continues where an earlier call stopped because `found` was full: `at` and `until` hold, for each step,
    the next place to be taken and the end of its range; `at[level]` is the next partial match, which is begun
    if `until[level]` is 0. All partial matches are done when `at[level]` is their number.

    Law: `start` never decreases along a step, so the places that a window allows are the tail of a range, and
    each of them has a predecessor that the window allows: there are no dead ends.
    """
    count = 0
    width = columns.shape[0]
    room = found.shape[1]
    for i in range(at[level], columns.shape[1]):
        step = level
        if until[level]:
            step = stop
        while True:
            if step > stop:  # begin the range of the previous step
                here = columns[0, i] if step == level else at[step] - 1
                step -= 1
                until[step] = end[here]
                at[step] = first_in_window(start, lowest[here], end[here], reach[i])
            if step == stop:
                first = at[stop]
                last = min(until[stop], first + room - count)
                for place in range(first, last):
                    found[0, count] = rows[place] if len(rows) else place
                    for above in range(stop + 1, level):
                        taken = at[above] - 1
                        found[above - stop, count] = rows[taken] if len(rows) else taken
                    for given in range(width):
                        taken = columns[given, i]
                        found[level - stop + given, count] = rows[taken] if len(rows) else taken
                    count += 1
                at[stop] = last
                if last < until[stop]:
                    at[level] = i
                    until[level] = 1
                    return count
                step += 1
            while step < level and at[step] == until[step]:
                step += 1
            if step == level:
                break
            at[step] += 1
        at[level] = i + 1
        until[level] = 0
    return count


@kernel
def followers(begin: Any, next_begin: Any, end: Any, found: Any) -> None:
    """For each place of a step, the first place of the next step that may follow it; written to `found`.

    `end` delimits the predecessors of each place, and never decreases within a key.
    """
    for key in range(len(begin) - 1):
        after = next_begin[key]
        for place in range(begin[key], begin[key + 1]):
            while after < next_begin[key + 1] and end[after] <= place:
                after += 1
            found[place] = after


@kernel
def fill_in_order(
    triggers: Any,
    reach: Any,
    start: Any,
    lowest: Any,
    end: Any,
    following: Any,
    rows: Any,
    at: Any,
    until: Any,
    found: Any,
) -> int:
    """Build the matches of some last events, each event's in the order of their rows; return how many.

    `triggers` are the places of last events, `rows` the rows of all places, `reach` the first row in the
    window of each row, and `following` the first place of the next step that may follow a place; the others
    are those of `extend_through`. Matches go to the columns of `found`. Those of one event stay together,
    unless there is no room even for them alone.

    Continues where an earlier call stopped because `found` was full: the last entry of `at` is the number of
    the next last event, and the last one of `until` whether it was begun.

    Law: apart from the window, only the last step has a `lowest` above the beginning of its key. So each
    place whose prefix fits in the window, and which precedes the last predecessor of the next step, is
    followed by a range that is not empty: going forward has no dead ends either. The last step's own range
    begins with the first place that the window allows.
    """
    count = 0
    steps = len(at) - 1
    room = found.shape[1]
    for i in range(at[steps], len(triggers)):
        trigger = triggers[i]
        whole = count
        step = 0
        if until[steps]:
            step = steps - 1
        else:
            until[steps - 1] = end[trigger]
            for before in range(steps - 2, -1, -1):
                until[before] = end[until[before + 1] - 1]
            at[0] = lowest[trigger]
            if steps > 1:
                at[0] = first_in_window(start, lowest[until[1] - 1], until[0], reach[rows[trigger]])
        while step >= 0:
            if step == steps - 1:
                first = at[step]
                last = min(until[step], first + room - count)
                for place in range(first, last):
                    for before in range(step):
                        found[before, count] = rows[at[before] - 1]
                    found[step, count] = rows[place]
                    found[steps, count] = rows[trigger]
                    count += 1
                if last < until[step]:
                    at[steps] = i
                    if whole > 0:
                        until[steps] = 0
                        return whole
                    at[step] = last
                    until[steps] = 1
                    return count
                step -= 1
            elif at[step] == until[step]:
                step -= 1
            else:
                place = at[step]
                at[step] += 1
                step += 1
                at[step] = following[place]
                if step == steps - 1:
                    at[step] = max(following[place], lowest[trigger])
        at[steps] = i + 1
        until[steps] = 0
    return count


@kernel
def fill_latest(triggers: Any, end: Any, rows: Any, found: Any) -> None:
    """Build for each last event the match with the last predecessor at every step, as the columns of `found`.

    `triggers` are the places of last events, `rows` the rows of all places; `end` is that of
    `extend_through`.
    """
    for i in range(len(triggers)):
        place = triggers[i]
        for step in range(found.shape[0] - 1, 0, -1):
            found[step, i] = rows[place]
            place = end[place] - 1
        found[0, i] = rows[place]


@kernel
def first_matches(begins: Any, rows: Any, bound: Any, low: Any, reach: Any, first: int, end: int) -> Any:
    """Build for each first event the match with the first successor at every step that reaches the last step.

    `begins` holds a row for each step, with the place where each key begins; `rows` are those of all places.
    By place, `bound` is the first row that a predecessor may have, and `low` the first that is too late.
    Returns the matches that end in the rows `[first, end)`, by their last events,
    then by their rows; and whether `bound` never decreases within a key, without which they are not right.

    Law: where neither `bound` nor `low` decreases, the successors of an event are a range, and the first one
    that reaches the last step does so at the earliest event. No match of a first event ends before that one,
    so the window allows it or none.
    """
    steps = len(begins)
    is_right = True
    following = np.empty(len(rows), np.int32)
    built = np.empty((steps, begins[0, -1] + 1), np.int32)
    beside = np.empty(begins[0, -1] + 1, np.int32)
    latest = np.full(max(end - first, 0) + 1, -1, np.int32)
    count = 0
    # the loops are branch-free where the branches would be unpredictable
    for key in range(begins.shape[1] - 1):
        for step in range(steps - 2, -1, -1):
            begin = begins[step, key]
            place = begins[step, key + 1] - 1
            since = begins[step + 1, key]
            until = begins[step + 1, key + 1]
            after = until
            nearest = -1
            if since == until:
                following[begin : place + 1] = -1
                continue
            falls = 0
            for later in range(since, until - 1):
                falls += bound[later] > bound[later + 1]
            is_right &= falls == 0
            while place >= begin:
                follows = (after > since) & (low[max(after - 1, since)] > rows[place])
                after -= follows
                here = min(after, until - 1)
                reaches = follows & ((step == steps - 2) | (following[here] >= 0))
                nearest = here if reaches else nearest
                allowed = (nearest >= 0) & (bound[max(nearest, since)] <= rows[place])
                following[place] = nearest if allowed else -1
                place -= not follows
        for place in range(begins[0, key + 1] - 1, begins[0, key] - 1, -1):
            here = place
            fits = True
            built[0, count] = rows[place]
            for step in range(1, steps):
                here = following[here]
                fits &= here >= 0
                here = max(here, 0)
                built[step, count] = rows[here]
            last = rows[here]
            fits &= (first <= last) & (last < end) & (reach[last] <= rows[place])
            own = last - first if fits else 0
            beside[count] = latest[own]
            latest[own] = count if fits else latest[own]
            count += fits
    found = np.empty((steps, count), np.int32)
    heads = np.empty(len(latest) + 1, np.int32)
    ends = 0
    for row in range(len(latest)):
        heads[ends] = latest[row]
        ends += latest[row] >= 0
    count = 0
    for i in range(ends):
        match = heads[i]
        while match >= 0:
            for step in range(steps):
                found[step, count] = built[step, match]
            count += 1
            match = beside[match]
    return found, is_right


@kernel
def count_through(
    columns: Any,
    reach: Any,
    start: Any,
    lowest: Any,
    end: Any,
    level: int,
    stop: int,
    first_one: int,
    most: int,
    at: Any,
    until: Any,
) -> Any:
    """Count the matches that partial ones extend to, from number `first_one` on, without building them.

    Gives up after `most`. Also returns the number of the partial match to continue with. The other arguments
    are those of `extend_through`.
    """
    total = 0
    for i in range(first_one, columns.shape[1]):
        if total > most:
            return total, i
        step = level
        while True:
            here = columns[0, i] if step == level else at[step] - 1
            first = first_in_window(start, lowest[here], end[here], reach[i])
            if step - 1 == stop:
                total += int(end[here]) - int(first)
            else:
                step -= 1
                until[step] = end[here]
                at[step] = first
            while step < level and at[step] == until[step]:
                step += 1
            if step == level:
                break
            at[step] += 1
    return total, columns.shape[1]


@kernel
def extend(columns: Any, window: Any, lowest: Any, end: Any, total: int) -> Any:
    """Extend partial matches by each place of a range, which becomes the first column.

    `columns` holds the numbers of partial matches; the range of each is that of its first number. Returns the
    longer columns, and for each longer match the number of the one it extends.
    """
    longer = np.empty((columns.shape[0] + 1, total), np.int32)
    origin = np.empty(total, np.int32)
    count = 0
    for i in range(columns.shape[1]):
        here = columns[0, i]
        for place in range(max(lowest[here], window[i]), end[here]):
            longer[0, count] = place
            for step in range(columns.shape[0]):
                longer[step + 1, count] = columns[step, i]
            origin[count] = i
            count += 1
    return longer, origin


@kernel
def running_maximum(values: Any, begin: Any) -> Any:
    """For each place, the greatest value of its key so far."""
    found = np.empty(len(values), np.int32)
    for key in range(len(begin) - 1):
        greatest = -1
        for place in range(begin[key], begin[key + 1]):
            greatest = max(greatest, values[place])
            found[place] = greatest
    return found
