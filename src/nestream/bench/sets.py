"""Query sets: rules over one stream together, one of them alone, and all of them one after the other.

The rules share their beginnings and the types of their ends; the last event of each has a test of its own
that few events pass. What one rule costs alone is the mean over some of them, spread over the set.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow.parquet as pq

import nestream
from nestream.bench.engine_tables import table
from nestream.bench.plots import Panel, Plot
from nestream.bench.spec import Benchmark, Data, Figures, Suite, Target
from nestream.data.rules import rule_set

EVENTS = 5_000_000
SIZES = (1, 10, 100, 1_000)
ALONE = 8
"""How many rules are run alone, in each repeat, to know what one costs."""
RULES = "Rules over one stream"
DATA = Data("sase", parameters={"attributes": 5})


def measure(task: dict[str, Any]) -> dict[str, Any]:
    """The seconds of a set: planned, run together, a rule alone, and all of them without sharing."""
    events = pq.read_table(task["path"])
    rules = rule_set(max(SIZES))
    rules = dict(list(rules.items())[: task["rules"]])
    chosen = nestream.queries(rules)
    schema = nestream.Schema.of(events.schema, "ts", "type")
    chosen.match(events.slice(0, 1_000))
    sample = list(rules)[:: max(1, len(rules) // ALONE)][:ALONE]
    together, planned, alone, one_more = [], [], [], []
    found = 0
    for _ in range(task["repeats"]):
        begin = time.perf_counter()
        for name in sample:
            chosen[name].match(events)
        alone.append((time.perf_counter() - begin) / len(sample))
        begin = time.perf_counter()
        chosen.planned.clear()
        run = chosen.run(schema)
        planned.append(time.perf_counter() - begin)
        found = sum(matches.num_rows for matches in run.over(events))
        together.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        chosen.adding("one more", rules[sample[-1]]).programs(schema)
        one_more.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    counted = sum(chosen[name].match(events).num_rows for name in rules) if task.get("apart", True) else found
    apart = time.perf_counter() - begin
    return {
        "samples": together,
        "planned": min(planned),
        "alone": min(alone),
        "adding": min(one_more),
        "apart": apart,
        "ratios": [a / b for a, b in zip(together, alone, strict=True)],
        "matches": found,
        "count": counted,
        "rules": len(rules),
    }


def _benchmarks() -> Iterator[Benchmark]:
    for size in SIZES:
        yield Benchmark(f"rules/{size}", f"{size:,} rules", "rules", DATA, settings={"rules": size})


def tables(figures: Figures) -> str:
    """How the cost grows with the number of rules."""
    rows = [
        [
            f"{result['rules']:,}",
            f"{result['matches']:,}",
            f"{result['alone'] * 1e3:,.0f} ms",
            f"{result['best'] * 1e3:,.0f} ms (+{result['spread']:.0%})",
            f"{_ratio(result):.1f} ×",
            f"{result['apart']:,.1f} s",
            f"{result['apart'] / result['best']:,.1f} ×",
            f"{result['planned'] * 1e3:,.0f} ms",
            f"{result['adding'] * 1e3:.1f} ms",
        ]
        for result in figures.values()
    ]
    names = ("rules", "matches", "one alone", "together", "together to one", "one after the other")
    return table(
        RULES,
        (*names, "to together", "planning", "to plan one more"),
        rows,
        "Together includes planning. One alone is the mean of some rules of the set; one after the other "
        "runs every rule by itself over the same events in memory.",
    )


def plots(figures: Figures) -> dict[str, Plot]:
    """The time over the number of rules."""
    lines = {
        "together": [(float(r["rules"]), float(r["best"])) for r in figures.values()],
        "one after the other": [(float(r["rules"]), float(r["apart"])) for r in figures.values()],
    }
    panels = (Panel("", lines),) if figures else ()
    return {RULES: Plot("Rules over one stream", "rules", "seconds", panels, log_x=True, log_y=True)}


def _ratio(result: Any) -> float:
    middle: float = sorted(result["ratios"])[len(result["ratios"]) // 2]
    return middle


def _of(figure: Callable[[Any], float]) -> Callable[[Figures], float | None]:
    return lambda figures: figure(figures[f"rules/{max(SIZES)}"])


SETS = Suite(
    "queries",
    "many rules over one stream, together and alone",
    EVENTS,
    tuple(_benchmarks()),
    (
        Target("1,000 rules together to one alone", 20, "times", _of(_ratio)),
        Target("planning one more rule of 1,000", 10, "ms", _of(lambda result: result["adding"] * 1e3)),
        Target(
            "events for each match of 1,000 rules",
            10,
            "events",
            _of(lambda result: result["events"] / result["matches"]),
            at_least=True,
        ),
    ),
    tables,
    heading="Many rules",
    text="""
Rules that share their beginnings and the types of their ends; the last event of each has a test of its own
that few events pass. [Query sets](sets.md) tells what is shared.""",
    plots=plots,
    about="All in one process, in turns; every rule finds the same matches together and alone.",
)
