"""Who is where on the floor, and in which state of hygiene: what the ward's plan shows.

Events say where a worker is. A composite event with a worker and a `state` says how they are: what a job
calls *clean* or *due* is in its queries. A worker is in *violation* from a match of a rule with an event of
theirs until a composite event says anything but due.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

WORKER, ROOM, STATE, RULE = "wID", "room", "state", "rule"
"""The attributes that the ward reads, of events and of composite events."""
DUE, VIOLATION = "due", "violation"


@dataclass
class Worker:
    """One worker on the floor."""

    name: str
    room: str
    state: str = "unknown"
    ts: float | None = None
    since: float | None = None
    """When a composite event or a violation gave the state."""

    def row(self) -> list[Any]:
        """The worker for the browser: name, room, state, time."""
        return [self.name, self.room, self.state, self.ts]


@dataclass
class Ward:
    """The workers, up to a number, and those that have changed since they were last told."""

    most: int = 2_000
    workers: dict[str, Worker] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    left_out: int = 0
    """How many events were those of workers beyond that number."""

    def move(self, event: dict[str, Any], ts: float | None) -> None:
        """Take an event of a worker, which may move them."""
        worker = self._worker(event.get(WORKER), event.get(ROOM))
        if worker is not None:
            worker.room, worker.ts = event[ROOM][:80], ts
            self.changed.add(worker.name)

    def is_in(self, who: Any, where: Any, state: str, ts: float) -> None:
        """A composite event says the state of a worker; one that hygiene is due for stays in violation."""
        worker = self._worker(who, where)
        if worker is None or (worker.since is not None and worker.since > ts):
            return
        if not (state == DUE and worker.state == VIOLATION):
            worker.state, worker.since = state[:80], ts
        self.changed.add(worker.name)

    def _worker(self, who: Any, where: Any) -> Worker | None:
        """The worker, a new one in that room; None where there is no room for one more."""
        if who is None or not isinstance(where, str):
            return None
        name = str(who)[:80]
        if name not in self.workers and len(self.workers) >= self.most:
            self.left_out += 1
            return None
        return self.workers.setdefault(name, Worker(name, where[:80]))

    def violated(self, name: str, ts: float | None) -> None:
        """A rule has matched events of the worker; unless they have been cleaned since."""
        worker = self.workers.get(name)
        if worker is None:
            return
        later = ts is not None and worker.since is not None and worker.since > ts
        if not (later and worker.state not in (DUE, VIOLATION)):
            worker.state, worker.since = VIOLATION, ts
            self.changed.add(name)

    def moved(self) -> list[list[Any]]:
        """The workers that have changed, once."""
        rows = [self.workers[name].row() for name in sorted(self.changed)]
        self.changed.clear()
        return rows
