"""Events pushed into a stream, one at a time and many at a time, and cold starts of the command line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from benchmarks.parts import Columns, Part, below, table, time
from benchmarks.spec import Benchmark, Data, Results, Target

FEW = 0.04
"""The share of the events that are pushed one at a time."""
STEP = 10
"""Mean time between two events."""
SHORT = 2_000 * STEP
"""A window of 2,000 events: matches that wait for their windows are decided all the time."""
MORE = {
    "not-event": "SEQ(A a, B b, !D d, C c) WHERE [id]",
    "window": "SEQ(A a, B b, !C c) WHERE [id]",
    "no-key": "SEQ(A a, B b, C c)",
}
"""Other queries whose events are pushed one at a time."""
STARTS = {
    "import": ("`import nestream`", 0.3),
    "fmt": ("`nestream fmt`, one query", 0.3),
    "check": ("`nestream check`, one query", 0.3),
    "explain": ("`nestream explain`, one query", 0.3),
    "run": ("`nestream run`, 1,000 events", 1.0),
    "kernels": ("Compiling the engine, once for an installation", 15.0),
}
"""What starts cold, and within how many seconds it should be done."""
STARTED = "Python, Arrow, NumPy, the parser and the command line's library take most of the time to load."
PUSHED = "Every push has a fixed cost in Python, for any number of events."


def benchmarks(flat: str, window: int, columns: dict[str, Any], few: float) -> Iterator[Benchmark]:
    """Streams of the flat query and of others, and cold starts; `few` is the share of 1,000 events."""
    for name, size, share in (("events", 1, FEW), ("batches", 1_000, 1.0)):
        yield _pushed(name, flat, window, columns, share, size)
    for name, text in MORE.items():
        width = {"window": SHORT, "no-key": 100 * STEP}.get(name, window)
        yield _pushed(f"events-{name}", text, width, columns, FEW, 1)
    for name in STARTS:
        task = {"do": "start", "command": name}
        data = Data("sase", few, columns)
        yield Benchmark(f"start/{name}", "alone", data, flat, window, task=task, told={"command": name})


def _pushed(name: str, text: str, window: int, columns: dict[str, Any], share: float, size: int) -> Benchmark:
    task = {"by": "push", "size": size, "count": True}
    data = Data("sase", share, columns)
    return Benchmark(f"stream/{name}", "together", data, text, window, task=task, told={"size": size})


def targets() -> Iterator[Target]:
    """How many events a second a stream should take, and how long a start may take."""
    titles = {"events": ("one event at a time", 1e5), "batches": ("1,000 events at a time", 2e6)}
    titles |= {f"events-{name}": (f"`{text}`, one event at a time", 1e5) for name, text in MORE.items()}
    for name, (title, wanted) in titles.items():
        yield Target(title, wanted, "events a second", _rate(name), at_least=True, why=PUSHED)
    for name, (title, seconds) in STARTS.items():
        yield Target(f"{title}, cold", seconds, "seconds", _seconds(name), why=STARTED)


def _rate(name: str) -> Any:
    def rate(results: Results) -> float:
        found = results[f"stream/{name}"]
        return float(found["events"]) / float(found["best"])

    return rate


def _seconds(name: str) -> Any:
    return lambda results: float(results[f"start/{name}"]["best"])


def parts(results: Results) -> list[Part]:
    """Streams and starts as tables."""
    streams: Columns = {
        "query": "`{query}`",
        "events a push": "{size:,}",
        "events": "{events:,}",
        "matches": "{matches:,}",
        "time": time,
        "events/s": lambda result: f"{_rounded(result['events'] / result['best']):,.0f}",
    }
    starts: Columns = {
        "": lambda result: STARTS[result["command"]][0],
        "time": time,
        "of it, Python alone": "{python:.3f} s",
    }
    return [
        *table("Streaming", streams, below(results, "stream")),
        *table("Cold starts", starts, below(results, "start")),
    ]


def _rounded(rate: float) -> float:
    """A rate to three digits."""
    return round(rate, 2 - math.floor(math.log10(rate))) if rate > 0 else rate
