"""Who is where on the floor, and in which state of hygiene: what the ward's plan shows.

A worker is *clean* after washing, sanitizing or drying, *due* after an operating or a patient room, and in
*violation* from a match of a rule that has an event of theirs until they are clean again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CLEANING = ("sanitiz", "sanitis", "wash", "dry", "hygien")
CONTACT = ("operating", "patient")
WORKER, ROOM = "wID", "room"


@dataclass
class Worker:
    """One worker on the floor."""

    name: str
    room: str
    state: str = "unknown"
    ts: float | None = None

    def row(self) -> list[Any]:
        """The worker for the browser: name, room, state, time."""
        return [self.name, self.room, self.state, self.ts]


@dataclass
class Ward:
    """The workers, up to a number, and those that have changed since they were last told."""

    kinds: dict[str, str] = field(default_factory=dict)
    """The kind of each room."""
    most: int = 2_000
    workers: dict[str, Worker] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    left_out: int = 0
    """How many events were those of workers beyond that number."""

    def move(self, event: dict[str, Any], kind: Any, ts: float | None) -> None:
        """Take an event of a worker: it may move them, and change their state."""
        who, where = event.get(WORKER), event.get(ROOM)
        if who is None or not isinstance(where, str):
            return
        name = str(who)[:80]
        worker = self.workers.get(name)
        if worker is None:
            if len(self.workers) >= self.most:
                self.left_out += 1
                return
            worker = self.workers[name] = Worker(name, where[:80])
        worker.room, worker.ts = where[:80], ts
        state = self._after(str(kind).lower(), self.kinds.get(where))
        if state is not None and not (state == "due" and worker.state == "violation"):
            worker.state = state
        self.changed.add(name)

    def _after(self, kind: str, room: str | None) -> str | None:
        """The state after an event, None where it stays."""
        if room == "sanitiser" or any(word in kind for word in CLEANING):
            return "clean"
        if kind.startswith("enter"):
            return None
        if room in CONTACT or any(word in kind for word in CONTACT):
            return "due"
        return None

    def violated(self, name: str, ts: float | None) -> None:
        """A rule has matched events of the worker; unless they have been cleaned since."""
        worker = self.workers.get(name)
        if worker is None or (
            worker.state == "clean" and ts is not None and worker.ts is not None and worker.ts > ts
        ):
            return
        worker.state = "violation"
        self.changed.add(name)

    def moved(self) -> list[list[Any]]:
        """The workers that have changed, once."""
        rows = [self.workers[name].row() for name in sorted(self.changed)]
        self.changed.clear()
        return rows
