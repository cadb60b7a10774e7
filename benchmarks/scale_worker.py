"""A real standalone cluster of Spark in processes of its own: a task as JSON on each line, results as JSON.

Rows and bytes of tasks are read from Spark's event log, and processor time is that of all processes of the
cluster and the driver: other programs on the machine change neither.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import nestream
from benchmarks.feed import lines
from benchmarks.rule_set import rule_set

Task = dict[str, Any]
WORKERS = 3
"""Workers of the cluster, each with one core and one executor."""
TASKS_A_STAGE = 16
"""The partitions of a batch."""
SKEWED = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
SETTINGS = {
    "spark.executor.memory": "768m",
    "spark.executor.cores": "1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": str(WORKERS),
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
}
WARM = 2
"""Micro-batches in which processes start, which do not count."""
PATIENCE = 30.0
"""The seconds that are waited for Spark's event log."""


class Cluster:
    """A master, workers and a session, started when they are first needed."""

    def __init__(self, started: ExitStack) -> None:
        self._started = started
        self._read = 0

    @cached_property
    def folder(self) -> Path:
        """Where the cluster keeps its files, and jobs theirs."""
        name = tempfile.mkdtemp(prefix="nestream-scale-")
        self._started.callback(shutil.rmtree, name, ignore_errors=True)
        return Path(name)

    @cached_property
    def spark(self) -> Any:
        """The session."""
        from nestream.query import spark_session
        from tests.spark.cluster import environment, standalone

        os.environ |= environment(self.folder)
        url = self._started.enter_context(standalone(self.folder, WORKERS)).url
        log = self.folder / "log"
        log.mkdir()
        session = spark_session(url, {**SETTINGS, "spark.eventLog.dir": log.as_uri()})
        self._started.callback(session.stop)
        return session

    @contextmanager
    def place(self) -> Iterator[Path]:
        """A folder for one job."""
        name = tempfile.mkdtemp(dir=self.folder)
        try:
            yield Path(name)
        finally:
            shutil.rmtree(name, ignore_errors=True)

    def ended(self, jobs: int) -> list[dict[str, Any]]:
        """What the event log has since the last call, once that many jobs have ended."""
        end = time.monotonic() + PATIENCE
        while True:
            (path,) = (self.folder / "log").iterdir()
            with path.open("rb") as file:
                file.seek(self._read)
                data = file.read()
            whole = data.rfind(b"\n") + 1
            found = [json.loads(line) for line in data[:whole].splitlines()]
            if sum(one["Event"] == "SparkListenerJobEnd" for one in found) >= jobs or time.monotonic() > end:
                self._read += whole
                return found
            time.sleep(0.1)

    def processor_seconds(self) -> float:
        """The processor time of this process, the driver, and all processes of the cluster so far."""
        return sum(sum(one.cpu_times()[:2]) for one in self._processes())

    def python_bytes(self) -> int:
        """The memory of all Python workers."""
        mine = os.getpid()
        return sum(
            one.memory_info().rss for one in self._processes() if "python" in one.name() and one.pid != mine
        )

    def _processes(self) -> Iterator[psutil.Process]:
        for one in (psutil.Process(), *psutil.Process().children(recursive=True)):
            try:
                one.cpu_times()
            except psutil.NoSuchProcess:
                continue
            yield one


