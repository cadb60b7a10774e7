"""From an event to its match in the sink, in a process and on Spark: `python -m benchmarks.latency`.

Events come at a steady rate, in files of a tenth of a second or as lines that are appended. The time of an
event is when it is due; that of its match is when a reader finds it in the sink. Files wait for their last
event, so 0.05 s of the median is theirs. The first events, while everything starts, do not count.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import nestream
from nestream.data import generate

QUERY = "SEQ(A a, B b, C c) WHERE [id] WITHIN 2 s RETURN a.id AS id, c.ts AS at"
TICK = 0.1
FEW = 10_000
"""Events a second for each thousand keys."""
WAYS = ("local", "files", "match")
"""`nestream stream --local`, `query.stream_files` on Spark, and `query.match(df)` with Spark's file sink."""
SATURATED = "SEQ(A a, B b, C c) WHERE [id] WITHIN 565690 ms RETURN a.id AS id, c.ts AS at"
COLUMNS = "ts timestamp, type string, id int"


class Feeder:
    """Writes events at a rate until it is stopped."""

    def __init__(self, rate: int, write: Callable[[int, pa.Table], None]) -> None:
        self._size, self._write = int(rate * TICK), write
        kinds = generate("sase", events=50 * self._size, seed=2, attributes=0)
        more = np.arange(kinds.num_rows) % max(rate // FEW, 1)  # keys, so that matches grow as events do
        ids = pc.add(kinds.column("id"), pa.array(1000 * more, kinds.schema.field("id").type))
        self._kinds = pa.table({"type": kinds.column("type"), "id": ids})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        begin, number = time.time(), 0
        while not self._stop.is_set():
            number += 1
            due = begin + number * TICK
            time.sleep(max(0.0, due - time.time()))
            moments = 1e6 * (due - TICK + TICK * np.arange(1, self._size + 1) / self._size)
            times = pa.array(moments.astype(np.int64), pa.timestamp("us", "UTC"))
            kinds = self._kinds.slice(number % 50 * self._size, self._size)
            self._write(number, kinds.add_column(0, "ts", times))

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def as_files(folder: Path) -> Callable[[int, pa.Table], None]:
    """Writes each part of the events as a file that appears as a whole."""
    folder.mkdir()

    def write(number: int, events: pa.Table) -> None:
        pq.write_table(events, folder / f".{number}")
        (folder / f".{number}").rename(folder / f"{number:08}.parquet")

    return write


def as_lines(path: Path) -> Callable[[int, pa.Table], None]:
    """Appends the events to a file of JSON lines."""
    path.touch()

    def write(number: int, events: pa.Table) -> None:
        times = pc.strftime(events.column("ts"), "%Y-%m-%dT%H:%M:%SZ").combine_chunks()
        parts = '{"ts":"', times, '","type":"', events.column("type").cast(pa.string()).combine_chunks()
        ids = events.column("id").cast(pa.string()).combine_chunks()
        texts = pc.binary_join_element_wise(*parts, '","id":', ids, "}", "")
        with path.open("a", encoding="utf-8") as file:
            file.write("\n".join(texts.to_pylist()) + "\n")

    return write


def measured(found: Iterator[np.ndarray[Any, Any]], warm: float, seconds: float) -> dict[str, Any]:
    """The percentiles of the latencies that are found after the first seconds."""
    begin, latencies = time.time(), []
    for moments in found:
        now = time.time()
        if now - begin > warm:
            latencies.append(now - moments)
        if now - begin > warm + seconds:
            break
    every = np.concatenate([np.empty(0), *latencies])
    if not len(every):
        return {"matches": 0}
    return {
        "matches": len(every),
        "p50": round(float(np.quantile(every, 0.5)), 3),
        "p99": round(float(np.quantile(every, 0.99)), 3),
    }


def new_files(folder: Path) -> Iterator[np.ndarray[Any, Any]]:
    """The times of the matches of files as they appear in a folder, or nothing for a while."""
    seen: set[str] = set()
    while True:
        names = [entry.name for entry in os.scandir(folder)] if folder.is_dir() else []
        fresh = [name for name in names if name.endswith(".parquet") and name[0] != "." and name not in seen]
        for name in fresh:
            try:
                times = pq.read_table(folder / name).column("at").cast(pa.timestamp("us", "UTC"))
            except pa.ArrowInvalid:  # Spark's own sink shows files before they are complete
                continue
            seen.add(name)
            yield times.cast(pa.int64()).to_numpy() / 1e6
        if not fresh:
            time.sleep(0.005)
            yield np.empty(0)


def new_lines(path: Path) -> Iterator[np.ndarray[Any, Any]]:
    """The times of the matches of lines as they appear in a file, or nothing for a while."""
    while not path.exists():
        time.sleep(0.01)
        yield np.empty(0)
    with path.open(encoding="utf-8") as file:
        rest = ""
        while True:
            *lines, rest = (rest + file.read()).split("\n")
            if lines:
                stamps = [json.loads(line)["at"].removesuffix("Z") for line in lines]
                yield np.array(stamps, "datetime64[us]").astype(np.int64) / 1e6
            else:
                time.sleep(0.002)
                yield np.empty(0)


@contextmanager
def local(folder: Path) -> Iterator[tuple[Callable[[int, pa.Table], None], Iterator[Any]]]:
    """A stream in a process of its own."""
    write = as_lines(folder / "in.jsonl")
    command = [str(Path(sys.executable).with_name("nestream")), "stream", QUERY, "--local"]
    command += ["--from", str(folder / "in.jsonl"), "--to", str(folder / "out.jsonl")]
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield write, new_lines(folder / "out.jsonl")
    finally:
        running.send_signal(signal.SIGINT)
        running.wait()


@contextmanager
def on_spark(
    folder: Path, spark: Any, way: str
) -> Iterator[tuple[Callable[[int, pa.Table], None], Iterator[Any]]]:
    """A stream on Spark, in one way or the other."""
    write = as_files(folder / "in")
    first = generate("sase", events=100, seed=1, attributes=0).select(["type", "id"])
    write(0, first.add_column(0, "ts", pa.array([0] * 100, pa.timestamp("us", "UTC"))))
    query, check = nestream.query(QUERY), str(folder / "check")
    if way == "files":
        running = query.stream_files(
            spark, str(folder / "in"), str(folder / "out"), checkpoint=check, watermark="0 s"
        )
    else:
        events = spark.readStream.schema(COLUMNS).parquet(str(folder / "in"))
        matches = query.match(events.withWatermark("ts", "0 seconds"))
        writer = matches.writeStream.format("parquet").option("checkpointLocation", check)
        running = writer.start(str(folder / "out"))
    try:
        yield write, new_files(folder / "out")
    finally:
        running.stop()


def saturated(folder: Path, spark: Any, way: str, events: int) -> dict[str, Any]:
    """Events a second over a backlog of three files of so many events, after one."""
    write = as_files(folder / "in")
    table = generate("sase", events=5 * events, seed=1, attributes=0)
    table = table.set_column(0, "ts", pc.cast(table.column("ts"), pa.timestamp("ms", "UTC")))
    for number in range(5):
        write(number, table.slice(number * events, events))
        os.utime(folder / "in" / f"{number:08}.parquet", (1_700_000_000 + number,) * 2)
    query, check = nestream.query(SATURATED), str(folder / "check")
    done: list[float] = []
    if way == "files":
        running = query.stream_files(
            spark,
            str(folder / "in"),
            str(folder / "out"),
            checkpoint=check,
            watermark="1 s",
            files=1,
            once=True,
        )
        running.on_batch = lambda progress: done.append(progress.batch_seconds)
        while not running.wait(0.2):
            pass
    else:
        read = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        matches = query.match(read.withWatermark("ts", "1 second"))
        writer = matches.writeStream.format("parquet").option("checkpointLocation", check)
        running = writer.trigger(availableNow=True).start(str(folder / "out"))
        running.awaitTermination()
        done = [p.durationMs["triggerExecution"] / 1000 for p in running.recentProgress if p.numInputRows]
    return {"events a micro-batch": events, "events/s": round(events / min(done[2:]))}


def main() -> None:
    """Measure what is asked for; a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--rates", nargs="+", type=int, default=(10_000, 100_000))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--warm", type=float, default=30)
    parser.add_argument("--saturated", type=int, default=2_000_000, help="events a micro-batch; 0: none")
    wanted = parser.parse_args()
    spark: Any = None
    if set(wanted.ways) != {"local"}:
        from nestream.query import spark_session

        spark = spark_session("local[2]", {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "3g"})
    for rate in wanted.rates:
        for way in wanted.ways:
            with tempfile.TemporaryDirectory(prefix="nestream-latency-", ignore_cleanup_errors=True) as name:
                folder = Path(name)
                stream = local(folder) if way == "local" else on_spark(folder, spark, way)
                with stream as (write, found), Feeder(rate, write):
                    latency = measured(found, wanted.warm, wanted.seconds)
            print(json.dumps({"way": way, "events/s": rate, **latency}), flush=True)
    for way in wanted.ways if wanted.saturated else ():
        if way != "local":
            with tempfile.TemporaryDirectory(prefix="nestream-latency-", ignore_cleanup_errors=True) as name:
                told = saturated(Path(name), spark, way, wanted.saturated)
            print(json.dumps({"way": way, **told}), flush=True)
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    main()
