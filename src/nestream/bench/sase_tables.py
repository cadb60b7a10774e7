"""The results of the experiments of the SASE paper as Markdown tables, the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nestream.bench.engine_tables import table
from nestream.bench.spec import Figures

Result = Mapping[str, Any]
TITLES = {
    "domain": "Active instance stacks by the number of values (figure 8)",
    "window": "Active instance stacks by the window, 10,000 values (figure 9)",
    "first": "An equivalence test over 100 values, by the window (section 5.3)",
    "second": "Three ways to make a second equivalence test (figure 10)",
    "windows": "Windows in scan and construction (section 5.3)",
    "length": "The length of the sequence (figure 11)",
    "negation": "Negative events with and without an index (section 5.3)",
    "domains": "One equivalence test by the number of values (figure 12)",
    "other": "A comparison of two events beside the equivalence test (experiment 4)",
    "simple": "A test of single events in the scan (experiment 4)",
}
PARAMETERS = {
    "domain": "values",
    "window": "window",
    "first": "window",
    "second": "values",
    "windows": "window",
    "length": "steps",
    "negation": "negations",
    "domains": "values",
    "other": "comparisons",
    "simple": "tests",
}


def tables(figures: Figures) -> str:
    """A table for each experiment that there are results for."""
    found = [_experiment(figures, name, title) for name, title in TITLES.items()]
    return "\n\n".join(text for text in found if text)


def _experiment(figures: Figures, experiment: str, title: str) -> str:
    results = [result for result in figures.values() if result["experiment"] == experiment]
    if not results:
        return ""
    first, *others = results[0]["ways"]
    rows = [
        [
            f"{result['value']:,}" + (f" and {result['others']}" if result["others"] else ""),
            f"{result['events']:,}",
            f"{result['matches']:,}",
            *(_time(result["ways"][way]) for way in (first, *others)),
            *(_ratio(result, way) for way in others),
            *([_left(result, results[0])] if experiment == "length" else []),
        ]
        for result in results
    ]
    columns = (
        PARAMETERS[experiment],
        "events",
        "matches",
        first,
        *others,
        *(f"{first} to {way}" for way in others),
        *(["throughput left"] if experiment == "length" else []),
    )
    text = f"`{results[0]['query']}` and the like. The paper: {results[0]['paper']}."
    return table(title, columns, rows, text)


def _time(result: Result) -> str:
    return f"{result['best'] * 1e3:,.1f} ms (+{result['spread']:.0%})"


def _ratio(result: Result, way: str) -> str:
    found = result["ratios"][way]
    return f"{found['middle']:,.1f} × ({found['least']:,.1f} to {found['greatest']:,.1f})"


def _left(result: Result, shortest: Result) -> str:
    """The throughput of SASE's plan and of our own, as parts of those of the shortest sequence."""
    parts = [shortest["ways"][way]["best"] / result["ways"][way]["best"] for way in result["ways"]]
    return ", ".join(f"{part:.2f}" for part in parts)
