"""The experiments of the ICDE 2011 paper: nested execution, rewriting with sharing, and the engine's own way.

The paper's figures with the queries are not at hand, so they are rebuilt from its text. What it leaves open:

- where the negated children stand: one in each gap from the left, and the single child in the last gap;
- how often each ticker is traded: all equally often, independently;
- how many trades its window of 10 ms holds: the window is given here as a number of trades, since that, not
  the unit of time, decides how much there is to do. Every query is run with several.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean, median
from typing import Any

from nestream.bench.files import cache_folder, events_file
from nestream.bench.rewriting_tables import tables
from nestream.bench.run import BenchError, Progress, Run, chosen_of, outcome
from nestream.bench.spec import Benchmark, Data, Figures, Suite, Target
from nestream.bench.turns import Contestant

EVENTS = 10_000
"""As many trades as the paper has."""
STEP = 100
"""Mean milliseconds between two trades."""
WINDOWS = (50, 100, 200)
"""Windows, in trades."""
MIXED_WINDOWS = (30, 50, 100)
"""Windows for the mixed workload, which has five steps without a negation: 700,000 matches in the widest."""
LONG = 400
"""A window for the children of different lengths alone: nested execution takes minutes there."""
STOCK = Data("stock", parameters={"rate": 1_000 / STEP})
STRATEGIES = ("nested", "flat", "auto")
SLOW = 10.0
"""A strategy that takes so many seconds is not run again."""

CHILDREN = {
    1: "SEQ(MSFT m, !SEQ(RIMM r, AMAT a), ORCL o, IPIX x, INTC i)",
    2: "SEQ(MSFT m, !SEQ(RIMM r, AMAT a), ORCL o, !SEQ(YHOO y, DELL d), IPIX x, INTC i)",
    3: "SEQ(MSFT m, !SEQ(RIMM r, AMAT a), ORCL o, !SEQ(YHOO y, DELL d), IPIX x, !SEQ(CSCO c, QQQ q), INTC i)",
}
LENGTHS = {
    2: "SEQ(MSFT m, ORCL o, !SEQ(RIMM r, AMAT a), INTC i)",
    3: "SEQ(MSFT m, ORCL o, !SEQ(RIMM r, AMAT a, YHOO y), INTC i)",
    4: "SEQ(MSFT m, ORCL o, !SEQ(RIMM r, AMAT a, YHOO y, DELL d), INTC i)",
}
LEVELS = {
    1: "SEQ(MSFT m, ORCL o, !SEQ(IPIX x, QQQ q), INTC i)",
    2: "SEQ(MSFT m, ORCL o, !SEQ(IPIX x, !SEQ(RIMM r, AMAT a), QQQ q), INTC i)",
    3: "SEQ(MSFT m, ORCL o, !SEQ(IPIX x, !SEQ(RIMM r, !SEQ(YHOO y, DELL d), AMAT a), QQQ q), INTC i)",
}
MIXED = (
    "OR(SEQ(MSFT m1, !AND(IPIX x1, QQQ q1, RIMM r1), ORCL o1, INTC i1), "
    "SEQ(OR(RIMM r2, IPIX x2), DELL d2, AMAT a2, MSFT m2, ORCL o2), "
    "SEQ(CSCO c3, !SEQ(IPIX x3, RIMM r3), YHOO y3, QQQ q3))"
)
PAPER = {
    "children": "about 5 times on average",
    "length": "several hundred times on average",
    "levels": "consistently faster",
    "mixed": "significantly faster",
}


def _benchmarks() -> Iterator[Benchmark]:
    experiments: dict[str, Mapping[int, str]] = {"children": CHILDREN, "length": LENGTHS, "levels": LEVELS}
    for trades in WINDOWS:
        for experiment, queries in experiments.items():
            for number, pattern in queries.items():
                yield _benchmark(f"{experiment}/{number}/{trades}", pattern, experiment, trades)
    for trades in MIXED_WINDOWS:
        yield _benchmark(f"mixed/{trades}", MIXED, "mixed", trades)
    for number, pattern in LENGTHS.items():
        yield _benchmark(f"length/{number}/{LONG}", pattern, "length", LONG)


def _benchmark(name: str, pattern: str, experiment: str, trades: int) -> Benchmark:
    settings = {"experiment": experiment, "trades": trades, "paper": PAPER[experiment]}
    return Benchmark(name, name, "turns", STOCK, pattern, trades * STEP, settings=settings, unit="ms")


def run_rewriting(how: Run, progress: Progress = lambda what, done, total: None) -> dict[str, Any]:
    """The results, as plain data in the shape of the other suites."""
    chosen = chosen_of(REWRITING, how.only)
    path = events_file(STOCK, how.events, how.folder or cache_folder())
    load, results = os.getloadavg()[0], {}
    for done, benchmark in enumerate(chosen):
        progress(benchmark.name, done, len(chosen))
        load = max(load, os.getloadavg()[0])
        results[benchmark.name] = {
            "title": benchmark.title,
            "query": benchmark.text,
            "events": how.events,
            **benchmark.settings,
            **_compared(benchmark, str(path), how),
        }
    progress("done", len(chosen), len(chosen))
    return outcome(REWRITING, how, results, load)


def _compared(benchmark: Benchmark, path: str, how: Run) -> dict[str, Any]:
    """The strategies in turns: their times, the ratios of times of one turn, and the matches of all."""
    command = [sys.executable, "-m", "nestream.bench.worker"]
    contestants = []
    try:
        for strategy in STRATEGIES:
            task = {"measure": "turns", "path": path, "query": benchmark.text, "strategy": strategy}
            task["clock"] = "processor"
            contestants.append(Contestant(strategy, "", command, json.dumps(task) + "\n", how.limit))
        for _ in range(how.repeats):
            for one in contestants:
                if not one.over and (not one.samples or one.samples[-1] < SLOW):
                    one.turn()
    finally:
        for one in contestants:
            one.retire()
    found = {one.name: one.result() for one in contestants}
    return {**agreed(benchmark.name, found), "strategies": found, "ratios": ratios(found)}


def agreed(name: str, found: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """The matches, which every strategy that has finished must have found; nested alone may take too long."""
    for strategy, result in found.items():
        slow = result["status"].startswith(("did not finish", "more than"))
        if result["status"] != "done" and not (slow and strategy == "nested"):
            raise BenchError(f"{name}: strategy {strategy} {result['status']}")
    sums = {s: (r["matches"], r["checksum"]) for s, r in found.items() if r["status"] == "done"}
    if len(set(sums.values())) > 1:
        raise BenchError(f"{name}: the strategies find different matches: {sums}")
    matches, checksum = next(iter(sums.values()))
    return {"matches": matches, "checksum": checksum}


def ratios(found: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """How many times as long nested execution takes: the middle, the least and the greatest of the turns."""
    slow = found["nested"].get("samples")
    ratio = {}
    for strategy in STRATEGIES[1:]:
        if slow and (fast := found[strategy].get("samples")):
            turns = [a / b for a, b in zip([*slow, *slow[-1:] * len(fast)][: len(fast)], fast, strict=True)]
            ratio[strategy] = {"middle": median(turns), "least": min(turns), "greatest": max(turns)}
    return ratio


def _ratio(name: str, strategy: str) -> Callable[[Figures], float | None]:
    def figure(figures: Figures) -> float | None:
        found = figures[name]["ratios"].get(strategy)
        return found["middle"] if found else None

    return figure


def _average(experiment: str, trades: int) -> Callable[[Figures], float | None]:
    def figure(figures: Figures) -> float | None:
        found = [
            _ratio(f"{experiment}/{number}/{trades}", "flat")(figures)
            for number in range(1, 5)
            if f"{experiment}/{number}/{trades}" in figures
        ]
        known = [ratio for ratio in found if ratio is not None]
        return fmean(known) if len(known) == 3 else None

    return figure


def _targets() -> Iterator[Target]:
    """What the paper reports, wanted of every window: which of them is like the paper's is not known."""
    for trades in WINDOWS:
        for number in CHILDREN:
            what = f"{number} negated child{'ren' if number > 1 else ''}"
            yield _target(what, trades, 5, _ratio(f"children/{number}/{trades}", "flat"))
    for trades in (*WINDOWS, LONG):
        for number in LENGTHS:
            what = f"a child of length {number}"
            yield _target(what, trades, 100, _ratio(f"length/{number}/{trades}", "flat"))
        yield _target("children of length 2 to 4 on average", trades, 100, _average("length", trades))
    for trades in WINDOWS:
        for number in LEVELS:
            what = f"{number} level{'s' if number > 1 else ''} of negation"
            yield _target(what, trades, 1, _ratio(f"levels/{number}/{trades}", "flat"))
    for trades in MIXED_WINDOWS:
        yield _target("the mixed workload", trades, 1, _ratio(f"mixed/{trades}", "flat"))


def _target(what: str, trades: int, wanted: float, figure: Callable[[Figures], float | None]) -> Target:
    return Target(f"{what}, {trades} trades a window: nested to flat", wanted, "times", figure, at_least=True)


REWRITING = Suite(
    "rewriting",
    "nested execution, rewriting with shared execution, and the engine's own way",
    EVENTS,
    tuple(_benchmarks()),
    tuple(_targets()),
    tables,
    about="Times are those of the processor, as in the paper. The strategies run in turns, each in a process "
    f"of its own; one that takes more than {SLOW:.0f} s is not run again. All of them find the same matches.",
)
