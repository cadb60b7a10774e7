"""The page docs/performance.md: made of the results and of what the suites declare, and of nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.experiments import papers
from benchmarks.parts import Part, anchor, rows
from benchmarks.plots import Plot, svg
from benchmarks.spec import Judged, Suite

PAGE = Path("docs", "performance.md")
PLOTS = "plots"
Kept = Mapping[str, Mapping[str, Any]]
"""The results of each suite."""
CLAIMS = (
    ("most nested negations cost about as much as a flat query", "engine", r"against the flat query$"),
    ("returns them in batches within a memory budget", "engine", r"^20 matches an event"),
    ("Hundreds of rules run over one pass of the same events", "queries", r"rules together to one alone"),
)
"""What README claims: its words, the suite, and a pattern of the titles of the targets that decide it."""
SPEAKS_OF_SPEED = re.compile(
    r"\b(fast(er|est)?|slower|quick(er|ly|est)|times (as|more|less)|million|a second|milliseconds|"
    r"memory|[MG]B|costs?)\b",
    re.IGNORECASE,
)
"""The words of a claim; a sentence of README that has them is one of the claims above."""
INTRODUCTION = """\
# Performance

`scripts/bench report` runs every benchmark and writes this page; nothing in it is typed by hand. The
results are in `benchmarks/results`, and `scripts/bench report --from-results` writes the page from them
without measuring. `benchmarks/README.md` has the commands.

- Ratios say more than seconds. Programs that are compared take turns, so that other load on the machine
  affects all of them. Each time is the best of several.
- Matches are checked. All ways to run a query must find the same ones, and prefix sums independently give
  the number of matches of three-step queries.
