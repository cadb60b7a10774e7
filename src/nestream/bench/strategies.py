"""Every strategy on the workloads of the other suites: is auto as fast as the best of them?

The workloads are those of the experiments on rewriting, views, predicates and SASE's plans, at sizes at which
nested execution takes seconds at most. All strategies take turns in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import geometric_mean
from typing import Any

from nestream.bench import predicates, rewriting, views
from nestream.bench.engine_tables import table
from nestream.bench.sase import SASE
from nestream.bench.spec import Benchmark, Figures, Suite, Target
from nestream.bench.ways import Way

EVENTS = 10_000
FIXED = ("bounds", "flat", "nested", "views-aggressive", "views-passive", "views-balanced")
WAYS: dict[str, Way] = {name: {"strategy": name} for name in ("auto", *FIXED)}
NEVER_SLOWER = 1.1
"""What auto may take, as a multiple of the best other strategy."""
CLOSE = "The strategies are within a tenth or so of each other here."
MEAN = "It would have to be the best of six on every workload."
REWRITING = ("children/1/100", "children/3/100", "length/3/100", "levels/2/100", "levels/3/50", "mixed/50")
VIEWS = ("window/100", "negated/500", "length/3", "number/2", "memory/500", "rewriting/3", "accounts/50")
PREDICATES = ("position/p", "window/200", "type/positive", "type/negative", "type/three layers", "depth/3")
SEQUENCES = ("second/20/100", "length/3", "length/6", "negation/1", "negation/2", "simple/1")


def _benchmarks() -> Iterator[Benchmark]:
    for suite, names in (
        (rewriting.REWRITING, REWRITING),
        (views.VIEWS, VIEWS),
        (predicates.PREDICATES, PREDICATES),
        (SASE, SEQUENCES),
    ):
        for benchmark in suite.benchmarks:
            if benchmark.name in names:
                yield _one(suite.name, benchmark)


def _one(suite: str, given: Benchmark) -> Benchmark:
    """The query of another suite's benchmark over its events, by every strategy."""
    settings: dict[str, Any] = {"experiment": suite, "folded": given.settings.get("folded", {}), "ways": WAYS}
    name = f"{suite}/{given.name}"
    return Benchmark(
        name, name, "ways", given.data, given.query, given.window, settings=settings, unit=given.unit
    )


def slower(result: dict[str, Any]) -> float:
    """The time of auto as a multiple of the best other strategy's."""
    return float(result["ways"]["auto"]["best"] / min(result["ways"][name]["best"] for name in FIXED))


def tables(figures: Figures) -> str:
    """One table: the strategies side by side, the best of them, and auto beside it."""
    rows = []
    for name, result in figures.items():
        times = {way: found["best"] for way, found in result["ways"].items()}
        best = min(FIXED, key=times.__getitem__)
        rows.append(
            [
                name,
                f"{result['matches']:,}",
                *(f"{times[way] * 1e3:,.1f}" for way in FIXED),
                f"**{times['auto'] * 1e3:,.1f}**",
                best,
                f"{slower(dict(result)):.2f} ×",
            ]
        )
    text = "Milliseconds of the processor, the best of the turns. The last column is auto beside the best."
    columns = ("workload", "matches", *FIXED, "auto", "best", "auto to best")
    return table("Every strategy on every workload", columns, rows, text)


def _slower(name: str) -> Callable[[Figures], float | None]:
    return lambda figures: slower(dict(figures[name]))


def _mean(figures: Figures) -> float | None:
    return geometric_mean(slower(dict(result)) for result in figures.values()) if figures else None


def _targets() -> Iterator[Target]:
    for benchmark in _benchmarks():
        title = f"{benchmark.name}: auto to the best strategy"
        yield Target(title, NEVER_SLOWER, "times", _slower(benchmark.name), why=CLOSE)
    yield Target("the geometric mean over all workloads", 1.0, "times", _mean, why=MEAN)


STRATEGIES = Suite(
    "strategies",
    "auto beside every other strategy",
    EVENTS,
    tuple(_benchmarks()),
    tuple(_targets()),
    tables,
    heading="Strategies",
    text="""
Queries of the other parts by every strategy. `auto`, the engine's own way, should never take
more than 1.1 times what the best other strategy takes.""",
    about="The strategies take turns in one process and find the same matches.",
)
