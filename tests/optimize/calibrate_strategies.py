"""Measures the constants of the strategies' costs: `python -m tests.optimize.calibrate_strategies`.

Every query is run by each strategy over trades with several windows. What the model of shared operators knows
is taken from the processor time that was needed; the rest is fitted by the nanoseconds of each kind of work.
Half of the queries are fitted with, the other half show how well that foretells.
"""

import time
from dataclasses import fields, replace

import numpy as np

import nestream
from nestream.compose.gathering import statistics_of
from nestream.compose.outlining import outlines_of, shapes_in
from nestream.data import generate
from nestream.papers.optimize.cost import Constants, Cost, Model
from nestream.papers.optimize.strategies import Outline, Strategies, Work
from tests.optimize.calibrate import _fitted

FITTED = (
    "SEQ(DELL d, !SEQ(YHOO y, RIMM r, r.amount > y.amount + 700), MSFT s)",
    "SEQ(DELL d, MSFT s, !SEQ(YHOO y, RIMM r, AMAT a, r.amount > a.amount), INTC i)",
    "SEQ(DELL d, !SEQ(YHOO y, RIMM r, r.amount > i.amount), MSFT s, INTC i)",
    "SEQ(DELL d, MSFT s, !(YHOO y, y.amount > i.amount), INTC i)",
    "SEQ(DELL d, SEQ(YHOO y, RIMM r, r.amount + y.amount = 1500), MSFT s)",
    "SEQ(DELL d, MSFT s, !SEQ(YHOO y, RIMM r, y.id = d.id, r.amount > y.amount), INTC i)",
)
SHOWN = (
    "SEQ(MSFT m, !SEQ(RIMM r, AMAT a, r.amount + a.amount = 1500), ORCL o)",
    "SEQ(MSFT m, ORCL o, !SEQ(RIMM r, AMAT a, r.amount > i.amount), INTC i)",
    "SEQ(MSFT m, SEQ(RIMM r, AMAT a, YHOO y, r.amount + a.amount = 1500), ORCL o)",
    "SEQ(MSFT m, !SEQ(RIMM r, AMAT a, r.amount > a.amount + 500), ORCL o, !SEQ(YHOO y, DELL d, y.amount > d.amount), INTC i)",  # noqa: E501 - a query
)
SIZES = ((5_000, 60), (5_000, 200), (20_000, 100))
"""Trades, and trades in a window."""
COSTS = {"bounds": Strategies.own, "nested": Strategies.nested, "views-balanced": Strategies.views}
COUNTED = [field.name for field in fields(Work) if field.name != "few"]
"""The constants that are nanoseconds; `few` is a number of events."""
LONGEST = 5.0
"""Runs of more seconds are left out."""


def spent(query: nestream.Query, table: object, strategy: str) -> float:
    """The least nanoseconds of processor time of a few runs."""
    least = float("inf")
    for _ in range(4):
        begin = time.process_time()
        query.match(table, strategy=strategy)
        least = min(least, time.process_time() - begin)
        if least > LONGEST / 4:
            break
    return least * 1e9


def cost(strategy: str, outlines: list[Outline], model: Model, work: Work) -> float:
    """The nanoseconds that a strategy is expected to take."""
    strategies = Strategies(model, work)
    total = strategies.begin() + sum((COSTS[strategy](strategies, one) for one in outlines), Cost())
    return total.nanoseconds


def measured(queries: tuple[str, ...]) -> tuple[list[list[float]], list[float], list[float], list[str]]:
    """For each run how much there is of each kind of work, what the model knows, the time, and a label."""
    none = replace(Work(), **dict.fromkeys(COUNTED, 0.0))
    counts, known, times, labels = [], [], [], []
    for events, trades in SIZES:
        table = generate("stock", events=events, seed=1, rate=10.0)
        for text in queries:
            query = nestream.query(f"{text} WITHIN {trades * 100} ms")
            run = query.prepare(table, time="ts", type="type", types=None, order="time", strategy="bounds")
            outlines = outlines_of(run.program(), run.plan)
            shapes = [shape for one in outlines for shape in shapes_in(one)]
            model = Model(statistics_of(shapes, run.schema, table), Constants(distinct=0.0))
            for strategy in COSTS:
                base = cost(strategy, outlines, model, none)
                if cost(strategy, outlines, model, Work()) > LONGEST * 1e9:
                    continue
                units = [replace(none, **{name: 1.0}) for name in COUNTED]
                counts.append([cost(strategy, outlines, model, unit) - base for unit in units])
                known.append(base)
                times.append(spent(query, table, strategy))
                labels.append(f"{events:>6} {trades:>4} {strategy:<15} {text}")
    return counts, known, times, labels


def main() -> None:
    """Measure, fit, and print the constants with the errors that they leave."""
    counts, known, times, _ = measured(FITTED)
    work, wanted = np.array(counts), np.array(times)
    constants = _fitted(work / wanted[:, None], np.maximum(1 - np.array(known) / wanted, 0.0))
    for name, value in zip(COUNTED, constants, strict=True):
        print(f"{name:<10}{value:14,.1f}   now {getattr(Work(), name):12,.1f}")
    for title, queries in (("fitted", FITTED), ("foretold", SHOWN)):
        counts, known, times, labels = measured(queries)
        for which, used in (("fitted", constants), ("now", [getattr(Work(), name) for name in COUNTED])):
            ratio = (np.array(known) + np.array(counts) @ np.array(used)) / np.array(times)
            low, middle, high = np.quantile(ratio, (0.05, 0.5, 0.95))
            print(
                f"{title} queries by {which} constants: {low:.2f} {middle:.2f} {high:.2f} times the measured"
            )
        for place in np.argsort(ratio):
            print(f"{ratio[place]:6.2f}  {times[place] / 1e6:9.2f} ms  {labels[place]}")


if __name__ == "__main__":
    main()
