"""What the console holds of a running job: rings of the latest, counts of all, in bounded memory."""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from nestream.console.counts import Facets, Rates, Tally
from nestream.console.health import Series, point_of
from nestream.console.job import Job, Rule
from nestream.console.moments import moment
from nestream.console.ward import RULE, STATE, Ward

RECENT_EVENTS = 20_000
RECENT_MATCHES = 2_000
RECENT_LATE = 200
LONGEST_TEXT = 500
MOST_FIELDS = 40
MOST_RULES = 500
"""The maximum number of rules that are read from progress.json."""
_SHORT = frozenset({int, float, bool, type(None)})


def bounded(event: dict[str, Any], most: int = MOST_FIELDS) -> dict[str, Any]:
    """The event with a maximum number of fields, and text of a maximum length."""
    shown = {}
    for name, value in islice(event.items(), most):
        if type(value) not in _SHORT:  # by far the most expensive thing that is done with each event
            text = value if isinstance(value, str) else str(value)
            more = len(text) - LONGEST_TEXT
            value = f"{text[:LONGEST_TEXT]}… ({more:,} more characters)" if more > 0 else text
        shown[str(name)[:80]] = value
    return shown


@dataclass
class Live:
    """The state of a job as the console knows it. One thread writes; readers take copies."""

    time: str = "ts"
    type: str = "type"
    entity: str | None = None
    place: str | None = None
    ward: Ward | None = None
    """Where each entity is, for a job with a plan."""
    rules: dict[str, Rule] = field(default_factory=dict)
    events: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=RECENT_EVENTS))
    matches: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=RECENT_MATCHES))
    late: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=RECENT_LATE))
    events_in: int = 0
    matches_in: int = 0
    composites_in: int = 0
    late_in: int = 0
    by_rule: Tally = field(default_factory=Tally)
    facets: Facets = field(default_factory=Facets)
    rates: Rates = field(default_factory=Rates)
    progress: dict[str, Any] | None = None
    series: Series = field(default_factory=Series)
    latest: float | None = None
    """The greatest event time seen."""

    @classmethod
    def of(cls, job: Job | None, rules: dict[str, Rule]) -> Live:
        """The empty state of a job with some rules."""
        if job is None:
            return cls()
        about = job.about
        return cls(
            time=about.time,
            type=about.type,
            entity=about.entity,
            place=about.place,
            ward=None if job.plan is None else Ward(about.entity or "", about.place or ""),
            facets=Facets(about.facets, without=(about.time, about.type)),
            rules=rules,
        )

    def take_events(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Take events of the stream, in arrival order; return them as they are held."""
        for event in events:
            ts = moment(event.get(self.time))
            if ts is not None and (self.latest is None or ts > self.latest):
                self.latest = ts
            if self.ward is not None:
                self.ward.move(event, ts)
        held = [bounded(event) for event in events]
        self.events_in += len(held)
        self.events.extend(held)
        return held

    def take_matches(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Take committed matches; return them as the browser gets them.

        Those that arrive together are sorted by time. Composite events change the state and are not returned;
        those of a time come before the matches of that time.
        """
        made = [self._is_composite(row) for row in rows]
        times = [moment(row.get("match_end")) for row in rows]
        ordered = sorted(range(len(rows)), key=lambda n: (times[n] or 0.0, not made[n]))
        found = []
        for number in ordered:
            if made[number]:
                self._composite(rows[number].get("values"), times[number])
            else:
                found.append(self._match(rows[number]))
        return found

    def _is_composite(self, row: dict[str, Any]) -> bool:
        rule = self.rules.get(str(row.get("query", "")))
        return rule is not None and rule.into is not None

    def _composite(self, values: Any, ts: float | None) -> None:
        """Take a composite event: with a plan, it may report an entity's state, or that a rule applied."""
        self.composites_in += 1
        if self.ward is None or not isinstance(values, dict):
            return
        if isinstance(values.get(STATE), str) and ts is not None:
            self.ward.is_in(values.get(self.ward.entity), values.get(self.ward.place), values[STATE], ts)
        if RULE in values:
            self.ward.applied(values)

    def _match(self, row: dict[str, Any]) -> dict[str, Any]:
        self.matches_in += 1
        found = {**self.shown(row), "number": self.matches_in}
        self.matches.append(found)
        self._count(found)
        return found

    def shown(self, row: dict[str, Any]) -> dict[str, Any]:
        """A match as the browser gets it, without its number."""
        name = str(row.get("query", ""))[:120]
        rule = self.rules.get(name)
        given = row.get("events")
        events = [
            {"variable": str(part.get("variable", ""))[:80], "event": bounded(part["event"])}
            for part in (given if isinstance(given, list) else [])
            if isinstance(part, dict) and isinstance(part.get("event"), dict)
        ][:50]
        return {
            "id": identity(row),
            "query": name,
            "title": rule.title if rule else name,
            "severity": rule.severity if rule else "medium",
            "start": moment(row.get("match_start")),
            "end": moment(row.get("match_end")),
            "version": row.get("version") if isinstance(row.get("version"), int) else None,
            "events": events,
            "values": bounded(row["values"]) if isinstance(row.get("values"), dict) else {},
            "entities": _named(events, self.entity),
            "places": _named(events, self.place),
            "seen": time.time() * 1000,
        }

    def _count(self, found: dict[str, Any]) -> None:
        self.by_rule.add(found["query"])
        self.facets.add(found["events"], found["values"])
        self.rates.add(found["query"], found["end"])
        if self.ward is not None:
            self.ward.matched(found)

    def take_late(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Take events that the stream set aside, with their reasons; return the last ones as held."""
        held = [bounded(event) for event in events[-RECENT_LATE:]]
        self.late_in += len(events)
        self.late.extend(held)
        return held

    def take_progress(self, told: dict[str, Any]) -> None:
        """Take the progress of the job."""
        by_name = {
            name: bounded(value, MOST_RULES) for name, value in told.items() if isinstance(value, dict)
        }
        self.progress = {**bounded(told), **by_name}

    def sample(self) -> dict[str, Any]:
        """One point of the health page's series: the current numbers."""
        point = point_of(self.progress, self.events_in, self.matches_in, self.late_in)
        self.series.add(point)
        return point

    def statistics(self) -> dict[str, Any]:
        """The counts by rule and by facet; with a plan, also opportunities and violations."""
        found = {"rule": self.by_rule.top(), "facets": self.facets.json()}
        return found if self.ward is None else {**found, "compliance": self.ward.compliance()}

    def totals(self) -> dict[str, Any]:
        """The counts that every message carries, by which a browser knows that it has missed nothing."""
        return {
            "events": self.events_in,
            "matches": self.matches_in,
            "late": self.late_in,
            "latest": self.latest,
            "workers": 0 if self.ward is None else len(self.ward.workers),
            "left_out": 0 if self.ward is None else self.ward.left_out,
        }

    def snapshot(self) -> dict[str, Any]:
        """Everything that a browser needs to begin."""
        return {
            "totals": self.totals(),
            "workers": [] if self.ward is None else [one.row() for one in self.ward.workers.values()],
            "matches": list(self.matches)[-300:],
            "late": list(self.late)[-50:],
            "statistics": self.statistics(),
            "rates": self.rates.json(),
            "progress": self.progress,
            "series": self.series.json(),
        }


def _named(events: list[dict[str, Any]], name: str | None) -> list[str]:
    found = (part["event"].get(name) for part in events) if name is not None else ()
    return list(dict.fromkeys(str(value)[:80] for value in found if value is not None))


def identity(row: dict[str, Any]) -> str:
    """A name for a match that is the same whenever it is read."""
    parts = [row.get(name) for name in ("query", "match_start", "match_end", "events", "values")]
    return hashlib.sha256(json.dumps(parts, default=str, sort_keys=True).encode()).hexdigest()[:16]
