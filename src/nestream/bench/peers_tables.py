"""The results of the peers as Markdown tables: who is faster, what it takes, and what cannot be said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nestream.bench.engine_tables import table
from nestream.bench.spec import Figures

Result = Mapping[str, Any]
SETTINGS = {
    "DuckDB": "2 threads, events in a table of its own, every event of a match with its five columns",
    "Polars": "2 threads, the streaming engine, every event of a match with its five columns",
    "Spark SQL": "`local[2]`, 8 partitions, 4 GB, events cached, the times of each match, rows dropped",
    "Esper": "one thread, 4 GB heap, an event type for each type, its clock set by the events",
    "Siddhi": "one thread, 4 GB heap, a stream for each type, playback, partitioned by id",
    "Flink CEP": "a cluster in one process, 4 GB heap, object reuse, state on the heap, keyed by id, event "
    "time, timed from the first event to the end of the job",
    "Flink SQL": "as Flink CEP, `MATCH_RECOGNIZE` by its Table API; each type once for each id",
}


def tables(figures: Figures) -> str:
    """Every table that there are results for."""
    parts = (_overview, _details, _cannot, _settings)
    return "\n\n".join(text for part in parts if (text := part(figures)))


def _by_query(figures: Figures) -> dict[str, dict[str, Result]]:
    found: dict[str, dict[str, Result]] = {}
    for name, result in figures.items():
        query, _ = name.split("/", 1)
        found.setdefault(query, {})[result["peer"]] = result
    return found


def _best(result: Result) -> Result | None:
    done = [peer for peer in result["peers"] if "ratio" in peer]
    return min(done, key=lambda peer: float(peer["ratio"])) if done else None


def _overview(figures: Figures) -> str:
    names = list(dict.fromkeys(result["peer"] for result in figures.values()))
    rows = []
    for peers in _by_query(figures).values():
        first = next(iter(peers.values()))
        rows.append([f"`{first['title']}`{_key(first)}", *(_cell(peers.get(name)) for name in names)])
    return table(
        "Beside the peers",
        ("query", *names),
        rows,
        "The time of the peer as a multiple of nestream's on the same events, in the best of its ways; above "
        "1 it is slower. A slow peer gets fewer events, and nestream as many beside it. Flink SQL gives one "
        "match for each start, so it runs on events of which every type comes once for each id: there that "
        "is all matches.",
    )


def _key(result: Result) -> str:
    return "" if "WHERE [id]" in result["query"] else " without a key"


def _cell(result: Result | None) -> str:
    if result is None:
        return "-"
    best = _best(result)
    if best is not None:
        return f"{_times(best['ratio'])} ×"
    status = str(result["peers"][0]["status"])
    return "cannot say it" if status.startswith("cannot") else status.split(":")[0]


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


def _details(figures: Figures) -> str:
    rows = [row for result in figures.values() for row in _ways(result)]
    columns = ("query", "peer", "way", "events", "matches", "events/s", "nestream", "×", "memory", "nestream")
    return table(
        "Every peer and query",
        (*columns, "lines", "nestream"),
        rows,
        "×: the ratio of the best turns, with the least and the greatest of one turn. Memory: the most that "
        "the process and its children hold during a turn, with the events. Lines: the query alone, as it is "
        "in `benchmarks/peers`, without what loads the events; nestream's as `nestream fmt` lays it out.",
    )


def _ways(result: Result) -> Iterator[list[str]]:
    query = f"`{result['title']}`{_key(result)}"
    for way in result["peers"]:
        if way["status"].startswith("cannot"):
            continue
        start = [query, result["peer"], way["formulation"], f"{result['events']:,}"]
        if "best" not in way:
            yield [*start, "", way["status"], *[""] * 6]
            continue
        ours = result["ours"]
        least, _, most = way["ratios"]
        yield [
            *start,
            f"{way['matches']:,}",
            f"{result['events'] / way['best']:,.0f}",
            f"{result['events'] / ours['best']:,.0f}",
            f"{_times(way['ratio'])} ({_times(least)} to {_times(most)})",
            f"{way['memory'] / 1e6:,.0f} MB",
            f"{ours['memory'] / 1e6:,.0f} MB",
            str(way["lines"]),
            str(result["lines"]),
        ]


def _cannot(figures: Figures) -> str:
    rows = [
        [f"`{result['title']}`{_key(result)}", result["peer"], way["status"].removeprefix("cannot say it: ")]
        for result in figures.values()
        for way in result["peers"]
        if way["status"].startswith("cannot")
    ]
    once = [result for result in figures.values() if result["peer"] == "Flink SQL"]
    if once:
        rows.append(["all matches of any of them", "Flink SQL", "it gives one match for each start"])
    return table("What a peer has no words for", ("query", "peer", "why"), rows)


def _settings(figures: Figures) -> str:
    versions = {result["peer"]: result["version"] for result in figures.values()}
    rows = [[peer, found or "not installed", SETTINGS[peer]] for peer, found in versions.items()]
    return table(
        "Versions and settings",
        ("peer", "version", "settings"),
        rows,
        "OpenCEP is not among them: it is not on PyPI.",
    )
