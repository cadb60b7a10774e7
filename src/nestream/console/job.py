"""The folder of a job as the pipeline describes it in job.json: where its parts are, its rules, its floor."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import nestream

SEVERITIES = ("high", "medium", "low")
_NOTE = re.compile(r"^\s*(?://|#|/\*)\s*(title|severity)\s*:\s*(.*?)\s*(?:\*/)?\s*$", re.IGNORECASE)
_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(millisecond|second|minute|hour|day)s?\s*$", re.IGNORECASE)
_SECONDS = {"millisecond": 0.001, "second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_LARGEST = 1 << 20
"""The most bytes that are read of job.json, floor.json or a rule."""


class JobError(ValueError):
    """A folder that is not a job, and what is missing."""


@dataclass(frozen=True)
class Rule:
    """One query of the job, with what its first lines say of it."""

    name: str
    text: str
    title: str
    severity: str
    problem: str | None = None

    def json(self) -> dict[str, Any]:
        """The rule for the browser."""
        return {
            "name": self.name,
            "text": self.text,
            "title": self.title,
            "severity": self.severity,
            "problem": self.problem,
        }


@dataclass(frozen=True)
class Job:
    """A running pipeline, as its folder tells."""

    folder: Path
    name: str
    time: str = "ts"
    type: str = "type"
    trigger: float = 1.0
    lateness: timedelta = timedelta()
    events: Path | None = None
    matches: Path | None = None
    late: Path | None = None
    progress: Path | None = None
    rules: Path | None = None
    floor: dict[str, Any] | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Job:
        """The job of a folder (or of the job.json itself); raises `JobError`."""
        place = folder.parent if folder.name == "job.json" else folder
        described = _object(place / "job.json")
        watermark = str(described.get("watermark", "0 seconds"))
        trigger = described.get("trigger", 1.0)
        if not isinstance(trigger, int | float):
            raise JobError(f"job.json: the trigger {trigger!r} is not a number of seconds")
        floor = place / str(described.get("floor", "floor.json"))
        return cls(
            place,
            str(described.get("name", place.name)),
            str(described.get("time", "ts")),
            str(described.get("type", "type")),
            float(trigger),
            duration(watermark),
            **{name: _path(place, described, name) for name in ("events", "matches", "late", "progress")},
            rules=_path(place, described, "rules"),
            floor=_floor(_object(floor)) if floor.is_file() else None,
            settings={"watermark": watermark},
        )

    def read_rules(self) -> dict[str, Rule]:
        """The rules by name, read anew; a rule that is no query keeps its place with its problem."""
        if self.rules is None or not self.rules.is_dir():
            return {}
        return {
            path.stem: rule_of(path.stem, path.read_text(encoding="utf-8", errors="replace")[:_LARGEST])
            for path in sorted(self.rules.glob("*.neel"))
        }


def rule_of(name: str, text: str) -> Rule:
    """A rule with the title and the severity that its first comment lines give it."""
    notes: dict[str, str] = {}
    for line in text.splitlines()[:10]:
        found = _NOTE.match(line)
        if found:
            notes[found[1].lower()] = found[2]
    severity = notes.get("severity", "").lower()
    problem = None
    try:
        nestream.query(text)
    except nestream.QueryError as error:
        problem = str(error)
    return Rule(
        name,
        text,
        notes.get("title") or name,
        severity if severity in SEVERITIES else "medium",
        problem=problem,
    )


def duration(text: str) -> timedelta:
    """Spark's way to write a duration, as far as a watermark needs it."""
    found = _DURATION.match(text)
    if found is None:
        raise JobError(f"job.json: the watermark {text!r} is not a duration\n  hint: write `10 seconds`")
    return timedelta(seconds=float(found[1]) * _SECONDS[found[2].lower()])


def _path(place: Path, described: dict[str, Any], name: str) -> Path | None:
    given = described.get(name)
    return None if given is None else place / str(given)


def _object(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            found = json.loads(file.read(_LARGEST))
    except FileNotFoundError:
        raise JobError(
            f"there is no {path.name} in {path.parent}\n  hint: a job is a folder that a pipeline writes;"
            " `nestream demo hospital` makes one"
        ) from None
    except (OSError, ValueError) as problem:
        raise JobError(f"{path} cannot be read: {problem}") from None
    if not isinstance(found, dict):
        raise JobError(f"{path} holds no JSON object")
    return found


def _floor(described: dict[str, Any]) -> dict[str, Any]:
    """The floor plan with only what is drawn, and only as numbers and texts."""
    rooms = [
        {
            "name": str(room.get("name", "")),
            "kind": str(room.get("kind", "hall")),
            **{side: _number(room, side) for side in ("x", "y", "w", "h")},
        }
        for room in described.get("rooms", [])[:500]
    ]
    return {
        "title": str(described.get("title", "")),
        "width": _number(described, "width"),
        "height": _number(described, "height"),
        "rooms": rooms,
    }


def _number(described: dict[str, Any], name: str) -> float:
    value = described.get(name)
    if not isinstance(value, int | float):
        raise JobError(
            f"floor.json: {name} of {described.get('name', 'the floor')} is not a number: {value!r}"
        )
    return float(value)
