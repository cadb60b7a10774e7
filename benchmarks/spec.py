"""What a benchmark is, as plain data: events, a query, how to measure it, and what should come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.parts import Part

Result = Mapping[str, Any]
Results = Mapping[str, Result]
"""Results by the name of their benchmark."""
Progress = Callable[[str, int, int], None]


class BenchError(Exception):
    """A measurement that failed, or programs that found different matches."""


@dataclass(frozen=True)
class Data:
    """A generated data set: `share` of the events of the run, so that a quick run shrinks all of them."""

    generator: str
    share: float = 1.0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def events(self, whole: int) -> int:
        """The number of events in a run with `whole` events."""
        return max(1, round(whole * self.share))


@dataclass(frozen=True)
class Peer:
    """Another program: how it formulates the query, and how many threads it gets."""

    name: str
    formulation: str = ""
    threads: int = 2

    def __str__(self) -> str:
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}"
        return f"{self.name} ({', '.join(filter(None, (self.formulation, threads)))})"


@dataclass(frozen=True)
class Benchmark:
    """One query over one data set.

    `measure` names a function of `benchmarks.measures`. Benchmarks with the same `together` share a process,
    and take turns where the measure says so. `shape` names the query for the peers and for the independent
    count. The window is in `unit`, or in the unit of the time column.
    """

    name: str
    measure: str
    data: Data
    query: str = ""
    window: int = 0
    unit: str = ""
    shown: str = ""
    """What comes after the window: RETURN and KEEP."""
    shape: str = ""
    together: str = ""
    peers: tuple[Peer, ...] = ()
    ways: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What `match` is called with, by the name of the way."""
    task: Mapping[str, Any] = field(default_factory=dict)
    """More instructions for the worker."""
    told: Mapping[str, Any] = field(default_factory=dict)
    """What is saved with the result: the values that tables and plots show."""

    @property
    def text(self) -> str:
        """The query with its window and what it returns."""
        words = (self.query, "WITHIN", str(self.window), self.unit, self.shown)
        return " ".join(filter(None, words)) if self.query else ""


@dataclass(frozen=True)
class Target:
    """What a figure should be: at most or at least a value."""

    title: str
    wanted: float
    unit: str
    figure: Callable[[Results], float | None]
    at_least: bool = False
    why: str = ""
    """Why it is missed, if it is."""

    def judged(self, results: Results) -> Judged | None:
        """The figure next to its target; None without a result."""
        try:
            value = self.figure(results)
        except (KeyError, ZeroDivisionError):
            return None
        return None if value is None else Judged(self, float(value))


@dataclass(frozen=True)
class Judged:
    """A target with its figure."""

    target: Target
    figure: float

    @property
    def off(self) -> float:
        """The factor by which the target is missed; up to 1 it is reached."""
        high, low = self.figure, self.target.wanted
        if self.target.at_least:
            high, low = low, high
        return high / low if low else float("inf")

    @property
    def cells(self) -> tuple[str, str, str]:
        """The figure, the target and the verdict for a table."""
        sign = "≥" if self.target.at_least else "≤"
        verdict = "reached" if self.off <= 1 else f"**missed by {self.off:.2f} ×**"
        return number(self.figure), f"{sign} {number(self.target.wanted)} {self.target.unit}", verdict


def number(value: float) -> str:
    """A number for a table.

    >>> number(1234.5), number(0.25), number(3.0)
    ('1,234', '0.25', '3')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}".removesuffix(".00")


@dataclass(frozen=True)
class Run:
    """How to run a suite: the size of the data, the repeats, which benchmarks, and the limits."""

    events: int
    repeats: int = 5
    only: tuple[str, ...] = ()
    folder: Path | None = None
    limit: float = 60.0
    """Seconds that one program may take for one turn."""


@dataclass(frozen=True)
class Suite:
    """Benchmarks that are run and reported together."""

    name: str
    title: str
    """The heading of its part of the page."""
    about: str
    """What it measures, in one sentence."""
    events: int
    quick: int
    """The events of a quick run."""
    benchmarks: Sequence[Benchmark]
    targets: Sequence[Target]
    parts: Callable[[Results], list[Part]]
    """The results as tables and plots."""
    text: str = ""
    """What a reader of its part of the page should know."""
    conditions: str = ""
    """What runs side by side, and what is checked."""
    repeats: int = 3
    limit: float = 300.0

    def judged(self, results: Results) -> list[Judged]:
        """The targets that there are results for."""
        return [found for target in self.targets if (found := target.judged(results)) is not None]

    def run(self, quick: bool, **given: Any) -> Run:
        """How to run it: as declared, but for what is given."""
        usual = {
            "events": self.quick if quick else self.events,
            "repeats": 1 if quick else self.repeats,
            "limit": self.limit,
        }
        return Run(**{**usual, **{key: value for key, value in given.items() if value is not None}})

    def chosen(self, only: Sequence[str]) -> list[Benchmark]:
        """The benchmarks with these names, or below them (`memory` for `memory/flat`)."""
        names = [benchmark.name for benchmark in self.benchmarks]
        for wanted in only:
            if not any(_within(name, wanted) for name in names):
                raise BenchError(f"{self.name} has no benchmark {wanted!r}. It has {', '.join(names)}.")
        return [b for b in self.benchmarks if not only or any(_within(b.name, wanted) for wanted in only)]


def _within(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}/")
