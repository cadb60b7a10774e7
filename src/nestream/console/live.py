"""What the console holds of a running job: rings of the latest, counts of all, in bounded memory."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from nestream.console.job import Rule
from nestream.console.moments import hour_of, moment
from nestream.console.ward import ROOM, RULE, STATE, WORKER, Ward

RECENT_EVENTS = 20_000
RECENT_MATCHES = 2_000
RECENT_LATE = 200
SECONDS = 300
"""How far back the series of the health page reach."""
MOST_KEYS = 1_000
"""How many rooms, workers, hours or rules are counted apart; the rest are counted together."""
OTHER = "(others)"
LONGEST_TEXT = 500
MOST_FIELDS = 40


def bounded(event: dict[str, Any]) -> dict[str, Any]:
    """The event with at most so many fields, and texts of at most so many characters."""
    shown = {}
    for name, value in list(event.items())[:MOST_FIELDS]:
        if isinstance(value, str):
            value = value[:LONGEST_TEXT]
        elif not isinstance(value, int | float | bool | None):
            value = str(value)[:LONGEST_TEXT]
        shown[str(name)[:80]] = value
    return shown


class Tally:
    """Counts by key, for a bounded number of keys."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, key: Any) -> None:
        """Count one more."""
        name = str(key)[:80]
        self.counts[name if name in self.counts or len(self.counts) < MOST_KEYS else OTHER] += 1


def _tallies() -> dict[str, Tally]:
    return {what: Tally() for what in (RULE, ROOM, WORKER)}


