"""Queries on Spark: beside what Spark itself needs for the same rows, beside Spark SQL, and as streams.

All jobs take turns in one session. A time is that of the whole job, from Parquet to a sink that drops rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.engine import KEYED_WINDOW, PATTERNS, SASE
from benchmarks.parts import Columns, Part, table
from benchmarks.spark_worker import BATCH, STREAM_QUERY
from benchmarks.spec import Benchmark, Result, Results, Suite, Target

EVENTS = 10_000_000
QUERIES = {"two": "SEQ(A a, B b)", **{name: PATTERNS[name] for name in ("flat", "not-event", "not-seq")}}
TYPES = {"two": "AB", "flat": "ABC", "not-event": "ABCD", "not-seq": "ABCDE"}
FORMULATIONS = {
    "two": ("bucket", "natural"),
    "flat": ("bucket", "natural"),
    "not-event": ("bound", "exists", "natural"),
    "not-seq": ("bound", "exists", "natural"),
}
"""How the query is written in SQL, in `benchmarks/peers/spark/`."""
LIMIT = "Beside the rows, the engine itself and the matches that it hands back to Spark take their time."
BEST_SQL = (
    "The best SQL uses buckets and bounds as the engine does, and Spark runs it compiled, without a detour "
    "through Python."
)
BATCHES = (
    "A micro-batch reads and writes the state of every bucket, with a call of Python for each; the identity "
    "operator holds no state."
)


def _benchmarks() -> Iterator[Benchmark]:
    for name, pattern in QUERIES.items():
        steps = "ab" if name == "two" else "abc"
        text = f"{pattern} WHERE [id] WITHIN {KEYED_WINDOW}"
        times = ", ".join(f"{variable}.ts AS {variable}_ts" for variable in steps)
        limit = {"job": "limit", "types": TYPES[name]}
        ways: dict[str, dict[str, Any]] = {
            "limit": {**limit, "columns": ["ts", "id"]},
            "nestream": {"job": "ours", "query": f"{text} RETURN a.id AS id, {times}"},
            "limit, whole": {**limit, "columns": ["ts", "id", "attr1", "attr2"]},
            "nestream, whole": {"job": "ours", "query": text},
        }
        for way in FORMULATIONS[name]:
            ways[way] = {"job": "sql", "file": f"{name}.{way}.sql", "window": KEYED_WINDOW}
        text, told = f"{pattern} WHERE [id]", {"pattern": pattern}
        yield Benchmark(name, "spark", SASE, text, KEYED_WINDOW, together="spark", ways=ways, told=told)
    yield Benchmark(
        "stream", "spark", SASE, together="spark", task={"job": "stream"}, told={"query": STREAM_QUERY}
    )


def _seconds(result: Result, way: str) -> float:
    return float(result["ways"][way]["best"])


def _over(name: str, top: str, bottom: str) -> Callable[[Results], float | None]:
    return lambda results: _seconds(results[name], top) / _seconds(results[name], bottom)


def _best_sql(name: str) -> Callable[[Results], float | None]:
    def ratio(results: Results) -> float | None:
        ways = results[name]["ways"]
        known = [ways[way]["best"] for way in FORMULATIONS[name] if "best" in ways[way]]
        return min(known) / ways["nestream"]["best"] if known else None

    return ratio


def _micro_batch(results: Results) -> float | None:
    """Only micro-batches of the whole size are judged: in small ones Spark's own work is most of it."""
    stream = results["stream"]
    return stream["seconds"]["nestream"] / stream["seconds"]["limit"] if stream["events"] == BATCH else None


def _targets() -> Iterator[Target]:
    for name in ("flat", "not-seq"):
        title = f"`{QUERIES[name]}` against the limit"
        yield Target(title, 1.3, "times", _over(name, "nestream", "limit"), why=LIMIT)
    for name in ("flat", "not-event", "not-seq"):
        title = f"the best SQL for `{QUERIES[name]}` against nestream"
        yield Target(title, 2, "times", _best_sql(name), at_least=True, why=BEST_SQL)
    title = f"a micro-batch of {BATCH:,} events against an identity `transformWithState`"
    yield Target(title, 1.5, "times", _micro_batch, why=BATCHES)
    title = f"SQL with NOT EXISTS for `{QUERIES['not-seq']}` against nestream"
    yield Target(title, 5, "times", _over("not-seq", "exists", "nestream"), at_least=True)


def _parts(results: Results) -> list[Part]:
    queries = [result for result in results.values() if "ways" in result]

    def spent(way: str) -> Callable[[Result], str]:
        return lambda one: f"{one['ways'][way]['best']:.2f} s" if "best" in one["ways"][way] else "-"

    def times(top: str, bottom: str) -> Callable[[Result], str]:
        return lambda one: f"{_seconds(one, top) / _seconds(one, bottom):.2f}"

    limits: Columns = {
        "query": "`{pattern}`",
        "matches": "{matches:,}",
        "limit": spent("limit"),
        "nestream": spent("nestream"),
        "× limit": times("nestream", "limit"),
        "limit, all columns": spent("limit, whole"),
        "nestream, all columns": spent("nestream, whole"),
        "× limit ": times("nestream, whole", "limit, whole"),
    }
    sql = [
        {**one, "way": way, **one["ways"][way]}
        for one in queries
        for way in one["ways"]
        if "limit" not in way and "nestream" not in way
    ]
    columns: Columns = {
        "query": "`{pattern}`",
        "formulation": "{way}",
        "time": lambda one: f"{one['best']:.2f} s" if "best" in one else str(one["status"]),
        "× nestream": lambda one: f"{one['best'] / _seconds(one, 'nestream'):.2f}" if "best" in one else "-",
    }
    return [
        *table(
            "Beside what Spark needs for the same rows",
            limits,
            queries,
            "The limit: the same rows and columns through Spark's scan, filter, shuffle by id, sort by "
            "time and an identity `mapInArrow`. The queries return the key and the times; with all "
            "columns, each event of a match as a struct.",
        ),
        *table(
            "Beside Spark SQL",
            columns,
            sql,
            "The SQL is in `benchmarks/peers/spark/`; all of it finds the same matches.",
        ),
        *(part for one in results.values() if "state bytes" in one for part in _stream(one)),
    ]


def _stream(result: Result) -> list[Part]:
    seconds, events = result["seconds"], result["events"]
    named = (("limit", "identity `transformWithState`"), ("nestream", "nestream"))
    lines = [{"operator": title, "seconds": seconds[key]} for key, title in named]
    columns: Columns = {
        "operator": "{operator}",
        f"a micro-batch of {events:,} events": "{seconds:.2f} s",
        "events/s": lambda one: f"{events / one['seconds']:,.0f}",
    }
    return table(
        "Streams",
        columns,
        lines,
        f"`{result['query']}`; the median of the micro-batches after the first three, with the same "
        f"buckets. {result['state bytes']:.1f} bytes are written as state for each event that the query "
        "takes. [Latency](#latency) measures the time from an event to its match.",
    )


SPARK = Suite(
    "spark",
    "On Spark",
    "Batches and streams on Spark with two cores, beside its own shuffle of the same rows and Spark SQL.",
    EVENTS,
    500_000,
    tuple(_benchmarks()),
    tuple(_targets()),
    _parts,
    text="""
This suite compares queries [on Spark](guides/spark.md) with what Spark itself needs for the same rows, and
with Spark SQL, in turns in one session. It measures the whole job, from Parquet to a sink that drops the
rows.""",
    conditions="All jobs find the same matches.",
    limit=180,
)
