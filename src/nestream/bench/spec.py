"""What a benchmark is, as plain data: events, a query, what to measure, and the peers to run beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nestream.bench.plots import Plot

Figures = Mapping[str, Mapping[str, Any]]
"""Result by the name of its benchmark."""


@dataclass(frozen=True)
class Data:
    """A generated data set; `share` of the events of the run, so that a quick run shrinks them all."""

    generator: str
    share: float = 1.0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def events(self, whole: int) -> int:
        """How many events of a run with so many."""
        return max(1, round(whole * self.share))


@dataclass(frozen=True)
class Peer:
    """A program that runs the same query: a script under `benchmarks/peers/`, and how it puts the query."""

    name: str
    formulation: str

    @property
    def script(self) -> str:
        """The name of its file."""
        return f"{self.name.lower()}_peer.py"


@dataclass(frozen=True)
class Benchmark:
    """One query over one data set, measured in one way.

    Benchmarks with the same `together` run in one process in turns, so that their ratio is not changed by
    what else the machine does. `shape` is the name of the query for the peers and the independent count. The
    window is in the unit of the time column, or in `unit`.
    """

    name: str
    title: str
    measure: str
    data: Data
    query: str = ""
    window: int = 0
    shape: str = ""
    together: str = ""
    peers: tuple[Peer, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    unit: str = ""

    @property
    def text(self) -> str:
        """The query with its window."""
        return f"{self.query} WITHIN {self.window} {self.unit}".rstrip() if self.query else ""


@dataclass(frozen=True)
class Target:
    """What a figure should be: at most or at least a value."""

    title: str
    wanted: float
    unit: str
    figure: Callable[[Figures], float | None]
    at_least: bool = False
    why: str = ""
    """Why it is missed where it is."""

    def judged(self, figures: Figures) -> dict[str, Any] | None:
        """The figure, whether it is reached, and how far off it is; None without a result."""
        try:
            value = self.figure(figures)
        except (KeyError, ZeroDivisionError):
            return None
        if value is None:
            return None
        off = self.wanted / value if self.at_least and value else value / self.wanted
        return {
            "title": self.title,
            "figure": value,
            "wanted": self.wanted,
            "at_least": self.at_least,
            "unit": self.unit,
            "met": off <= 1,
            "off": off,
        }


@dataclass(frozen=True)
class Suite:
    """Benchmarks that are run and reported together."""

    name: str
    title: str
    events: int
    benchmarks: tuple[Benchmark, ...]
    targets: tuple[Target, ...]
    tables: Callable[[Figures], str]
    """The results as Markdown."""
    about: str = ""
    """What runs beside each other, where that is not other programs."""
    heading: str = ""
    """The title of its part of the page."""
    text: str = ""
    """What a reader of its part of the page should know; figures of a run stand in the tables alone."""
    plots: Callable[[Figures], Mapping[str, Plot]] | None = None
    """Plots, each by the heading of the table that it stands under."""
