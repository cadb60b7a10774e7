"""The results of the experiments on rewriting as Markdown tables, the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nestream.bench.engine_tables import table
from nestream.bench.spec import Figures

Result = Mapping[str, Any]
TITLES = {
    "children": "One to three negated children (figures 10 to 12)",
    "length": "A negated child of length two to four (figures 13 to 15)",
    "outer": "The outer sequence alone, nested",
    "levels": "One to three levels of negation (figures 16 to 18)",
    "mixed": "The mixed workload (figure 19)",
}


def tables(figures: Figures) -> str:
    """A table for each experiment that there are results for, and what they say."""
    found = [_experiment(figures, name, title) for name, title in TITLES.items()]
    return "\n\n".join(text for text in found if text)


def _experiment(figures: Figures, experiment: str, title: str) -> str:
    results = [result for result in figures.values() if result["experiment"] == experiment]
    if experiment == "outer":
        return _outer(results, title)
    rows = [
        [
            f"`{_pattern(result)}`",
            f"{result['trades']}",
            f"{result['matches']:,}",
            *(_seconds(result["ways"][name]) for name in ("nested", "flat", "auto")),
            *(_ratio(result, name) for name in ("flat", "auto")),
        ]
        for result in results
    ]
    names = ("trades a window", "matches", "nested", "flat", "auto", "nested to flat", "nested to auto")
    paper = f"The paper reports for its flattened execution: {results[0]['paper']}." if results else ""
    return table(
        title,
        ("query", *names),
        rows,
        f"{paper} Ratios are those of the middle turn, with the least and the greatest in parentheses.",
    )


def _outer(results: list[Result], title: str) -> str:
    rows = [
        [f"`{_pattern(r)}`", f"{r['trades']}", f"{r['matches']:,}", _seconds(r["ways"]["nested"])]
        for r in results
    ]
    return table(title, ("query", "trades a window", "matches", "nested"), rows)


def _pattern(result: Result) -> str:
    return str(result["query"].partition(" WITHIN ")[0])


def _seconds(result: Result) -> str:
    if "best" not in result:
        return str(result["status"])
    return f"{result['best'] * 1e3:,.1f} ms (+{result['spread']:.0%})"


def _ratio(result: Result, strategy: str) -> str:
    found = result["ratios"].get(strategy)
    if found is None:
        return "-"
    return f"{found['middle']:,.1f} × ({found['least']:,.1f} to {found['greatest']:,.1f})"
