"""The results of the experiments on predicates as Markdown tables, the thesis' figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nestream.bench.engine_tables import table
from nestream.bench.spec import Figures

Result = Mapping[str, Any]
TITLES = {
    "position": "Push-in by the variable that a predicate is about (figure 6.3)",
    "window": "Push-in by the window (figure 6.5)",
    "type": "Push-in by the type of query (figure 6.7)",
    "domain": "Shortcuts by the inner variable's share of the outer one's values (figure 6.9)",
    "depth": "Shortcuts by the depth of the inner variable (figure 6.11)",
}
PARAMETERS = {
    "position": "variable",
    "window": "trades a window",
    "type": "inner query",
    "domain": "percent of the values",
    "depth": "depth",
}
NOTES = {
    "window": " The windows of the thesis are 50, 100 and 500 s.",
    "domain": " A shortcut is taken up to four fifths of the values.",
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
            result["value"],
            f"{result['matches']:,}",
            *(time(result["ways"][way]) for way in (first, *others)),
            *(ratio(result, way) for way in others),
            "" if result["paper"] is None else f"{result['paper']:g} ×",
        ]
        for result in results
    ]
    columns = (PARAMETERS[experiment], "matches", first, *others, *(f"{first} to {way}" for way in others))
    text = f"`{results[0]['query']}` and the like.{NOTES.get(experiment, '')}"
    return table(title, (*columns, "thesis"), rows, text)


def time(result: Result) -> str:
    """The best time, and how much more the middle one was."""
    return f"{result['best'] * 1e3:,.1f} ms (+{result['spread']:.0%})"


def ratio(result: Result, way: str) -> str:
    """How many times as long the first way takes."""
    found = result["ratios"][way]
    return f"{found['middle']:,.1f} × ({found['least']:,.1f} to {found['greatest']:,.1f})"
