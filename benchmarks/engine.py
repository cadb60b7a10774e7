"""The columnar engine alone and beside Polars and DuckDB: speed, growth, memory, streams, cold starts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from benchmarks import pushed
from benchmarks.parts import (
    Columns,
    Part,
    below,
    count_time,
    match_speed,
    megabytes,
    points,
    speed,
    table,
    time,
)
from benchmarks.plots import Panel, Plot
from benchmarks.spec import Benchmark, Data, Peer, Result, Results, Suite, Target

EVENTS = 5_000_000
STEP = 10
"""Mean time between two events."""
TYPES, IDS = 20, 1_000
FIVE_COLUMNS = {"attributes": 2, "types": TYPES, "id_domain": IDS, "step": STEP}
SASE = Data("sase", parameters=FIVE_COLUMNS)
KEYED_WINDOW = round(TYPES * IDS * math.sqrt(8)) * STEP
"""About 0.2 matches an event: one event in 20 is the last of a match, and has (w / 20,000)² / 2 = 4."""
PATTERNS = {
    "flat": "SEQ(A a, B b, C c)",
    "not-event": "SEQ(A a, B b, !D d, C c)",
    "not-seq": "SEQ(A a, B b, ! SEQ(D d, E e), C c)",
    "not-seq-not": "SEQ(A a, B b, ! SEQ(D d, ! F f, E e), C c)",
    "not-and": "SEQ(A a, B b, ! AND(D d, E e), C c)",
    "unkeyed-3": "SEQ(A a, B b, C c)",
    "unkeyed-6": "SEQ(A a, B b, C c, D d, E e, F f)",
    "unkeyed-6-never": "SEQ(A a, B b, C c, D d, E e, Never n)",
}
UNKEYED = {"unkeyed-3": 100, "unkeyed-6": 100, "unkeyed-6-never": 200}
"""The events in a window of the queries without a key."""
KEYED = [name for name in PATTERNS if name not in UNKEYED]
GROWTH, WINDOWS = (0.2, 1.0, 4.0), (1, 2, 4)
BUDGET = 512 * 2**20
HALF = 0.5
"""Queries with a negation should take at most half the time of the peers."""
LINEAR = 1.1
"""The exponent up to which growth counts as linear."""
WAYS = {"count": {"by": "count"}, "batches": {"by": "batches"}, "match": {}}
SAME_WORK = (
    "The best formulations use buckets and bounds as the engine does, so all of them do much the same work, "
    "and nestream also returns the matches in order, which the peers do not."
)
NEVER = (
    "No event has the last type. nestream still takes in the types of all events, and looks through them "
    "once more to warn of a type that may be misspelt."
)
MEMORY = (
    "The engine holds the times and positions of the events that a query takes in eight bytes each, and some "
    "numbers of four bytes; the columns of the input are one and two bytes wide. Memory grows with the "
    "events, not with the matches."
)


def query(name: str) -> tuple[str, int]:
    """A query with its key, and its window."""
    keyed = (f"{PATTERNS[name]} WHERE [id]", KEYED_WINDOW)
    return (PATTERNS[name], UNKEYED[name] * STEP) if name in UNKEYED else keyed


def titled(name: str) -> str:
    """The pattern in the title of a target."""
    return f"`{PATTERNS[name]}`{' without a key' if name in UNKEYED else ''}"


def _peers(shape: str) -> Iterator[Peer]:
    best, first = ("bound", "exists") if shape.startswith("not") else ("bucket", "natural")
    yield from (
        Peer("Polars", best),
        Peer("Polars", "anti" if best == "bound" else first),
        Peer("Polars", best, 1),
    )
    yield from (Peer("DuckDB", best), Peer("DuckDB", first), Peer("DuckDB", best, 1))
    if shape.startswith("unkeyed-6"):
        yield Peer("DuckDB", "staged")


def _one(name: str, shape: str, measure: str = "together", share: float = 1.0, **more: Any) -> Benchmark:
    text, window = query(shape)
    given: dict[str, Any] = {"window": window, "shape": shape, **more}
    return Benchmark(name, measure, Data("sase", share, FIVE_COLUMNS), text, **given)


def _benchmarks() -> Iterator[Benchmark]:
    counted = {"count": True, "how": {"threads": 1}}
    yield Benchmark("read", "together", SASE, together="keyed", task={"do": "read"})
    for name in PATTERNS:
        yield _one(name, name, task=counted, together="unkeyed" if name in UNKEYED else "keyed")
    for name in PATTERNS:
        yield _one(f"beside/{name}", name, "beside", peers=tuple(_peers(name)))
    for name in ("flat", "not-seq"):
        for share in GROWTH:
            yield _one(f"growth/{name}/{share:g}", name, share=share, together=f"growth {share:g}")
    for times in WINDOWS:
        yield _one(f"window/{times}", "flat", window=KEYED_WINDOW * times, together="windows")
    for name in PATTERNS:
        yield _one(f"memory/{name}", name, "memory", ways=WAYS)
    both = {way: WAYS[way] for way in ("count", "batches")}
    yield _one("memory/budget", "unkeyed-3", "memory", window=5_700, ways=both)
    for name in ("lines", "table"):
        yield _one(f"first/{name}", "flat", "alone", task={"do": "first", "terminal": name == "table"})
    yield from pushed.benchmarks(*query("flat"), FIVE_COLUMNS, 1_000 / EVENTS)


def slope(line: Sequence[tuple[float, float]]) -> float:
    """The exponent of the power that fits best: the slope of log y over log x.

    >>> round(slope([(1, 2), (10, 20), (100, 200)]), 3)
    1.0
    """
    x, y = [math.log(a) for a, _ in line], [math.log(b) for _, b in line]
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - middle_x) ** 2 for a in x)
    return sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True)) / spread


def figure(path: str, scale: float = 1.0) -> Callable[[Results], float]:
    """The number at a path, such as `flat|best`."""

    def at(results: Results) -> float:
        found: Any = results
        for key in path.split("|"):
            found = found[key]
        return float(found) * scale

    return at


def quotient(top: str, bottom: str, scale: float = 1.0) -> Callable[[Results], float | None]:
    """The quotient of the numbers at two paths."""
    return lambda results: figure(top, scale)(results) / figure(bottom)(results)


def best(result: Result, peer: str) -> Result | None:
    """The fastest formulation of a peer."""
    done = [one for one in result.get("peers", ()) if one["name"] == peer and "ratio" in one]
    return min(done, key=lambda one: float(one["ratio"])) if done else None


def over_peers(results: Iterable[Result], threads: int) -> float | None:
    """nestream's time as a multiple of that of the fastest peer with as many threads."""
    peers = [one for result in results for one in result.get("peers", ()) if one["threads"] == threads]
    ratios = [float(one["ratio"]) for one in peers if "ratio" in one]
    return 1 / min(ratios) if ratios else None