@dataclass
class Live:
    """The state of a job as the console knows it. One thread writes; readers take copies."""

    time: str = "ts"
    type: str = "type"
    ward: Ward = field(default_factory=Ward)
    rules: dict[str, Rule] = field(default_factory=dict)
    events: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=RECENT_EVENTS))
    matches: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=RECENT_MATCHES))
    late: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=RECENT_LATE))
    events_in: int = 0
    matches_in: int = 0
    composites_in: int = 0
    late_in: int = 0
    trials_in: int = 0
    by_rule: Tally = field(default_factory=Tally)
    by_room: Tally = field(default_factory=Tally)
    by_worker: Tally = field(default_factory=Tally)
    by_hour: Tally = field(default_factory=Tally)
    opportunities: dict[str, Tally] = field(default_factory=_tallies)
    """How often a rule applied, by rule, room and worker, as composite events say."""
    broken: dict[str, Tally] = field(default_factory=_tallies)
    """How often such a rule was broken then."""
    progress: dict[str, Any] | None = None
    series: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=SECONDS))
    latest: float | None = None
    """The greatest event time seen."""

    def take_events(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Take events of the stream, in the order of their arrival; gives them as they are held."""
        for event in events:
            ts = moment(event.get(self.time))
            if ts is not None and (self.latest is None or ts > self.latest):
                self.latest = ts
            self.ward.move(event, ts)
        held = [bounded(event) for event in events]
        self.events_in += len(held)
        self.events.extend(held)
        return held

    def take_matches(self, rows: list[dict[str, Any]], trial: int | None = None) -> list[dict[str, Any]]:
        """Take committed matches, or those of the trial of a number; gives them as the browser gets them.

        Those that come together are put in the order of their times. Composite events change what is held
        and are not given; those of a time come before the violations of that time.
        """
        made = [trial is None and self._is_composite(row) for row in rows]
        times = [moment(row.get("match_end")) for row in rows]
        ordered = sorted(range(len(rows)), key=lambda n: (times[n] or 0.0, not made[n]))
        found = []
        for number in ordered:
            if made[number]:
                self._composite(rows[number].get("values"), times[number])
            else:
                found.append(self._match(rows[number], trial))
        return found

    def _is_composite(self, row: dict[str, Any]) -> bool:
        rule = self.rules.get(str(row.get("query", "")))
        return rule is not None and rule.into is not None

    def _composite(self, values: Any, ts: float | None) -> None:
        """Take a composite event: one with a worker and a state says how they are, one with a rule counts."""
        self.composites_in += 1
        if not isinstance(values, dict):
            return
        if isinstance(values.get(STATE), str) and ts is not None:
            self.ward.is_in(values.get(WORKER), values.get(ROOM), values[STATE], ts)
        if RULE in values:
            for what, tally in self.opportunities.items():
                if values.get(what) is not None:
                    tally.add(values[what])

    def _match(self, row: dict[str, Any], trial: int | None) -> dict[str, Any]:
        name = str(row.get("query", ""))[:120]
        rule = self.rules.get(name)
        given = row.get("events")
        events = [
            {"variable": str(part.get("variable", ""))[:80], "event": bounded(part["event"])}
            for part in (given if isinstance(given, list) else [])
            if isinstance(part, dict) and isinstance(part.get("event"), dict)
        ][:50]
        found: dict[str, Any] = {
            "query": name,
            "title": rule.title if rule else name,
            "severity": "trial" if trial is not None else (rule.severity if rule else "medium"),
            "start": moment(row.get("match_start")),
            "end": moment(row.get("match_end")),
            "events": events,
            "values": bounded(row.get("values") or {}) if isinstance(row.get("values"), dict) else {},
            "rooms": _named(events, ROOM),
            "workers": _named(events, WORKER),
            "seen": time.time() * 1000,
            "trial": trial,
        }
        if trial is not None:
            self.trials_in += 1
            found["number"] = -self.trials_in
        else:
            self.matches_in += 1
            found["number"] = self.matches_in
            self.matches.append(found)
            self._count(found)
        return found

    def _count(self, found: dict[str, Any]) -> None:
        self.by_rule.add(found["query"])
        if found["query"] in self.opportunities[RULE].counts:
            last = found["events"][-1]["event"] if found["events"] else {}
            for what, value in ((RULE, found["query"]), (ROOM, last.get(ROOM)), (WORKER, last.get(WORKER))):
                if value is not None:
                    self.broken[what].add(value)
        for room in found["rooms"]:
            self.by_room.add(room)
        for worker in found["workers"]:
            self.by_worker.add(worker)
            self.ward.violated(worker, found["end"])
        if found["end"] is not None:
            self.by_hour.add(hour_of(found["end"]))

    def take_late(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Take events that the stream set aside, with their reasons; gives the last as they are held."""
        held = [bounded(event) for event in events[-RECENT_LATE:]]
        self.late_in += len(events)
        self.late.extend(held)
        return held

    def take_progress(self, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Take what the pipeline says of its micro-batches; the last line counts, and is given."""
        if not lines:
            return []
        by_name = {name: bounded(value) for name, value in lines[-1].items() if isinstance(value, dict)}
        self.progress = {**bounded(lines[-1]), **by_name, "leaves": lines[-1].get("leaves")}
        return [self.progress]

    def sample(self) -> dict[str, Any]:
        """One point of the health page's series: the totals now."""
        progress = self.progress or {}
        point = {
            "at": time.time() * 1000,
            "events": self.events_in,
            "matches": self.matches_in,
            "late": self.late_in,
            "behind": self._behind(),
            "state": progress.get("state_bytes"),
        }
        self.series.append(point)
        return point

    def _behind(self) -> float | None:
        """By how many seconds of event time the watermark is behind the newest event."""
        watermark = moment((self.progress or {}).get("watermark"))
        if watermark is None or self.latest is None:
            return None
        return max(0.0, (self.latest - watermark) / 1000)

    def statistics(self) -> dict[str, Any]:
        """The counts by rule, room, worker and hour, and opportunities with violations."""
        return {
            "rule": dict(self.by_rule.counts),
            "room": dict(self.by_room.counts),
            "worker": dict(self.by_worker.counts),
            "hour": dict(self.by_hour.counts),
            "compliance": {
                what: {name: [held, self.broken[what].counts[name]] for name, held in tally.counts.items()}
                for what, tally in self.opportunities.items()
            },
        }

    def totals(self) -> dict[str, Any]:
        """The counts that every message carries, by which a browser knows that it has missed nothing."""
        return {
            "events": self.events_in,
            "matches": self.matches_in,
            "late": self.late_in,
            "latest": self.latest,
            "workers": len(self.ward.workers),
            "left_out": self.ward.left_out,
        }

    def snapshot(self, matches: int = 300) -> dict[str, Any]:
        """All that a browser needs to begin."""
        return {
            "totals": self.totals(),
            "workers": [worker.row() for worker in self.ward.workers.values()],
            "matches": list(self.matches)[-matches:],
            "late": list(self.late)[-50:],
            "statistics": self.statistics(),
            "progress": self.progress,
            "series": list(self.series),
        }


def _named(events: list[dict[str, Any]], name: str) -> list[str]:
    found = (part["event"].get(name) for part in events)
    return list(dict.fromkeys(str(value)[:80] for value in found if value is not None))
