"""What was found beside what was planted: the summary at the end of the demo."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nestream.hospital.bundled import is_rule, rule_files
from nestream.hospital.job import Job

Match = tuple[str, tuple[int, ...]]
"""The name of a rule, and the numbers of the events of a match."""


@dataclass(frozen=True)
class Score:
    """The matches of one rule: those that were planted and found, missed, or found and not planted."""

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
    """The score of each rule, by what is in the folder."""
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
    """What the stream has written of the rules; what other queries make of events is no violation."""
    return Counter(
        (match["query"], tuple(entry["event"]["event"] for entry in match["events"]))
        for match in matches(job)
        if match["events"]
    )


def matches(job: Job) -> Iterator[dict[str, Any]]:
    """All that the stream has written."""
    for file in committed_files(job.matches):
        yield from _lines(file)


def committed_files(folder: Path) -> list[Path]:
    """The files that count in a folder of Spark's file sink: a failed micro-batch may have left others.

    Its log has a file of lines for each micro-batch, after a line with a version; every tenth is compact and
    holds those before it too.
    """
    log = folder / "_spark_metadata"
    if not log.is_dir():
        return []
    batches = sorted(
        (int(path.name.split(".")[0]), path)
        for path in log.iterdir()
        if path.name.split(".")[0].isdigit() and path.suffix in ("", ".compact")
    )
    whole = max((number for number, path in batches if path.suffix == ".compact"), default=-1)
    found: dict[str, None] = {}
    for number, path in batches:
        if number > whole or (number == whole and path.suffix == ".compact"):
            for line in path.read_text(encoding="utf-8").splitlines()[1:]:
                entry = json.loads(line)
                name = Path(entry["path"]).name
                if entry["action"] == "add":
                    found[name] = None
                else:
                    found.pop(name, None)
    return [folder / name for name in found]


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _count(matches: Counter[Match], rule: str) -> int:
    return sum(times for (name, _), times in matches.items() if name == rule)
