"""The benchmarks on Spark: queries beside what Spark itself needs for the same rows, and beside Spark SQL.

All of it runs in one session in turns, so that what else the machine does hits all of them. A time is that of
the whole job, from Parquet to a sink that drops the rows.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import nestream
from nestream.bench.engine import KEYED, KEYED_WINDOW, SASE
from nestream.bench.files import cache_folder, events_file, repository
from nestream.bench.run import BenchError, Progress, Run, outcome
from nestream.bench.spark_stream import BATCH, QUERY, measured
from nestream.bench.spark_tables import tables
from nestream.bench.spec import Benchmark, Figures, Suite, Target
from nestream.query import spark_session

EVENTS = 10_000_000
CORES = 2
STREAM = "stream"
PATTERNS = {"two": "SEQ(A a, B b)", **{name: KEYED[name] for name in ("flat", "not-event", "not-seq")}}
TYPES = {"two": "AB", "flat": "ABC", "not-event": "ABCD", "not-seq": "ABCDE"}
FORMULATIONS = {
    "two": ("bucket", "natural"),
    "flat": ("bucket", "natural"),
    "not-event": ("bound", "exists", "natural"),
    "not-seq": ("bound", "exists", "natural"),
}
"""How the query is put in SQL, in `benchmarks/peers/spark/`."""
LIMIT = "Beside the rows, the engine itself and the matches that it hands back to Spark take their time."
BEST_SQL = (
    "The best SQL uses buckets and bounds as the engine does, and Spark runs it compiled and without a way "
    "through Python."
)
BATCHES = (
    "A micro-batch has the state of every bucket to read and to write, and a call of Python for each; the "
    "operator that gives back its rows holds no state."
)
SETTINGS = {
    "spark.driver.memory": "6g",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "true",
}


def _steps(name: str) -> str:
    """The variables of the matches."""
    return "ab" if name == "two" else "abc"


def _query(name: str, whole: bool = False) -> str:
    """The query: with the key and the times in its output, or with the whole events."""
    times = ", ".join(f"{variable}.ts AS {variable}_ts" for variable in _steps(name))
    text = f"{PATTERNS[name]} WHERE [id] WITHIN {KEYED_WINDOW}"
    return text if whole else f"{text} RETURN a.id AS id, {times}"


def identity(batches: Iterator[Any]) -> Iterator[Any]:
    """What comes in."""
    yield from batches


class Measuring:
    """One session and the events in it."""

    def __init__(self, path: Path, limit: float) -> None:
        self.session = spark_session(f"local[{CORES}]", SETTINGS)
        self.events = self.session.read.parquet(str(path))
        self.events.createOrReplaceTempView("events")
        self.limit = limit

    def limit_of(self, name: str, columns: tuple[str, ...] = ("ts", "id")) -> Any:
        """Spark's own scan, filter, shuffle, sort and identity `mapInArrow` of the rows of a query."""
        types = TYPES[name]
        codes = " ".join(f"WHEN '{kind}' THEN {number}" for number, kind in enumerate(types))
        rows = self.events.filter(f"type IN ({', '.join(map(repr, types))})")
        rows = rows.selectExpr(*columns, f"CAST(CASE type {codes} END AS SMALLINT) AS code")
        rows = rows.repartition("id").sortWithinPartitions("ts")
        return rows.mapInArrow(identity, rows.schema)

    def ours(self, name: str, whole: bool = False) -> Any:
        """The query."""
        return nestream.query(_query(name, whole)).match(self.events)

    def sql(self, name: str, formulation: str) -> Any:
        """The query in SQL."""
        root = repository()
        if root is None:
            raise BenchError("the SQL is in benchmarks/peers/spark: run inside the repository")
        text = (root / "benchmarks" / "peers" / "spark" / f"{name}.{formulation}.sql").read_text("utf-8")
        return self.session.sql(text.format(window=KEYED_WINDOW))

    def sums(self, name: str, matches: Any) -> list[int] | None:
        """How many matches there are, and the sum of their times with the key."""
        total = " + ".join(f"{place} * {v}_ts" for place, v in enumerate(_steps(name), 1))
        row = self._limited(lambda: matches.selectExpr("count(*)", f"sum(id + {total})").first())
        return None if row is None else [int(row[0]), int(row[1] or 0)]

    def seconds(self, rows: Any) -> float | None:
        """The time of a job whose rows are dropped, None where it took too long."""
        begin = time.perf_counter()
        done = self._limited(lambda: rows.write.format("noop").mode("overwrite").save() or True)
        return None if done is None else time.perf_counter() - begin

    def _limited(self, work: Callable[[], Any]) -> Any:
        """What the work gives, None where it had to be stopped."""
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            self.session.interruptTag("bench")

        timer = threading.Timer(self.limit, stop)
        self.session.addTag("bench")
        timer.start()
        try:
            return work()
        except Exception:
            if stopped.is_set():
                return None
            raise
        finally:
            timer.cancel()
            self.session.removeTag("bench")