def _over_peers(name: str, threads: int) -> Callable[[Results], float | None]:
    return lambda results: over_peers([results[f"beside/{name}"]], threads)


def in_threads(threads: int) -> str:
    """The number of threads in the title of a target."""
    return "one thread" if threads == 1 else f"{threads} threads"


def _exponent(name: str) -> Callable[[Results], float | None]:
    return lambda results: slope(points([results[f"growth/{name}/{share:g}"] for share in GROWTH], "events"))


def _wide(results: Results) -> float:
    narrow, wide = results["window/1"], results["window/4"]
    return float((wide["best"] / narrow["best"]) / (wide["matches"] / narrow["matches"]))


def _targets() -> Iterator[Target]:
    for name in KEYED:
        title = f"{titled(name)}, one thread, against Arrow's read in one thread"
        yield Target(title, 1.5, "times", quotient(f"{name}|best", "read|best"))
    for name in KEYED[1:]:
        title = f"{titled(name)} against the flat query"
        yield Target(title, 1.5, "times", quotient(f"{name}|best", "flat|best"))
    for name, wanted in zip(UNKEYED, (3.0, 3.0, 10.0), strict=True):
        title = f"`{PATTERNS[name]}`, {UNKEYED[name]} events"
        rate = quotient(f"{name}|events", f"{name}|best", 1e-6)
        yield Target(title, wanted, "million events a second", rate, at_least=True)
    for name in PATTERNS:
        for threads in (1, 2):
            title = f"{titled(name)} against the best of Polars and DuckDB, {in_threads(threads)}"
            most = HALF if name.startswith("not") else 1.0
            why = NEVER if "Never" in PATTERNS[name] else SAME_WORK
            yield Target(title, most, "times", _over_peers(name, threads), why=why)
    for name in ("flat", "not-seq"):
        yield Target(f"{titled(name)}: growth with the events", LINEAR, "exponent", _exponent(name))
    yield Target("window ×4: growth of the time against that of the matches", 1, "times", _wide)
    for name in PATTERNS:
        share = quotient(f"memory/{name}|batches|beyond", f"memory/{name}|input")
        title = f"{titled(name)}: memory in batches"
        yield Target(title, 1.0, "of the columns read", share, why=MEMORY)
    for way in ("count", "batches"):
        title = f"20 matches an event: memory of `{way}` beyond the input"
        yield Target(title, BUDGET / 1e6, "MB", figure(f"memory/budget|{way}|beyond", 1e-6))
    yield from pushed.targets()
    for name, where in (("lines", "in a pipe"), ("table", "on a terminal")):
        title = f"first matches {where}, after the file is read"
        yield Target(title, 2, "seconds", figure(f"first/{name}|after"))


# -- tables ------------------------------------------------------------------------------------------------


def _parts(results: Results) -> list[Part]:
    return [*_speeds(results), *_formulations(results), *_others(results)]