def stages(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The tasks of each stage that reads a shuffle, with their rows, bytes, seconds and executors."""
    found: dict[int, list[dict[str, Any]]] = {}
    for one in events:
        if one["Event"] != "SparkListenerTaskEnd" or "Task Metrics" not in one:
            continue
        read = one["Task Metrics"]["Shuffle Read Metrics"]
        told = {
            "index": one["Task Info"]["Index"],
            "executor": one["Task Info"]["Executor ID"],
            "seconds": one["Task Metrics"]["Executor Run Time"] / 1e3,
            "rows": read["Total Records Read"],
            "bytes": read["Local Bytes Read"] + read["Remote Bytes Read"],
        }
        found.setdefault(one["Stage ID"], []).append(told)
    return [tasks for _, tasks in sorted(found.items()) if sum(task["rows"] for task in tasks)]


def unevenness(tasks: list[dict[str, Any]], what: str) -> float:
    """The largest task as a multiple of the mean."""
    values = [task[what] for task in tasks]
    return max(values) / mean(values) if mean(values) else 1.0


# -- batches -----------------------------------------------------------------------------------------------


def batch(task: Task, cluster: Cluster) -> Task:
    """A batch of events with unequally frequent keys: how rows are spread over tasks, and what it takes."""
    spark = cluster.spark
    spark.conf.set(SKEWED, task["threshold"])
    query = nestream.query(task["query"])
    events = spark.read.parquet(task["path"])
    ways: dict[str, Any] = {"auto": {}, "key": {"partition_by": "key"}}
    found: Task = {"splits": {}}
    for way, how in ways.items():
        cluster.ended(0)
        matches = query.on_spark(events, partitions=TASKS_A_STAGE, **how)
        begin = time.perf_counter()
        rows = matches.groupBy().count().first()
        seconds = time.perf_counter() - begin
        tasks = next(one for one in stages(cluster.ended(1)) if len(one) == TASKS_A_STAGE)
        plan = query.explain(events=events, partitions=TASKS_A_STAGE, **how)
        found["splits"][way] = {
            "seconds": seconds,
            "rows": unevenness(tasks, "rows"),
            "task seconds": unevenness(tasks, "seconds"),
            "by time": "by key id and time" in plan,
            "matches": rows[0],
        }
    counts = {one["matches"] for one in found["splits"].values()}
    found["matches"], found["count"] = max(counts), query.count(pq.read_table(task["path"]))
    if len(counts) > 1:
        raise ValueError(f"different matches: {counts}")
    return found


# -- streams -----------------------------------------------------------------------------------------------


def timestamps(events: pa.Table) -> pa.Table:
    """Events whose times are milliseconds, with timestamps."""
    times = events.column("ts").cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))
    events = events.set_column(events.column_names.index("ts"), "ts", times)
    return events.set_column(
        events.column_names.index("type"), "type", events.column("type").cast(pa.string())
    )


def written(events: pa.Table, folder: Path, files: int, format: str = "parquet") -> None:
    """The events as files for as many micro-batches."""
    folder.mkdir()
    size = -(-events.num_rows // files)
    for number in range(files):
        part, path = events.slice(number * size, size), folder / f"{number:05}.{format}"
        if format == "parquet":
            pq.write_table(part, path)
        else:
            path.write_bytes(lines(part))
        os.utime(path, (1_700_000_000 + number,) * 2)


def run_stream(cluster: Cluster, folder: Path, query: Any, buckets: int) -> tuple[list[Task], Any]:
    """Run a stream over the files of a folder, one per micro-batch; return the progress of each."""
    told: list[Task] = []
    running = query.stream_files(
        cluster.spark,
        str(folder / "in"),
        str(folder / "out"),
        checkpoint=str(folder / "check"),
        watermark="1 second",
        files=1,
        once=True,
        partitions=buckets,
    )

    def note(progress: Any) -> None:
        disk = sum(path.stat().st_size for path in (folder / "check").rglob("state-*") if path.is_file())
        told.append(
            {
                "seconds": progress.batch_seconds,
                "rows": progress.state_rows,
                "bytes": progress.state_bytes,
                "disk": disk,
                "memory": cluster.python_bytes(),
            }
        )

    running.on_batch = note
    while not running.wait(0.1):
        pass
    return told, running.progress


def stream(task: Task, cluster: Cluster) -> Task:
    """A stream over a backlog: seconds of a micro-batch, processor time, and how it is spread."""
    events = timestamps(pq.read_table(task["path"]))
    query: Any = nestream.query(task["query"]) if "rules" not in task else _rules(task["rules"])
    files = task["files"]
    with cluster.place() as folder:
        written(events, folder / "in", files, task.get("format", "parquet"))
        cluster.spark.catalog.clearCache()  # what starts the cluster does not count
        cluster.ended(0)
        before = cluster.processor_seconds()
        told, progress = run_stream(cluster, folder, query, task.get("buckets", WORKERS))
        spent = cluster.processor_seconds() - before
        jobs = stages(cluster.ended(files))
    jobs = [tasks for tasks in jobs if len(tasks) == task.get("buckets", WORKERS)][WARM:]
    seconds = [one["seconds"] for one in told[WARM:]]
    found: Task = {
        "batch events": events.num_rows // files,
        "seconds": median(seconds),
        "processor": spent / files,
        "uneven": median(unevenness(tasks, "bytes") for tasks in jobs) if jobs else 1.0,
        "stays": _stays(jobs),
        "state rows": told[-1]["rows"],
        "state bytes": told[-1]["bytes"],
        "matches": progress.matches,
        "pending": progress.pending or 0,
    }
    if "rules" not in task:
        found["count"] = query.count(events) - found["pending"]
    return found


def _rules(count: int) -> nestream.Queries:
    return nestream.queries(dict(list(rule_set(1_000, window="600 s").items())[:count]))


def _stays(jobs: list[list[Task]]) -> float:
    """The share of buckets that run where they ran in the micro-batch before."""
    places = [{task["index"]: task["executor"] for task in tasks} for tasks in jobs]
    pairs = [(a[index], b.get(index)) for a, b in pairwise(places) for index in a]
    return mean(one == other for one, other in pairs) if pairs else 1.0


# -- keys that die -----------------------------------------------------------------------------------------

POINTS = 20
"""Micro-batches, or looks, of a stream whose keys die."""


def keys(task: Task, cluster: Cluster) -> Task:
    """What a stream holds while ever new keys come and the old ones die."""
    events = timestamps(pq.read_table(task["path"]))
    query = nestream.query(task["query"])
    if task["where"] == "cluster":
        with cluster.place() as folder:
            written(events, folder / "in", POINTS)
            told, progress = run_stream(cluster, folder, query, WORKERS)
            found = progress.matches
    else:
        told, found = _embedded(query, events)
    total = query.count(events)
    return {
        "points": told,
        "keys": pc.max(events.column("id")).as_py() + 1,
        "matches": found,
        "count": total if task["where"] != "cluster" else total - (progress.pending or 0),
    }


def _embedded(query: nestream.Query, events: pa.Table) -> tuple[list[Task], int]:
    stream, size, told, found = query.stream(schema=events.schema), 50_000, list[Task](), 0
    every = max(events.num_rows // size // POINTS, 1)
    begin, base = time.process_time(), psutil.Process().memory_info().rss
    for number, start in enumerate(range(0, events.num_rows, size), 1):
        found += stream.push_batch(events.slice(start, size)).num_rows
        if number % every == 0:
            held, memory = stream.describe(), psutil.Process().memory_info().rss - base
            spent, begin = time.process_time() - begin, time.process_time()
            saved = len(stream.save())
            told.append(
                {"seconds": spent, "rows": held["events"], "bytes": saved, "disk": saved, "memory": memory}
            )
    return told, found + stream.finish_batch().num_rows


TASKS: dict[str, Callable[[Task, Cluster], Task]] = {"batch": batch, "stream": stream, "keys": keys}


def main() -> None:
    """Answer every line; whoever ends this process ends the cluster."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with ExitStack() as started:
        cluster = Cluster(started)
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            task = json.loads(line)
            try:
                answer = TASKS[task["do"]](task, cluster)
            except Exception as error:  # the runner decides what to do about it
                answer = {"status": f"failed: {type(error).__name__}: {error}"[:300]}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
