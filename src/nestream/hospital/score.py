"""Compares what was found with what was planted: the summary at the end of the demo."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nestream.hospital.bundled import is_rule, rule_files
from nestream.hospital.job import Job

Match = tuple[str, tuple[int, ...]]
"""The name of a rule, and the numbers of the events of a match."""


@dataclass(frozen=True)
class Score:
    """The matches of one rule: planted and found, missed, or found but not planted."""

    rule: str
    found: int
    missed: int
    false: int

    @property
    def precision(self) -> float:
        """The fraction of what was found that was planted."""
        return self.found / (self.found + self.false) if self.found + self.false else 1.0

    @property
    def recall(self) -> float:
        """The fraction of what was planted that was found."""
        return self.found / (self.found + self.missed) if self.found + self.missed else 1.0


def scores(job: Job) -> list[Score]:
    """The score of each rule, from the folder."""
    planted, matched = planted_matches(job), found_matches(job)
    written = {name.removesuffix(".neel") for name, text in rule_files(job.rules).items() if is_rule(text)}
    rules = sorted(written | {name for name, _ in planted + matched})
    return [
        Score(
            rule,
            found=_count(planted & matched, rule),
            missed=_count(planted - matched, rule),
            false=_count(matched - planted, rule),
        )
        for rule in rules
    ]


def planted_matches(job: Job) -> Counter[Match]:
    """The ground truth."""
    if not job.truth.exists():
        return Counter()
    lines = job.truth.read_text(encoding="utf-8").splitlines()
    return Counter((one["query"], tuple(one["events"])) for one in map(json.loads, lines))


def found_matches(job: Job) -> Counter[Match]:
    """The matches of rules that the stream has written; those that only make events do not count."""
    return Counter(
        (match["query"], tuple(entry["event"]["event"] for entry in match["events"]))
        for match in matches(job)
        if match["events"]
    )


def matches(job: Job) -> Iterator[dict[str, Any]]:
    """All matches that the stream has written."""
    for file in sorted(job.matches.glob("part-*.json")):
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)


def _count(matches: Counter[Match], rule: str) -> int:
    return sum(times for (name, _), times in matches.items() if name == rule)
