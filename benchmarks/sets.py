"""Query sets: rules over one stream together, some of them alone, and all of them one after the other."""

from __future__ import annotations

from statistics import median

from benchmarks.parts import Columns, Part, points, table, time
from benchmarks.plots import Panel, Plot
from benchmarks.spec import Benchmark, Data, Result, Results, Suite, Target

SIZES = (1, 10, 100, 1_000)
DATA = {"attributes": 5}


def rules(name: str, data: Data, size: int, apart: bool) -> Benchmark:
    """The first `size` rules of a set over one stream."""
    task = {"do": "rules", "rules": size, "apart": apart}
    return Benchmark(name, "alone", data, task=task, told={"rules": size})


def _parts(results: Results) -> list[Part]:
    found = list(results.values())
    lines = {"together": points(found, "rules"), "one after the other": points(found, "rules", "apart")}
    plot = Plot("queries-rules", "Rules over one stream", "rules", "seconds", (Panel("", lines),), True, True)
    columns: Columns = {
        "rules": "{rules:,}",
        "matches": "{matches:,}",
        "one alone": lambda one: f"{one['alone'] * 1e3:,.0f} ms",
        "together": lambda one: time(one, unit=1e-3),
        "together to one": lambda one: f"{median(one['ratios']):.1f} ×",
        "one after the other": "{apart:,.1f} s",
        "to together": lambda one: f"{one['apart'] / one['best']:,.1f} ×",
        "planning": lambda one: f"{one['planned'] * 1e3:,.0f} ms",
        "to plan one more": lambda one: f"{one['adding'] * 1e3:.1f} ms",
    }
    foot = (
        '"Together" includes planning. "One alone" is the mean of some rules of the set; "one after the '
        'other" runs every rule by itself over the same events in memory.'
    )
    return table("Rules over one stream", columns, found, foot, plot)


def _largest(results: Results) -> Result:
    return results[f"rules/{SIZES[-1]}"]


SETS = Suite(
    "queries",
    "Many rules",
    "Up to 1,000 rules over one stream: together, one alone, and one after the other.",
    5_000_000,
    500_000,
    tuple(rules(f"rules/{size}", Data("sase", parameters=DATA), size, True) for size in SIZES),
    (
        Target(
            "1,000 rules together to one alone", 20, "times", lambda found: median(_largest(found)["ratios"])
        ),
        Target("planning one more rule of 1,000", 10, "ms", lambda found: _largest(found)["adding"] * 1e3),
        Target(
            "events for each match of 1,000 rules",
            10,
            "events",
            lambda found: _largest(found)["events"] / _largest(found)["matches"],
            at_least=True,
        ),
    ),
    _parts,
    text="""
The rules share their first steps and the types of their last ones; the last event of each has a test of
its own that few events pass. [Rule sets](guides/rule-sets.md#what-is-shared) explains what is shared.""",
    conditions="All take turns in one process; every rule finds the same matches together and alone.",
)
