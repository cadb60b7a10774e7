"""What a page is made of: headings with tables, sentences and plots, and how results become cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.plots import Plot

Result = Mapping[str, Any]
Column = str | Callable[[Result], str]
"""A format string over the keys of a result, or a function that makes the cell."""
Columns = dict[str, Column]


@dataclass(frozen=True)
class Part:
    """A heading with its contents."""

    heading: str
    blocks: tuple[str | Plot, ...]

    def markdown(self, folder: str = "") -> str:
        """The part as Markdown; plots only where the folder with their files is named."""
        texts = [block for block in self.blocks if isinstance(block, str) or folder]
        shown = [
            text if isinstance(text, str) else f"![{text.title}]({folder}/{text.file})" for text in texts
        ]
        return "\n\n".join([f"### {self.heading}", *(text for text in shown if text)])


def rows(header: Iterable[str], cells: Iterable[Iterable[str]]) -> str:
    """A table of cells."""
    names = list(header)
    lines = [names, ["---"] * len(names), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def table(heading: str, columns: Columns, results: Iterable[Result], *below: str | Plot) -> list[Part]:
    """A part with a table, a row for each result, and the text below it; None without results."""
    cells = [
        [spec.format_map(result) if isinstance(spec, str) else spec(result) for spec in columns.values()]
        for result in results
    ]
    plots = [block for block in below if not isinstance(block, Plot) or not block.empty]
    return [Part(heading, (rows(columns, cells), *plots))] if cells else []


def below(results: Mapping[str, Result], prefix: str) -> list[Result]:
    """The results of the benchmarks below a name."""
    return [result for name, result in results.items() if name.startswith(f"{prefix}/")]


def time(result: Result, key: str = "", unit: float = 1.0) -> str:
    """The best time, and how much more the median took."""
    best = result.get(f"{key}best")
    if best is None:
        return str(result.get("status", "-"))
    shown = f"{best:.3f} s" if unit == 1 else f"{best * 1e3:,.1f} ms"
    return f"{shown} (+{result[f'{key}spread']:.0%})"


def count_time(result: Result) -> str:
    """The time of `count`."""
    return time(result, "count_")


def speed(result: Result) -> str:
    """Million events a second."""
    return f"{result['events'] / result['best'] / 1e6:.1f}"


def match_speed(result: Result) -> str:
    """Million matches a second."""
    return f"{result['matches'] / result['best'] / 1e6:.2f}"


def megabytes(value: float) -> str:
    """Bytes for a table."""
    return f"{value / 1e6:,.0f} MB"


def points(results: Sequence[Result], x: str, y: str = "best") -> list[tuple[float, float]]:
    """Two keys of each result."""
    return [(float(result[x]), float(result[y])) for result in results]


def anchor(heading: str) -> str:
    """The link to a heading of a Markdown page.

    >>> anchor("SASE's plans: `a` and b")
    'sases-plans-a-and-b'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
