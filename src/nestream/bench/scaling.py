"""How the cost grows with events, window, steps, rules, skew and cores; the rate a stream keeps up with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

from nestream.bench.engine import FIVE_COLUMNS, IDS, KEYED, KEYED_WINDOW
from nestream.bench.files import LONG
from nestream.bench.scaling_tables import plots, tables
from nestream.bench.sets import DATA as RULES_DATA
from nestream.bench.sets import SIZES as RULES
from nestream.bench.spec import Benchmark, Data, Figures, Suite, Target

EVENTS = 100_000_000
ON_DISK = Data(LONG, parameters={**FIVE_COLUMNS, "attributes": 0})
SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
IN_MEMORY = 0.02
"""The share of the events that the experiments in memory have."""
TABLE = Data("sase", IN_MEMORY, FIVE_COLUMNS)
WINDOWS = (1, 2, 4, 8, 16)
"""Multiples of an eighth of the usual window."""
LENGTHS = (2, 3, 4, 5, 6, 8, 10)
THETAS = (0.0, 0.5, 0.75, 1.0)
CORES = (1, 2)
FLAT, NEGATED = f"{KEYED['flat']} WHERE [id]", f"{KEYED['not-seq']} WHERE [id]"
RATES = {"batches": (False, 500_000), "events": (True, 5_000)}
"""How events are pushed, all that are due or one by one, and the first rate that is tried."""
LINEAR = 1.1
"""The exponent up to which growth counts as linear."""
BOUNDED = 1.5
"""How much more memory ten times the events may take."""


def _benchmarks() -> Iterator[Benchmark]:
    for name, query in (("flat", FLAT), ("not-seq", NEGATED)):
        for share in SHARES:
            settings = {"experiment": "events", "line": name, "share": share}
            yield _one(f"events/{name}/{share:g}", "disk", ON_DISK, query, KEYED_WINDOW, settings)
    for times in WINDOWS:
        window = KEYED_WINDOW * times // 8
        yield _one(f"window/{times}", "match", TABLE, FLAT, window, {"value": times}, "flat", "window")
    for length in LENGTHS:
        steps = ", ".join(f"{kind} {kind.lower()}" for kind in "ABCDEFGHIJ"[:length])
        query = f"SEQ({steps}) WHERE [id]"
        yield _one(f"length/{length}", "match", TABLE, query, KEYED_WINDOW, {"value": length}, "", "length")
    for rules in RULES:
        settings = {"experiment": "rules", "rules": rules, "apart": False}
        yield _one(f"rules/{rules}", "rules", Data("sase", IN_MEMORY, RULES_DATA.parameters), "", 0, settings)
    for theta in THETAS:
        settings = {"experiment": "skew", "theta": theta, "ids": IDS}
        yield _one(f"skew/{theta:g}", "skew", TABLE, FLAT, KEYED_WINDOW // 16, settings)
    for number in CORES:
        data = Data("sase", IN_MEMORY * 2, FIVE_COLUMNS)
        settings = {"experiment": "partitions", "cores": number}
        yield _one(f"partitions/{number}", "cores", data, NEGATED, KEYED_WINDOW, settings)
    for how, (single, start) in RATES.items():
        settings = {"experiment": "rate", "how": how, "single": single, "start": start}
        data = Data("sase", IN_MEMORY * (0.1 if single else 5.0), FIVE_COLUMNS)
        yield _one(f"rate/{how}", "rate", data, FLAT, KEYED_WINDOW, settings)


def _one(
    name: str,
    measure: str,
    data: Data,
    query: str,
    window: int,
    settings: dict[str, Any],
    shape: str = "",
    together: str = "",
) -> Benchmark:
    return Benchmark(name, name, measure, data, query, window, shape, together, settings=settings)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The exponent of the power that fits best: the slope of log y over log x.

    >>> round(slope([(1, 2), (10, 20), (100, 200)]), 3)
    1.0
    """
    x, y = [math.log(a) for a, _ in points], [math.log(b) for _, b in points]
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - middle_x) ** 2 for a in x)
    return sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True)) / spread


def exponent(figures: Figures, prefix: str, over: Callable[[Any], float]) -> dict[str, float] | None:
    """The exponent of the time, fitted for each repeat: the middle, the least and the greatest."""
    found = [result for name, result in figures.items() if name.startswith(prefix)]
    if len(found) < 2 or any("samples" not in result for result in found):
        return None
    repeats = min(len(result["samples"]) for result in found)
    fits = [slope([(over(r), r["samples"][turn]) for r in found]) for turn in range(repeats)]
    return {"middle": median(fits), "least": min(fits), "greatest": max(fits)}


EXPONENTS: dict[str, tuple[str, str, Callable[[Any], float]]] = {
    "events, flat": ("events/flat/", "events", lambda result: float(result["events"])),
    "events, nested negation": ("events/not-seq/", "events", lambda result: float(result["events"])),
    "window": ("window/", "window", lambda result: float(result["value"])),
    "steps": ("length/", "steps", lambda result: float(result["value"])),
    "rules": ("rules/", "rules", lambda result: float(result["rules"])),
}
"""What grows, the names of its results, and over what."""


def exponents(figures: Figures) -> dict[str, dict[str, float]]:
    """Every exponent that there are results for."""
    found = {}
    for what, (prefix, _, over) in EXPONENTS.items():
        fit = exponent(figures, prefix, over)
        if fit is not None:
            found[what] = fit
    return found


def _whole(figures: Figures) -> bool:
    """Whether the files were long enough to judge: small ones are all beginning."""
    return any(result["events"] >= EVENTS / 10 for result in figures.values())


def _exponent(what: str) -> Callable[[Figures], float | None]:
    return lambda figures: exponents(figures).get(what, {}).get("middle") if _whole(figures) else None


def _memory(name: str) -> Callable[[Figures], float | None]:
    """How much more memory the whole file takes than the tenth of it."""

    def ratio(figures: Figures) -> float | None:
        whole, tenth = (figures[f"events/{name}/{share:g}"]["beyond"] for share in (1, 0.1))
        return float(whole / tenth) if _whole(figures) else None

    return ratio


def _cores(figures: Figures) -> float | None:
    times = [figures[f"partitions/{number}"]["best"] for number in CORES]
    return float(times[0] / times[1]) if figures["partitions/1"]["events"] >= 1_000_000 else None


def _targets() -> Iterator[Target]:
    for what in ("events, flat", "events, nested negation"):
        yield Target(f"growth with the {what}", LINEAR, "exponent", _exponent(what))
    for name in ("flat", "not-seq"):
        title = f"ten times the events of a file, {name}: memory"
        yield Target(title, BOUNDED, "times", _memory(name))
    yield Target("growth with the rules", 1, "exponent", _exponent("rules"))
    title = "two cores on Spark against one"
    yield Target(title, 1.5, "times", _cores, at_least=True, why=ONE_MACHINE)


ONE_MACHINE = "Starting a job, planning it and the driver's part take as long with two cores as with one."


SCALING = Suite(
    "scaling",
    "growth with events, window, steps, rules, skew and cores, and the rate that a stream keeps up with",
    EVENTS,
    tuple(_benchmarks()),
    tuple(_targets()),
    lambda figures: tables(figures, exponents(figures)),
    about="Each in a process of its own; windows and steps in turns in one.",
    heading="Growth",
    text="""
How the cost grows with each of what a query and its events have, the rest held. Exponents are fitted to the
logarithms: 1 is growth in proportion, 0 none. Files are read batch by batch with `query.stream`, so that
memory does not depend on their length; `query.match` and `nestream run` hold all events.""",
    plots=plots,
)
