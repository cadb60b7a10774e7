"""Streams on Spark: micro-batches beside an operator that gives back what it gets, state, and latency.

Both operators get the same events in the same buckets. A time is that of a whole micro-batch by Spark's own
progress; the first ones, in which processes start, do not count.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import nestream
from nestream.data import generate

BATCH = 200_000
BATCHES = 8
WARM = 3
RATE = 10_000
"""Events a second for the latency."""
SECONDS = 30
TICK = 0.1
TYPES = "ABC"
WINDOW = 565_690
QUERY = f"SEQ(A a, B b, C c) WHERE [id] WITHIN {WINDOW} ms RETURN a.id AS id, c.ts AS at"
COLUMNS = "ts timestamp, type string, id int"
CODE = "CASE type WHEN 'A' THEN 0 WHEN 'B' THEN 1 ELSE 2 END"


class Identity:
    """A stateful operator that gives back its rows; the names that are not ours are Spark's."""

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


def measured(
    session: Any, batch: int = BATCH, batches: int = BATCHES, seconds: float = SECONDS
) -> dict[str, Any]:
    """Micro-batches of both operators, what is written as state, and the latency."""
    folder = Path(tempfile.mkdtemp(prefix="nestream-bench-"))
    try:
        relevant = _write(folder / "in", batch, batches)
        ours = _run(session, folder, "nestream", nestream.query(QUERY).match(_events(session, folder / "in")))
        limit = _run(session, folder, "identity", _identity(session, folder / "in"))
        written = sum(
            file.stat().st_size for file in (folder / "check-nestream" / "state").rglob("*.changelog")
        )
        return {
            "events": batch,
            "seconds": {"limit": statistics.median(limit), "nestream": statistics.median(ours)},
            "samples": {"limit": limit, "nestream": ours},
            "state bytes": written / relevant,
            "latency": _latency(session, folder, seconds),
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(folder: Path, batch: int, batches: int) -> int:
    """A file for each micro-batch; how many of the events the query takes."""
    folder.mkdir()
    table = generate("sase", events=batch * batches, seed=1, attributes=0)
    table = table.set_column(0, "ts", pc.cast(table.column("ts"), pa.timestamp("ms", "UTC")))
    for number in range(batches):
        pq.write_table(table.slice(number * batch, batch), folder / f"{number:05}.parquet")
        time.sleep(0.01)  # the source takes files by the time they were written
    return int(pc.sum(pc.is_in(table.column("type"), pa.array(list(TYPES)))).as_py())


def _events(session: Any, folder: Path) -> Any:
    stream = session.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder))
    return stream.withWatermark("ts", "1 second")


def _identity(session: Any, folder: Path) -> Any:
    """The same events in as many buckets through the operator that gives them back."""
    buckets = session.conf.get("spark.sql.shuffle.partitions")
    rows = _events(session, folder).filter("type IN ('A', 'B', 'C')")
    rows = rows.selectExpr(
        "ts", "id", f"CAST({CODE} AS SMALLINT) AS code", f"pmod(hash(id), {buckets}) AS bucket"
    )
    shown = "ts timestamp, id int, code smallint, bucket int"
    return rows.groupBy("bucket").transformWithState(Identity(), shown, "append", "EventTime")


def _run(session: Any, folder: Path, name: str, rows: Any) -> list[float]:
    """The seconds of the micro-batches with events, without the first ones."""
    stream = rows.writeStream.format("noop").option("checkpointLocation", str(folder / f"check-{name}"))
    running = stream.trigger(availableNow=True).start()
    running.awaitTermination()
    spent = [p.durationMs["triggerExecution"] / 1000 for p in running.recentProgress if p.numInputRows]
    return spent[WARM:]


def _latency(session: Any, folder: Path, seconds: float) -> dict[str, float]:
    """From an event to the match it completes, at a steady rate; the first third does not count."""
    source, ended = folder / "live", threading.Event()
    source.mkdir()
    begin = time.time()
    found: list[float] = []

    def take(batch: Any, number: int) -> None:
        moments = batch.selectExpr("unix_micros(at) / 1e6 AS at").toArrow().column("at").to_numpy()
        now = time.time()
        if now - begin > seconds / 3:
            found.extend(now - moment for moment in moments)

    def feed() -> None:
        size, number = int(RATE * TICK), 0
        kinds = generate("sase", events=int(RATE * (seconds + 60)), seed=2, attributes=0)
        kinds = kinds.select(["type", "id"])
        while not ended.is_set():
            due = begin + number * TICK
            time.sleep(max(0.0, due - time.time()))
            moments = pa.array(
                [int(1e6 * (due - TICK * (1 - n / size))) for n in range(size)], pa.timestamp("us", "UTC")
            )
            hidden = source / f".{number:06}"
            pq.write_table(kinds.slice(number * size, size).add_column(0, "ts", moments), hidden)
            hidden.rename(source / f"{number:06}.parquet")
            number += 1

    text = QUERY.replace(f"{WINDOW} ms", "2 s")
    live = session.readStream.schema(COLUMNS).parquet(str(source)).withWatermark("ts", "0 seconds")
    stream = nestream.query(text).match(live).writeStream.foreachBatch(take)
    feeder = threading.Thread(target=feed, daemon=True)
    running = stream.option("checkpointLocation", str(folder / "check-live")).start()
    feeder.start()
    try:
        running.awaitTermination(int(seconds))
    finally:
        ended.set()
        feeder.join()
        running.processAllAvailable()  # Spark fails badly where it is stopped while Python takes a batch
        running.stop()
    ordered = sorted(found)
    places = {"p50": 0.5, "p95": 0.95, "max": 1.0}
    return (
        {name: ordered[min(int(part * len(ordered)), len(ordered) - 1)] for name, part in places.items()}
        if ordered
        else {}
    )