- A target is a number to reach, set by nestream itself or reported by a paper. Missed targets stay in the
  tables."""


@dataclass(frozen=True)
class Page:
    """The page and its plots."""

    text: str
    plots: tuple[Plot, ...]

    def write(self, root: Path) -> Path:
        """Write them below a folder; plots that are no longer shown are removed."""
        folder = root / PAGE.parent / PLOTS
        folder.mkdir(parents=True, exist_ok=True)
        names = {plot.file for plot in self.plots}
        for old in folder.glob("*.svg"):
            if old.name not in names:
                old.unlink()
        for plot in self.plots:
            (folder / plot.file).write_text(svg(plot), encoding="utf-8")
        (root / PAGE).write_text(self.text, encoding="utf-8")
        return root / PAGE


def page(suites: Mapping[str, Suite], kept: Kept) -> Page:
    """The page of these results."""
    texts, plots = [], []
    for name, suite in suites.items():
        found = kept.get(name, {"failed": "it was not run"})
        if "failed" in found:
            texts.append(f"## {suite.title}\n\nNot measured: {found['failed']}.")
            continue
        parts = suite.parts(found["results"])
        plots += [block for part in parts for block in part.blocks if isinstance(block, Plot)]
        texts.append(
            "\n\n".join(filter(None, (f"## {suite.title}", suite.text.strip(), section(suite, found, PLOTS))))
        )
    judged = {name: suite.judged(kept.get(name, {}).get("results", {})) for name, suite in suites.items()}
    top = (
        INTRODUCTION,
        _claims(suites, judged),
        _summary(suites, kept, judged),
        _behind(suites, judged),
        _papers(suites),
    )
    return Page("\n\n".join((*top, *texts)) + "\n", tuple(plots))


def section(suite: Suite, found: Mapping[str, Any], folder: str = "") -> str:
    """The results of a suite: conditions, targets, then every table; plots if there is a folder."""
    machine = found["machine"]
    known = ("nestream", "pyarrow", "numpy", "polars", "duckdb")
    versions = ", ".join(f"{name} {machine[name]}" for name in known if name in machine)
    repeats = f"the best of {found['repeats']} repeats, in parentheses how far the median is above it"
    repeats = repeats if found["repeats"] > 1 else "one run"
    about = (
        f"Measured {found['date']} by `scripts/bench {suite.name}` in {found['seconds']:,.0f} s: "
        f"{machine['cores']} cores, {machine['system']}, Python {machine['python']}, {versions}. "
        f"{found['events']:,} events unless a table says otherwise; {repeats}. The highest load was "
        f"{machine['highest load']}. {suite.conditions}"
    )
    gone = gone_ways(suite, found.get("results", {}))
    if gone:
        about += (
            f"\n\n**These results are older than the suite**: they were measured when it also ran {gone}. "
            "Measure again before you rely on them."
        )
    targets = list(_targets(suite.judged(found["results"])))
    return "\n\n".join(
        [about, *(part.markdown(folder) for part in (*targets, *suite.parts(found["results"])))]
    )


def gone_ways(suite: Suite, results: Mapping[str, Any]) -> str:
    """The ways to run queries that the results have and the suite no longer has."""
    now = {one.name: one.ways for one in suite.benchmarks}
    gone = {way for name in results for way in results[name].get("ways", ()) if way not in now.get(name, ())}
    return ", ".join(f"`{way}`" for way in sorted(gone))


def _targets(judged: list[Judged]) -> Iterator[Part]:
    missed = sum(one.off > 1 for one in judged)
    if judged:
        heading = f"Targets: {len(judged) - missed} reached, {missed} missed"
        cells = [(one.target.title, *one.cells) for one in judged]
        yield Part(heading, (rows(("", "figure", "target", ""), cells),))


def _link(suites: Mapping[str, Suite], name: str, text: str = "") -> str:
    title = suites[name].title if name in suites else name
    return f"[{text or title}](#{anchor(title)})"


def _claims(suites: Mapping[str, Suite], judged: Mapping[str, list[Judged]]) -> str:
    cells = []
    for words, suite, pattern in CLAIMS:
        decided = [one for one in judged.get(suite, ()) if re.search(pattern, one.target.title)]
        cells += [(words, _link(suites, suite, one.target.title), *one.cells) for one in decided]
        cells += [] if decided else [(words, _link(suites, suite), "not measured", "", "")]
    table = rows(("README", "", "figure", "target", ""), cells)
    return f"## What is claimed, and what was found\n\n{table}"


def _summary(suites: Mapping[str, Suite], kept: Kept, judged: Mapping[str, list[Judged]]) -> str:
    cells = []
    for name in suites:
        met = sum(one.off <= 1 for one in judged[name])
        found = kept.get(name, {})
        took = f"{found['seconds']:,.0f} s" if "seconds" in found else "-"
        numbers = (str(number) for number in (len(judged[name]), met, len(judged[name]) - met))
        date = found.get("date", "not run")
        if gone_ways(suites[name], found.get("results", {})):
            date += ", before the suite changed"
        cells.append((_link(suites, name), *numbers, date, took))
    table = rows(("suite", "targets", "reached", "missed", "measured", "took"), cells)
    minutes = sum(found.get("seconds", 0) for found in kept.values()) / 60
    return f"{table}\n\nTogether {minutes:,.0f} minutes."


def _behind(suites: Mapping[str, Suite], judged: Mapping[str, list[Judged]]) -> str:
    """The targets that are missed, those with one reason in one line."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for name in suites:
        for one in judged[name]:
            if one.off > 1:
                groups.setdefault((name, one.target.why), []).append(one)
    cells = []
    for (name, why), missed in groups.items():
        worst = max(missed, key=lambda one: one.off)
        furthest = f"{worst.target.title}: {worst.cells[0]}, wanted {worst.cells[1]}"
        cells.append((_link(suites, name), str(len(missed)), furthest, why or "not known"))
    table = rows(("", "missed", "the furthest", "why"), cells) if cells else "No target is missed."
    return f"## Where nestream is behind, and why\n\n{table}"


def _papers(suites: Mapping[str, Suite]) -> str:
    """Which figures of the papers are rebuilt, and which are not."""
    cells = []
    for name, paper in papers().items():
        figures = [figure.number for one in paper.experiments for figure in paper.figures(one)]
        rebuilt = _link(suites, name, ", ".join(figures)) if figures else "none"
        missing = "<br>".join(f"{one['figure']}: {one['why']}" for one in paper.declared.get("missing", ()))
        cells.append((paper.title, rebuilt, missing))
    table = rows(("paper", "figures rebuilt", "not rebuilt"), cells)
    return f"## The papers\n\n{table}"
