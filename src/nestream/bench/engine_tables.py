"""The results of the engine's benchmarks as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nestream.bench.plots import Panel, Plot
from nestream.bench.spec import Figures

Result = Mapping[str, Any]
SPEEDS = "Queries beside the read, Polars and DuckDB"
GROWTH = "Growth with the events"


def tables(figures: Figures) -> str:
    """Every table that there are results for."""
    parts = (_speeds, _formulations, _growth, _windows, _memory, _streams, _first)
    return "\n\n".join(text for part in parts if (text := part(figures)))


def plots(figures: Figures) -> dict[str, Plot]:
    """The peers beside nestream, and the growth with the events."""
    beside = {name: result for name, result in figures.items() if result.get("peers") and "beside" in result}
    bars: dict[str, list[tuple[float, float]]] = {"Polars": [], "DuckDB": []}
    for place, result in enumerate(beside.values()):
        for peer, points in bars.items():
            if (best := _best(result, peer)) is not None:
                points.append((float(place), best["best"] / result["beside"]["best"]))
    growth: dict[str, list[tuple[float, float]]] = {}
    for name, result in figures.items():
        if name.startswith("growth/"):
            line = growth.setdefault(name.split("/")[1], [])
            line.append((float(result["events"]), float(result["best"])))
    return {
        SPEEDS: Plot(
            "The best of each peer beside nestream: above 1 it is slower",
            "query",
            "times nestream's",
            (Panel("", bars, tuple(_short(name) for name in beside)),) if beside else (),
            log_y=True,
        ),
        GROWTH: Plot(
            "Growth with the events",
            "events",
            "seconds",
            (Panel("", growth),) if growth else (),
            log_x=True,
            log_y=True,
        ),
    }


def _short(name: str) -> str:
    return name.replace("unkeyed", "no key")


def table(heading: str, columns: Iterable[str], rows: Iterable[Iterable[str]], foot: str = "") -> str:
    """A heading and a table; nothing without rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return ""
    names = list(columns)
    frame = [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    return "\n".join([f"### {heading}", "", *frame, *lines, *(["", foot] if foot else [])])


def seconds(result: Result, key: str = "best", spread: str = "spread") -> str:
    """The best time, and how much more the middle one was."""
    return f"{result[key]:.3f} s (+{result[spread]:.0%})" if result.get(key) is not None else "-"


def _best(result: Result, peer: str) -> Result | None:
    done = [p for p in result.get("peers", ()) if p["peer"] == peer and "best" in p]
    return min(done, key=lambda p: float(p["best"])) if done else None


def _beside(result: Result, peer: str) -> str:
    found = _best(result, peer)
    if found is None:
        tried = [p["status"] for p in result.get("peers", ()) if p["peer"] == peer]
        return tried[0] if tried else "-"
    return f"{_times(found, result)} × ({found['formulation']})"


def _times(peer: Result, result: Result) -> str:
    return f"{peer['best'] / result['beside']['best']:.2f}"


def _speeds(figures: Figures) -> str:
    rows = []
    read = figures.get("read")
    flat = figures.get("flat")
    if read is not None:
        rows.append([read["title"], "", seconds(read), "1.00", "", "", "", "", ""])
    for name, result in figures.items():
        if "/" in name or "best" not in result or not result["query"]:
            continue
        keyed = not name.startswith("unkeyed")
        rows.append(
            [
                f"`{result['query']}`",
                f"{result['matches']:,}",
                seconds(result),
                f"{result['best'] / read['best']:.2f}" if read else "",
                f"{result['best'] / flat['best']:.2f}" if flat and keyed else "",
                f"{result['events'] / result['best'] / 1e6:.1f}",
                seconds(result, "count_best", "count_spread"),
                _beside(result, "Polars"),
                _beside(result, "DuckDB"),
            ]
        )
    names = ("query", "matches", "`match`", "× read", "× flat", "million events/s", "`count`")
    return table(
        SPEEDS,
        (*names, "Polars", "DuckDB"),
        rows,
        "Polars and DuckDB: the time of the best formulation as a multiple of nestream's, measured in turns; "
        "above 1 they are slower. All of them start from events in memory in their own form and build all "
        "five columns of every event of every match; nestream also sorts the matches by their end, the "
        "others give them in any order.",
    )


def _formulations(figures: Figures) -> str:
    rows = [
        [f"`{result['query']}`", peer["peer"], peer["formulation"], _outcome(peer, result)]
        for result in figures.values()
        for peer in result.get("peers", ())
    ]
    return table(
        "Every formulation that was tried",
        ("query", "peer", "formulation", "time, as a multiple of nestream's"),
        rows,
        "They are in `benchmarks/peers/`; seconds are those of the turns. A formulation that takes three "
        "times what the peer's best one takes is not repeated.",
    )


def _outcome(peer: Result, result: Result) -> str:
    if "best" not in peer:
        return str(peer["status"])
    return f"{seconds(peer)}: {_times(peer, result)} ×"


def _growth(figures: Figures) -> str:
    rows = [
        [
            f"`{result['query']}`",
            f"{result['events']:,}",
            f"{result['matches']:,}",
            seconds(result),
            f"{result['events'] / result['best'] / 1e6:.1f}",
        ]
        for name, result in figures.items()
        if name.startswith("growth/")
    ]
    return table(GROWTH, ("query", "events", "matches", "`match`", "million events/s"), rows)


def _windows(figures: Figures) -> str:
    rows = [
        [
            f"`{result['query']}`",
            f"{result['matches']:,}",
            seconds(result),
            f"{result['matches'] / result['best'] / 1e6:.2f}",
        ]
        for name, result in figures.items()
        if name.startswith("window/")
    ]
    return table("Growth with the window", ("query", "matches", "`match`", "million matches/s"), rows)


def _memory(figures: Figures) -> str:
    rows = [
        [
            f"`{result['query']}`",
            f"{result['matches']:,}",
            f"{result['input'] / 1e6:.0f} MB",
            *(
                f"{result[way]['beyond'] / 1e6:.0f} MB ({result[way]['beyond'] / result['input']:.2f} ×)"
                for way in ("count", "batches")
            ),
            f"{result['batches']['seconds']:.2f} s",
        ]
        for name, result in figures.items()
        if name.startswith("memory/") or name == "budget"
    ]
    return table(
        "Memory beyond the input",
        ("query", "matches", "input", "`count`", "`batches`, each dropped", "time of `batches`"),
        rows,
        "The peak of the resident memory of a process that holds the events, less what it held before. The "
        "last query has about 20 matches an event: a hundred million at five million events.",
    )


def _streams(figures: Figures) -> str:
    rows = [
        [
            str(result["title"]),
            f"{result['events']:,}",
            f"{result['matches']:,}",
            seconds(result),
            f"{result['events'] / result['best']:,.0f}",
        ]
        for name, result in figures.items()
        if name.startswith("stream/")
    ]
    return table("Streaming the flat query", ("", "events", "matches", "time", "events/s"), rows)


def _first(figures: Figures) -> str:
    rows = [
        [
            str(result["title"]),
            seconds(result),
            f"{result['read']:.2f} s",
            f"{result['after']:.2f} s",
        ]
        for name, result in figures.items()
        if name.startswith("first/")
    ]
    return table(
        "First matches of `nestream run`",
        ("", "from the start of the command", "to start Python and read the file", "after that"),
        rows,
    )
