"""Spark in a process of its own: a job as JSON on each line of input, what it took as JSON.

Matches are counted in the first turn of a job, which is not timed.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import nestream
from benchmarks.events import ROOT
from nestream.data import generate

SETTINGS = {
    "spark.driver.memory": "6g",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "true",
}
WHOLE = 10_000_000
"""The events of a run whose micro-batches have the whole size."""
BATCH, BATCHES, WARM = 200_000, 8, 3
TYPES = "ABC"
STREAM_QUERY = "SEQ(A a, B b, C c) WHERE [id] WITHIN 565690 ms RETURN a.id AS id, c.ts AS at"
COLUMNS = "ts timestamp, type string, id int"
Task = dict[str, Any]


@cache
def session(cores: int) -> Any:
    """The session of this process."""
    from nestream.query import spark_session

    return spark_session(f"local[{cores}]", SETTINGS)


def codes(types: str) -> str:
    """The number of an event's type, as an expression."""
    cases = " ".join(f"WHEN '{kind}' THEN {number}" for number, kind in enumerate(types))
    return f"CAST(CASE type {cases} END AS SMALLINT) AS code"


def identity(batches: Iterator[Any]) -> Iterator[Any]:
    """What comes in."""
    yield from batches


def rows_of(task: Task, spark: Any) -> Any:
    """The rows of a job: Spark's own way with the rows of a query, the query, or SQL."""
    events = spark.read.parquet(task["path"])
    match task["job"]:
        case "ours":
            return nestream.query(task["query"]).match(events)
        case "sql":
            events.createOrReplaceTempView("events")
            text = (ROOT / "benchmarks" / "peers" / "spark" / task["file"]).read_text("utf-8")
            return spark.sql(text.format(window=task["window"]))
    rows = events.filter(f"type IN ({', '.join(map(repr, task['types']))})")
    rows = rows.selectExpr(*task["columns"], codes(task["types"]))
    rows = rows.repartition("id").sortWithinPartitions("ts")
    return rows.mapInArrow(identity, rows.schema)


def sums(task: Task, rows: Any) -> Task:
    """How many matches there are, and the sum of their times with the key where both are columns."""
    if task["job"] == "limit":
        return {}
    times = [name for name in rows.columns if name.endswith("_ts")]
    total = " + ".join(["id", *(f"{place} * {name}" for place, name in enumerate(times, 1))])
    row = rows.selectExpr("count(*)", *([f"sum({total})"] if times else ())).first()
    found = {"matches": int(row[0]), **({"checksum": int(row[1] or 0)} if times else {})}
    if task.get("count"):
        counted = nestream.query(task["query"]).count(pq.read_table(task["path"]))
        if counted != found["matches"]:
            raise ValueError(f"{counted:,} matches here, {found['matches']:,} on Spark")
    return found


seen: set[str] = set()


def turn(task: Task) -> Task:
    """Run a job once, or say that it took too long."""
    spark, mark, stopped = session(task.get("cores", 2)), json.dumps(task), threading.Event()

    def stop() -> None:
        stopped.set()
        spark.interruptTag("bench")

    timer = threading.Timer(task["limit"], stop)
    spark.addTag("bench")
    timer.start()
    try:
        rows = rows_of(task, spark)
        found = {} if mark in seen else sums(task, rows)
        seen.add(mark)
        begin = time.perf_counter()
        rows.write.format("noop").mode("overwrite").save()
        return {"seconds": time.perf_counter() - begin, **found}
    except Exception:
        if stopped.is_set():
            return {"status": f"more than {task['limit']:.0f} s"}
        raise
    finally:
        timer.cancel()
        spark.removeTag("bench")


# -- streams -----------------------------------------------------------------------------------------------


class Identity:
    """A stateful operator that returns its rows; the names that are not ours are Spark's."""

    def init(self, handle: Any) -> None:
        """Nothing is held."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        """The rows as they are."""
        yield from rows

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        """There are no timers."""
        yield from ()

    def close(self) -> None:
        """Nothing is left."""


def stream(task: Task) -> Task:
    """Micro-batches of the query and of the identity, and what is written as state.

    Both operators get the same events in the same buckets. A time is that of a whole micro-batch by Spark's
    own progress; the first ones, in which processes start, do not count.
    """
    spark, folder = session(2), Path(tempfile.mkdtemp(prefix="nestream-bench-"))
    batch = BATCH if task["events"] >= WHOLE else max(task["events"] // 10, 1_000)
    try:
        taken = _write(folder / "in", batch)
        ours = _run(folder, "nestream", nestream.query(STREAM_QUERY).match(_events(spark, folder / "in")))
        limit = _run(folder, "identity", _identity(spark, folder / "in"))
        written = sum(
            file.stat().st_size for file in (folder / "check-nestream" / "state").rglob("*.changelog")
        )
        return {
            "events": batch,
            "seconds": {"limit": statistics.median(limit), "nestream": statistics.median(ours)},
            "samples": {"limit": limit, "nestream": ours},
            "state bytes": written / taken,
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(folder: Path, batch: int) -> int:
    """A file for each micro-batch; how many of the events the query takes."""
    folder.mkdir()
    table = generate("sase", events=batch * BATCHES, seed=1, attributes=0)
    table = table.set_column(0, "ts", pc.cast(table.column("ts"), pa.timestamp("ms", "UTC")))
    for number in range(BATCHES):
        pq.write_table(table.slice(number * batch, batch), folder / f"{number:05}.parquet")
        time.sleep(0.01)  # the source takes files by the time they were written
    return int(pc.sum(pc.is_in(table.column("type"), pa.array(list(TYPES)))).as_py())


def _events(spark: Any, folder: Path) -> Any:
    read = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder))
    return read.withWatermark("ts", "1 second")


def _identity(spark: Any, folder: Path) -> Any:
    """The same events in as many buckets through the operator that returns them."""
    buckets = spark.conf.get("spark.sql.shuffle.partitions")
    rows = _events(spark, folder).filter("type IN ('A', 'B', 'C')")
    rows = rows.selectExpr("ts", "id", codes(TYPES), f"pmod(hash(id), {buckets}) AS bucket")
    shown = "ts timestamp, id int, code smallint, bucket int"
    return rows.groupBy("bucket").transformWithState(Identity(), shown, "append", "EventTime")


def _run(folder: Path, name: str, rows: Any) -> list[float]:
    """The seconds of the micro-batches with events, without the first ones."""
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(folder / f"check-{name}"))
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    return [p.durationMs["triggerExecution"] / 1000 for p in running.recentProgress if p.numInputRows][WARM:]


JOBS: dict[str, Callable[[Task], Task]] = {"stream": stream}


def main() -> None:
    """Answer every line."""
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        try:
            answer = JOBS.get(task["job"], turn)(task)
        except Exception as error:  # the runner decides what to do about it
            answer = {"status": f"failed: {type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
