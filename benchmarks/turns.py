"""Contestants take turns, so that whatever else the machine does affects all of them alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.process import Program
from benchmarks.spec import BenchError, Result

ENOUGH = 10.0
"""A contestant whose turns have taken this many seconds takes no more."""


@dataclass
class Contestant:
    """A program, its request in each turn, and its answers."""

    name: str
    program: Program
    task: Mapping[str, Any] = field(default_factory=dict)
    samples: dict[str, list[float]] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    status: str = ""

    @property
    def over(self) -> bool:
        """Whether it takes no more turns."""
        return bool(self.status) or sum(self.samples.get("", ())) > ENOUGH

    def turn(self, measured: bool) -> None:
        """Run once. The first turn is not measured: it pays for what a process does once."""
        said = self.program.ask(self.task) if self.program.ready else None
        if said is None:
            said = {"status": self.program.status}
        self.status = said.pop("status", "")
        for key in [key for key in said if key.endswith("seconds")]:
            seconds = said.pop(key)
            if measured or seconds > ENOUGH:
                self.samples.setdefault(key.removesuffix("seconds"), []).append(seconds)
        self.found |= said
        if not self.status:
            self.found["memory"] = max(self.program.peak, self.found.get("memory", 0))

    def result(self) -> dict[str, Any]:
        """What it took, or why it has not finished."""
        if not self.samples:
            return {"status": self.status}
        summed = [summed_up(samples, key) for key, samples in self.samples.items()]
        return {"status": "done", **{k: v for one in summed for k, v in one.items()}, **self.found}


def in_turns(contestants: Sequence[Contestant], repeats: int) -> dict[str, dict[str, Any]]:
    """The results by name; who begins changes from turn to turn, since each leaves its caches to the next."""
    for turn in range(repeats + 1):
        first = turn % len(contestants)
        for one in (*contestants[first:], *contestants[:first]):
            if not one.over:
                one.turn(measured=turn > 0)
    return {one.name: one.result() for one in contestants}


def summed_up(samples: Sequence[float], key: str = "") -> dict[str, Any]:
    """The samples with the least of them, and how much more the median is."""
    ordered = sorted(samples)
    spread = ordered[len(ordered) // 2] / ordered[0] - 1
    return {f"{key}samples": list(samples), f"{key}best": ordered[0], f"{key}spread": spread}


def ratios(slow: Sequence[float], fast: Sequence[float]) -> dict[str, float]:
    """How many times as long one takes as the other in the same turn: the median, the least and the greatest.

    If one has taken fewer turns, its last time is used for the missing ones.
    """
    turns = max(len(slow), len(fast))
    longer, shorter = ([*times, *[times[-1]] * (turns - len(times))] for times in (slow, fast))
    found = [a / b for a, b in zip(longer, shorter, strict=True)]
    return {"middle": median(found), "least": min(found), "greatest": max(found)}


def agreed(name: str, found: Mapping[str, Result]) -> dict[str, int]:
    """The matches of all that have finished, who must have found the same ones."""
    keys = ("matches", "checksum")
    sums = {
        who: tuple(result[key] for key in keys if key in result)
        for who, result in found.items()
        if "matches" in result
    }
    longest = max(sums.values(), key=len, default=())
    for who, said in sums.items():
        if said != longest[: len(said)]:
            raise BenchError(f"{name}: different matches: {sums} ({who})")
    return dict(zip(keys, longest, strict=False))
