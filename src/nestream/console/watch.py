"""Follows a job and tells the browsers: a few times a second it reads what is new and puts it on the line."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nestream.console.hub import Hub
from nestream.console.job import Job
from nestream.console.live import Live
from nestream.console.tail import FileTail, FolderTail, SetTail
from nestream.console.trial import Trial

TICK = 0.25
"""Seconds between two looks. Movements in between are told as one."""
FILES_BEFORE = 40
"""How many of the newest event files that were there before are read; matches are read from the first."""
MOST_IN_MESSAGE = 200
Take = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


class Watch:
    """The console's view of a job, kept up to date."""

    def __init__(self, job: Job | None) -> None:
        self.job = job
        self.live = Live()
        self.lock = threading.Lock()
        self.trials: list[Trial] = []
        self.skipped = 0
        self.problem: str | None = None
        self.hub = Hub(self.snapshot)
        self._tails: dict[str, Any] = {}
        self._told: dict[str, Any] = {}
        self._sampled = 0.0
        if job is not None:
            self._follow(job)

    def _follow(self, job: Job) -> None:
        self.live.time, self.live.type = job.time, job.type
        self.live.rules = job.read_rules()
        kinds = {"events": FolderTail, "matches": FolderTail, "late": SetTail, "progress": FileTail}
        for name, kind in kinds.items():
            path = getattr(job, name)
            if path is not None:
                self._tails[name] = kind(path)
        if "events" in self._tails:
            self.skipped = self._tails["events"].skip_to_last(FILES_BEFORE)

    async def run(self) -> None:
        """Look, tell, wait, for ever."""
        while True:
            begin = time.monotonic()
            try:
                message, number, events = await asyncio.to_thread(self.look)
            except Exception as error:  # whatever it is, the next look may do better
                self.problem = self._told_problem(error)
                message, number, events = {}, 0, []
            for trial in self.trials:
                trial.take(number, events)
            self._tell(message)
            behind = any(tail.has_more for tail in self._tails.values())
            await asyncio.sleep(0.01 if behind else max(0.02, TICK - (time.monotonic() - begin)))

    def look(self) -> tuple[dict[str, Any], int, list[dict[str, Any]]]:
        """Read what is new; gives what to tell, and the new events with the number of the first.

        Each part is read and taken for itself: what is wrong with one keeps no other from being told.
        """
        live = self.live
        problems: list[Exception] = []
        events = self._part("events", live.take_events, problems)
        late = self._part("late", live.take_late, problems)
        progress = self._part("progress", live.take_progress, problems)
        # Last, so that the events of a match are there when it is.
        matches = self._part("matches", live.take_matches, problems)
        self.problem = self._told_problem(problems[0]) if problems else None
        with self.lock:
            message: dict[str, Any] = {"moves": live.ward.moved(), "matches": matches}
            if late:
                message["late"] = late[-50:]
            if progress:
                message["progress"] = live.progress
            if time.monotonic() - self._sampled >= 1:
                self._sampled = time.monotonic()
                message["point"] = live.sample()
                if self._told.get("matches") != (live.matches_in, live.composites_in):
                    self._told["matches"] = (live.matches_in, live.composites_in)
                    message["statistics"] = live.statistics()
            message["totals"] = live.totals()
            return message, live.events_in - len(events), events

    def _part(self, name: str, take: Take, problems: list[Exception]) -> list[dict[str, Any]]:
        """What is new of one part of the job, as it was taken."""
        tail = self._tails.get(name)
        if tail is None:
            return []
        found = tail.new()
        if tail.failed is not None:
            problems.append(tail.failed)
        try:
            with self.lock:
                return take(found)
        except Exception as error:
            problems.append(error)
            return []

    def _told_problem(self, error: Exception) -> str:
        """The problem in words; the first time, with where it came from on stderr."""
        where = f"{Path(error.filename).name}: " if isinstance(error, OSError) and error.filename else ""
        what = error.strerror if where and isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        told = f"the job's folder could not be read: {where}{what}"[:500]
        if told != self.problem:
            traceback.print_exception(error)
        return told

    def _tell(self, message: dict[str, Any]) -> None:
        """Put the message on the line, in parts where many matches came at once."""
        if self.trials:
            message["trials"] = [trial.json() for trial in self.trials]
        if self.problem is not None:
            message["problem"] = self.problem
        if not any(message.get(part) for part in message if part != "totals"):
            return
        matches = message.pop("matches", [])
        for start in range(0, len(matches), MOST_IN_MESSAGE):
            last = start + MOST_IN_MESSAGE >= len(matches)
            part = matches[start : start + MOST_IN_MESSAGE]
            self.hub.publish("update", {**(message if last else {}), "matches": part})
        if not matches:
            self.hub.publish("update", message)

    def tried(self, trial: int, rows: list[dict[str, Any]]) -> None:
        """Tell the matches of a trial."""
        with self.lock:
            found = self.live.take_matches(rows, trial)
        for start in range(0, len(found), MOST_IN_MESSAGE):
            self.hub.publish("update", {"matches": found[start : start + MOST_IN_MESSAGE]})

    # -- what pages ask for ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """All that a browser needs to begin."""
        with self.lock:
            found = self.live.snapshot()
        return {**found, "job": self.described(), "trials": [trial.json() for trial in self.trials]}

    def described(self) -> dict[str, Any] | None:
        """The job, for the browser; no paths."""
        if self.job is None:
            return None
        return {
            "name": self.job.name,
            "time": self.job.time,
            "type": self.job.type,
            "trigger": self.job.trigger,
            "watermark": self.job.watermark,
            "floor": self.job.floor,
            "rules": [rule.json() for rule in self.live.rules.values()],
            "skipped": self.skipped,
        }

    def recent(self) -> tuple[int, list[dict[str, Any]]]:
        """The events that are held, and the number of the first."""
        with self.lock:
            events = list(self.live.events)
            return self.live.events_in - len(events), events

    def counters(self) -> dict[str, Any]:
        """How much was read of each part, for those who check that nothing is lost."""
        with self.lock:
            return {
                **self.live.totals(),
                "messages": self.hub.number,
                "browsers": self.hub.browsers,
                "unreadable": {name: tail.lines.unreadable for name, tail in self._tails.items()},
            }
