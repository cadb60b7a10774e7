"""The results of a suite as its part of the page: what is reached, every table, plots, figures of papers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nestream.bench import predicates_tables, rewriting_tables, sase_tables, views_tables
from nestream.bench.figures import Paper, plot_of, sentence
from nestream.bench.plots import Plot
from nestream.bench.spec import Suite

HEADINGS: Mapping[str, Mapping[str, str]] = {
    "rewriting": rewriting_tables.TITLES,
    "sase": sase_tables.TITLES,
    "views": {name: title for name, (title, _) in views_tables.TITLES.items()},
    "predicates": predicates_tables.TITLES,
}
"""Under which heading the table of an experiment of a paper stands."""
PLOTS = "plots"


def section(suite: Suite, found: dict[str, Any]) -> str:
    """The results as Markdown: how they came about, what is reached and what is not, then every table."""
    machine = found["machine"]
    names = ("nestream", "pyarrow", "numpy", "polars", "duckdb")
    versions = ", ".join(f"{name} {machine[name]}" for name in names if name in machine)
    peers = suite.about or (
        f"Peers: {found['threads of the peers']} threads each, {found['time limit of the peers']:.0f} s at "
        "most. Where several programs find the matches of a query, they find the same."
    )
    spent = f" in {found['seconds']:,.0f} s" if "seconds" in found else ""
    about = (
        f"Measured {found['date']} by `nestream bench {suite.name}`{spent}: {machine['cores']} cores, "
        f"{machine['system']}, Python {machine['python']}, {versions}. {found['events']:,} events unless a "
        f"table says otherwise; the best of {found['repeats']} repeats, with the excess of the middle one in "
        f"parentheses. The load rose up to {machine['highest load']}. {peers}"
    )
    parts = [about]
    if found["targets"]:
        missed = sum(not target["met"] for target in found["targets"])
        parts.append(f"### Targets: {len(found['targets']) - missed} reached, {missed} missed")
        lines = ["| | figure | target | |", "| --- | --- | --- | --- |"]
        lines += [_target(target) for target in found["targets"]]
        parts.append("\n".join(lines))
    tables = suite.tables(found["results"])
    return "\n\n".join([*parts, tables] if tables else parts) + "\n"


def illustrated(
    suite: Suite, found: dict[str, Any], paper: Paper | None, marks: Mapping[str, str]
) -> tuple[str, dict[str, Plot]]:
    """The part with its plots under the tables they belong to, and the plots by their files.

    `marks` gives what a heading that other parts have as well is called here.
    """
    added: dict[str, list[str]] = {}
    plots: dict[str, Plot] = {}

    def show(heading: str, name: str, plot: Plot) -> None:
        plots[name] = plot
        added.setdefault(heading, []).append(f"![{plot.title}]({PLOTS}/{name})")

    for heading, plot in (suite.plots(found["results"]) if suite.plots else {}).items():
        if not plot.empty:
            show(heading, f"{suite.name}-{_file(heading)}.svg", plot)
    for figure in paper.figures if paper else ():
        heading = HEADINGS[suite.name][figure.experiment]
        drawn = plot_of(figure, found["results"])
        if drawn is not None:
            drawn = replace(drawn, title=f"{heading.partition(' (')[0]}, as figure {figure.number}")
            show(heading, f"{suite.name}-{_file(figure.number)}.svg", drawn)
            added[heading].append(sentence(figure, found["results"]))
    first, *parts = section(suite, found).split("\n### ")
    text = [first]
    for part in parts:
        heading, _, rest = part.partition("\n")
        body = "\n\n".join([rest.strip(), *added.get(heading, [])])
        text.append(f"### {marks.get(heading, heading)}\n\n{body}")
    return "\n\n".join(part.strip() for part in text), plots


def _file(text: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", text.lower()))[:60]


def anchor(heading: str) -> str:
    """What a link to a heading of a Markdown page is.

    >>> anchor("SASE's plans: `a` and b")
    'sases-plans-a-and-b'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _target(target: dict[str, Any]) -> str:
    return f"| {target['title']} | {figure_of(target)} | {wanted_of(target)} | {verdict_of(target)} |"


def figure_of(target: Mapping[str, Any]) -> str:
    """What was measured."""
    return _number(target["figure"])


def wanted_of(target: Mapping[str, Any]) -> str:
    """What it should be."""
    return f"{'≥' if target['at_least'] else '≤'} {_number(target['wanted'])} {target['unit']}"


def verdict_of(target: Mapping[str, Any]) -> str:
    """Whether it is reached."""
    return "reached" if target["met"] else f"**missed by {target['off']:.2f} ×**"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}".removesuffix(".00")
