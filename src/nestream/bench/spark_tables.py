"""The results of the benchmarks on Spark as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nestream.bench.engine_tables import table
from nestream.bench.spec import Figures

OURS = ("limit", "nestream", "limit, whole", "nestream, whole")


def tables(figures: Figures) -> str:
    """Every table that there are results for."""
    queries = {name: result for name, result in figures.items() if "latency" not in result}
    parts = [_limits(queries), _alternatives(queries)] if queries else []
    return "\n\n".join([*parts, *(_stream(result) for result in figures.values() if "latency" in result)])


def _stream(result: Mapping[str, Any]) -> str:
    seconds, events, latency = result["seconds"], result["events"], result["latency"]
    rows = [
        ["identity `transformWithState`", f"{seconds['limit']:.2f} s", f"{events / seconds['limit']:,.0f}"],
        ["nestream", f"{seconds['nestream']:.2f} s", f"{events / seconds['nestream']:,.0f}"],
    ]
    told = ", ".join(f"{name} {value:.2f} s" for name, value in latency.items()) or "no match in time"
    return table(
        "Streams",
        ("operator", f"a micro-batch of {events:,} events", "events/s"),
        rows,
        f"`{result['query']}`; the middle one of the micro-batches after the first three, with the same "
        f"buckets. {result['state bytes']:.1f} bytes are written as state for each event that the query "
        "takes. From an event to the match it completes, in the sink, at 10,000 events a second, with a "
        f"window of two seconds and no delay of the watermark: {told}.",
    )


def _limits(figures: Figures) -> str:
    rows = [
        [
            f"`{result['title']}`",
            f"{result['matches']:,}",
            *_pair(result["seconds"], "limit", "nestream"),
            *_pair(result["seconds"], "limit, whole", "nestream, whole"),
        ]
        for result in figures.values()
    ]
    names = ("limit", "nestream", "× limit", "limit, all columns", "nestream, all columns", "× limit")
    return table(
        "Beside what Spark needs for the same rows",
        ("query", "matches", *names),
        rows,
        "The limit: the same rows and columns through Spark's scan, filter, shuffle by id, sort by time and "
        "an identity `mapInArrow`. The queries return the key and the times; with all columns, each event of "
        "a match as a struct.",
    )


def _pair(seconds: Mapping[str, float | None], base: str, job: str) -> list[str]:
    limit, ours = seconds.get(base), seconds.get(job)
    if limit is None or ours is None:
        return ["-", "-", "-"]
    return [f"{limit:.2f} s", f"{ours:.2f} s", f"{ours / limit:.2f}"]


def _alternatives(figures: Figures) -> str:
    rows = [
        [f"`{result['title']}`", way, *_beside(result, way)]
        for result in figures.values()
        for way in result["seconds"]
        if way not in OURS
    ]
    return table(
        "Beside Spark SQL",
        ("query", "formulation", "time", "× nestream"),
        rows,
        "The SQL is in `benchmarks/peers/spark/`; all of it finds the same matches.",
    )


def _beside(result: Mapping[str, Any], way: str) -> list[str]:
    theirs, ours = result["seconds"][way], result["seconds"]["nestream"]
    if theirs is None:
        return [result["status"].get(way, "-"), "-"]
    return [f"{theirs:.2f} s", f"{theirs / ours:.2f}"]
