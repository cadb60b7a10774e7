"""The experiments of the NEEL+ thesis: predicates pushed in, and shortcuts of predicates between queries.

The figures with its queries are partly not at hand, so they are rebuilt from its text. What it leaves open:

- how selective its predicates are: a tenth of the events pass a test of one event here, and about a twentieth
  of pairs a comparison;
- how many trades its windows hold: they are given here as numbers of trades;
- how deep queries look: the depth of the inner variable is that of the query it stands in.

Its basic system is nested execution with both switches off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nestream.bench.predicates_tables import tables
from nestream.bench.spec import Benchmark, Data, Suite, Target
from nestream.bench.ways import Way, ratio_of

EVENTS = 10_000
"""As many trades as the thesis has."""
STEP = 1_000
"""Mean milliseconds between two trades."""
STOCK = Data("stock", parameters={"rate": 1_000 / STEP})

BASIC: Way = {"strategy": "nested", "options": {"push_in": False, "shortcut": False}}
PUSH_IN: Mapping[str, Way] = {
    "basic": BASIC,
    "push-in": {"strategy": "nested", "options": {"shortcut": False}},
    "auto": {"strategy": "auto"},
}
SHORTCUT: Mapping[str, Way] = {
    "basic": BASIC,
    "shortcut": {"strategy": "nested", "options": {"push_in": False}},
    "push-in": {"strategy": "nested", "options": {"shortcut": False}},
    "both": {"strategy": "nested"},
    "auto": {"strategy": "auto"},
}
POSITIONS = {
    "i": "SEQ(DELL d, MSFT s, IPIX p, INTC i, i.amount > 900)",
    "p": "SEQ(DELL d, MSFT s, IPIX p, INTC i, p.amount > 900)",
    "d": "SEQ(DELL d, MSFT s, IPIX p, INTC i, d.amount > 900)",
}
WINDOWED = "SEQ(DELL d, MSFT s, (IPIX p, p.amount > i.amount), (INTC i, i.amount > 900))"
WINDOWS = (100, 200, 500)
WINDOW = 300
PAIR = "r.amount > y.amount + 700"
TYPES = {
    "positive": f"SEQ(DELL d, SEQ(YHOO y, RIMM r, {PAIR}), MSFT s, (INTC i, i.amount > 900))",
    "negative": f"SEQ(DELL d, !SEQ(YHOO y, RIMM r, {PAIR}), MSFT s, (INTC i, i.amount > 900))",
    "three layers": f"SEQ(DELL d, !SEQ(YHOO y, RIMM r, {PAIR}), SEQ(IPIX p, SEQ(CSCO c, AMAT a, "
    "a.amount > c.amount + 700)), (INTC i, i.amount > 900))",
}
DOMAIN = "SEQ(DELL d, SEQ(RIMM r, YHOO y, IPIX p), INTC i, r.amount = i.amount)"
DOMAINS = (10, 50, 80)
VALUES = 20
"""How many amounts the outer variable has: fewer than a window has trades of the inner one."""
DEPTHS = {
    2: "SEQ(DELL d, SEQ(RIMM r, YHOO y, SEQ(IPIX p, SEQ(CSCO c, QQQ q))), INTC i, r.amount = i.amount)",
    3: "SEQ(DELL d, SEQ(YHOO y, SEQ(RIMM r, IPIX p, SEQ(CSCO c, QQQ q))), INTC i, r.amount = i.amount)",
    4: "SEQ(DELL d, SEQ(YHOO y, SEQ(IPIX p, SEQ(RIMM r, CSCO c, QQQ q))), INTC i, r.amount = i.amount)",
}
PAPER = {
    "position/i": 8.0,
    "position/p": 4.0,
    "position/d": 1.8,
    "window/100": 4.0,
    "window/200": 21.0,
    "window/500": 60.0,
    "type/positive": 5.0,
    "type/negative": 7.0,
    "type/three layers": 7.0,
    "domain/10": 5.0,
    "domain/50": 2.0,
    "domain/80": 1.25,
    "depth/2": 1.08,
    "depth/3": 2.3,
    "depth/4": 4.4,
}
"""How many times as fast as the basic system; the windows of the second experiment are 50, 100 and 500 s."""

GIVEN = "Giving the matches, which neither technique spares, is a good part of the time of a columnar engine."
WHY = {
    "position": GIVEN,
    "window": "The thesis does not say how many trades its windows hold, and the factor grows with them.",
    "type": "Inner queries are computed for many outer events at once, and a negated one stops at the first "
    "result; so its predicate costs the basic system little.",
    "domain": GIVEN,
    "depth": "Inner queries are computed for many outer events at once, so that what lies below costs much "
    "the same.",
}


def _benchmarks() -> Iterator[Benchmark]:
    for variable, pattern in POSITIONS.items():
        yield _benchmark(f"position/{variable}", pattern, WINDOW, PUSH_IN)
    for trades in WINDOWS:
        yield _benchmark(f"window/{trades}", WINDOWED, trades, PUSH_IN)
    for kind, pattern in TYPES.items():
        yield _benchmark(f"type/{kind}", pattern, WINDOW, PUSH_IN)
    for percent in DOMAINS:
        yield _benchmark(f"domain/{percent}", DOMAIN, WINDOW, SHORTCUT, percent)
    for depth, pattern in DEPTHS.items():
        yield _benchmark(f"depth/{depth}", pattern, 100, SHORTCUT, 30)


def _benchmark(name: str, pattern: str, trades: int, ways: Mapping[str, Way], percent: int = 0) -> Benchmark:
    experiment, _, value = name.partition("/")
    settings: dict[str, Any] = {
        "experiment": experiment,
        "value": value,
        "trades": trades,
        "ways": dict(ways),
        "curve": True,
    }
    settings |= {
        "paper": PAPER[name],
        "folded": {"INTC": VALUES, "RIMM": VALUES * percent // 100} if percent else {},
    }
    return Benchmark(name, name, "ways", STOCK, pattern, trades * STEP, settings=settings, unit="ms")


def _targets() -> Iterator[Target]:
    for name, factor in PAPER.items():
        if factor is not None:
            way = "shortcut" if name.startswith(("domain", "depth")) else "push-in"
            title = f"{name}: basic to {way}, the paper's factor"
            yield Target(title, factor, "times", ratio_of(name, way), True, WHY[name.partition("/")[0]])


PREDICATES = Suite(
    "predicates",
    "predicates pushed in, and shortcuts of predicates between queries",
    EVENTS,
    tuple(_benchmarks()),
    tuple(_targets()),
    tables,
    heading="Predicates",
    about="Times are those of the processor. The ways take turns in one process; ratios are of times of one "
    "turn, the middle one with the least and the greatest. All ways find the same matches.",
)
