"""Every strategy on every query of the other suites: is `auto` as fast as the best of them?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import geometric_mean

from benchmarks.engine import FIVE_COLUMNS, KEYED_WINDOW, PATTERNS, query
from benchmarks.experiments import papers
from benchmarks.parts import Columns, Part, table
from benchmarks.rivals import QUERIES
from benchmarks.spec import Benchmark, Data, Result, Results, Suite, Target

FIXED = ("flat", "nested", "views-aggressive", "views-passive", "views-balanced")
WAYS = {name: {"strategy": name, "threads": 1} for name in ("auto", *FIXED)}
"""With one thread: processor time also counts how threads wait for each other."""
NEVER_SLOWER = 1.1
"""What auto may take, as a multiple of the best other strategy."""
CLOSE = "The strategies are within a tenth or so of each other here."
MEAN = "It would have to be the best of all on every workload."
PAPERS = ("rewriting", "views", "predicates", "sase")
TOO_SLOW = ("rewriting/levels/3/200", "rewriting/length/4/300")
"""Workloads on which nested execution takes minutes; it is left out there."""
OTHERS = 10.0
"""How many times the events of a run the queries of other suites get."""


def _benchmarks() -> Iterator[Benchmark]:
    for paper in PAPERS:
        for one in papers()[paper].benchmarks():
            name = f"{paper}/{one.name}"
            ways = {way: how for way, how in WAYS.items() if way != "nested" or name not in TOO_SLOW}
            yield replace(one, name=name, together=paper, ways=ways, task={}, told={"experiment": paper})
    for suite, names in (("engine", PATTERNS), ("peers", QUERIES)):
        for name in names:
            if suite == "peers" and name in PATTERNS:
                continue
            text, window = query(name) if suite == "engine" else (f"{QUERIES[name]} WHERE [id]", KEYED_WINDOW)
            data, told = Data("sase", OTHERS, FIVE_COLUMNS), {"experiment": suite}
            yield Benchmark(
                f"{suite}/{name}", "ways", data, text, window, together=suite, ways=WAYS, told=told
            )


def slower(result: Result) -> float:
    """The time of auto as a multiple of the best other strategy's."""
    return float(result["ways"]["auto"]["best"] / min(found["best"] for found in _fixed(result).values()))


def _fixed(result: Result) -> dict[str, Result]:
    """What the strategies of the papers took."""
    return {name: found for name, found in result["ways"].items() if name in FIXED}


def _parts(results: Results) -> list[Part]:
    def spent(way: str) -> Callable[[Result], str]:
        return lambda result: f"{result['ways'][way]['best'] * 1e3:,.1f}" if way in result["ways"] else "-"

    columns: Columns = {
        "workload": "{name}",
        "matches": "{matches:,}",
        **{way: spent(way) for way in FIXED},
        "auto": lambda result: f"**{spent('auto')(result)}**",
        "best": lambda result: min(_fixed(result), key=lambda way: float(result["ways"][way]["best"])),
        "auto to best": lambda result: f"{slower(result):.2f} ×",
    }
    rows = [{**result, "name": name} for name, result in results.items()]
    foot = (
        "Processor time in milliseconds, the best of the turns. The last column compares auto with the best."
    )
    return table("Every strategy on every workload", columns, rows, foot)


def _targets() -> Iterator[Target]:
    for one in _benchmarks():
        title = f"{one.name}: auto to the best strategy"
        yield Target(title, NEVER_SLOWER, "times", _slower(one.name), why=CLOSE)
    yield Target("the geometric mean over all workloads", 1.0, "times", _mean, why=MEAN)


def _slower(name: str) -> Callable[[Results], float | None]:
    return lambda results: slower(results[name])


def _mean(results: Results) -> float | None:
    return geometric_mean(slower(result) for result in results.values()) if results else None


STRATEGIES = Suite(
    "strategies",
    "Strategies",
    "Every strategy on every query of the other suites, and auto beside the best of them.",
    10_000,
    1_500,
    tuple(_benchmarks()),
    tuple(_targets()),
    _parts,
    text="""
Every strategy runs the queries of the other suites. `auto`, the
[default engine](how-it-works/engine.md), should never take more than 1.1 times as long as the best
technique of the papers.""",
    conditions="The strategies take turns in one process, with one thread, and find the same matches.",
    repeats=5,
)
