"""Every strategy on queries of the papers' experiments: is `auto` as fast as the best of them?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import geometric_mean

from benchmarks.experiments import papers
from benchmarks.parts import Columns, Part, table
from benchmarks.spec import Benchmark, Result, Results, Suite, Target

FIXED = ("flat", "nested", "views-aggressive", "views-passive", "views-balanced")
WAYS = {name: {"strategy": name} for name in ("auto", *FIXED)}
NEVER_SLOWER = 1.1
"""What auto may take, as a multiple of the best other strategy."""
CLOSE = "The strategies are within a tenth or so of each other here."
MEAN = "It would have to be the best of all on every workload."
WORKLOADS = {
    "rewriting": "children/1/100 children/3/100 length/3/100 levels/2/100 levels/3/50 mixed/50",
    "views": "window/100 negated/500 length/3 number/2 memory/500 rewriting/3 accounts/50",
    "predicates": "position/p window/200 type/positive type/negative type/three-layers depth/3",
    "sase": "second/20/100 length/3 length/6 negation/1 negation/2 simple/1",
}
"""Queries that nested execution answers within seconds."""


def _benchmarks() -> Iterator[Benchmark]:
    for paper, names in WORKLOADS.items():
        known = {benchmark.name: benchmark for benchmark in papers()[paper].benchmarks()}
        for name in names.split():
            told = {"experiment": paper}
            yield replace(known[name], name=f"{paper}/{name}", together=paper, ways=WAYS, task={}, told=told)


def slower(result: Result) -> float:
    """The time of auto as a multiple of the best other strategy's."""
    return float(result["ways"]["auto"]["best"] / min(result["ways"][name]["best"] for name in FIXED))


def _parts(results: Results) -> list[Part]:
    def spent(way: str) -> Callable[[Result], str]:
        return lambda result: f"{result['ways'][way]['best'] * 1e3:,.1f}"

    columns: Columns = {
        "workload": "{name}",
        "matches": "{matches:,}",
        **{way: spent(way) for way in FIXED},
        "auto": lambda result: f"**{spent('auto')(result)}**",
        "best": lambda result: min(FIXED, key=lambda way: float(result["ways"][way]["best"])),
        "auto to best": lambda result: f"{slower(result):.2f} ×",
    }
    rows = [{**result, "name": name} for name, result in results.items()]
    foot = (
        "Milliseconds of the processor, the best of the turns. The last column compares auto with the best."
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
    "Every strategy on queries of the papers, and auto beside the best of them.",
    10_000,
    1_500,
    tuple(_benchmarks()),
    tuple(_targets()),
    _parts,
    text="""
Queries of the other parts by every strategy. `auto`, which is [the engine itself](engine.md), should never
take more than 1.1 times as long as the best technique of the papers.""",
    conditions="The strategies take turns in one process and find the same matches.",
    repeats=8,
)
