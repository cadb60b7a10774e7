"""The experiments of the ICDE 2011 paper: nested execution, rewriting with sharing, and the engine's own way.

The paper's figures with the queries are not at hand, so they are rebuilt from its text. What it leaves open:

- where the negated children stand: one in each gap from the left, and the single child in the last gap;
- how often each ticker is traded: all equally often, independently;
- how many trades its window of 10 ms holds: the window is given here as a number of trades, since that, not
  the unit of time, decides how much there is to do. Every query is run with several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import fmean

from nestream.bench.rewriting_tables import tables
from nestream.bench.spec import Benchmark, Data, Figures, Suite, Target
from nestream.bench.ways import SLOW

EVENTS = 10_000
"""As many trades as the paper has."""
STEP = 100
"""Mean milliseconds between two trades."""
WINDOWS = (50, 100, 200)
"""Windows, in trades."""
MIXED_WINDOWS = (30, 50, 100)
"""Windows for the mixed workload, which has five steps without a negation: 700,000 matches in the widest."""
LONG = 300
"""A window for the children of different lengths alone: nested execution takes half a minute there."""
STOCK = Data("stock", parameters={"rate": 1_000 / STEP})
STRATEGIES = ("nested", "flat", "auto")
OUTER = "SEQ(MSFT m, ORCL o, IPIX x, INTC i)"
"""What is left of the queries with negated children without them."""

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
    "outer": "nothing; it is taken off the time of the whole to know that of the children",
    "levels": "consistently faster",
    "mixed": "significantly faster",
}


def _benchmarks() -> Iterator[Benchmark]:
    experiments: dict[str, Mapping[int, str]] = {"children": CHILDREN, "length": LENGTHS, "levels": LEVELS}
    for experiment, queries in experiments.items():
        for trades in (*WINDOWS, LONG) if experiment == "length" else WINDOWS:
            for number, pattern in queries.items():
                yield _benchmark(f"{experiment}/{number}/{trades}", pattern, trades, number, STRATEGIES)
    for trades in WINDOWS:
        yield _benchmark(f"outer/{trades}", OUTER, trades, 0, ("nested",))
    for trades in MIXED_WINDOWS:
        yield _benchmark(f"mixed/{trades}", MIXED, trades, trades, STRATEGIES)


def _benchmark(name: str, pattern: str, trades: int, value: int, ways: tuple[str, ...]) -> Benchmark:
    experiment = name.partition("/")[0]
    settings = {
        "experiment": experiment,
        "trades": trades,
        "value": value,
        "paper": PAPER[experiment],
        "ways": {way: {"strategy": way} for way in ways},
        "curve": len(ways) > 1,
    }
    return Benchmark(name, name, "ways", STOCK, pattern, trades * STEP, settings=settings, unit="ms")


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
    title = f"{what}, {trades} trades a window: nested to flat"
    return Target(title, wanted, "times", figure, at_least=True, why=WHY)


WHY = (
    "The target is the paper's factor, asked of every window, as it is not known how many trades its own "
    "holds: in narrow windows all strategies take milliseconds."
)


REWRITING = Suite(
    "rewriting",
    "nested execution, rewriting with shared execution, and the engine's own way",
    EVENTS,
    tuple(_benchmarks()),
    tuple(_targets()),
    tables,
    heading="Rewriting",
    about="Times are those of the processor, as in the paper. The strategies run in turns in one "
    f"process; one that takes more than {SLOW:.0f} s is not run again. All of them find the same matches.",
)
