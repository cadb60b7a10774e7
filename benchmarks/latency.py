"""From an event to its match in the sink, in a process and on Spark; events a second over a backlog."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.latency_worker import QUERY, WARM
from benchmarks.parts import Columns, Part, below, table
from benchmarks.spec import Benchmark, Data, Result, Results, Suite, Target

EVENTS = 3_000_000
"""The events of half a minute at the higher rate."""
RATES = (10_000, 100_000)
IDS_A_RATE = 10
"""Events a second of each id: matches grow as events do."""
WAYS = {
    "file": ("in a process, from a growing file to another, with checkpoints", 0.01),
    "pipe": ("in a process, from standard input to standard output", 0.01),
    "job": ("on Spark, `nestream stream`, from Parquet files to Parquet files", 0.1),
    "match": ("on Spark, `query.match(df)` with Spark's file sink", 0.1),
}
"""Each way to run a stream: what it is, and the seconds between two writes of the feed."""
BACKLOGS = {
    "jsonl": ("in a process, a file of JSON lines", 1 / 3),
    "parquet": ("in a process, a Parquet file", 5 / 3),
    "job": ("on Spark, `nestream stream`, five Parquet files, one a micro-batch", 10 / 3),
}
"""Each way to work off a backlog: what it is, and the share of the events that it has."""
EMBEDDED, SPARK = 50, 1.0
"""The targets: milliseconds of the 99th percentile in a process, seconds of the median on Spark."""
SHARED = (
    "A micro-batch has fixed costs: planning in the driver, two stages of tasks, Python workers, a commit. "
    "They are processor time, so they grow when the feed, the reader and other programs share the two cores."
)


def _benchmarks() -> Iterator[Benchmark]:
    for way, (_, tick) in WAYS.items():
        for rate in RATES:
            data = Data("sase", rate / RATES[-1], {"attributes": 0, "id_domain": rate // IDS_A_RATE})
            task = {"do": "latency", "way": way, "rate": rate, "tick": tick}
            told = {"way": way, "rate": rate, "query": QUERY}
            yield Benchmark(f"{way}/{rate}", "alone", data, task=task, told=told)
    for way, (_, share) in BACKLOGS.items():
        data = Data("sase", share, {"attributes": 0, "id_domain": RATES[-1] // IDS_A_RATE})
        told = {"way": way, "query": QUERY}
        yield Benchmark(f"backlog/{way}", "alone", data, task={"do": "backlog", "way": way}, told=told)


def _figure(name: str, key: str, scale: float = 1.0) -> Callable[[Results], float | None]:
    return lambda results: float(results[name][key]) * scale


def _targets() -> Iterator[Target]:
    for rate in RATES:
        for way in ("file", "pipe"):
            title = f"{WAYS[way][0]}, {rate:,} events/s: p99"
            yield Target(title, EMBEDDED, "ms", _figure(f"{way}/{rate}", "p99", 1e3))
        title = f"{WAYS['job'][0]}, {rate:,} events/s: p50"
        yield Target(title, SPARK, "seconds", _figure(f"job/{rate}", "p50"), why=SHARED)
    for way, wanted in (("jsonl", 1e5), ("parquet", 1e6), ("job", 1e6)):
        title = f"a backlog {BACKLOGS[way][0]}"
        yield Target(title, wanted, "events a second", _figure(f"backlog/{way}", "rate"), at_least=True)


def _shown(name: str) -> Callable[[Result], str]:
    def cell(result: Result) -> str:
        middle, least = result[name], result[f"least {name}"]
        if result["way"] in ("file", "pipe"):
            return f"{middle * 1e3:,.0f} ms ({least * 1e3:,.0f})"
        return f"{middle:,.2f} s ({least:,.2f})"

    return cell


def _parts(results: Results) -> list[Part]:
    rates = [result for way in WAYS for result in below(results, way)]
    columns: Columns = {
        "": lambda one: WAYS[one["way"]][0],
        "events/s": "{rate:,}",
        "matches": "{matches:,}",
        **{name: _shown(name) for name in ("p50", "p99", "max")},
    }
    backlogs: Columns = {
        "": lambda one: BACKLOGS[one["way"]][0],
        "events": "{events:,}",
        "matches": "{matches:,}",
        "events/s": lambda one: f"{one['rate']:,.0f} ({max(one['rates']):,.0f})",
    }
    foot = (
        f"`{QUERY}`. The median of the repeats, with the least in parentheses. Lines are written every "
        f"{WAYS['pipe'][1] * 1e3:.0f} ms and files every {WAYS['job'][1] * 1e3:.0f} ms, and an event waits "
        f"for the next write: half of that is part of each median. The first {WARM:.0%} of the time, in "
        "which everything warms up, do not count."
    )
    backlog_foot = "The median of the repeats, with the greatest in parentheses; without the time to start."
    return [
        *table("From an event to its match", columns, rates, foot),
        *table("Events a second over a backlog", backlogs, below(results, "backlog"), backlog_foot),
    ]


LATENCY = Suite(
    "latency",
    "Latency",
    "From an event to its match in the sink, in a process and on Spark, and events a second over a backlog.",
    EVENTS,
    100_000,
    tuple(_benchmarks()),
    tuple(_targets()),
    _parts,
    text="""
A feed in a process of its own writes events of 20 types at a steady rate. Latency is measured from the
moment at which an event is due until a reader finds its match in the sink. The feed, the stream and the
reader share the cores.""",
    conditions="A run must find every match that `query.match` finds in a table of the same events; only the "
    "last matches of a streaming `query.match(df)` wait for a later event.",
)
