"""What the worker measures of streams: pushed events, files longer than memory, rates kept up with, Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nestream
from benchmarks.peers.common import Memory

Task = dict[str, Any]
ROWS = 262_144
"""Events in a batch that is read from a long file."""
TICK = 0.02
"""Seconds between two pushes at a steady rate."""
TRIAL = 2.0
"""Seconds that a rate is held."""
SHORTEST = 0.5
"""Seconds that a rate must be held to say anything: faster ones need more events."""
GROWING = 0.05
"""Seconds that the lag may grow each second at a rate that is kept up with."""
STEPS = 5
"""How often the span between a rate that is kept up with and one that is not is halved."""


def pushing(query: nestream.Query, table: pa.Table, size: int) -> Callable[[], int]:
    """Pushes events one at a time, or `size` at a time, and counts the matches that come out."""
    if size == 1:
        events = table.to_pylist()

        def single() -> int:
            stream = query.stream(schema=table.schema)
            return sum(len(stream.push(event)) for event in events) + len(stream.finish())

        return single
    batches = [table.slice(start, size) for start in range(0, table.num_rows, size)]

    def several() -> int:
        stream = query.stream(schema=table.schema)
        found = sum(stream.push_batch(batch).num_rows for batch in batches)
        return int(found + stream.finish_batch().num_rows)

    return several


def disk(task: Task) -> Task:
    """A share of a file, read and pushed batch by batch, each batch of matches dropped."""
    query = nestream.query(task["query"])
    events = max(1, round(pq.ParquetFile(task["path"]).metadata.num_rows * task["share"]))
    few = next(_batches(task["path"], 1_000))
    query.count(few)
    samples, beyond, found = [], 0, 0
    for turn in range(task["repeats"]):
        with Memory() as used:
            begin = time.perf_counter()
            stream = query.stream(schema=few.schema)
            found = sum(stream.push_batch(batch).num_rows for batch in _batches(task["path"], events))
            found += stream.finish_batch().num_rows
            samples.append(time.perf_counter() - begin)
        beyond = beyond if turn else used.beyond
    result: Task = {"samples": samples, "beyond": beyond, "matches": found, "events": events}
    if events <= 2_000_000:
        result["count"] = query.count(pa.concat_tables(_batches(task["path"], events)))
    return result


def _batches(path: str, events: int) -> Iterator[pa.Table]:
    """The first events of a file, some at a time."""
    left = events
    file = pq.ParquetFile(path, pre_buffer=False)  # read ahead, it would hold all that was read
    for batch in file.iter_batches(min(ROWS, events)):
        yield pa.Table.from_batches([batch.slice(0, left)])
        left -= batch.num_rows
        if left <= 0:
            return


def rate(task: Task) -> Task:
    """The greatest rate at which pushed events do not lag more and more behind, found by bisection."""
    query = nestream.query(task["query"])
    table = pq.read_table(task["path"]).combine_chunks()
    events = table.to_pylist() if task["single"] else []
    tried: list[list[float]] = []

    def kept_up(events_a_second: float) -> bool:
        lag, growth = lagging(query, table, events, events_a_second)
        tried.append([events_a_second, lag, growth])
        return is_kept_up(lag, growth)

    most = table.num_rows / SHORTEST
    low, high = 0.0, min(float(task["start"]), table.num_rows / TRIAL)
    while high <= most and kept_up(high):
        low, high = high, high * 2
    if high > most:
        return {"rate": low, "beyond it": None, "tried": sorted(tried)}
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if kept_up(middle) else (low, middle)
    return {"rate": low, "beyond it": high, "tried": sorted(tried)}


def is_kept_up(lag: float, growth: float) -> bool:
    """Whether events are taken in time; a lag of two ticks is the length of a push, and no lag."""
    return growth < GROWING or lag < 2 * TICK


def lagging(
    query: nestream.Query, table: pa.Table, events: list[dict[str, Any]], rate: float
) -> tuple[float, float]:
    """How far behind the last events are taken at a rate, and how much that grows each second.

    Events are due at a steady rate; all that are due are pushed once a tick, or when the last push is over.
    The growth is that of the second half.
    """
    stream = query.stream(schema=table.schema)
    whole = min(TRIAL, table.num_rows / rate)
    begin, taken = time.perf_counter(), 0
    lags: list[tuple[float, float]] = []
    total = int(rate * whole)
    while taken < total:
        now = time.perf_counter() - begin
        due = min(int(now * rate), total, taken + max(1, int(rate * TICK)))
        if due == taken:
            time.sleep(TICK / 4)
            continue
        if events:
            for event in events[taken:due]:
                stream.push(event)
        else:
            stream.push_batch(table.slice(taken, due - taken))
        taken = due
        done = time.perf_counter() - begin
        lags.append((done, done - taken / rate))
        if done > 4 * whole:
            break
    late = [(at, lag) for at, lag in lags if at > lags[-1][0] / 2] or lags
    if len(late) < 2 or late[-1][0] == late[0][0]:
        return lags[-1][1], max(lags[-1][1], 0.0)
    return lags[-1][1], float(np.polyfit([at for at, _ in late], [lag for _, lag in late], 1)[0])


TASKS = {"disk": disk, "rate": rate}
