"""The programs that you could use instead of nestream: which query each can express, and on how many events.

All combinations of events are matches. A peer that returns one match for each start runs on events of which
every type occurs once for each id, where both return the same matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import peers_programs as programs
from benchmarks.engine import (
    FIVE_COLUMNS,
    HALF,
    KEYED_WINDOW,
    PATTERNS,
    SAME_WORK,
    STEP,
    best,
    extra_memory,
    in_threads,
    over_peers,
)
from benchmarks.parts import Columns, Part, megabytes, rows, table
from benchmarks.spec import Benchmark, Data, Peer, Result, Results, Suite, Target

QUERIES = {
    "two": "SEQ(A a, B b)",
    "flat": PATTERNS["flat"],
    "six": "SEQ(A a, B b, C c, D d, E e, F f)",
    "not-event": PATTERNS["not-event"],
    "leading": "SEQ(!D d, A a, B b, C c)",
    "trailing": "SEQ(A a, B b, C c, !D d)",
    "not-seq": PATTERNS["not-seq"],
    "and": "AND(A a, B b, C c)",
    "unkeyed-3": "SEQ(A a, B b, C c)",
}
ONCE_WINDOW = 160_000
"""Most of the 200,000 in which the events of an id lie, so that it matters."""
UNKEYED_WINDOW, UNKEYED_ONCE_WINDOW = 100 * STEP, 150
BOUND = ("not-event", "leading", "trailing", "not-seq")
CANNOT = {
    ("Flink CEP", "leading"): "a pattern cannot begin with an absence",
    ("Flink CEP", "not-seq"): "`notFollowedBy` takes one event, not a sequence",
    ("Flink SQL", "leading"): "a pattern cannot begin with an absence",
    ("Flink SQL", "trailing"): "a pattern cannot end with an absence",
}
"""What a peer cannot express."""
SHARES = {"Polars": 1.0, "DuckDB": 1.0, "Spark SQL": 0.2, "Esper": 0.08, "Siddhi": 0.04, "Flink CEP": 0.02}
"""A slow peer gets fewer events, and nestream the same number next to it."""
SMALL = {
    ("Spark SQL", "six"): 0.04,
    ("Siddhi", "and"): 0.02,
    ("Flink CEP", "and"): 0.01,
    ("Flink SQL", "and"): 0.008,
}
PEERS = (*SHARES, "Flink SQL")
SETTINGS = {
    "DuckDB": "events in a table of its own, every event of a match with its five columns",
    "Polars": "the streaming engine, every event of a match with its five columns",
    "Spark SQL": "`local[2]`, 8 partitions, 4 GB, events cached, the times of each match, rows dropped",
    "Esper": "4 GB heap, an event type for each type, its clock set by the events",
    "Siddhi": "4 GB heap, a stream for each type, playback, partitioned by id",
    "Flink CEP": "a cluster in one process, 4 GB heap, object reuse, state on the heap, keyed by id, event "
    "time, timed from the first event to the end of the job",
    "Flink SQL": "as Flink CEP, `MATCH_RECOGNIZE` by its Table API; each type once for each id",
}


def formulations(peer: str, query: str) -> Iterator[Peer]:
    """How a peer formulates a query, and its threads."""
    form = "bound" if query in BOUND else "bucket"
    if peer.startswith("Flink"):
        yield from (Peer(peer, "", threads) for threads in ((1,) if query.startswith("unkeyed") else (1, 2)))
    elif peer not in programs.PACKAGES:
        yield Peer(peer, "", 1)
    else:
        yield Peer(peer, form)
        if peer != "Spark SQL":
            yield Peer(peer, form, 1)
        if peer == "DuckDB" and query == "six":
            yield Peer(peer, "staged")
        if peer == "DuckDB" and query != "not-seq":  # written as you would first, that one takes too long
            yield Peer(peer, "exists" if query in BOUND else "natural")


def _benchmarks() -> Iterator[Benchmark]:
    for query, pattern in QUERIES.items():
        alone = query.startswith("unkeyed")
        for peer in PEERS:
            share = SMALL.get((peer, query), SHARES.get(peer, 0.02))
            data, window = Data("sase", share, FIVE_COLUMNS), UNKEYED_WINDOW if alone else KEYED_WINDOW
            if peer == "Flink SQL":
                window = UNKEYED_ONCE_WINDOW if alone else ONCE_WINDOW
                data = Data("once", share, {"ids": 1 if alone else 1_000, "pause": window if alone else 0})
            cannot = CANNOT.get((peer, query), "")
            text = pattern if alone else f"{pattern} WHERE [id]"
            yield Benchmark(
                f"{query}/{peer.lower().replace(' ', '-')}",
                "beside",
                data,
                text,
                window,
                shape=query,
                peers=() if cannot else tuple(formulations(peer, query)),
                told={
                    "peer": peer,
                    "cannot": cannot,
                    "version": programs.version(peer),
                    "lines": programs.our_lines(f"{text} WITHIN {window}"),
                },
            )


def _targets() -> Iterator[Target]:
    for query, pattern in QUERIES.items():
        for threads in (1, 2):

            def over(results: Results, query: str = query, threads: int = threads) -> float | None:
                own = (result for name, result in results.items() if name.startswith(f"{query}/"))
                return over_peers(own, threads)

            key = " without a key" if query.startswith("unkeyed") else ""
            title = f"`{pattern}`{key} against the fastest peer, {in_threads(threads)}"
            yield Target(title, HALF if query in BOUND else 1.0, "times", over, why=SAME_WORK)


def titled(result: Result) -> str:
    """The pattern of a result's query."""
    pattern = result["query"].partition(" WITHIN ")[0]
    return f"`{pattern.removesuffix(' WHERE [id]')}`{'' if 'WHERE [id]' in pattern else ' without a key'}"


