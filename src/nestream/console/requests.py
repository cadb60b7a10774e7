"""The requests of the pages: each is checked here, and then done by a worker process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from nestream.console.drafts import title_of
from nestream.console.first_query import EXAMPLES, first_query
from nestream.console.numbers import searched
from nestream.console.pool import Pool
from nestream.console.trial import Trial
from nestream.console.watch import Watch
from nestream.data import sample_names

LIVE = "live"
"""The name of the live events of the job, among those of the data sets."""
MOST_TEXT = 20_000
"""The maximum number of characters of a query."""
MOST_PICKED = 50
SAMPLED = 2_000
OF_EACH_TYPE = 5
"""How many events of a type show which attributes it has."""
MOST_TRIALS = 2


class AskedError(ValueError):
    """A request that a page of the console would not send, or that cannot be met; the message is shown."""


class Asked:
    """The answers to the requests of the pages."""

    def __init__(
        self, watch: Watch, data: dict[str, Path] | None = None, time: str = "ts", type: str = "type"
    ) -> None:
        self.watch = watch
        self.pool = Pool(dict(data or {}), time, type)
        self._numbers = count(1)
        self._runs: dict[str, asyncio.Event] = {}
        """The runs that a page can stop, by the names it gave them."""

    async def close(self) -> None:
        """End all workers."""
        for trial in self.watch.trials:
            await trial.stop()
        await self.pool.close()

    def sources(self) -> list[dict[str, str]]:
        """The names that a page may use for events; it begins with the first."""
        found = [{"name": name, "title": f"file {name}"} for name in self.pool.data]
        samples = sorted(sample_names(), key=lambda name: name not in EXAMPLES)
        found += [{"name": name, "title": f"data set {name}"} for name in samples]
        if self.watch.job is not None:
            found.insert(0, {"name": LIVE, "title": "the live events held now"})
        return found

    async def check(self, body: dict[str, Any]) -> dict[str, Any]:
        """What is wrong with a query while it is being written."""
        return await self._ask("check", text=query_text(body), **self._source(body, sample=True))

    async def first_query(self, body: dict[str, Any]) -> dict[str, Any]:
        """What a new query begins with, for the events of a source."""
        source = self._needed(body)
        if source.get("data") in EXAMPLES:
            return {"ok": True, "text": EXAMPLES[source["data"]]}
        if "events" in source:
            events, time, type = source["events"][-SAMPLED:], source["time"], source["type"]
        else:
            found = await self.pool.ask("data", text="", kind="", limit=SAMPLED, **source)
            if not found["ok"]:
                return found
            events, time, type = [row["event"] for row in found["rows"]], found["time"], found["type"]
        return {"ok": True, "text": first_query(events, time, type, self.watch.live.entity)}

    async def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """What could be written at a place of a query."""
        offset = body.get("offset")
        if type(offset) is not int or offset < 0:
            raise AskedError("The offset must be a number.")
        source = self._source(body, sample=True)
        return await self._ask("complete", text=query_text(body), offset=offset, **source)

    async def plan(self, body: dict[str, Any]) -> dict[str, Any]:
        """The plan of a query, measured over a source if one is named."""
        return await self._ask("plan", text=query_text(body), **self._source(body))

    async def run(self, body: dict[str, Any]) -> dict[str, Any]:
        """The matches of a query over a source; if the page stops the run, those found so far."""
        name, own = named(body, "name", "query"), named(body, "run", "")
        stop = self._runs[own] = asyncio.Event()
        try:
            return await self._ask("run", stop, text=query_text(body), name=name, **self._needed(body))
        finally:
            if self._runs.get(own) is stop:
                del self._runs[own]

    async def match(self, body: dict[str, Any]) -> dict[str, Any]:
        """A match by its address, even if it is no longer held."""
        found = await self.watch.readers.run(self.watch.find_match, named(body, "id", ""))
        said = {} if found is None else self.watch.annotations.among([found])
        return {"ok": found is not None, "match": found, "annotations": said}

    async def stop_run(self, body: dict[str, Any]) -> dict[str, Any]:
        """Stop a run."""
        stop = self._runs.get(named(body, "run", ""))
        if stop is not None:
            stop.set()
        return {"ok": True}

    async def why(self, body: dict[str, Any]) -> dict[str, Any]:
        """Why picked events are not a match. Live events are named by their permanent number."""
        picked = body.get("picked")
        if not isinstance(picked, list) or not all(type(place) is int for place in picked):
            raise AskedError("The picked events must be row numbers.")
        if not 0 < len(picked) <= MOST_PICKED:
            raise AskedError(f"Pick between 1 and {MOST_PICKED} events.")
        source = self._needed(body)
        first = source.setdefault("first", 0)
        if min(picked) < first:
            raise AskedError("Some of the picked events are gone; pick later ones.")
        places = [place - first for place in picked]
        return {**await self._ask("why", text=query_text(body), picked=places, **source), "first": first}

    async def timeline(self, body: dict[str, Any]) -> dict[str, Any]:
        """The timeline of matches that the page has."""
        rows = body.get("rows")
        if not isinstance(rows, list) or len(rows) > 100 or not all(isinstance(row, dict) for row in rows):
            raise AskedError("Pick at most 100 matches.")
        name = named(body, "name", "query")
        return await self._ask("timeline", text=query_text(body), rows=rows, name=name, **self._source(body))

    async def events(self, body: dict[str, Any]) -> dict[str, Any]:
        """Events of a source, to pick from; the latest live ones first."""
        wanted, kind = named(body, "text", ""), named(body, "kind", "")
        source = self._needed(body)
        if "events" not in source:
            return await self.pool.ask("data", text=wanted, kind=kind, limit=200, **source)
        held, first = source["events"], source.get("first", 0)

        def latest() -> Iterator[tuple[int, dict[str, Any]]]:
            for place in range(len(held) - 1, -1, -1):
                if not kind or held[place].get(source["type"]) == kind:
                    yield first + place, held[place]

        rows = searched(latest, wanted, source["time"], source["type"], 200)
        kinds = sorted({str(event.get(source["type"])) for event in held[-SAMPLED:]})
        columns = list(dict.fromkeys(name for row in rows for name in row["event"]))
        return {
            "ok": True,
            "total": len(held),
            "rows": rows[::-1],
            "types": kinds[:200],
            "columns": columns,
            "time": source["time"],
            "type": source["type"],
        }

    async def measure(self, body: dict[str, Any]) -> dict[str, Any]:
        """How long each rule of the job takes over the live events."""
        rules = {name: rule.text for name, rule in self.watch.live.rules.items() if not rule.problem}
        return await self._ask("measure", rules=rules, **self._needed({"data": LIVE}))

    async def start_trial(self, body: dict[str, Any]) -> dict[str, Any]:
        """Match a query over the live events, present and future.

        If there is a deployed rule of its name, that runs beside it.
        """
        if self.watch.job is None:
            raise AskedError("There is no job to try the query on.")
        name, text = named(body, "name", "query"), query_text(body)
        await self.stop_trial({"name": name})
        self.watch.trials = [trial for trial in self.watch.trials if trial.stopped is None]
        if len(self.watch.trials) >= MOST_TRIALS:
            running = ", ".join(trial.title for trial in self.watch.trials)
            raise AskedError(f"{MOST_TRIALS} trials are running ({running}); stop one first.")
        rule = self.watch.live.rules.get(name)
        deployed = None if rule is None or rule.problem or rule.into else rule.text
        title = title_of(text) or (rule.title if rule else named(body, "title", "") or name)
        trial = Trial(next(self._numbers), name, title[:200], text, deployed, self.pool.worker())
        first, events = self.watch.recent()
        trial.next = first if body.get("before") else first + len(events)
        trial.take(first, events)
        self.watch.trials.append(trial)  # before it has started, so that it misses no event
        answer: dict[str, Any] = {"ok": False}
        try:
            lateness = self.watch.job.about.lateness
            settings = {**self._columns(), "lateness": lateness, "makers": self._makers()}
            answer = await trial.start(settings)
        finally:
            if not answer["ok"] and trial in self.watch.trials:
                self.watch.trials.remove(trial)
        return answer

    async def trial_matches(self, body: dict[str, Any]) -> dict[str, Any]:
        """The last matches that only the trial has, and those that it lacks."""
        name = named(body, "name", "query")
        found = next((trial for trial in self.watch.trials if trial.name == name), None)
        if found is None:
            return {"ok": False, "error": "There is no such trial."}
        return {"ok": True, "new": [], "gone": [], **found.rows, **self._columns()}

    async def stop_trial(self, body: dict[str, Any]) -> dict[str, Any]:
        """End a trial."""
        name = named(body, "name", "query")
        for trial in [trial for trial in self.watch.trials if trial.name == name]:
            self.watch.trials.remove(trial)
            await trial.stop()
        return {"ok": True}

    async def _ask(
        self, operation: str, stop: asyncio.Event | None = None, /, **request: Any
    ) -> dict[str, Any]:
        """The answer of a worker, which knows the job's queries that make composite events."""
        return await self.pool.ask(operation, stop, makers=self._makers(), **request)

    # -- sources ---------------------------------------------------------------------------------------------

    def _needed(self, body: dict[str, Any]) -> dict[str, Any]:
        source = self._source(body)
        if not source:
            raise AskedError("Choose a data set, or the events of the job.")
        return source

    def _source(self, body: dict[str, Any], sample: bool = False) -> dict[str, Any]:
        """The events that a page names: only names that the console knows, never a path."""
        name = body.get("data")
        if not name:
            return {}
        if name not in [source["name"] for source in self.sources()]:
            raise AskedError("There is no data set of that name.")
        if name != LIVE:
            return {"data": name}
        first, events = self.watch.recent()
        if sample:
            events = self._some_of_each_type(events)
        if not events:
            return {} if sample else {"events": [], **self._columns()}
        return {"events": events, **({} if sample else {"first": first}), **self._columns()}

    def _some_of_each_type(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The last events of each type, which show their attributes."""
        found: dict[str, list[dict[str, Any]]] = {}
        for event in reversed(events):
            some = found.setdefault(str(event.get(self.watch.live.type)), [])
            if len(some) < OF_EACH_TYPE:
                some.append(event)
        return [event for some in found.values() for event in some]

    def _makers(self) -> dict[str, str]:
        """The job's queries that make composite events, which a query of the editor may read."""
        rules = self.watch.live.rules.items()
        return {name: rule.text for name, rule in rules if rule.into and not rule.problem}

    def _columns(self) -> dict[str, str]:
        return {"time": self.watch.live.time, "type": self.watch.live.type}


def query_text(body: dict[str, Any]) -> str:
    """The query of a request."""
    text = body.get("text")
    if not isinstance(text, str):
        raise AskedError("The query must be text.")
    if len(text) > MOST_TEXT:
        raise AskedError(f"The query is too long: the limit is {MOST_TEXT:,} characters.")
    return text


def named(body: dict[str, Any], key: str, default: str) -> str:
    """A short text of a request."""
    value = body.get(key, default)
    if not isinstance(value, str) or len(value) > 200:
        raise AskedError(f"The {key} must be text of at most 200 characters.")
    return value
