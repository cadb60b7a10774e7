"""What the scaling suite measures in a process of its own: long files, skewed keys, Spark's cores, rates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nestream
from nestream.bench.memory import Memory

Task = dict[str, Any]
Result = dict[str, Any]
ROWS = 262_144
"""Events in a batch that is read from a long file."""
TICK = 0.02
"""Seconds between two pushes at a steady rate."""
TRIAL = 2.0
"""Seconds that a rate is held."""
SHORTEST = 0.5
"""Seconds that a rate must be held to say anything: faster ones need more events."""
GROWING = 0.05
"""Seconds that the lag may grow in each second at a rate that is kept up with."""
STEPS = 5
"""How often the span between a rate that is kept up with and one that is not is halved."""


def disk(task: Task) -> Result:
    """A share of a file, read and pushed batch by batch, each batch of matches dropped."""
    query = nestream.query(task["query"])
    file = pq.ParquetFile(task["path"])
    events = max(1, round(file.metadata.num_rows * task["share"]))
    few = next(_batches(task["path"], 1_000))
    query.count(few)
    samples, beyond, found = [], 0, 0
    for turn in range(task["repeats"]):
        with Memory() as used:
            begin = time.perf_counter()
            stream, found = query.stream(schema=few.schema), 0
            for batch in _batches(task["path"], events):
                found += stream.push_batch(batch).num_rows
            found += stream.finish_batch().num_rows
            samples.append(time.perf_counter() - begin)
        beyond = beyond if turn else used.beyond
    result: Result = {"samples": samples, "beyond": beyond, "matches": found, "events": events}
    if events <= 2_000_000:
        result["count"] = query.count(pa.concat_tables(_batches(task["path"], events)))
    return result


def _batches(path: str, events: int) -> Iterator[pa.Table]:
    """The first events of a file, a few at a time."""
    left = events
    file = pq.ParquetFile(path, pre_buffer=False)  # read ahead, it would hold all that was read
    for batch in file.iter_batches(min(ROWS, events)):
        yield pa.Table.from_batches([batch.slice(0, left)])
        left -= batch.num_rows
        if left <= 0:
            return


def skew(task: Task) -> Result:
    """Events whose ids are as unequally frequent as Zipf's law with an exponent has it."""
    query = nestream.query(task["query"])
    table = skewed(pq.read_table(task["path"]), task["theta"], task["ids"])
    query.count(table.slice(0, 1_000))
    samples, counting, found, count = [], [], 0, 0
    for _ in range(task["repeats"]):
        begin = time.perf_counter()
        found = sum(matches.num_rows for matches in query.batches(table))
        samples.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        count = query.count(table)
        counting.append(time.perf_counter() - begin)
    return {"samples": samples, "count_samples": counting, "matches": found, "count": count}


def skewed(table: pa.Table, theta: float, ids: int) -> pa.Table:
    """The events with other ids: the n-th id as frequent as n to the power of minus theta."""
    weights = np.arange(1, ids + 1, dtype=float) ** -theta
    places = np.cumsum(weights) / weights.sum()
    drawn = np.searchsorted(places, np.random.default_rng(7).random(table.num_rows)).astype(np.int16)
    return table.set_column(table.column_names.index("id"), "id", pa.array(drawn))


def cores(task: Task) -> Result:
    """A query on Spark with so many cores, from the file to a sink that drops the matches."""
    from nestream.bench.spark import SETTINGS
    from nestream.query import spark_session

    session = spark_session(f"local[{task['cores']}]", SETTINGS)
    try:
        query, events = nestream.query(task["query"]), session.read.parquet(task["path"])
        found = query.match(events).count()  # what Spark does once is done here
        samples = []
        for _ in range(task["repeats"]):
            begin = time.perf_counter()
            query.match(events).write.format("noop").mode("overwrite").save()
            samples.append(time.perf_counter() - begin)
    finally:
        session.stop()
    count = query.count(pq.read_table(task["path"]))
    return {"samples": samples, "matches": found, "count": count}


def rate(task: Task) -> Result:
    """The greatest rate at which pushed events do not lag more and more behind, by trying rates."""
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
    """Whether events are taken in time: a lag of two ticks is the length of a push, and no lag."""
    return growth < GROWING or lag < 2 * TICK


def lagging(
    query: nestream.Query, table: pa.Table, events: list[dict[str, Any]], rate: float
) -> tuple[float, float]:
    """How far behind the last events are taken, and by how much that grows each second, at a rate.

    Events are due at a steady rate and pushed, all that are due, once a tick or as soon as the last push is
    over. The growth is taken from the second half, when processes have settled.
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
    growth = np.polyfit([at for at, _ in late], [lag for _, lag in late], 1)[0]
    return lags[-1][1], float(growth)


MEASURES = {"disk": disk, "skew": skew, "cores": cores, "rate": rate}
