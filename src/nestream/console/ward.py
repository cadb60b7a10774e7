"""Where each entity is on the plan, and its state: what a job with a floor plan also shows.

Events say where an entity is. A composite event with the entity and a `state` says how it is: what a job
calls *clean* or *due* is defined by its queries. An entity is in *violation* from a match with one of its
events until a composite event reports any state but due. A composite event with a `rule` is an opportunity to
comply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nestream.console.counts import Tally

STATE, RULE = "state", "rule"
"""The attributes that are read from composite events."""
DUE, VIOLATION = "due", "violation"


@dataclass
class Worker:
    """One entity on the plan."""

    name: str
    room: str
    state: str = "unknown"
    ts: float | None = None
    since: float | None = None
    """When a composite event or a violation set the state."""

    def row(self) -> list[Any]:
        """The entity for the browser: name, room, state, time."""
        return [self.name, self.room, self.state, self.ts]


@dataclass
class Ward:
    """The entities, up to a maximum number, and those that have changed since they were last reported."""

    entity: str = "wID"
    place: str = "room"
    most: int = 2_000
    workers: dict[str, Worker] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    left_out: int = 0
    """How many events belong to entities beyond that number."""
    opportunities: dict[str, Tally] = field(default_factory=dict)
    """How often a rule applied, by rule, place and entity, from composite events."""
    broken: dict[str, Tally] = field(default_factory=dict)
    """How often such a rule was then broken."""

    def __post_init__(self) -> None:
        names = (RULE, self.place, self.entity)
        self.opportunities = {name: Tally() for name in names}
        self.broken = {name: Tally() for name in names}

    def move(self, event: dict[str, Any], ts: float | None) -> None:
        """Take an event of an entity, which may move it."""
        worker = self._worker(event.get(self.entity), event.get(self.place))
        if worker is not None:
            worker.room, worker.ts = event[self.place][:80], ts
            self.changed.add(worker.name)

    def is_in(self, who: Any, where: Any, state: str, ts: float) -> None:
        """A composite event reports the state of an entity; one with the state due stays in violation."""
        worker = self._worker(who, where)
        if worker is None or (worker.since is not None and worker.since > ts):
            return
        if not (state == DUE and worker.state == VIOLATION):
            worker.state, worker.since = state[:80], ts
        self.changed.add(worker.name)

    def _worker(self, who: Any, where: Any) -> Worker | None:
        """The entity, new in that place if needed; None if there is no room for one more."""
        if who is None or not isinstance(where, str):
            return None
        name = str(who)[:80]
        if name not in self.workers and len(self.workers) >= self.most:
            self.left_out += 1
            return None
        return self.workers.setdefault(name, Worker(name, where[:80]))

    def applied(self, values: dict[str, Any]) -> None:
        """A composite event reports that a rule applied."""
        for what, tally in self.opportunities.items():
            if values.get(what) is not None:
                tally.add(values[what])

    def matched(self, match: dict[str, Any]) -> None:
        """A rule has matched."""
        for name in match["entities"]:
            self.violated(name, match["end"])
        if match["query"] in self.opportunities[RULE].counts:
            last = match["events"][-1]["event"] if match["events"] else {}
            for what, tally in self.broken.items():
                value = match["query"] if what == RULE else last.get(what)
                if value is not None:
                    tally.add(value)

    def violated(self, name: str, ts: float | None) -> None:
        """A rule has matched events of the entity, unless it has been cleaned since."""
        worker = self.workers.get(name)
        if worker is None:
            return
        later = ts is not None and worker.since is not None and worker.since > ts
        if not (later and worker.state not in (DUE, VIOLATION)):
            worker.state, worker.since = VIOLATION, ts
            self.changed.add(name)

    def compliance(self) -> dict[str, dict[str, list[int]]]:
        """Opportunities and violations, by rule, place and entity."""
        return {
            what: {name: [held, self.broken[what].counts[name]] for name, held in tally.counts.items()}
            for what, tally in self.opportunities.items()
        }

    def moved(self) -> list[list[Any]]:
        """The entities that have changed, each reported once."""
        rows = [self.workers[name].row() for name in sorted(self.changed)]
        self.changed.clear()
        return rows
