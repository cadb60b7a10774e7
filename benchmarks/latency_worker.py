"""What the worker measures of running streams: from an event to its match in the sink, and over a backlog.

A feed in a process of its own writes events at a steady rate. The time of an event is when it falls due; that
of its match is when a reader finds it in the sink.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nestream
from benchmarks.feed import TIME, lines, timed

Task = dict[str, Any]
Moments = np.ndarray[Any, Any]
QUERY = "SEQ(A a, B b, C c) WHERE [id] WITHIN 2 s RETURN a.id AS id, c.ts AS at"
COLUMNS = "ts timestamp, type string, id int"
WARM = 0.5
"""The share of the time in which everything starts and nothing is measured."""
PATIENCE = 120.0
"""The seconds that are waited for a stream to start, and for its last match."""
LOOK = 0.002
"""The seconds between two looks at the sink."""
SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "3g"}


@cache
def session() -> Any:
    """The Spark session of this process."""
    from nestream.query import spark_session

    return spark_session("local[2]", SETTINGS)


def latency(task: Task) -> Task:
    """The percentiles of the seconds from an event to its match, for each repeat."""
    turns = [_turn(task) for _ in range(task["repeats"])]
    names = ("p50", "p99", "max")
    return {
        "repeats": turns,
        **{name: float(np.median([turn[name] for turn in turns])) for name in names},
        **{f"least {name}": min(turn[name] for turn in turns) for name in names},
        "matches": turns[0]["matches"],
    }


def _turn(task: Task) -> Task:
    events = pq.read_table(task["path"], columns=["type", "id"])
    rate, seconds = task["rate"], events.num_rows / task["rate"]
    with tempfile.TemporaryDirectory(prefix="nestream-latency-", ignore_cleanup_errors=True) as name:
        found: list[tuple[float, Moments]] = []
        with WAYS[task["way"]](Path(name), task) as (begin, sink):
            expected = nestream.query(QUERY).count(timed(events, rate, begin))
            end, count = begin + seconds + PATIENCE, 0
            for moments in sink:
                now = time.time()
                if len(moments):
                    found.append((now, moments))
                    count += len(moments)
                if count >= expected or now > end or (task["way"] == "match" and now > begin + seconds):
                    break
    if count != expected and task["way"] != "match":  # the last matches of `match` wait for a watermark
        raise ValueError(f"{count:,} matches in the sink, and {expected:,} of a table")
    since = begin + WARM * seconds
    counted = [now - moments[moments > since] for now, moments in found]
    every = np.concatenate([np.empty(0), *counted])
    if not len(every):
        raise ValueError("no match came in time")
    p50, p99 = np.quantile(every, [0.5, 0.99])
    return {"matches": count, "p50": float(p50), "p99": float(p99), "max": float(every.max())}


def _feed(task: Task, begin: float, target: str, **pipes: Any) -> subprocess.Popen[bytes]:
    told = [task["path"], str(task["rate"]), str(task["tick"]), repr(begin), target]
    return subprocess.Popen([sys.executable, "-m", "benchmarks.feed", *told], **pipes)


# -- in a process ------------------------------------------------------------------------------------------

STARTING = 8.0
"""The seconds from the start of the processes to the first event, where their state cannot be seen."""
SOON = 2.0
"""The seconds to the first event once the stream runs: the feed starts meanwhile."""


def _wait_for(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not reached():
        if time.monotonic() > end:
            raise ValueError(f"the stream did not start in {PATIENCE:.0f} s")
        time.sleep(LOOK)


def _command(*options: str) -> list[str]:
    return [str(Path(sys.executable).with_name("nestream")), "stream", QUERY, "--local", *options]


@contextmanager
def from_file(folder: Path, task: Task) -> Iterator[tuple[float, Iterator[Moments]]]:
    """`nestream stream --local` from a growing file to another, with a checkpoint every second."""
    source, sink = folder / "in.jsonl", folder / "out.jsonl"
    source.touch()
    with _started(_command("--from", str(source), "--to", str(sink))):
        _wait_for(sink.exists)
        begin = time.time() + SOON
        feed = _feed(task, begin, str(source))
        try:
            yield begin, lines_of(sink)
        finally:
            feed.kill()
            feed.wait()


@contextmanager
def from_pipe(folder: Path, task: Task) -> Iterator[tuple[float, Iterator[Moments]]]:
    """`nestream stream --local` from standard input to standard output."""
    begin = time.time() + STARTING
    feed = _feed(task, begin, "-", stdout=subprocess.PIPE)
    try:
        with _started(_command(), stdin=feed.stdout, stdout=subprocess.PIPE) as running:
            matches, fed = running.stdout, feed.stdout
            assert matches is not None
            assert fed is not None
            fed.close()
            os.set_blocking(matches.fileno(), False)
            yield begin, texts_of(matches.read)
    finally:
        feed.kill()
        feed.wait()


@contextmanager
def _started(command: list[str], **pipes: Any) -> Iterator[subprocess.Popen[bytes]]:
    running = subprocess.Popen(command, stderr=subprocess.PIPE, **pipes)
    try:
        yield running
        if running.poll() not in (None, 0):
            assert running.stderr is not None
            raise ValueError(running.stderr.read().decode()[-200:])
    finally:
        if running.poll() is None:
            running.send_signal(signal.SIGINT)
        running.communicate()


def lines_of(path: Path) -> Iterator[Moments]:
    """The times of the matches of lines as they appear in a file."""
    with path.open("rb") as file:
        yield from texts_of(file.read)


def texts_of(read: Callable[[], bytes | None]) -> Iterator[Moments]:
    """The times of the matches of lines as they are read, or nothing for a while."""
    rest = b""
    while True:
        *whole, rest = (rest + (read() or b"")).split(b"\n")
        if whole:
            stamps = [json.loads(line)["at"].removesuffix("Z") for line in whole]
            yield np.array(stamps, "datetime64[us]").astype(np.int64) / 1e6
        else:
            time.sleep(LOOK)
            yield np.empty(0)


# -- on Spark ----------------------------------------------------------------------------------------------


@contextmanager
def on_spark(folder: Path, task: Task) -> Iterator[tuple[float, Iterator[Moments]]]:
    """A stream on Spark from Parquet files to Parquet files."""
    source, spark = folder / "in", session()
    source.mkdir()
    first = pq.read_table(task["path"], columns=["type", "id"]).slice(0, 100)
    pq.write_table(timed(first, 100, -1.0), source / "00000000.parquet")  # so that the columns are known
    query, check = nestream.query(QUERY), str(folder / "check")
    if task["way"] == "job":
        running = query.stream_files(
            spark, str(source), str(folder / "out"), checkpoint=check, watermark="0 s"
        )
    else:
        events = spark.readStream.schema(COLUMNS).parquet(str(source)).withWatermark("ts", "0 seconds")
        writer = query.match(events).writeStream.format("parquet").option("checkpointLocation", check)
        running = writer.start(str(folder / "out"))
    _wait_for(lambda: bool(running.progress.batches if task["way"] == "job" else running.lastProgress))
    begin = time.time() + SOON
    feed = _feed(task, begin, str(source))
    try:
        yield begin, files_of(folder / "out", begin)
    finally:
        feed.kill()
        feed.wait()
        running.stop()


def files_of(folder: Path, since: float) -> Iterator[Moments]:
    """The times of the matches of files as they appear in a folder, or nothing for a while."""
    seen: set[str] = set()
    while True:
        names = [entry.name for entry in os.scandir(folder)] if folder.is_dir() else []
        fresh = [name for name in names if name.endswith(".parquet") and name[0] != "." and name not in seen]
        for name in fresh:
            try:
                times = pq.read_table(folder / name).column("at").cast(TIME)
            except pa.ArrowInvalid:  # Spark's own sink shows files before they are complete
                continue
            seen.add(name)
            moments = times.cast(pa.int64()).to_numpy() / 1e6
            yield moments[moments >= since]
        if not fresh:
            time.sleep(LOOK)
            yield np.empty(0)


WAYS = {"file": from_file, "pipe": from_pipe, "job": on_spark, "match": on_spark}


# -- a backlog ---------------------------------------------------------------------------------------------

RATE = 100_000
"""The events of a backlog are as far apart as at this rate."""
FILES = 5
"""On Spark, a backlog is this many micro-batches; the first ones do not count."""


def backlog(task: Task) -> Task:
    """Events a second over events that are all there."""
    events = timed(pq.read_table(task["path"], columns=["type", "id"]), RATE, 1.7e9)
    rates, found = [], 0
    for _ in range(task["repeats"]):
        with tempfile.TemporaryDirectory(prefix="nestream-backlog-", ignore_cleanup_errors=True) as name:
            seconds, taken, found = BACKLOGS[task["way"]](Path(name), events)
            rates.append(taken / seconds)
    expected = nestream.query(QUERY).count(events)
    return {"rates": rates, "rate": float(np.median(rates)), "matches": found, "count": expected}


def _local_backlog(suffix: str) -> Callable[[Path, pa.Table], tuple[float, int, int]]:
    def run(folder: Path, events: pa.Table) -> tuple[float, int, int]:
        took, few = [], events.num_rows // 20
        for number, part in enumerate((events.slice(0, few), events)):
            source, sink = folder / f"in{number}.{suffix}", folder / f"out{number}.jsonl"
            if suffix == "jsonl":
                source.write_bytes(lines(part))
            else:
                pq.write_table(part, source)
            begin = time.perf_counter()
            with _started(_command("--once", "--from", str(source), "--to", str(sink))) as running:
                running.wait()
            took.append(time.perf_counter() - begin)
        with sink.open("rb") as file:
            return took[1] - took[0], events.num_rows - few, sum(1 for _ in file)

    return run


def _job_backlog(folder: Path, events: pa.Table) -> tuple[float, int, int]:
    source, size, done = folder / "in", events.num_rows // FILES, list[tuple[float, int]]()
    source.mkdir()
    for number in range(FILES):
        path = source / f"{number:08}.parquet"
        last = events.num_rows if number == FILES - 1 else (number + 1) * size
        pq.write_table(events.slice(number * size, last - number * size), path)
        os.utime(path, (1_700_000_000 + number,) * 2)
    running = nestream.query(QUERY).stream_files(
        session(),
        str(source),
        str(folder / "out"),
        checkpoint=str(folder / "check"),
        watermark="0 s",
        files=1,
        once=True,
    )
    running.on_batch = lambda progress: done.append((progress.batch_seconds, progress.events))
    while not running.wait(0.2):
        pass
    return float(np.median([seconds for seconds, _ in done[2:]])), size, running.progress.matches


BACKLOGS = {"jsonl": _local_backlog("jsonl"), "parquet": _local_backlog("parquet"), "job": _job_backlog}
TASKS = {"latency": latency, "backlog": backlog}
