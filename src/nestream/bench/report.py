"""The results of a run as a part of a page, between two marks, so that nothing is typed by hand."""

from __future__ import annotations

from typing import Any

from nestream.bench.spec import Suite


def section(suite: Suite, found: dict[str, Any]) -> str:
    """The results as Markdown: how they came about, what is reached and what is not, then every table."""
    machine = found["machine"]
    versions = ", ".join(
        f"{name} {machine[name]}" for name in ("nestream", "pyarrow", "numpy", "polars", "duckdb")
    )
    peers = suite.about or (
        f"Peers: {found['threads of the peers']} threads each, {found['time limit of the peers']:.0f} s at "
        "most. Where several programs find the matches of a query, they find the same."
    )
    about = (
        f"Measured {found['date']} by `nestream bench {suite.name}` in one run: {machine['cores']} cores, "
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


def _target(target: dict[str, Any]) -> str:
    sign = "≥" if target["at_least"] else "≤"
    verdict = "reached" if target["met"] else f"**missed by {target['off']:.2f} ×**"
    figure, wanted = (_number(target[key]) for key in ("figure", "wanted"))
    return f"| {target['title']} | {figure} | {sign} {wanted} {target['unit']} | {verdict} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}".removesuffix(".00")


def replaced(page: str, name: str, text: str) -> str:
    """The page with the part between the marks of a suite replaced; added at the end where there is none.

    >>> print(replaced("# Speed", "engine", "fast"))
    # Speed
    <BLANKLINE>
    <!-- begin: nestream bench engine -->
    fast
    <!-- end: nestream bench engine -->
    <BLANKLINE>
    """
    begin, end = (f"<!-- {word}: nestream bench {name} -->" for word in ("begin", "end"))
    part = f"{begin}\n{text.rstrip()}\n{end}"
    if begin not in page or end not in page:
        return f"{page.rstrip()}\n\n{part}\n"
    before, rest = page.split(begin, 1)
    return before + part + rest.split(end, 1)[1]
