"""The experiments of the SASE paper (SIGMOD 2006): its techniques against each other and our own way.

The stream is the paper's: 20 types and uniform values, its queries those of `sase_query`, windows count
events. What it leaves open:

- which test leads where there are two: the one with more values, as statistics would have it;
- when stacks are pruned: when the next state looks into them (docs/engine.md);
- how much is measured: here a whole stream of fixed length at once, in processor time, after a first run.

Like the paper, the first two experiments make no equivalence test, but have V1^((L-1)/L) times the types, so
that as many sequences match as with a test over V1 values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nestream.bench.sase_tables import tables
from nestream.bench.spec import Benchmark, Data, Figures, Suite, Target
from nestream.bench.ways import ratio_of
from nestream.data.sase_query import sase_query

EVENTS = 500_000
TYPES = 20
WINDOW = 10_000
PAPER = {
    "bounds": False,
    "reach": False,
    "ordering": False,
    "narrowing": False,
    "once": False,
    "composite": False,
    "multiple": False,
}
"""What is switched off for the paper's optimised plan: the engine's own techniques."""
OWN: Mapping[str, bool] = {}
Ways = Mapping[str, Mapping[str, bool]]
"""The ways to run a query, each with its switches; the others are compared with the first."""

STACKS: Ways = {"basic": {**PAPER, "stacks": False}, "AIS": PAPER, "our own": OWN}
SECOND: Ways = {
    "selection": {**PAPER, "filtering": False},
    "Multi-PAIS": {**PAPER, "multiple": True, "filtering": False},
    "dynamic filtering": PAPER,
    "our own": OWN,
}
FIRST: Ways = {
    "selection": {**PAPER, "partition": False, "filtering": False},
    "in the construction": {**PAPER, "partition": False},
    "PAIS": PAPER,
    "our own": OWN,
}
WINDOWS: Ways = {
    "neither": {**PAPER, "window_scan": False, "window_construction": False},
    "scan": {**PAPER, "window_construction": False},
    "construction": {**PAPER, "window_scan": False},
    "both": PAPER,
    "our own": OWN,
}
NEGATION: Ways = {"scanned": {**PAPER, "negation_index": False}, "indexed": PAPER, "our own": OWN}
SIMPLE: Ways = {"selection": {**PAPER, "simple": False}, "scan": PAPER, "our own": OWN}
LENGTH: Ways = {"SASE": PAPER, "our own": OWN}

REPORTED = {
    "domain": "AIS 18 times as fast at 100 values, and close to basic at 10,000",
    "window": "basic slows down much faster than AIS, since its construction is linear in the window",
    "first": "selection did not finish: hundreds of millions of intermediate results",
    "second": "dynamic filtering is best by a wide margin up to 500 values, Multi-PAIS slower than "
    "selection; beyond, all are alike. With 5 values of the second attribute Multi-PAIS falls back further",
    "windows": "pushing windows into scan and construction is effective; no figures are given",
    "length": "0.5 of the throughput of length 2 is left at length 6",
    "negation": "its cost is modest where intermediate results are few; no figures are given",
    "domains": "SASE keeps more of its throughput than TelegraphCQ as the values get fewer",
    "other": "evaluating other comparisons of events outside costs little once the rest is pushed down",
    "simple": "pushing simple predicates down always helps; no figures are given",
}

ALIKE = "Selection tests whole columns at once, which costs about as much as testing during construction."
MATCHES = (
    "More steps have more matches here, each of more events, and giving them is most of the time where an "
    "event costs little."
)


def _benchmarks() -> Iterator[Benchmark]:
    for values in (10, 100, 1_000, 10_000):
        data = _simulated(values, share=0.1 if values == 10 else 1.0)
        yield _one("domain", values, STACKS, data, types=_types(values))
    for window in (10_000, 30_000, 100_000):
        yield _one("window", window, STACKS, _simulated(10_000), window=window, types=_types(10_000))
    for window in (100, 300, 1_000):
        yield _one("first", window, FIRST, _stream(100, share=0.4), window=window, equivalence_tests=1)
    for others in (20, 5):
        for values in (10, 50, 100, 500, 10_000):
            data = _stream(values, others, share=0.4 if values == 10 else 1.0)
            created = _created(values, others)
            yield _one(f"second/{others}", values, SECOND, data, also=created, equivalence_tests=2)
    for values in (10, 100, 1_000, 10_000):
        data = _stream(values, share=0.1 if values == 10 else 1.0)
        yield _one("domains", values, LENGTH, data, equivalence_tests=1)
    for window in (1_000, 10_000):
        yield _one("windows", window, WINDOWS, _stream(100, share=0.2), window=window, equivalence_tests=1)
    for length in range(2, 7):
        yield _one("length", length, LENGTH, _stream(100), length=length, equivalence_tests=1)
    for negations in (1, 2):
        data = _stream(100, share=0.05)
        yield _one("negation", negations, NEGATION, data, length=2, equivalence_tests=1, negations=negations)
    yield _one("simple", 1, SIMPLE, _stream(100, 20, 10), equivalence_tests=1, simple=1)
    for tests in (0, 1):
        yield _one("other", tests, LENGTH, _stream(100, 20, 10), equivalence_tests=1, inequalities=tests)


def _created(values: int, others: int) -> dict[str, str]:
    """What selection creates: what the test that partitions, the one over more values, leaves."""
    names = ["attr1", "attr2"] if values >= others else ["attr2", "attr1"]
    return {"selection": sase_query(window=WINDOW, attributes=names, domains=(values, others), seed=3)}


def _one(
    name: str,
    value: int,
    ways: Ways,
    data: Data,
    *,
    window: int = WINDOW,
    also: Mapping[str, str] | None = None,
    **query: Any,
) -> Benchmark:
    query = {"length": 3, "equivalence_tests": 0, **query}
    names = [f"attr{number + 1}" for number in range(data.parameters["attributes"])]
    domains = data.parameters["domains"] or (1,)
    text = sase_query(window=window, attributes=names, domains=domains, seed=3, **query)
    experiment, _, others = name.partition("/")
    return Benchmark(
        f"{name}/{value}",
        f"{name}: {value}",
        "ways",
        data,
        text.partition("\nWITHIN")[0].replace("\n", " "),
        window,
        settings={
            "experiment": experiment,
            "value": value,
            "others": int(others or 0),
            "paper": REPORTED[experiment],
            "also": also or {},
            "ways": {way: {"options": dict(switches)} for way, switches in ways.items()},
        },
        unit="EVENTS",
    )


def _types(values: int, length: int = 3) -> int:
    """So many types make an equivalence test over some values superfluous, as the paper does it."""
    factor: float = values ** ((length - 1) / length)
    return round(TYPES * factor)


def _simulated(values: int, share: float = 1.0) -> Data:
    return Data("sase", share, {"types": _types(values), "attributes": 0, "domains": ()})


def _stream(*values: int, share: float = 1.0) -> Data:
    return Data("sase", share, {"types": TYPES, "attributes": len(values), "domains": values})


def _targets() -> Iterator[Target]:
    yield Target(
        "AIS against basic, 100 values: the paper's factor",
        18,
        "times",
        ratio_of("domain/100", "AIS"),
        True,
        "The basic search reads arrays here, and giving the matches costs both the same.",
    )
    for values in (10, 50, 100):
        title = f"selection to dynamic filtering, {values} and 20 values: the paper's order"
        yield Target(title, 1, "times", ratio_of(f"second/20/{values}", "dynamic filtering"), True, ALIKE)

    def left(figures: Figures) -> float | None:
        best = [figures[f"length/{length}"]["ways"]["SASE"]["best"] for length in (2, 6)]
        return float(best[0] / best[1])

    yield Target("throughput left at length 6, SASE's plan", 0.5, "of that at length 2", left, True, MATCHES)


SASE = Suite(
    "sase",
    "SASE's plans: its techniques one by one, and the engine's own way",
    EVENTS,
    tuple(_benchmarks()),
    tuple(_targets()),
    tables,
    heading="SASE's plans",
    about="Times are those of the processor. The ways to run a query take turns in one process; ratios are "
    "of times of one turn, the middle one with the least and the greatest. All ways find the same matches.",
)