def _speeds(results: Results) -> list[Part]:
    read, flat = results.get("read"), results.get("flat")
    beside = {name: results[f"beside/{name}"] for name in PATTERNS if f"beside/{name}" in results}
    bars = {
        peer: [
            (float(place), float(found["ratio"]))
            for place, result in enumerate(beside.values())
            if (found := best(result, peer))
        ]
        for peer in ("Polars", "DuckDB")
    }
    words = tuple(name.replace("unkeyed", "no key") for name in beside)
    plot = Plot(
        "engine-queries",
        "The best of each peer beside nestream: above 1 it is slower",
        "query",
        "times nestream's",
        (Panel("", bars, words),) if beside else (),
        log_y=True,
    )

    def times(base: Result | None) -> Callable[[Result], str]:
        return lambda result: f"{result['best'] / base['best']:.2f}" if base else "-"

    def peer(name: str) -> Callable[[Result], str]:
        def cell(result: Result) -> str:
            found = best(beside.get(str(result["name"]), {}), name)
            return f"{found['ratio']:.2f} × ({found['formulation']})" if found else "-"

        return cell

    queries = [{**results[name], "name": name} for name in PATTERNS if name in results]
    foot = (
        f"Arrow reads the five columns in one thread in {time(read) if read else '-'}. For Polars and DuckDB "
        "the table shows the time of the best formulation as a multiple of nestream's, measured in turns; "
        "above 1 they are slower. All of them start from events in memory in their own form and build all "
        "five columns of every event of every match; nestream also sorts the matches by their end."
    )
    columns: Columns = {
        "query": "`{query}`",
        "matches": "{matches:,}",
        "`match`": time,
        "× read": times(read),
        "× flat": lambda result: "" if result["name"] in UNKEYED else times(flat)(result),
        "million events/s": speed,
        "`count`": count_time,
        "Polars": peer("Polars"),
        "DuckDB": peer("DuckDB"),
    }
    return table("Queries beside the read, Polars and DuckDB", columns, queries, foot, plot)


def _formulations(results: Results) -> list[Part]:
    tried = [
        {"query": result["query"], **peer} for result in below(results, "beside") for peer in result["peers"]
    ]
    columns: Columns = {
        "query": "`{query}`",
        "peer": "{name}",
        "formulation": "{formulation}",
        "threads": "{threads}",
        "time": time,
        "× nestream": lambda one: f"{one['ratio']:.2f}" if "ratio" in one else "-",
        "memory": extra_memory,
    }
    foot = (
        "The formulations are in `benchmarks/peers/`. Memory is the peak beyond the events and the matches, "
        "which each program holds in its own form. If it can, nestream uses as many threads as the peer."
    )
    return table("Every formulation", columns, tried, foot)


def extra_memory(result: Result) -> str:
    """The peak memory beyond input and output."""
    return megabytes(max(result["beyond"] - result["output"], 0)) if "beyond" in result else "-"


def _others(results: Results) -> list[Part]:
    growth = {name: points(below(results, f"growth/{name}"), "events") for name in ("flat", "not-seq")}
    plot = Plot(
        "engine-growth", "Growth with the events", "events", "seconds", (Panel("", growth),), True, True
    )
    usual: Columns = {"query": "`{query}`", "events": "{events:,}", "matches": "{matches:,}", "`match`": time}

    def held(way: str) -> Callable[[Result], str]:
        def cell(result: Result) -> str:
            beyond = result[way]["beyond"] - result[way].get("output", 0) if way in result else None
            return f"{megabytes(beyond)} ({beyond / result['input']:.2f} ×)" if beyond is not None else "-"

        return cell

    memory: Columns = {
        "query": "`{query}`",
        "matches": "{matches:,}",
        "input": lambda result: megabytes(result["input"]),
        "`count`": held("count"),
        "`batches`, each dropped": held("batches"),
        "`match`": held("match"),
    }
    first: Columns = {
        "": lambda result: str(result["where"]),
        "from the start of the command": time,
        "to start Python and read the file": "{read:.2f} s",
        "after that": "{after:.2f} s",
    }
    firsts = [
        {**results[f"first/{name}"], "where": where}
        for name, where in (("lines", "JSON lines in a pipe"), ("table", "a table on a terminal"))
        if f"first/{name}" in results
    ]
    return [
        *table(
            "Growth with the events", {**usual, "million events/s": speed}, below(results, "growth"), plot
        ),
        *table(
            "Growth with the window", {**usual, "million matches/s": match_speed}, below(results, "window")
        ),
        *table(
            "Memory beyond input and output",
            memory,
            below(results, "memory"),
            "The peak resident memory of a process that holds the events, less what it held before and "
            "less the matches that it returns. The last query has about 20 matches an event: a hundred "
            "million at five million events.",
        ),
        *pushed.parts(results),
        *table("First matches of `nestream run`", first, firsts),
    ]


ENGINE = Suite(
    "engine",
    "The engine, beside Polars and DuckDB",
    "The columnar engine, beside Polars and DuckDB.",
    EVENTS,
    500_000,
    tuple(_benchmarks()),
    tuple(_targets()),
    _parts,
    text="""
The events are generated: 20 types and 1,000 ids, in five columns. The engine is compared with the time in
which Arrow reads them, and with Polars and DuckDB. These peers run each query as you would write it
first, and in the best formulations found; all are in `benchmarks/peers`. The best ones do what the engine
does: a negation as a bound, by window functions, and buckets of one window, so that a range join becomes
an equality join.""",
    conditions="All programs find the same matches.",
    repeats=5,
    limit=60,
)
