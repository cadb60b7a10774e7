"""Follows a job and informs the browsers: a few times a second, it reads what is new and publishes it."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from nestream.console.annotations import Annotations
from nestream.console.drafts import Drafts
from nestream.console.follow import Follower, match_row, read_progress
from nestream.console.health import health_of
from nestream.console.hub import Hub
from nestream.console.job import Job, JobError
from nestream.console.live import Live, identity
from nestream.console.readers import Readers
from nestream.console.rules import JobRules
from nestream.console.trial import Trial
from nestream.console.webhooks import Sender
from nestream.job import RulesError
from nestream.source import SourceError

PLACES = ("events", "matches", "late")
TICK = 0.25
"""The seconds between two looks. Movements in between are reported as one."""
MOST_IN_MESSAGE = 200
FINDING = 20.0
"""How many seconds a sink is searched for a match."""
Take = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
T = TypeVar("T")


class Watch:
    """The console's view of a job, kept up to date."""

    def __init__(self, job: Job | None) -> None:
        self.job = job
        self.rules = JobRules(job)
        self.live = Live.of(job, dict(self.rules.seen.rules))
        folder = None if job is None else job.about.folder
        self.drafts, self.annotations = Drafts(folder), Annotations(folder)
        self.drafts.look()
        self.annotations.look()
        self.lock = threading.Lock()
        self.trials: list[Trial] = []
        self.problems: dict[str, str] = {}
        """What cannot be read, by the part of the job."""
        self.hub = Hub(self.snapshot)
        self._parts: dict[str, Follower] = {}
        self._told: dict[str, Any] = {}
        self._sampled = 0.0
        self._looks = ThreadPoolExecutor(1, "nestream look")
        """One thread: memory that a thread has freed is not used by the others."""
        self.readers = Readers()
        self.senders: list[Sender] = []
        if job is not None:
            self._follow(job)

    def _follow(self, job: Job) -> None:
        """Follow the places of the job that are not followed yet."""
        about = job.about
        if about.events is not None and "events" not in self._parts:
            how: dict[str, Any] = {"format": about.format, "schemas": about.schemas, "keeps": 0.0}
            self._parts["events"] = Follower(about.events, about.time, about.type, newest=True, **how)
        is_new = about.matches is not None and "matches" not in self._parts
        if about.matches is not None and is_new:
            self._parts["matches"] = Follower(about.matches, "match_end", None, keeps=0.0)
        if about.late is not None and "late" not in self._parts:
            self._parts["late"] = Follower(about.late, about.time, about.type, newest=True, keeps=0.0)
        if about.matches is not None and is_new:
            given = about.title, about.matches, lambda: self.only, self.about_rule, about.folder
            self.senders = [Sender(hook, *given) for hook in about.webhooks]

    async def run(self) -> None:
        """Look, publish, wait, forever."""
        while True:
            begin = time.monotonic()
            if self.rules.are_known:  # they decide which matches are sent
                for sender in self.senders:
                    sender.start()
            try:
                message, number, events = await self._aside(self.look)
            except Exception as error:  # whatever it is, the next look may succeed
                self._note("console", error)
                message, number, events = {}, 0, []
            for trial in self.trials:
                trial.take(number, events)
            self._tell(message)
            behind = any(part.has_more for part in self._parts.values())
            await asyncio.sleep(0.01 if behind else max(0.02, TICK - (time.monotonic() - begin)))

    async def look_aside_now(self) -> None:
        """Read rules, drafts and annotations at once, and publish what has changed."""
        message = await self._aside(self.look_aside)
        if message:
            self.hub.publish("update", message)

    async def _aside(self, look: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._looks, look)

    def look(self) -> tuple[dict[str, Any], int, list[dict[str, Any]]]:
        """Read what is new; return what to publish, and the new events with the number of the first.

        Each part is read on its own: a problem with one does not stop the others.
        """
        live = self.live
        self.problems.pop("console", None)
        events = self._part("events", live.take_events)
        late = self._part("late", live.take_late)
        # Last, so that the events of a match are there when it is; and once the rules tell what it is.
        matches = self._part("matches", self._take_matches) if self.rules.are_known else []
        due = time.monotonic() - self._sampled >= 1
        if due:
            self._read_progress()
        changed = self.look_aside() if due else {}
        with self.lock:
            message: dict[str, Any] = {"matches": matches}
            if live.ward is not None:
                message["moves"] = live.ward.moved()
            if late:
                message["late"] = late[-50:]
            if due:
                self._sampled = time.monotonic()
                message |= {"point": live.sample(), "progress": live.progress, "health": self.health()}
                if self._told.get("matches") != (live.matches_in, live.composites_in):
                    self._told["matches"] = (live.matches_in, live.composites_in)
                    message["statistics"] = live.statistics()
            message["totals"] = live.totals()
            message |= changed
            return message, live.events_in - len(events), events

    def _is_described_anew(self) -> bool:
        """Whether job.json names a place that it did not: a program may name them after it has begun."""
        if self.job is None or not self.rules.is_described_anew:
            return False
        self.rules.is_described_anew = False
        with suppress(JobError):  # it may be written just now, and a wrong one is refused at the next start
            job = Job.read(self.job.about.folder)
            known = {name for name in PLACES if getattr(self.job.about, name) is not None}
            if any(getattr(job.about, name) is not None for name in PLACES if name not in known):
                with self.lock:
                    self.job = job
                    self._follow(job)
                return True
        return False

    def look_aside(self) -> dict[str, Any]:
        """Read rules, drafts and annotations; return what to publish about changes."""
        message: dict[str, Any] = {}
        rules, drafts = self._looked("rules", self.rules), self._looked("drafts", self.drafts)
        said = self._looked("annotations", self.annotations)
        if rules:
            with self.lock:
                self.live.rules = dict(self.rules.seen.rules)
        if self._is_described_anew() or rules or drafts:
            message["job"] = self.described()
        if said:
            message["annotations"] = said
        return message

    def _looked(self, name: str, part: JobRules | Drafts | Annotations) -> Any:
        """What is new in a part; its problem is noted, and so is the failure to read it."""
        try:
            found = part.look()
            self._note(name, part.problem)
            return found
        except Exception as error:
            self._note(name, error)
            return None

    def about_rule(self, name: str) -> tuple[str, str] | None:
        """The title and the severity of a rule by name; None if its matches are composite events."""
        rule = self.live.rules.get(name)
        if rule is None:
            return name, "medium"
        return None if rule.into is not None else (rule.title, rule.severity)

    @property
    def only(self) -> str | None:
        """The rule of matches that name none, if there is only one."""
        return next(iter(self.live.rules)) if len(self.live.rules) == 1 else None

    def _take_matches(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return self.live.take_matches([match_row(row, self.only) for row in rows])

    def find_match(self, wanted: str) -> dict[str, Any] | None:
        """The match of an identity: a held one, or one in the sink, which is read again."""
        with self.lock:
            held = next((match for match in self.live.matches if match["id"] == wanted), None)
        if held is not None or self.job is None or self.job.about.matches is None:
            return held
        sink, end = Follower(self.job.about.matches, "match_end", None), time.monotonic() + FINDING
        try:
            for rows in sink.everything():
                for row in (match_row(one, self.only) for one in rows):
                    if identity(row) == wanted:
                        return {**self.live.shown(row), "number": 0}
                if time.monotonic() > end:
                    break
        except (SourceError, OSError):  # the page of the sink says so
            return None
        finally:
            sink.close()
        return None

    def _part(self, name: str, take: Take) -> list[dict[str, Any]]:
        """What is new in one part of the job."""
        part = self._parts.get(name)
        if part is None:
            return []
        found = part.new()
        failed, taken = part.failed, []
        try:
            with self.lock:
                taken = take(found)
        except Exception as error:
            failed = error
        self._note(name, failed)
        return taken

    def _read_progress(self) -> None:
        try:
            told = read_progress(None if self.job is None else self.job.about.progress)
            if told is not None:
                with self.lock:
                    self.live.take_progress(told)
            self._note("progress", None)
        except Exception as error:
            self._note("progress", error)

    def _note(self, part: str, error: Exception | str | None) -> None:
        """Keep the problem in words; an unexpected one is printed with its traceback, once."""
        if error is None:
            self.problems.pop(part, None)
            return
        if isinstance(error, str):
            self.problems[part] = error[:500]
            return
        folder = "" if self.job is None else f"{self.job.about.folder.absolute()}/"
        if isinstance(error, OSError) and error.filename:
            what = f"{Path(error.filename).name}: {error.strerror}"
        else:
            known = isinstance(error, SourceError | RulesError | ValueError)
            what = str(error) if known else f"{type(error).__name__}: {error}"
        told = what.replace(folder, "")[:500]
        if told != self.problems.get(part) and not isinstance(error, SourceError | RulesError | OSError):
            traceback.print_exception(error)
        self.problems[part] = told

    def _tell(self, message: dict[str, Any]) -> None:
        """Publish the message, in parts if many matches came at once."""
        if self.trials:
            message["trials"] = [trial.json() for trial in self.trials]
        if self.problems:
            message["problems"] = dict(self.problems)
        if not any(message.get(part) for part in message if part != "totals"):
            return
        matches = message.pop("matches", [])
        for start in range(0, len(matches), MOST_IN_MESSAGE):
            last = start + MOST_IN_MESSAGE >= len(matches)
            part = matches[start : start + MOST_IN_MESSAGE]
            self.hub.publish("update", {**(message if last else {}), "matches": part})
        if not matches:
            self.hub.publish("update", message)

    def close(self) -> None:
        """Close the places of the job."""
        for sender in self.senders:
            sender.close()
        for part in self._parts.values():
            part.close()
        self.rules.close()
        self.readers.close()
        self._looks.shutdown(wait=False, cancel_futures=True)

    # -- what pages ask for ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Everything that a browser needs to begin."""
        with self.lock:
            found = {**self.live.snapshot(), "health": self.health()}
            found["annotations"] = self.annotations.among(found["matches"])
        told = {"job": self.described(), "trials": [trial.json() for trial in self.trials]}
        return {**found, **told, "problems": dict(self.problems)}

    def health(self) -> dict[str, Any] | None:
        """The state of the job, and which of its places have nothing yet."""
        if self.job is None:
            return None
        about = self.job.about
        found = health_of(self.live.progress, expected=about.progress is not None, runtime=about.runtime)
        missing = [name for name, part in self._parts.items() if part.is_missing]
        unreadable = {name: part.unreadable for name, part in self._parts.items() if part.unreadable}
        hooks = [sender.json() for sender in self.senders]
        held_back = about.matches is not None and not self.rules.are_known
        told = {"missing": missing, "unreadable": unreadable, "webhooks": hooks, "held_back": held_back}
        return {**found, **told}

    def described(self) -> dict[str, Any] | None:
        """The job, for the browser; only paths that are in job.json."""
        if self.job is None:
            return None
        about = self.job.about
        folder = f"{about.folder}/"
        shown = ("title", "runtime", "time", "type", "trigger", "watermark", "metrics", "spark")
        places = {name: getattr(about, name) for name in ("rules", "events", "matches", "late")}
        return {
            **{name: getattr(about, name) for name in (*shown, "entity", "place", "notes")},
            "facets": list(about.facets),
            "where": {name: place and place.removeprefix(folder) for name, place in places.items()},
            "plan": self.job.plan,
            **self.rules.seen.json(),
            "refusal": self.rules.refusal,
            "drafts": self.drafts.json(),
        }

    def recent(self) -> tuple[int, list[dict[str, Any]]]:
        """The held events, and the number of the first."""
        with self.lock:
            events = list(self.live.events)
            return self.live.events_in - len(events), events

    def counters(self) -> dict[str, Any]:
        """How much was read of each part, to check that nothing is lost."""
        with self.lock:
            return {
                **self.live.totals(),
                "messages": self.hub.number,
                "browsers": self.hub.browsers,
                "unreadable": {name: part.unreadable for name, part in self._parts.items()},
            }
