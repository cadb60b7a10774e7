"""The benchmarks of the columnar engine: what is run, and what it should reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from nestream.bench.engine_tables import plots, tables
from nestream.bench.spec import Benchmark, Data, Figures, Peer, Suite, Target

EVENTS = 5_000_000
STEP = 10
"""Mean time between two events."""
TYPES, IDS = 20, 1_000
FIVE_COLUMNS = {"attributes": 2, "types": TYPES, "id_domain": IDS, "step": STEP}
SASE = Data("sase", parameters=FIVE_COLUMNS)

KEYED_WINDOW = round(TYPES * IDS * math.sqrt(8)) * STEP
"""About 0.2 matches an event: one event in 20 is the last of a match, and has (w / 20,000)² / 2 = 4."""

KEYED = {
    "flat": "SEQ(A a, B b, C c)",
    "not-event": "SEQ(A a, B b, !D d, C c)",
    "not-seq": "SEQ(A a, B b, ! SEQ(D d, E e), C c)",
    "not-seq-not": "SEQ(A a, B b, ! SEQ(D d, ! F f, E e), C c)",
    "not-and": "SEQ(A a, B b, ! AND(D d, E e), C c)",
}
UNKEYED = {
    "unkeyed-3": ("SEQ(A a, B b, C c)", 100),
    "unkeyed-6": ("SEQ(A a, B b, C c, D d, E e, F f)", 100),
    "unkeyed-6-never": ("SEQ(A a, B b, C c, D d, E e, Never n)", 200),
}
GROWTH = (0.2, 1.0, 4.0)
WINDOWS = (1, 2, 4)
BUDGET = 512 * 2**20
SEVERAL = 0.5
"""Nested and unkeyed queries should be several times faster than the peers: at least twice."""
LINEAR = 1.1
"""The exponent up to which growth counts as linear."""
PEERS = (
    "The best formulations use buckets and bounds as the engine does, so all do much the same work: the "
    "peers in two threads, nestream in one, and it puts the matches in order, which they do not."
)
MEMORY = (
    "The engine holds positions, codes and keys of the events a query takes as eight-byte numbers; the "
    "input's columns are one and two bytes wide. It is a share of the events, and does not grow with the "
    "matches."
)
PUSHED = "Every push has a cost of its own, in Python, whatever it brings."
FEW = 0.04
"""The share of the events that are pushed one by one."""


def _peers(shape: str) -> tuple[Peer, ...]:
    if shape == "flat":
        return tuple(Peer(n, f) for n in ("Polars", "DuckDB") for f in ("bucket", "natural"))
    if shape in KEYED:
        return (
            Peer("Polars", "bound"),
            Peer("Polars", "anti"),
            Peer("DuckDB", "bound"),
            Peer("DuckDB", "exists"),
        )
    staged = (Peer("DuckDB", "staged"),) if shape.startswith("unkeyed-6") else ()
    return (*(Peer(n, f) for n in ("Polars", "DuckDB") for f in ("bucket", "natural")), *staged)


def _benchmarks() -> Iterator[Benchmark]:
    yield Benchmark("read", "Arrow reads the five columns, one thread", "read", SASE, together="keyed")
    for name, pattern in KEYED.items():
        yield Benchmark(
            name, pattern, "match", SASE, f"{pattern} WHERE [id]", KEYED_WINDOW, name, "keyed", _peers(name)
        )
    for name, (pattern, events) in UNKEYED.items():
        yield Benchmark(name, pattern, "match", SASE, pattern, events * STEP, name, "unkeyed", _peers(name))
    for name in ("flat", "not-seq"):
        for share in GROWTH:
            data = Data("sase", share, FIVE_COLUMNS)
            yield Benchmark(
                f"growth/{name}/{share:g}",
                KEYED[name],
                "match",
                data,
                f"{KEYED[name]} WHERE [id]",
                KEYED_WINDOW,
                name,
                f"growth {share:g}",
            )
    for times in WINDOWS:
        yield Benchmark(
            f"window/{times}",
            KEYED["flat"],
            "match",
            SASE,
            f"{KEYED['flat']} WHERE [id]",
            KEYED_WINDOW * times,
            "flat",
            "windows",
        )
    for name, pattern in KEYED.items():
        yield Benchmark(
            f"memory/{name}", pattern, "memory", SASE, f"{pattern} WHERE [id]", KEYED_WINDOW, name
        )
    for name, (pattern, events) in UNKEYED.items():
        yield Benchmark(f"memory/{name}", pattern, "memory", SASE, pattern, events * STEP, name)
    yield Benchmark("budget", "SEQ(A a, B b, C c)", "memory", SASE, "SEQ(A a, B b, C c)", 5_700, "unkeyed-3")
    flat = f"{KEYED['flat']} WHERE [id]"
    yield Benchmark(
        "stream/events",
        "one event at a time",
        "stream",
        Data("sase", FEW, FIVE_COLUMNS),
        flat,
        KEYED_WINDOW,
        "flat",
        settings={"size": 1},
    )
    yield Benchmark(
        "stream/batches",
        "1,000 events at a time",
        "stream",
        SASE,
        flat,
        KEYED_WINDOW,
        "flat",
        settings={"size": 1_000},
    )
    yield Benchmark("first/lines", "JSON lines in a pipe", "first", SASE, flat, KEYED_WINDOW)
    yield Benchmark(
        "first/table", "a table on a terminal", "first", SASE, flat, KEYED_WINDOW, settings={"terminal": True}
    )


def _over_read(name: str) -> Callable[[Figures], float]:
    return lambda figures: figures[name]["best"] / figures["read"]["best"]


def _over_flat(name: str) -> Callable[[Figures], float]:
    return lambda figures: figures[name]["best"] / figures["flat"]["best"]


def _speed(name: str) -> Callable[[Figures], float]:
    return lambda figures: figures[name]["events"] / figures[name]["best"] / 1e6


def _rate(name: str) -> Callable[[Figures], float]:
    return lambda figures: figures[name]["events"] / figures[name]["best"]


def _over_peer(name: str, peer: str) -> Callable[[Figures], float | None]:
    def ratio(figures: Figures) -> float | None:
        best = [p["best"] for p in figures[name]["peers"] if p["peer"] == peer and p["status"] == "done"]
        return figures[name]["beside"]["best"] / min(best) if best else None

    return ratio


def _exponent(name: str) -> Callable[[Figures], float]:
    """The slope of log time over log events."""

    def fitted(figures: Figures) -> float:
        found = [figures[f"growth/{name}/{share:g}"] for share in GROWTH]
        x = [math.log(result["events"]) for result in found]
        y = [math.log(result["best"]) for result in found]
        middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
        return sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True)) / sum(
            (a - middle_x) ** 2 for a in x
        )

    return fitted


def _windows(figures: Figures) -> float:
    """How much faster the time grows than the matches, from the single window to the widest."""
    narrow, wide = figures[f"window/{WINDOWS[0]}"], figures[f"window/{WINDOWS[-1]}"]
    return float((wide["best"] / narrow["best"]) / (wide["matches"] / narrow["matches"]))


def _beyond(name: str, way: str) -> Callable[[Figures], float]:
    return lambda figures: figures[f"memory/{name}"][way]["beyond"] / figures[f"memory/{name}"]["input"]


def _budget(way: str) -> Callable[[Figures], float]:
    return lambda figures: float(figures["budget"][way]["beyond"] / 1e6)


def _after(name: str) -> Callable[[Figures], float]:
    return lambda figures: float(figures[f"first/{name}"]["after"])


def _targets() -> Iterator[Target]:
    for name, pattern in KEYED.items():
        yield Target(f"`{pattern}` against the read", 3, "times", _over_read(name))
    for name in tuple(KEYED)[1:]:
        yield Target(f"`{KEYED[name]}` against the flat query", 1.5, "times", _over_flat(name))
    for name, speed in zip(UNKEYED, (3, 3, 10), strict=True):
        title = f"`{UNKEYED[name][0]}`, {UNKEYED[name][1]} events"
        yield Target(title, speed, "million events a second", _speed(name), at_least=True)
    for name in (*KEYED, *UNKEYED):
        pattern = KEYED.get(name) or UNKEYED[name][0]
        for peer in ("Polars", "DuckDB"):
            title = f"`{pattern}`{_no_key(name)} against the best of {peer}"
            wanted = 1.0 if name == "flat" else SEVERAL
            yield Target(title, wanted, "times", _over_peer(name, peer), why=PEERS)
    for name in ("flat", "not-seq"):
        yield Target(f"`{KEYED[name]}`: growth with the events", LINEAR, "exponent", _exponent(name))
    yield Target("window ×4: growth of the time against that of the matches", 1, "times", _windows)
    for name in (*KEYED, *UNKEYED):
        pattern = KEYED.get(name) or UNKEYED[name][0]
        title = f"`{pattern}`{_no_key(name)}: memory in batches"
        yield Target(title, 0.5, "of the input", _beyond(name, "batches"), why=MEMORY)
    for way in ("count", "batches"):
        title = f"20 matches an event: memory of `{way}` beyond the input"
        yield Target(title, BUDGET / 1e6, "MB", _budget(way))
    for title, wanted, name in (
        ("one event at a time", 20_000.0, "stream/events"),
        ("1,000 events at a time", 1e6, "stream/batches"),
    ):
        yield Target(title, wanted, "events a second", _rate(name), at_least=True, why=PUSHED)
    for name, where in (("lines", "in a pipe"), ("table", "on a terminal")):
        yield Target(f"first matches {where}, after the file is read", 2, "seconds", _after(name))


def _no_key(name: str) -> str:
    return " without a key" if name in UNKEYED else ""


ENGINE = Suite(
    "engine",
    "the columnar engine",
    EVENTS,
    tuple(_benchmarks()),
    tuple(_targets()),
    tables,
    heading="The engine, beside Polars and DuckDB",
    text="""
Generated events of 20 types and 1,000 ids in five columns, beside what Arrow needs to read them and beside
Polars and DuckDB. The peers run each query in the ways that one would write it first and in the best ways
found; all are in [benchmarks/peers](../benchmarks/peers). The best ones use what the engine does: a
negation as a bound, by window functions, and buckets of one window so that a range join becomes an equality
join.""",
    plots=plots,
)
