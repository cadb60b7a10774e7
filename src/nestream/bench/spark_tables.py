"""The results of the benchmarks on Spark as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nestream.bench.engine_tables import table
from nestream.bench.spec import Figures

OURS = ("limit", "nestream", "limit, whole", "nestream, whole")


def tables(figures: Figures) -> str:
    """Every table that there are results for."""
    return "\n\n".join([_limits(figures), _alternatives(figures)])


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
