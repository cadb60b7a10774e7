"""The folder of a job as the pipeline describes it in job.json: where its parts are, its rules, its floor."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nestream
from nestream.model.lengths import seconds_of

SEVERITIES = ("high", "medium", "low")
_NOTE = re.compile(r"^\s*(?://|#|/\*)\s*(title|severity)\s*:\s*(.*?)\s*(?:\*/)?\s*$", re.IGNORECASE)
_LARGEST = 1 << 20
"""The most bytes that are read of job.json, floor.json or a rule."""
_ROOM = '{"name": "OR-1", "kind": "operating", "x": 0, "y": 0, "w": 10, "h": 8}'


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
    into: str | None = None
    """The type of the composite events that it makes; its matches are then no violations."""

    def json(self) -> dict[str, Any]:
        """The rule for the browser."""
        return {
            "name": self.name,
            "text": self.text,
            "title": self.title,
            "severity": self.severity,
            "problem": self.problem,
            "into": self.into,
        }


@dataclass(frozen=True)
class Job:
    """A running pipeline, as its folder tells."""

    folder: Path
    name: str
    time: str = "ts"
    type: str = "type"
    trigger: float = 1.0
    watermark: str = "0 seconds"
    lateness: float = 0.0
    """The watermark in seconds."""
    events: Path | None = None
    matches: Path | None = None
    late: Path | None = None
    progress: Path | None = None
    rules: Path | None = None
    floor: dict[str, Any] | None = None

    @classmethod
    def read(cls, folder: Path) -> Job:
        """The job of a folder (or of the job.json itself); raises `JobError`."""
        place = folder.parent if folder.name == "job.json" else folder
        described = _object(place / "job.json")
        watermark = str(described.get("watermark", "0 seconds"))
        floor = place / str(described.get("floor", "floor.json"))
        return cls(
            place,
            str(described.get("name", place.name)),
            str(described.get("time", "ts")),
            str(described.get("type", "type")),
            _seconds(described.get("trigger", 1.0), "trigger", "1.0, a number of seconds, or `500 ms`"),
            watermark,
            _seconds(watermark, "watermark", "`10 seconds`"),
            **{name: _path(place, described, name) for name in ("events", "matches", "late", "progress")},
            rules=_path(place, described, "rules"),
            floor=_floor(_object(floor)) if floor.is_file() else None,
        )

    def read_rules(self) -> dict[str, Rule]:
        """The rules by name, read anew; a rule that is no query keeps its place with its problem."""
        if self.rules is None or not self.rules.is_dir():
            return {}
        return {path.stem: _rule(path) for path in sorted(self.rules.glob("*.neel"))}


def _rule(path: Path) -> Rule:
    with path.open("rb") as file:
        text = file.read(_LARGEST).decode(errors="replace")
        if not file.read(1):
            return rule_of(path.stem, text)
    problem = f"{path.name} is larger than {_LARGEST >> 20} MB and is not read; the first lines are shown"
    return Rule(path.stem, text[:1000], path.stem, "medium", problem)


def rule_of(name: str, text: str) -> Rule:
    """A rule with the title and the severity that its first comment lines give it."""
    notes: dict[str, str] = {}
    for line in text.splitlines()[:10]:
        found = _NOTE.match(line)
        if found:
            notes[found[1].lower()] = found[2]
    severity = notes.get("severity", "").lower()
    problem = into = None
    try:
        into = nestream.query(text).plan.output.into
    except nestream.QueryError as error:
        problem = str(error)
    return Rule(
        name,
        text,
        notes.get("title") or name,
        severity if severity in SEVERITIES else "medium",
        problem=problem,
        into=into,
    )


def _seconds(given: Any, name: str, example: str) -> float:
    try:
        return seconds_of(given, name)
    except (TypeError, ValueError) as wrong:
        problem = str(wrong).partition("\n")[0]
        raise JobError(f"job.json: {problem}\n  hint: write {example}") from None


def _path(place: Path, described: dict[str, Any], name: str) -> Path | None:
    given = described.get(name)
    return None if given is None else place / str(given)


def _object(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            read = file.read(_LARGEST + 1)
        if len(read) > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST >> 20} MB")
        found = json.loads(read)
    except FileNotFoundError:
        raise JobError(
            f"there is no {path.name} in {path.parent}\n  hint: pass the folder of a job;"
            " `nestream demo hospital` makes one"
        ) from None
    except (OSError, ValueError, RecursionError) as problem:
        raise JobError(f"{path} cannot be read: {problem}") from None
    if not isinstance(found, dict):
        raise JobError(f"{path} is not a JSON object\n  hint: begin it with {{ and end it with }}")
    return found


def _floor(described: dict[str, Any]) -> dict[str, Any]:
    """The floor plan with only what is drawn, and only as numbers and texts."""
    given = described.get("rooms", [])
    if not isinstance(given, list) or not all(isinstance(room, dict) for room in given):
        raise JobError(f'floor.json: rooms is not a list of objects\n  hint: write "rooms": [{_ROOM}]')
    rooms = [
        {
            "name": str(room.get("name", "")),
            "kind": str(room.get("kind", "hall")),
            **{side: _number(room, side) for side in ("x", "y", "w", "h")},
        }
        for room in given[:500]
    ]
    return {
        "title": str(described.get("title", "")),
        "width": _number(described, "width"),
        "height": _number(described, "height"),
        "rooms": rooms,
    }


def _number(described: dict[str, Any], name: str) -> float:
    value = _finite(described.get(name))
    if value is None:
        shown = json.dumps(described.get(name))[:80]
        raise JobError(
            f"floor.json: {name} of {described.get('name', 'the floor')} is not a number: {shown}\n"
            f"  hint: a room is {_ROOM}, and the floor has a width and a height"
        )
    return value


def _finite(value: Any) -> float | None:
    """The number as one that can be drawn and waited for, None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer beyond all floats
        return None
