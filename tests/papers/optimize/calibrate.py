"""Measures the constants of the cost model: `python -m tests.papers.optimize.calibrate`.

Every operator is run over trades with several windows; the model counts how much there is of each kind of
work, and the nanoseconds of each are fitted to the processor time that the engine needed. Relative errors
count, so that small runs decide as much as large ones.
"""

import time
from dataclasses import fields, replace
from itertools import islice

import numpy as np
import numpy.typing as npt

import nestream
from nestream.data import generate
from nestream.engine.distinct import EmittedMatches
from nestream.engine.operator import EvaluationCache
from nestream.runtime.local import LocalRun
from nestream_papers.engine.program import BlockProgram
from nestream_papers.optimize.cost import Constants, Model
from nestream_papers.optimize.describe import shapes_of
from nestream_papers.optimize.operators import MAKERS, Costing, Group
from nestream_papers.optimize.statistics import Statistics
from nestream_papers.plan.compile import compile_plan
from nestream_papers.rewrite.forms import expressions
from nestream_papers.rewrite.normalise import normalise

QUERIES = (
    "SEQ(DELL d, AMAT a)",
    "SEQ(DELL d, AMAT a, MSFT m, ORCL o)",
    "SEQ(DELL d, !INTC x, AMAT a, !QQQ q, MSFT m)",
    "SEQ(DELL d, AMAT a, MSFT m, d.price < a.price, a.price < m.price)",
    "SEQ(OR(RIMM r, IPIX x), DELL d, AMAT a, MSFT m, ORCL o)",
    "SEQ(OR(RIMM r, IPIX x), DELL d, AMAT a)",
    "SEQ(DELL d, AMAT a, MSFT m, OR(RIMM r, IPIX x))",
    "SEQ(OR(CSCO c, YHOO y), DELL d, AMAT a, MSFT m, OR(RIMM r, IPIX x))",
    "SEQ(MSFT m, !AND(IPIX x, QQQ q, RIMM r), ORCL o, INTC i)",
    "SEQ(CSCO c, !SEQ(IPIX x, RIMM r), YHOO y, QQQ q)",
    "SEQ(MSFT m, !SEQ(RIMM r, AMAT a), ORCL o, !SEQ(YHOO y, DELL d), IPIX x, INTC i)",
)
SIZES = ((1_000, 20), (10_000, 20), (10_000, 60), (100_000, 20), (100_000, 40))
"""Trades, and trades in a window."""


def spent(program: BlockProgram, local: LocalRun, repeats: int = 5) -> float:
    """The least nanoseconds of processor time to find all matches, without putting them in order."""
    least = float("inf")
    for _ in range(repeats):
        matcher = local.matcher
        length = int(matcher.store.pos[-1]) + 1
        begin = time.process_time()
        for one in program.start(matcher.limit).operators(
            EvaluationCache(matcher.events, matcher.key_classes), at_once=True
        ):
            for _found in one.run(0, length):
                pass
        least = min(least, time.process_time() - begin)
    return least * 1e9


def counted(groups: list[Group], costing: Costing, makers: list[int]) -> npt.NDArray[np.float64]:
    """How much there is of each kind of work."""
    none = {field.name: 0.0 for field in fields(Constants)}
    numbers = []
    for name in none:
        model = Model(costing.model.statistics, replace(Constants(**none), **{name: 1.0}))
        again = Costing(costing.shapes, model)
        made = [MAKERS[maker](again, group.members) for maker, group in zip(makers, groups, strict=True)]
        numbers.append(sum(group.cost.nanoseconds for group in made if group is not None))
    return np.array(numbers)


def main() -> None:
    """Measure, fit, and print the constants with the errors that they leave."""
    names = [field.name for field in fields(Constants)]
    counts, times, labels = [], [], []
    for events, trades in SIZES:
        table = generate("stock", events=events, seed=1, rate=10.0)
        for text in QUERIES:
            query = nestream.query(f"{text} WITHIN {trades * 100} ms")
            run = query.prepare(table, strategy="flat")
            normal = normalise(run.plan)
            costing = Costing(
                shapes_of(normal.plan, expressions(normal.form)), Model(Statistics.of(table, run.schema))
            )
            everything = tuple(range(len(costing.shapes)))
            ways = [([MAKERS[0](costing, (n,)) for n in everything], [0] * len(everything))]
            ways += [([make(costing, everything)], [n]) for n, make in islice(enumerate(MAKERS), 1, None)]
            for groups, makers in ways:
                known = [group for group in groups if group is not None]
                if not known:
                    continue
                program = compile_plan(normal.plan, run.schema, groups=known)
                local = LocalRun(replace(run.compiled(), program=program))
                local.append(table)
                local.store.seal()
                counts.append(counted(known, costing, makers))
                times.append(spent(program, local))
                labels.append(f"{events} {trades} {known[0].operator} {text}")
    work, wanted = np.array(counts), np.array(times)
    work[:, names.index("distinct")] = 0
    constants = _fitted(work / wanted[:, None], np.ones(len(wanted)))
    for name, value in zip(names, constants, strict=True):
        print(f"{name:<10}{value:12.1f}")
    ratio = work @ constants / wanted
    for place in np.argsort(ratio):
        print(f"{ratio[place]:6.2f}  {wanted[place] / 1e6:9.2f} ms  {labels[place]}")
    print(f"distinct  {_distinct():12.1f}")


def _fitted(work: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Least squares with no negative constant, by projected coordinate descent."""
    scale = np.maximum(np.abs(work).max(axis=0), 1e-300)
    scaled, found = work / scale, np.zeros(work.shape[1])
    gram, target = scaled.T @ scaled, scaled.T @ wanted
    for _ in range(20_000):
        for place in range(len(found)):
            if gram[place, place] > 0:
                left = target[place] - gram[place] @ found + gram[place, place] * found[place]
                found[place] = max(left / gram[place, place], 0.0)
    constants: npt.NDArray[np.float64] = found / scale
    return constants


def _distinct() -> float:
    """Nanoseconds for a match that is compared with others."""
    table = generate("stock", events=100_000, seed=1, rate=10.0)
    query = nestream.query("SEQ(DELL d, AMAT a, MSFT m) WITHIN 4 s")
    run = query.prepare(table)
    local = LocalRun(run.compiled())
    local.append(table)
    found = next(local.matcher.advance(2**63 - 1))
    columns = [np.tile(found.rows[name], 2) for name in ("d", "a", "m")]
    begin = time.process_time()
    EmittedMatches(("d", "a", "m")).new(columns, local.matcher.store)
    return (time.process_time() - begin) * 1e9 / len(columns[0])


if __name__ == "__main__":
    main()