def _parts(results: Results) -> list[Part]:
    if not results:
        return []
    return [_overview(results), *_details(results), *_cannot(results), *_settings(results)]


def _overview(results: Results) -> Part:
    """A row for each query, a column for each peer."""
    names = list(dict.fromkeys(result["peer"] for result in results.values()))
    lines: dict[str, dict[str, str]] = {}
    for result in results.values():
        found = best(result, result["peer"])
        if found:
            cell = f"{times(found['ratio'])} ×"
        else:
            cell = "cannot express it" if result["cannot"] else result["peers"][0]["status"].split(":")[0]
        lines.setdefault(titled(result), {})[result["peer"]] = cell
    cells = [[query, *(peers.get(name, "-") for name in names)] for query, peers in lines.items()]
    foot = (
        "The time of the peer in its best formulation, as a multiple of nestream's on the same events; "
        "above 1 it is slower. With a slow peer, both run on fewer events. Flink SQL "
        "returns one match for each start, so it runs on events in which every type occurs once for each "
        "id, so that each start has one match."
    )
    return Part("Beside the peers", (rows(("query", *names), cells), foot))


def times(ratio: float) -> str:
    """A ratio."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


def _details(results: Results) -> list[Part]:
    tried: list[dict[str, Any]] = []
    for result in results.values():
        for peer in result["peers"]:
            ours = result.get("ours", {})
            own = ours.get(str(peer["threads"]), ours.get("1", {}))
            tried.append(
                {
                    **peer,
                    "title": titled(result),
                    "all": result["events"],
                    "own": own,
                    "short": result["lines"],
                }
            )

    def rate(one: Result, spent: Result) -> str:
        return f"{one['all'] / spent['best']:,.0f}" if "best" in one else str(one["status"])

    def ratio(one: Result) -> str:
        if "ratio" not in one:
            return "-"
        span = one["ratios"]
        return f"{times(one['ratio'])} ({times(span['least'])} to {times(span['greatest'])})"

    columns: Columns = {
        "query": "{title}",
        "peer": "{name}",
        "formulation": "{formulation}",
        "threads": "{threads}",
        "events": "{all:,}",
        "matches": lambda one: f"{one['matches']:,}" if "matches" in one else "-",
        "events/s": lambda one: rate(one, one),
        "nestream": lambda one: rate(one, one["own"]) if "best" in one else "-",
        "×": ratio,
        "memory": lambda one: megabytes(one["memory"]) if "memory" in one else "-",
        "nestream ": lambda one: megabytes(one["own"]["memory"]) if "best" in one else "-",
        "beyond": extra_memory,
        "nestream  ": lambda one: extra_memory(one["own"]),
        "lines": lambda one: str(one.get("lines", "-")),
        "nestream   ": "{short}",
    }
    foot = (
        "×: the ratio of the best turns, with the least and the greatest of one turn. Memory: the most "
        "that the process and its children hold during a turn, with the events; beyond: the peak without "
        "the events and the matches, if the program can measure it. Lines: the query alone, as it is in "
        "`benchmarks/peers`; nestream's as `nestream fmt` lays it out. If it can, nestream uses as many "
        "threads as the peer."
    )
    return table("Every peer and query", columns, tried, foot)


def _cannot(results: Results) -> list[Part]:
    lines = [{**one, "title": titled(one)} for one in results.values() if one["cannot"]]
    if any(one["peer"] == "Flink SQL" for one in results.values()):
        every = {"title": "all matches of any of them", "peer": "Flink SQL"}
        lines.append({**every, "cannot": "it returns one match for each start"})
    columns: Columns = {"query": "{title}", "peer": "{peer}", "why": "{cannot}"}
    return table("What a peer cannot express", columns, lines)


def _settings(results: Results) -> list[Part]:
    versions = {one["peer"]: one["version"] for one in results.values()}
    lines = [{"peer": peer, "version": known or "not installed"} for peer, known in versions.items()]
    columns: Columns = {
        "peer": "{peer}",
        "version": "{version}",
        "settings": lambda one: SETTINGS[one["peer"]],
    }
    return table("Versions and settings", columns, lines, "OpenCEP is not among them: it is not on PyPI.")


RIVALS = Suite(
    "peers",
    "Beside other programs",
    "Flink, Esper, Siddhi, Spark SQL, DuckDB and Polars, each in turns with nestream.",
    5_000_000,
    250_000,
    tuple(_benchmarks()),
    tuple(_targets()),
    _parts,
    text="""
This suite runs nine queries in the programs that you could use instead, each set up as its documentation
advises. A match is every combination of events that fits, so Flink CEP uses `followedByAny`, and Esper
and Siddhi `every`, at each step. If a peer cannot express a query as a pattern, it runs another query
with the same matches, whose lines are counted: in Esper a subquery for a leading negation and a join for
a conjunction, in Siddhi outer joins for negations. `MATCH_RECOGNIZE` returns one match for each start, so
Flink SQL runs on events in which no start has another match.""",
    conditions="Each peer takes turns with nestream on the same events in memory; the first turn does not "
    "count. All find the same matches, by number and by a checksum of their times.",
    limit=40,
)