def run_spark(how: Run, progress: Progress = lambda what, done, total: None) -> dict[str, Any]:
    """The results, as plain data in the shape of the other suites."""
    load = os.getloadavg()[0]
    path = events_file(SASE, how.events, how.folder or cache_folder())
    on = Measuring(path, how.limit)
    results: dict[str, dict[str, Any]] = {}
    names = [name for name in PATTERNS if not how.only or name in how.only]
    steps = sum(4 + how.peers * len(FORMULATIONS[name]) for name in names) * how.repeats
    done = 0
    for name in names:
        jobs: dict[str, Callable[[], Any]] = {
            "limit": partial(on.limit_of, name),
            "nestream": partial(on.ours, name),
            "limit, whole": partial(on.limit_of, name, ("ts", "id", "attr1", "attr2")),
            "nestream, whole": partial(on.ours, name, whole=True),
        }
        if how.peers:
            jobs |= {way: partial(on.sql, name, way) for way in FORMULATIONS[name]}
        found: dict[str, list[float]] = {job: [] for job in jobs}
        ours = on.sums(name, on.ours(name))
        status: dict[str, str] = {}
        for way in FORMULATIONS[name] if how.peers else ():
            theirs = on.sums(name, on.sql(name, way))
            if theirs is None:
                status[way] = f"more than {how.limit:.0f} s"
            elif theirs != ours:
                raise BenchError(f"{name}: SQL ({way}) finds {theirs}, nestream {ours}")
        for _ in range(how.repeats):
            for job, make in jobs.items():
                progress(f"{name}: {job}", done, steps)
                if job not in status:
                    spent = on.seconds(make())
                    if spent is None:
                        status[job] = f"more than {how.limit:.0f} s"
                    else:
                        found[job].append(spent)
                done += 1
        assert ours is not None
        results[name] = {
            "title": PATTERNS[name],
            "query": _query(name),
            "events": how.events,
            "matches": ours[0],
            "seconds": {job: min(times) if times else None for job, times in found.items()},
            "samples": found,
            "status": status,
        }
    if not how.only or STREAM in how.only:
        progress("streams", done, steps)
        size = BATCH if how.events >= EVENTS else max(how.events // 10, 1_000)
        results[STREAM] = {"title": "streams", "query": QUERY, **measured(on.session, size)}
    progress("done", steps, steps)
    on.session.stop()  # what runs after it should have the machine to itself
    return outcome(SPARK, how, results, max(load, os.getloadavg()[0]), threads=CORES)


def _over(name: str, job: str, base: str) -> Callable[[Figures], float | None]:
    def ratio(figures: Figures) -> float | None:
        seconds = figures[name]["seconds"]
        return seconds[job] / seconds[base] if seconds.get(job) and seconds.get(base) else None

    return ratio


def _micro_batch(figures: Figures) -> float | None:
    """Only micro-batches of the whole size are judged: in small ones Spark's own work is most of it."""
    whole = figures[STREAM]["events"] == BATCH
    return _over(STREAM, "nestream", "limit")(figures) if whole else None


def _best_sql(name: str) -> Callable[[Figures], float | None]:
    def ratio(figures: Figures) -> float | None:
        seconds = figures[name]["seconds"]
        known = [seconds[way] for way in FORMULATIONS[name] if seconds.get(way)]
        return min(known) / seconds["nestream"] if known else None

    return ratio


def _targets() -> Iterator[Target]:
    for name in ("flat", "not-seq"):
        yield Target(
            f"`{PATTERNS[name]}` against the limit", 1.3, "times", _over(name, "nestream", "limit"), why=LIMIT
        )
    for name in ("flat", "not-event", "not-seq"):
        title = f"the best SQL for `{PATTERNS[name]}` against nestream"
        yield Target(title, 2, "times", _best_sql(name), at_least=True, why=BEST_SQL)
    title = f"a micro-batch of {BATCH:,} events against an identity `transformWithState`"
    yield Target(title, 1.5, "times", _micro_batch, why=BATCHES)
    title = f"SQL with NOT EXISTS for `{PATTERNS['not-seq']}` against nestream"
    yield Target(title, 5, "times", _over("not-seq", "exists", "nestream"), at_least=True)


SPARK = Suite(
    "spark",
    "batches and streams on Spark, beside Spark's own operators and Spark SQL",
    EVENTS,
    (
        *(Benchmark(name, pattern, "spark", SASE, _query(name)) for name, pattern in PATTERNS.items()),
        Benchmark(STREAM, "streams", "spark", SASE, QUERY),
    ),
    tuple(_targets()),
    tables,
    heading="On Spark",
    text="""
Queries [on Spark](spark.md) beside what Spark itself needs for the same rows, and beside Spark SQL, in one
session in turns. A time is that of the whole job, from Parquet to a sink that drops the rows.""",
)
