"""The experiments of the EDBT 2013 paper: nested execution, three kinds of view, rewriting, and auto.

The paper's figures with the queries are not at hand, so they are rebuilt from its text. What it leaves open:

- the queries: an outer sequence with inner sequences between its events, of the lengths that the text tells;
- predicates: one relates two inner events, so that few of the pairs that are looked at are results; without
  it every pair is a result that has to be given, and no view could spare that;
- how many trades a window of 100, 500 or 1,000 seconds holds: one a second, so windows are numbers of trades;
- which share of the view-intervals the outer results ask for: the query of the memory experiment has outer
  events of the same account, which leaves gaps between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nestream.bench.spec import Benchmark, Data, Figures, Suite, Target
from nestream.bench.views_tables import tables
from nestream.bench.ways import ratio_of

EVENTS = 10_000
"""As many trades as the paper has."""
STEP = 1_000
"""Mean milliseconds between two trades."""
STOCK = Data("stock", parameters={"rate": 1_000 / STEP})
KINDS = ("views-aggressive", "views-passive", "views-balanced")
STRATEGIES: dict[str, dict[str, Any]] = {
    name: {"strategy": name} for name in ("nested", *KINDS, "flat", "auto")
}
PAIR = "r.amount + a.amount = 1500"
WINDOWS = (100, 500, 1_000)
POSITIVE = f"SEQ(MSFT m, SEQ(RIMM r, AMAT a, {PAIR}), ORCL o)"
NEGATED = f"SEQ(MSFT m, !SEQ(RIMM r, AMAT a, {PAIR}), ORCL o)"
LENGTHS = {
    2: POSITIVE,
    3: f"SEQ(MSFT m, SEQ(RIMM r, AMAT a, YHOO y, {PAIR}, y.id % 10 = a.id % 10), ORCL o)",
    4: f"SEQ(MSFT m, SEQ(RIMM r, AMAT a, YHOO y, DELL d, {PAIR}, y.id % 10 = a.id % 10, d.id = y.id), "
    "ORCL o)",
}
NUMBERS = {
    1: "SEQ(MSFT m, SEQ(RIMM r, AMAT a, r.amount < a.amount / 4), ORCL o, IPIX x, INTC i)",
    2: "SEQ(MSFT m, SEQ(RIMM r, AMAT a, r.amount < a.amount / 4), ORCL o, "
    "SEQ(YHOO y, DELL d, y.amount < d.amount / 4), IPIX x, INTC i)",
    3: "SEQ(MSFT m, SEQ(RIMM r, AMAT a, r.amount < a.amount / 4), ORCL o, "
    "SEQ(YHOO y, DELL d, y.amount < d.amount / 4), IPIX x, "
    "SEQ(CSCO c, QQQ q, c.amount < q.amount / 4), INTC i)",
}
REWRITING = {
    2: "SEQ(MSFT m, !SEQ(RIMM r, AMAT a), ORCL o, INTC i)",
    3: "SEQ(MSFT m, !SEQ(RIMM r, AMAT a, YHOO y), ORCL o, INTC i)",
    4: "SEQ(MSFT m, !SEQ(RIMM r, AMAT a, YHOO y, DELL d), ORCL o, INTC i)",
}
SPARSE = f"SEQ(MSFT m, SEQ(RIMM r, AMAT a, {PAIR}), ORCL o, INTC i, m.id = o.id)"
CORRELATED = "SEQ(MSFT m, SEQ(RIMM r, AMAT a, r.id = m.id, a.id = m.id), ORCL o)"
ACCOUNTS = (10, 50, 250)
APART: dict[str, dict[str, Any]] = {
    "partitioned": {"strategy": "views-balanced"},
    "unpartitioned": {"strategy": "views-balanced", "options": {"partition": False}},
    "nested": {"strategy": "nested"},
    "auto": {"strategy": "auto"},
}
REPORTED = {
    "window": "aggressive views 6, 9 and 16 times as fast as nested execution, for 100, 500 and 1,000 s",
    "negated": "no figures of its own; the views of negated queries are used in the same way",
    "length": "balanced and aggressive views before passive ones, the more so the longer the inner query",
    "number": "balanced views before the others, passive ones the further behind the more inner queries",
    "memory": "aggressive views compute 3 times as many results as passive ones; balanced ones hold least",
    "rewriting": "both well before nested execution, and balanced views before rewriting for long queries",
    "accounts": "the time for a match stays the same with partitions, and grows with the values without",
}

NARROW = (
    "In the narrow window nested execution has little to do; planning and the slices in which views slide "
    "cost as much."
)
GAPS = (
    "What an aggressive view computes in vain lies in the gaps between the intervals that outer results ask "
    "for; in the window of 500 trades they ask for most of the time, and the gaps are few."
)
LATEST = (
    "Rewriting asks for the latest events here in place of building exponentially many expressions, so that "
    "long negated queries do not slow it down."
)


def _benchmarks() -> Iterator[Benchmark]:
    for trades in WINDOWS:
        yield _benchmark(f"window/{trades}", POSITIVE, trades, trades)
    for trades in WINDOWS:
        yield _benchmark(f"negated/{trades}", NEGATED, trades, trades)
    for length, pattern in LENGTHS.items():
        yield _benchmark(f"length/{length}", pattern, 500, length)
    for number, pattern in NUMBERS.items():
        yield _benchmark(f"number/{number}", pattern, 100, number)
    for trades in WINDOWS[:2]:
        yield _benchmark(f"memory/{trades}", SPARSE, trades, trades)
    for length, pattern in REWRITING.items():
        yield _benchmark(f"rewriting/{length}", pattern, 200, length)
    for accounts in ACCOUNTS:
        data = Data("stock", parameters={"rate": 1_000 / STEP, "accounts": accounts})
        yield _benchmark(f"accounts/{accounts}", CORRELATED, 500, accounts, APART, data)


def _benchmark(
    name: str,
    pattern: str,
    trades: int,
    value: int,
    ways: Mapping[str, Any] = STRATEGIES,
    data: Data = STOCK,
) -> Benchmark:
    experiment = name.partition("/")[0]
    settings = {
        "experiment": experiment,
        "trades": trades,
        "value": value,
        "paper": REPORTED[experiment],
        "ways": ways,
        "base": "nested",
        "counted": True,
        "curve": True,
    }
    return Benchmark(name, name, "ways", data, pattern, trades * STEP, settings=settings, unit="ms")


def _computed(name: str) -> Callable[[Figures], float | None]:
    def figure(figures: Figures) -> float | None:
        ways = figures[name]["ways"]
        return float(ways["views-aggressive"]["views"]["kept"] / ways["views-passive"]["views"]["kept"])

    return figure


def _targets() -> Iterator[Target]:
    for trades, wanted in zip(WINDOWS, (6, 9, 16), strict=True):
        title = f"a window of {trades:,} trades: nested to aggressive views, the paper's factor"
        yield Target(title, wanted, "times", ratio_of(f"window/{trades}", "views-aggressive"), True, NARROW)
    for trades in WINDOWS[:2]:
        title = (
            f"results that an aggressive view keeps to those of a passive one, {trades} trades: the paper's"
        )
        yield Target(title, 3, "times", _computed(f"memory/{trades}"), True, GAPS)

    def to_rewriting(figures: Figures) -> float | None:
        ways = figures["rewriting/4"]["ways"]
        return float(ways["flat"]["best"] / ways["views-balanced"]["best"])

    title = "a negated query of length 4: rewriting to balanced views, the paper's order"
    yield Target(title, 1, "times", to_rewriting, True, LATEST)

    def apart(figures: Figures) -> float | None:
        most = figures[f"accounts/{ACCOUNTS[-1]}"]["ways"]
        return float(most["unpartitioned"]["best"] / most["partitioned"]["best"])

    title = f"{ACCOUNTS[-1]} accounts: unpartitioned to partitioned views"
    yield Target(title, 1, "times", apart, True)


VIEWS = Suite(
    "views",
    "views of inner queries: three kinds beside nested execution, rewriting and auto",
    EVENTS,
    tuple(_benchmarks()),
    tuple(_targets()),
    tables,
    heading="Views",
    about="Times are those of the processor. The ways to run a query take turns in one process; ratios are "
    "of times of one turn, the middle one with the least and the greatest. All ways find the same matches.",
)
