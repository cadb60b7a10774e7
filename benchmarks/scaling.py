"""How the cost grows with events, window, steps, rules, skew and cores; the rate a stream keeps up with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from benchmarks import sets
from benchmarks.engine import FIVE_COLUMNS, KEYED_WINDOW, LINEAR, query, slope
from benchmarks.parts import (
    Columns,
    Part,
    below,
    count_time,
    match_speed,
    megabytes,
    points,
    speed,
    table,
    time,
)
from benchmarks.plots import Panel, Plot
from benchmarks.spec import Benchmark, Data, Result, Results, Suite, Target

EVENTS = 100_000_000
ON_DISK = Data("long", parameters={**FIVE_COLUMNS, "attributes": 0})
SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
IN_MEMORY = 0.02
"""The share of the events that the experiments in memory have."""
TABLE = Data("sase", IN_MEMORY, FIVE_COLUMNS)
WINDOWS = (1, 2, 4, 8, 16)
"""Multiples of an eighth of the usual window."""
LENGTHS = (2, 3, 4, 5, 6, 8, 10)
THETAS = (0.0, 0.5, 0.75, 1.0)
CORES = (1, 2)
FLAT, NEGATED = query("flat")[0], query("not-seq")[0]
RATES = {"batches": (False, 500_000), "events": (True, 5_000)}
"""How events are pushed, all that are due or one by one, and the first rate that is tried."""
BOUNDED = 1.5
"""How much more memory ten times the events may take."""
ONE_MACHINE = "Starting a job, planning it and the driver's part take as long with two cores as with one."


def _benchmarks() -> Iterator[Benchmark]:
    window, told = KEYED_WINDOW, dict[str, Any]()
    for line, text in (("flat", FLAT), ("not-seq", NEGATED)):
        for share in SHARES:
            task = {"do": "disk", "share": share}
            yield Benchmark(f"events/{line}/{share:g}", "alone", ON_DISK, text, window, task=task)
    for times in WINDOWS:
        yield _counted("window", times, FLAT, window * times // 8, "flat")
    for length in LENGTHS:
        steps = ", ".join(f"{kind} {kind.lower()}" for kind in "ABCDEFGHIJ"[:length])
        yield _counted("length", length, f"SEQ({steps}) WHERE [id]", window)
    for size in sets.SIZES:
        yield sets.rules(f"rules/{size}", Data("sase", IN_MEMORY, sets.DATA), size, False)
    for theta in THETAS:
        data = Data("sase", IN_MEMORY, {**FIVE_COLUMNS, "skew": theta})
        task, told = {"by": "batches", "count": True}, {"theta": theta}
        yield Benchmark(f"skew/{theta:g}", "together", data, FLAT, window // 16, task=task, told=told)
    for cores in CORES:
        data, job = Data("sase", IN_MEMORY * 2, FIVE_COLUMNS), {"job": "ours", "cores": cores, "count": True}
        told = {"cores": cores}
        yield Benchmark(
            f"partitions/{cores}", "spark", data, NEGATED, window, ways={"nestream": job}, told=told
        )
    for how, (single, start) in RATES.items():
        data = Data("sase", IN_MEMORY * (0.1 if single else 5.0), FIVE_COLUMNS)
        task = {"do": "rate", "single": single, "start": start}
        yield Benchmark(f"rate/{how}", "alone", data, FLAT, window, task=task, told={"how": how})


def _counted(experiment: str, value: int, text: str, window: int, shape: str = "") -> Benchmark:
    """One of several contestants that take turns, with `count` and `match`."""
    name, told = f"{experiment}/{value}", {"value": value}
    return Benchmark(
        name, "together", TABLE, text, window, "", shape, experiment, task={"count": True}, told=told
    )


EXPONENTS = {
    "events, flat": ("events/flat", "events"),
    "events, nested negation": ("events/not-seq", "events"),
    "window": ("window", "value"),
    "steps": ("length", "value"),
    "rules": ("rules", "rules"),
}
"""What grows: the results, and over what."""


def exponents(results: Results) -> dict[str, dict[str, float]]:
    """The exponents of the time, fitted for each repeat: the median, the least and the greatest."""
    found = {}
    for what, (prefix, over) in EXPONENTS.items():
        own = below(results, prefix)
        repeats = min((len(result["samples"]) for result in own), default=0)
        if len(own) > 1:
            fits = [slope([(one[over], one["samples"][turn]) for one in own]) for turn in range(repeats)]
            found[what] = {"middle": median(fits), "least": min(fits), "greatest": max(fits)}
    return found


def _whole(results: Results) -> bool:
    """Whether the files were long enough to judge: small ones are all beginning."""
    return any(result["events"] >= EVENTS / 10 for result in results.values())


def _exponent(what: str) -> Callable[[Results], float | None]:
    return lambda results: exponents(results).get(what, {}).get("middle") if _whole(results) else None


def _memory(name: str) -> Callable[[Results], float | None]:
    """How much more memory the whole file takes than the tenth of it."""

    def ratio(results: Results) -> float | None:
        whole, tenth = (results[f"events/{name}/{share:g}"]["beyond"] for share in (1, 0.1))
        return float(whole / tenth) if _whole(results) else None

    return ratio


def _cores(results: Results) -> float | None:
    times = [results[f"partitions/{cores}"]["ways"]["nestream"]["best"] for cores in CORES]
    return float(times[0] / times[1]) if results["partitions/1"]["events"] >= 1_000_000 else None


def _targets() -> Iterator[Target]:
    for what in ("events, flat", "events, nested negation"):
        yield Target(f"growth with the {what}", LINEAR, "exponent", _exponent(what))
    for name in ("flat", "not-seq"):
        yield Target(f"ten times the events of a file, {name}: memory", BOUNDED, "times", _memory(name))
    yield Target("growth with the rules", 1, "exponent", _exponent("rules"))
    title = "two cores on Spark against one"
    yield Target(title, 1.5, "times", _cores, at_least=True, why=ONE_MACHINE)


# -- tables ------------------------------------------------------------------------------------------------


def _pair(name: str, title: str, x: str, results: list[Result], over: str, log: bool) -> Plot:
    lines = {"matches": points(results, over), "counted": points(results, over, "count_best")}
    return Plot(f"scaling-{name}", title, x, "seconds", (Panel("", lines),), log, log)


def _parts(results: Results) -> list[Part]:
    fits = [{"what": what, **fit} for what, fit in exponents(results).items()]
    columns: Columns = {
        "growth with": "{what}",
        "exponent": "{middle:.2f}",
        "of the repeats": "{least:.2f} to {greatest:.2f}",
    }
    foot = "The exponent of the time: the median of those fitted for each repeat, and their span."
    return [*table("Exponents", columns, fits, foot), *_growth(results), *_skew(results), *_streams(results)]


def _growth(results: Results) -> list[Part]:
    lines = {
        name: points(below(results, f"events/{key}"), "events")
        for name, key in (("flat", "flat"), ("nested negation", "not-seq"))
    }
    disk = Plot("scaling-events", "Events on disk", "events", "seconds", (Panel("", lines),), True, True)
    windows, lengths, rules = (below(results, name) for name in ("window", "length", "rules"))
    together = {"together": points(rules, "rules")}
    ruled = Plot("scaling-rules", "Rules in a set", "rules", "seconds", (Panel("", together),), True, True)
    query, matches = {"query": "`{query}`"}, {"matches": "{matches:,}"}
    counted = {"`match`": time, "`count`": count_time}
    return [
        *table(
            "Events on disk",
            {
                **query,
                "events": "{events:,}",
                **matches,
                "time": time,
                "million events/s": speed,
                "memory at most": lambda one: megabytes(one["beyond"]),
            },
            below(results, "events"),
            "Parquet, three columns, read and pushed in batches of 262,144 events; the matches are dropped.",
            disk,
        ),
        *table(
            "Windows",
            {**query, **matches, **counted, "million matches/s": match_speed},
            windows,
            _pair("windows", "Windows", "eighths of the usual window", windows, "value", True),
        ),
        *table(
            "Steps of a sequence",
            {"steps": "{value}", **matches, **counted, "million events/s": speed},
            lengths,
            _pair("steps", "Steps of a sequence", "steps", lengths, "value", False),
        ),
        *table(
            "Rules in a set",
            {
                "rules": "{rules:,}",
                **matches,
                "together": time,
                "to one rule": lambda one: f"{one['best'] / rules[0]['best']:.1f} ×",
            },
            rules,
            ruled,
        ),
    ]


def _skew(results: Results) -> list[Part]:
    skews = below(results, "skew")
    columns: Columns = {
        "Zipf's exponent": "{theta:g}",
        "matches": "{matches:,}",
        "`batches`": time,
        "`count`": count_time,
        "ns for each event and match": lambda one: (
            f"{one['best'] * 1e9 / (one['events'] + one['matches']):.0f}"
        ),
    }
    foot = "Ids drawn by Zipf's law: 0 is equally frequent. Frequent ids have more matches than their share."
    plot = _pair("skew", "Unequally frequent keys", "Zipf's exponent", skews, "theta", False)
    return table("Unequally frequent keys", columns, skews, foot, plot)


def _streams(results: Results) -> list[Part]:
    cores = [{**one, **one["ways"]["nestream"]} for one in below(results, "partitions")]
    partitions: Columns = {
        "cores": "{cores}",
        "events": "{events:,}",
        "matches": "{matches:,}",
        "time": time,
        "as fast as one": lambda one: f"{cores[0]['best'] / one['best']:.2f} ×",
    }
    rates: Columns = {
        "pushed": lambda one: "one by one" if one["how"] == "events" else "all that are due, every 20 ms",
        "kept up with, events/s": "{rate:,.0f}",
        "not kept up with": lambda one: (
            f"{one['beyond it']:,.0f}" if one["beyond it"] else "none that was tried"
        ),
    }
    tried = {
        r["how"]: [(rate, max(lag, 1e-4)) for rate, lag, _ in r["tried"]] for r in below(results, "rate")
    }
    title = "The rate at which a stream begins to lag"
    axes = ("events a second", "seconds behind at the end")
    foot = (
        "Events are due at a steady rate for two seconds and pushed into `query.stream`. A stream keeps up "
        "with a rate if the last events wait less than 40 ms, or the wait grows by less than 50 ms each "
        "second. The rate of micro-batches on Spark is in its own part."
    )
    plot = Plot("scaling-rate", title, *axes, (Panel("", tried),), True, True)
    return [
        *table("Cores on Spark", partitions, cores),
        *table(title, rates, below(results, "rate"), foot, plot),
    ]


SCALING = Suite(
    "scaling",
    "Growth",
    "How the cost grows with events on disk, window, steps, rules, skew and cores; the rate kept up with.",
    EVENTS,
    1_000_000,
    tuple(_benchmarks()),
    tuple(_targets()),
    _parts,
    text="""
This suite varies one property of a query or its events at a time, and measures how the cost grows.
Exponents are fitted to the logarithms: 1 is proportional growth, 0 is none. Files are read batch by batch
with `query.stream`, so memory does not depend on their length; `query.match` and `nestream run` hold all
events.""",
    conditions="Each benchmark has a process of its own; windows and steps take turns in one.",
    repeats=2,
    limit=600,
)
