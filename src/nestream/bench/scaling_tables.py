"""The results of the scaling suite as Markdown tables and plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nestream.bench.engine_tables import seconds, table
from nestream.bench.plots import Panel, Plot
from nestream.bench.spec import Figures

Result = Mapping[str, Any]
DISK = "Events on disk"
WINDOW = "Windows"
LENGTH = "Steps of a sequence"
RULES = "Rules in a set"
SKEW = "Unequally frequent keys"
PARTITIONS = "Cores on Spark"
RATE = "The rate at which a stream begins to lag"


def tables(figures: Figures, exponents: Mapping[str, Mapping[str, float]]) -> str:
    """Every table that there are results for, the exponents first."""
    rows = [
        [what, f"{fit['middle']:.2f}", f"{fit['least']:.2f} to {fit['greatest']:.2f}"]
        for what, fit in exponents.items()
    ]
    foot = "The exponent of the time; the middle of those fitted for each repeat, and their span."
    parts = [table("Exponents", ("growth with", "exponent", "of the repeats"), rows, foot)]
    parts += [part(figures) for part in (_disk, _window, _length, _rules, _skew, _partitions, _rate)]
    return "\n\n".join(part for part in parts if part)


def _of(figures: Figures, prefix: str) -> list[Result]:
    return [result for name, result in figures.items() if name.startswith(prefix)]


def _disk(figures: Figures) -> str:
    rows = [
        [
            f"`{result['query']}`",
            f"{result['events']:,}",
            f"{result['matches']:,}",
            seconds(result),
            f"{result['events'] / result['best'] / 1e6:.1f}",
            f"{result['beyond'] / 1e6:,.0f} MB",
        ]
        for result in _of(figures, "events/")
    ]
    columns = ("query", "events", "matches", "time", "million events/s", "memory at most")
    foot = "Parquet, three columns, read and pushed in batches of 262,144 events; the matches are dropped."
    return table(DISK, columns, rows, foot)


def _window(figures: Figures) -> str:
    rows = [
        [
            f"`{result['query']}`",
            f"{result['matches']:,}",
            seconds(result),
            seconds(result, "count_best", "count_spread"),
            f"{result['matches'] / result['best'] / 1e6:.2f}",
        ]
        for result in _of(figures, "window/")
    ]
    return table(WINDOW, ("query", "matches", "`match`", "`count`", "million matches/s"), rows)


def _length(figures: Figures) -> str:
    rows = [
        [
            f"{result['value']}",
            f"{result['matches']:,}",
            seconds(result),
            seconds(result, "count_best", "count_spread"),
            f"{result['events'] / result['best'] / 1e6:.1f}",
        ]
        for result in _of(figures, "length/")
    ]
    return table(LENGTH, ("steps", "matches", "`match`", "`count`", "million events/s"), rows)


def _rules(figures: Figures) -> str:
    rows = [
        [f"{result['rules']:,}", f"{result['matches']:,}", seconds(result), f"{result['best'] / first:.1f} ×"]
        for found in [_of(figures, "rules/")]
        for result in found
        for first in [found[0]["best"]]
    ]
    return table(RULES, ("rules", "matches", "together", "to one rule"), rows)


def _skew(figures: Figures) -> str:
    rows = [
        [
            f"{result['theta']:g}",
            f"{result['matches']:,}",
            seconds(result),
            seconds(result, "count_best", "count_spread"),
            f"{result['best'] * 1e9 / (result['events'] + result['matches']):.0f}",
        ]
        for result in _of(figures, "skew/")
    ]
    columns = ("Zipf's exponent", "matches", "`batches`", "`count`", "ns for each event and match")
    foot = "Ids drawn by Zipf's law: 0 is equally frequent. Frequent ids have more matches than their share."
    return table(SKEW, columns, rows, foot)


def _partitions(figures: Figures) -> str:
    found = _of(figures, "partitions/")
    rows = [
        [
            f"{result['cores']}",
            f"{result['events']:,}",
            f"{result['matches']:,}",
            seconds(result),
            f"{found[0]['best'] / result['best']:.2f} ×",
        ]
        for result in found
    ]
    return table(PARTITIONS, ("cores", "events", "matches", "time", "as fast as one"), rows)


def _rate(figures: Figures) -> str:
    rows = [
        [
            "all that are due, every 20 ms" if not result["single"] else "one by one",
            f"{result['rate']:,.0f}",
            f"{result['beyond it']:,.0f}" if result["beyond it"] else "none that was tried",
        ]
        for result in _of(figures, "rate/")
    ]
    foot = (
        "Events are due at a steady rate for two seconds and pushed into `query.stream`. A rate is kept up "
        "with where the last ones wait less than 40 ms, or the wait grows by less than 50 ms each second. "
        "The rate of micro-batches on Spark is in its own part."
    )
    return table(RATE, ("pushed", "kept up with, events/s", "not kept up with"), rows, foot)


def plots(figures: Figures) -> dict[str, Plot]:
    """A plot for what grows over more than two values."""
    best = _points("best")
    lines = {
        "flat": [best(r, "events") for r in _of(figures, "events/flat/")],
        "nested negation": [best(r, "events") for r in _of(figures, "events/not-seq/")],
    }
    counted = _points("count_best")
    windows, lengths = _of(figures, "window/"), _of(figures, "length/")
    rules, skews = _of(figures, "rules/"), _of(figures, "skew/")
    tried = {r["how"]: [(rate, max(lag, 1e-4)) for rate, lag, _ in r["tried"]] for r in _of(figures, "rate/")}
    return {
        DISK: Plot(DISK, "events", "seconds", (Panel("", lines),), log_x=True, log_y=True),
        WINDOW: _pair(WINDOW, "eighths of the usual window", windows, "value", best, counted, True),
        LENGTH: _pair(LENGTH, "steps", lengths, "value", best, counted, False),
        RULES: Plot(
            RULES,
            "rules",
            "seconds",
            (Panel("", {"together": [best(r, "rules") for r in rules]}),),
            log_x=True,
            log_y=True,
        ),
        SKEW: _pair(SKEW, "Zipf's exponent", skews, "theta", best, counted, False),
        RATE: Plot(
            RATE, "events a second", "seconds behind at the end", (Panel("", tried),), log_x=True, log_y=True
        ),
    }


def _points(key: str) -> Callable[[Result, str], tuple[float, float]]:
    return lambda result, over: (float(result[over]), float(result[key]))


def _pair(
    title: str,
    x: str,
    results: list[Result],
    over: str,
    best: Callable[[Result, str], tuple[float, float]],
    counted: Callable[[Result, str], tuple[float, float]],
    log: bool,
) -> Plot:
    lines = {"matches": [best(r, over) for r in results], "counted": [counted(r, over) for r in results]}
    return Plot(title, x, "seconds", (Panel("", lines),), log_x=log, log_y=log)
