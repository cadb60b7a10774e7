"""The page docs/performance.md, made of the results of the suites and of what they declare alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nestream.bench.claims import CLAIMS
from nestream.bench.figures import Paper, papers
from nestream.bench.plots import svg
from nestream.bench.report import PLOTS, anchor, figure_of, illustrated, verdict_of, wanted_of
from nestream.bench.spec import Suite

PAGE = Path("docs", "performance.md")
RESULTS = Path("benchmarks", "results")
INTRODUCTION = """\
# Performance

`nestream bench report` measures all of this and writes this page from what it found; nothing in it is typed
by hand. The results are in [benchmarks/results](../benchmarks/results), and `nestream bench report
--from-results` makes the page of them again. `nestream bench NAME` runs one part, `--quick` a small run
that writes nothing here, `nestream bench --list` shows what there is.

- Ratios say more than seconds: what is compared runs in turns, in one process or each in one of its own, so
  that what else the machine does hits all of them. Each time is the best of several.
- What is found is checked. Ways to run a query that are compared must find the same matches. The number of
  matches of three-step queries is known from prefix sums, without matching anything.
- A target says what should be reached, one of our own or what a paper reports. Those that are missed stay
  in the tables."""


@dataclass(frozen=True)
class Written:
    """The page and its plots."""

    text: str
    plots: Mapping[str, str] = field(default_factory=dict)
    """The text of each file."""

    def write(self, root: Path) -> Path:
        """Put them in their places under a folder; plots that are no longer shown are removed."""
        page, folder = root / PAGE, root / PAGE.parent / PLOTS
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.svg"):
            if old.name not in self.plots:
                old.unlink()
        for name, text in self.plots.items():
            (folder / name).write_text(text, encoding="utf-8")
        page.write_text(self.text, encoding="utf-8")
        return page


def kept(folder: Path) -> dict[str, dict[str, Any]]:
    """The results that are kept in a folder, by suite."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        read = json.loads(path.read_text(encoding="utf-8"))
        found[read["suite"]] = read
    return found


def written(suites: Mapping[str, Suite], results: Mapping[str, dict[str, Any]]) -> Written:
    """The page of these results."""
    by_suite = {paper.suite: paper for paper in papers()}
    parts: list[str] = []
    files: dict[str, str] = {}
    seen: set[str] = set()
    for name, suite in suites.items():
        found = results.get(name)
        heading = suite.heading or suite.title
        if found is None or "failed" in found:
            why = found["failed"] if found else "it was not run"
            parts.append(f"## {heading}\n\nNot measured: {why}.")
            continue
        paper = by_suite.get(name)
        headings = [line[4:] for line in suite.tables(found["results"]).splitlines() if line[:4] == "### "]
        marks = {line: f"{line} ({name})" for line in headings if line in seen}
        seen.update(headings)
        text, plots = illustrated(suite, found, paper, marks)
        files |= {file: svg(plot) for file, plot in plots.items()}
        before = [part for part in (suite.text.strip(), _rebuilt(paper) if paper else "") if part]
        parts.append("\n\n".join([f"## {heading}", *before, text]))
    top = [INTRODUCTION, _summary(suites, results), _behind(suites, results), _papers(suites)]
    return Written("\n\n".join(part for part in (*top, *parts) if part) + "\n", files)


def _summary(suites: Mapping[str, Suite], results: Mapping[str, dict[str, Any]]) -> str:
    """What README claims, and how many targets each suite reaches."""
    lines = [
        "## What is claimed, and what was found",
        "",
        "| README | | figure | target | |",
        "| --- | --- | --- | --- | --- |",
    ]
    for claim in CLAIMS:
        for target in claim.lines(results):
            lines.append(
                f"| {claim.words} | [{target['title']}](#{_place(suites, claim.suite)}) | "
                f"{figure_of(target)} | {wanted_of(target)} | {verdict_of(target)} |"
            )
        if not claim.lines(results):
            lines.append(
                f"| {claim.words} | [{claim.suite}](#{_place(suites, claim.suite)}) | not measured | | |"
            )
    lines += [
        "",
        "| suite | targets | reached | missed | measured | took |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, suite in suites.items():
        found = results.get(name, {})
        targets = found.get("targets", [])
        met = sum(target["met"] for target in targets)
        took = f"{found['seconds']:,.0f} s" if "seconds" in found else "not recorded"
        lines.append(
            f"| [{suite.heading or suite.title}](#{_place(suites, name)}) | {len(targets)} | {met} | "
            f"{len(targets) - met} | {found.get('date', 'not run')} | {took} |"
        )
    known = [found["seconds"] for found in results.values() if "seconds" in found]
    whole = f"\n\nTogether {sum(known) / 60:,.0f} minutes." if len(known) == len(suites) else ""
    return "\n".join(lines) + whole


def _behind(suites: Mapping[str, Suite], results: Mapping[str, dict[str, Any]]) -> str:
    """The targets that are missed, those with one reason in one line."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for name, suite in suites.items():
        reasons = {target.title: target.why for target in suite.targets}
        for target in results.get(name, {}).get("targets", ()):
            if not target["met"]:
                groups.setdefault((name, reasons.get(target["title"], "")), []).append(target)
    if not groups:
        return "## Where nestream is behind, and why\n\nNo target is missed."
    lines = [
        "## Where nestream is behind, and why",
        "",
        "| | missed | the furthest | why |",
        "| --- | --- | --- | --- |",
    ]
    for (name, why), missed in groups.items():
        worst = max(missed, key=lambda target: float(target["off"]))
        link = f"[{suites[name].heading or suites[name].title}](#{_place(suites, name)})"
        lines.append(
            f"| {link} | {len(missed)} | {worst['title']}: {figure_of(worst)}, wanted {wanted_of(worst)} | "
            f"{why or 'not known'} |"
        )
    return "\n".join(lines)


def _place(suites: Mapping[str, Suite], name: str) -> str:
    suite = suites.get(name)
    return anchor(suite.heading or suite.title) if suite else name


def _papers(suites: Mapping[str, Suite]) -> str:
    """Which figures of the papers are rebuilt, and which are not."""
    lines = ["## The papers", "", "| paper | figures rebuilt | not rebuilt |", "| --- | --- | --- |"]
    for paper in papers():
        rebuilt = ", ".join(figure.number for figure in paper.figures) or "none"
        link = f"[{rebuilt}](#{_place(suites, paper.suite)})" if paper.suite in suites else rebuilt
        missing = "<br>".join(f"{one['figure']}: {one['why']}" for one in paper.missing)
        lines.append(f"| {paper.paper} | {link} | {missing} |")
    return "\n".join(lines)


def _rebuilt(paper: Paper) -> str:
    assumed = "\n".join(f"- {line}" for line in paper.assumed)
    intro = f"The experiments of *{paper.paper}*."
    return (
        f"{intro} {paper.about.strip()}\n\nWhat the text leaves open, and what is assumed here:\n\n{assumed}"
    )
