"""A rule on trial: a query of the editor, matched over the live events beside the job.

It runs in its own worker process, which takes the events that the console holds and then new ones. The
deployed rule of the same name, if there is one, runs beside it over the same events, to show the difference.
A trial that cannot keep up is stopped, so that the number of waiting events stays bounded. Its matches are
shown with the trial, and are never counted among those of the job.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from nestream.console.pool import RunError, Worker

MOST_WAITING = 100_000
"""How many events may wait for the trial."""
SECONDS = 20.0
MOST_MATCHES = 100_000
"""After this many matches, of the draft and of the deployed rule, it has shown what it does."""


@dataclass
class Trial:
    """One query over the live events."""

    number: int
    """Distinguishes it from earlier trials of the same name."""
    name: str
    title: str
    text: str
    deployed: str | None
    """The text of the deployed rule that it is compared with."""
    worker: Worker
    next: int = 0
    """The number of the first event that it has not taken."""
    matches: int = 0
    compared: int = 0
    """How many matches the draft and the deployed rule have found; all of them are compared."""
    counts: dict[str, int] = field(default_factory=dict)
    """How many matches are new, gone, and found by both."""
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The last of the new and of the gone matches."""
    events: int = 0
    busy: float = 0.0
    held: dict[str, Any] = field(default_factory=dict)
    stopped: str | None = None
    _waiting: list[tuple[int, list[dict[str, Any]]]] = field(default_factory=list)
    _more: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    async def start(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Start; events may be taken before. The answer reports errors in the query."""
        request = {"operation": "start", "name": self.name, "text": self.text, "deployed": self.deployed}
        answer = await self.worker.ask({**request, **settings}, SECONDS)
        if answer["ok"]:
            self._task = asyncio.create_task(self._run())
        else:
            await self.worker.end()
        return answer

    def take(self, number: int, events: list[dict[str, Any]]) -> None:
        """Take more events of the stream, starting with that number; those already taken are skipped."""
        events = events[max(0, self.next - number) :]
        if self.stopped is not None or not events:
            return
        first = max(self.next, number)
        self.next = first + len(events)
        if self._behind() > MOST_WAITING:
            self.stopped = "it could not keep up with the events"
        else:
            self._waiting.append((first, events))
        self._more.set()

    async def _run(self) -> None:
        try:
            while self.stopped is None:
                await self._more.wait()
                self._more.clear()
                while self._waiting and self.stopped is None:
                    await self._push(*self._waiting.pop(0))
        except RunError as error:
            self.stopped = str(error)
        finally:
            self._waiting.clear()
            await self.worker.end()

    def _behind(self) -> int:
        return sum(len(events) for _, events in self._waiting)

    async def _push(self, first: int, events: list[dict[str, Any]]) -> None:
        answer = await self.worker.ask({"operation": "push", "events": events, "first": first}, SECONDS)
        if not answer["ok"]:
            self.stopped = str(answer.get("error"))
            return
        self.events += len(events)
        self.matches += answer["found"]
        self.compared += answer["compared"]
        self.busy += answer["busy"]
        self.held, self.counts = answer["held"], answer["counts"]
        self.rows = answer["rows"] or self.rows
        if self.compared > MOST_MATCHES:
            both = " and the deployed rule have" if self.deployed is not None else " has"
            self.stopped = f"the draft{both} found {self.compared:,} matches"

    async def stop(self) -> None:
        """End it."""
        self.stopped = self.stopped or "stopped"
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.worker.end()

    def json(self) -> dict[str, Any]:
        """The progress, for the browser."""
        return {
            "number": self.number,
            "name": self.name,
            "title": self.title,
            "text": self.text,
            "compared": self.deployed is not None,
            "matches": self.matches,
            "counts": self.counts,
            "events": self.events,
            "busy": self.busy,
            "held": self.held,
            "stopped": self.stopped,
            "waiting": self._behind(),
        }
