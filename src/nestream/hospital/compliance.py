"""Computes compliance with the rules, the reach of contaminated instruments, and alerts from query output.

The queries report when a rule applied (`Opportunity`) and when it was broken (a match of the rule).
Compliance is the share of opportunities at which it was not broken. This module counts them; it knows no
event type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

ROLES = ("nurse", "surgeon", "nurse", "anaesthetist", "technician")
"""The role of a worker, by their number modulo the number of roles."""
SHIFTS = ((7, 15, "early"), (15, 23, "late"))
"""The hours of the shifts; the rest of the day is the night shift."""
RECENT = timedelta(hours=1)
"""The period that is compared with a worker's own past: the last hour of the data."""
FEWEST = 5
"""An alert about a worker needs this many recent opportunities, and as many in the past."""
WORSE = 0.2
"""How far recent compliance must be below that of the past."""
EXPOSED_WORKER, EXPOSED_PATIENT = "exposed-worker", "exposed-patient"


@dataclass(frozen=True)
class Occasion:
    """A moment at which a rule applies to a worker or an instrument."""

    rule: str
    worker: str | None
    instrument: str | None
    room: str
    time: datetime

    @property
    def role(self) -> str | None:
        """The role of the worker."""
        return None if self.worker is None else ROLES[int(self.worker) % len(ROLES)]

    @property
    def shift(self) -> str:
        """The shift, with the day on which it began."""
        name = next((name for first, end, name in SHIFTS if first <= self.time.hour < end), "night")
        began = self.time - timedelta(hours=SHIFTS[0][0])
        return f"{began:%Y-%m-%d} {name}"


@dataclass(frozen=True)
class Ratio:
    """Violations and opportunities."""

    opportunities: int = 0
    violations: int = 0

    @property
    def compliance(self) -> float:
        """The share of opportunities without a violation; 1 if there are none."""
        return 1 - self.violations / self.opportunities if self.opportunities else 1.0


@dataclass(frozen=True)
class Path:
    """Whom a contaminated instrument reached: the worker next to it, and then the patients' rooms."""

    instrument: str
    room: str
    worker: str
    time: datetime
    patients: tuple[str, ...]

    def __str__(self) -> str:
        reached = [f"instrument {self.instrument}", self.room, f"worker {self.worker}", *self.patients]
        return " > ".join(reached)


class Compliance:
    """What the matches of the bundled query set say about a ward."""

    def __init__(self, matches: Iterable[Mapping[str, Any]]) -> None:
        found = list(matches)
        facts = [(match, dict(match["values"])) for match in found if match["values"]]
        self.opportunities = {
            _occasion(values["rule"], values, _moment(match["match_end"]))
            for match, values in facts
            if "rule" in values
        }
        broken = (
            _occasion(match["query"], match["events"][-1]["event"], _moment(match["match_end"]))
            for match in found
            if match["events"]
        )
        self.violations = self.opportunities.intersection(broken)
        self.paths = sorted(_paths(facts), key=lambda path: path.time)

    def by(self, what: str) -> dict[str, Ratio]:
        """The ratio of each room, worker, role, shift or rule, ordered by name."""
        return self._by(lambda occasion: getattr(occasion, what))

    def worker(self, name: str) -> tuple[Ratio, Ratio]:
        """A worker's ratio in the past, and in the last hour of the data."""
        return self._periods.get(f"{name} past", Ratio()), self._periods.get(f"{name} recent", Ratio())

    @cached_property
    def _periods(self) -> dict[str, Ratio]:
        last = max((occasion.time for occasion in self.opportunities), default=datetime.min)

        def period(occasion: Occasion) -> str | None:
            recent = last - occasion.time < RECENT
            return occasion.worker and f"{occasion.worker} {'recent' if recent else 'past'}"

        return self._by(period)

    def _by(self, key: Callable[[Occasion], str | None]) -> dict[str, Ratio]:
        counts: dict[str, list[int]] = {}
        for occasion in self.opportunities:
            if (name := key(occasion)) is not None:
                held = counts.setdefault(name, [0, 0])
                held[0] += 1
                held[1] += occasion in self.violations
        return {name: Ratio(*counts[name]) for name in sorted(counts, key=_by_number)}

    def alerts(self) -> list[str]:
        """What should be investigated: workers below their own past, and patients who were reached."""
        said = []
        for name in self.by("worker"):
            past, recent = self.worker(name)
            enough = min(past.opportunities, recent.opportunities) >= FEWEST
            if enough and recent.compliance < past.compliance - WORSE:
                said.append(
                    f"worker {name} complied {recent.compliance:.0%} of the time in the last hour,"
                    f" {past.compliance:.0%} before"
                )
        said += [
            f"a contaminated instrument reached a patient: {path}" for path in self.paths if path.patients
        ]
        return said


def _occasion(rule: str, values: Mapping[str, Any], time: datetime) -> Occasion:
    worker, instrument = (_text(values.get(name)) for name in ("wID", "id"))
    return Occasion(rule, worker, instrument, values["room"], time)


def _paths(facts: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Iterator[Path]:
    exposed: dict[tuple[str, str, datetime], str] = {}
    reached: dict[tuple[str, str, datetime], list[str]] = {}
    for match, values in facts:
        if match["query"] == EXPOSED_WORKER:
            key = values["id"], values["wID"], _moment(match["match_end"])
            exposed[key] = values["room"]
        elif match["query"] == EXPOSED_PATIENT:  # its match starts with the exposure
            key = values["id"], values["wID"], _moment(match["match_start"])
            reached.setdefault(key, []).append(values["room"])
    for key, room in exposed.items():
        instrument, worker, time = key
        yield Path(instrument, room, worker, time, tuple(dict.fromkeys(reached.get(key, ()))))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _moment(value: Any) -> datetime:
    """A time of a match, from a table or from a line of JSON, in UTC."""
    found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)


def _by_number(name: str) -> tuple[int, str]:
    first = name.partition(" ")[0]
    return (int(first) if first.isdigit() else -1), name
