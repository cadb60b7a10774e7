"""A job as the console opens it: its description, its rules with titles and severities, its plan."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import nestream
from nestream.job.description import (
    LARGEST,
    SEVERITIES,
    Description,
    read_description,
    read_object,
)
from nestream.job.description import JobError as JobError

_NOTE = re.compile(r"^\s*(?://|#|/\*)\s*(title|severity)\s*:\s*(.*?)\s*(?:\*/)?\s*$", re.IGNORECASE)
_ROOM = '{"name": "OR-1", "kind": "operating", "x": 0, "y": 0, "w": 10, "h": 8}'


@dataclass(frozen=True)
class Rule:
    """One query of the job, with what job.json or its first lines say about it."""

    name: str
    text: str
    title: str
    severity: str
    problem: str | None = None
    into: str | None = None
    """The type of the composite events that it makes; its matches are then not listed."""
    version: int | None = None
    """The version that brought its text, if there is a history."""
    note: str | None = None
    """What a person should know about its origin, such as a manual change."""

    def json(self) -> dict[str, Any]:
        """The rule for the browser."""
        return asdict(self)


@dataclass(frozen=True)
class Job:
    """A job, as its folder describes it."""

    about: Description
    plan: dict[str, Any] | None = None
    """The floor plan, if there is one."""

    @classmethod
    def read(cls, folder: Path) -> Job:
        """The job of a folder (or of the job.json itself); raises `JobError`."""
        about = read_description(folder)
        return cls(about, None if about.plan is None else _plan(Path(about.plan)))

    def read_rules(self) -> dict[str, Rule]:
        """The rules by name, read again; a rule that is not a query keeps its place, with its problem."""
        if self.about.rules is None:
            return {}
        place = Path(self.about.rules)
        paths = sorted(place.glob("*.neel")) if place.is_dir() else [place] if place.is_file() else []
        rules = (self._named(_rule(path)) for path in paths)
        return {rule.name: rule for rule in rules}

    def rules_of(self, texts: Mapping[str, str]) -> dict[str, Rule]:
        """Rules by name from their texts, as a topic has them."""
        return {name: self._named(rule_of(name, text)) for name, text in texts.items()}

    def _named(self, rule: Rule) -> Rule:
        """The rule with the title and the severity from job.json."""
        return replace(
            rule,
            title=self.about.titles.get(rule.name, rule.title),
            severity=self.about.severities.get(rule.name, rule.severity),
        )


def _rule(path: Path) -> Rule:
    with path.open("rb") as file:
        text = file.read(LARGEST).decode("utf-8-sig", errors="replace")
        text = text.replace("\r\n", "\n").replace("\r", "\n")  # as the rules are read when they change
        if not file.read(1):
            return rule_of(path.stem, text)
    problem = f"{path.name} is larger than {LARGEST >> 20} MB and is not read; the first lines are shown"
    return Rule(path.stem, text[:1000], path.stem, "medium", problem)


def rule_of(name: str, text: str) -> Rule:
    """A rule with the title and the severity from its first comment lines."""
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


def _plan(path: Path) -> dict[str, Any]:
    """The floor plan with only what is drawn, as numbers and text."""
    described = read_object(path)
    given = described.get("rooms", [])
    if not isinstance(given, list) or not all(isinstance(room, dict) for room in given):
        raise JobError(f'{path.name}: rooms is not a list of objects\n  hint: write "rooms": [{_ROOM}]')
    states = described.get("states", {})
    if not isinstance(states, dict):
        raise JobError(
            f'{path.name}: states is not an object\n  hint: write "states": {{"due": "hygiene due"}}'
        )
    rooms = [
        {
            "name": str(room.get("name", "")),
            "kind": str(room.get("kind", "hall")),
            **{side: _number(path, room, side) for side in ("x", "y", "w", "h")},
        }
        for room in given[:500]
    ]
    return {
        "title": str(described.get("title", "")),
        "width": _number(path, described, "width"),
        "height": _number(path, described, "height"),
        "states": {str(name)[:80]: str(title)[:80] for name, title in states.items()},
        "rooms": rooms,
    }


def _number(path: Path, described: dict[str, Any], name: str) -> float:
    value = _finite(described.get(name))
    if value is None:
        shown = json.dumps(described.get(name))[:80]
        raise JobError(
            f"{path.name}: {name} of {described.get('name', 'the plan')} is not a number: {shown}\n"
            f"  hint: a room is {_ROOM}, and the plan has a width and a height"
        )
    return value


def _finite(value: Any) -> float | None:
    """A number that can be drawn; None if it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer beyond all floats
        return None
