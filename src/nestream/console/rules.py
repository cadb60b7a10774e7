"""The rules of a job as the console sees and changes them: what is deployed, in which versions, and by whom.

The console reads rules and leaves their history to whoever runs or changes them. A change goes through the
same store as `nestream rules`, so the running job picks it up.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nestream.console.job import Job, Rule
from nestream.job import JobError, RulesError, RuleSet, RuleStore, Version, open_rules
from nestream.job.description import FILE, Description, read_description
from nestream.job.rule_folder import BY_HAND, SUFFIX
from nestream.job.rules import folded

MOST_VERSIONS = 50
"""How many of the last versions are listed."""
KAFKA = "kafka://"


class ChangedError(Exception):
    """A rule has changed since the page read it."""

    def __init__(self, text: str | None, version: int | None) -> None:
        super().__init__("The deployed rule has changed since this page read it.")
        self.text, self.version = text, version


@dataclass(frozen=True)
class Seen:
    """The rules at one look."""

    rules: Mapping[str, Rule]
    versions: tuple[Version, ...] = ()
    number: int = field(default=0, compare=False)
    """Which reading of a topic it is. Versions do not tell: they begin again if the topic is recreated."""

    def json(self) -> dict[str, Any]:
        """The rules and their versions for the browser, newest version first."""
        listed = [
            {"version": one.version, "time": one.time, "what": one.what[:200], "rules": list(one.rules)[:50]}
            for one in self.versions[: -MOST_VERSIONS - 1 : -1]
        ]
        return {"rules": [rule.json() for rule in self.rules.values()], "versions": listed}


class JobRules:
    """Reads the rules of a job repeatedly, and changes them if the job accepts changes."""

    problem: str | None = None
    """Always None: if the rules cannot be read, `look` raises instead."""

    def __init__(self, job: Job | None) -> None:
        self._job = job
        self._place = None if job is None else job.about.rules
        self._is_topic = (self._place or "").startswith(KAFKA)
        self._store: RuleStore | None = None
        self._lock = threading.Lock()
        """A store is used by one thread at a time."""
        self._looked: Any = None
        self._described: Any = None
        self.is_described_anew = False
        """Whether job.json has changed; whoever looks at it resets this."""
        self._is_live = job is not None and job.about.live_rules
        self._reading: Future[Seen] | None = None
        self._readings = 0
        """How often a topic was read."""
        self._failed: Exception | None = None
        """Why the topic could not be read the last time."""
        self._thread = ThreadPoolExecutor(1)
        self.seen = Seen({} if job is None else job.read_rules())
        self._told = self.seen
        """The rules that the last look has reported."""
        self.are_known = not self._is_topic
        """Whether the rules were read: those of a topic are once its brokers have answered."""

    @property
    def refusal(self) -> str | None:
        """Why nothing can be deployed to the job, in a sentence; None if it can."""
        if self._job is None:
            return "There is no job to deploy to."
        if self._place is None:
            return "job.json names no rules."
        if self._is_live:
            return None
        if not self._is_topic and not Path(self._place).is_dir():
            return (
                "The job runs one query, which it read when it was started. Start it with a folder of rules "
                "to change them while it runs: nestream stream FOLDER --job DIR."
            )
        return (
            "The job runs the rules that it was started with, and takes no changes. A job of "
            "`nestream stream FOLDER --job DIR` does, and so does nestream.job() with a folder of rules."
        )

    # -- reading -------------------------------------------------------------------------------------------

    def look(self) -> bool:
        """Read the rules if they have changed; return whether they have. Raises if they cannot be read."""
        if self._job is None or self._place is None:
            return False
        was_live, self._is_live = self._is_live, self._takes_changes(self._job.about)
        found = self._from_topic() if self._is_topic else self._from_files()
        self.are_known = self.are_known or found is not None
        if found is not None and found != self.seen:
            self._take(found)
        before, self._told = self._told, self.seen
        return before != self.seen or was_live != self._is_live

    def _take(self, found: Seen) -> None:
        """Take what was read, unless it was read before a change that the console has made since."""
        if not (self._is_topic and found.number < self.seen.number):
            self.seen = found

    def _takes_changes(self, about: Description) -> bool:
        """Whether the job takes changes, as job.json says now: a job may be started after its console."""
        path = about.folder / FILE
        stat = path.stat() if path.exists() else None
        looks = stat and (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if looks != self._described:
            self.is_described_anew, self._described = self._described is not None, looks
            with suppress(JobError):
                return read_description(about.folder).live_rules
        return self._is_live

    def _from_files(self) -> Seen | None:
        place = Path(self._place or "")
        looks = _looks(place)
        if looks == self._looked or (place / ".nestream" / "change.json").exists():
            return None  # the latter is a change in progress
        assert self._job is not None
        rules = self._job.read_rules()
        versions = tuple(self._opened().history()) if place.is_dir() else ()
        self._looked = looks
        return Seen(_with_versions(rules, versions), versions)

    def _from_topic(self) -> Seen | None:
        """The rules of a topic, which another thread reads, because brokers may answer slowly."""
        if self._reading is None:
            self._reading = self._thread.submit(self._read_topic)
        elif self._reading.done():
            done, self._reading = self._reading, None
            try:
                found, self._failed = done.result(), None
                return found
            except Exception as error:
                self._failed = error
        if self._failed is not None:  # until it can be read again
            raise self._failed
        return None

    def _read_topic(self) -> Seen:
        assert self._job is not None
        with self._lock:
            store = self._opened()
            versions = tuple(store.history())
            self._readings += 1
            number = self._readings
        texts = folded(versions).texts
        known = {name: rule.text for name, rule in self.seen.rules.items()}
        rules = self.seen.rules if texts == known else self._job.rules_of(texts)
        return Seen(_with_versions(dict(rules), versions), versions, number)

    def _opened(self) -> RuleStore:
        if self._store is None:
            self._store = open_rules(self._place or "")
        return self._store

    # -- changing ------------------------------------------------------------------------------------------

    def texts(self) -> dict[str, str]:
        """The rules that are deployed now."""
        return {name: rule.text for name, rule in self.seen.rules.items()}

    def deploy(self, name: str, text: str, before: str | None, others: Mapping[str, str]) -> RuleSet:
        """Replace or add a rule; return the new version.

        Raises a `ChangedError` unless its text was `before`, and a `RulesError` unless the other rules are
        those it was checked with.
        """

        def changes(known: RuleSet) -> Mapping[str, str | None]:
            if known.texts.get(name) != before:
                raise ChangedError(known.texts.get(name), known.versions.get(name))
            if {other: held for other, held in known.texts.items() if other != name} != dict(others):
                raise RulesError("another rule has just changed; try again")
            return {name: text}

        return self._change(f"{'add' if before is None else 'replace'} {name} (console)", changes)

    def at(self, version: int) -> RuleSet:
        """The rules of a version."""
        with self._lock:
            return self._opened().at(version)

    def roll_back(self, version: int, wanted: Mapping[str, str], newest: int) -> RuleSet:
        """Bring back the rules of a version, as a new one, if the page knows the newest."""

        def changes(known: RuleSet) -> Mapping[str, str | None]:
            if known.version != newest:
                raise RulesError(f"there is a newer version, {known.version}; look at it first")
            return known.differences(wanted)

        return self._change(f"rollback {version} (console)", changes)

    def _change(self, what: str, changes: Any) -> RuleSet:
        with self._lock:  # a worker has checked the rules, because their text is untrusted and may take long
            made = self._opened().change(what, changes, lambda *_: None)
        if self._is_topic:
            # The next reading may take long, and pages should not show the old text until then. The change is
            # made whether or not this succeeds.
            with suppress(RulesError):
                self._take(self._read_topic())
        return made

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _with_versions(rules: Mapping[str, Rule], versions: tuple[Version, ...]) -> dict[str, Rule]:
    """The rules, each with its version, and with a note if a person changed its file."""
    if not versions:
        return dict(rules)
    noted = folded(versions).rules
    whats = {one.version: one for one in versions}
    found = {}
    for name, rule in rules.items():
        there = noted.get(name)
        if there is None or there.text != rule.text:
            what = "is new" if there is None else "was changed"
            note = f"The file {name}{SUFFIX} {what}, by hand, and is not in the history yet."
            found[name] = replace(rule, note=note, version=None if there is None else there.version)
            continue
        brought = whats.get(there.version)
        found[name] = replace(rule, version=there.version)
        if brought is not None and brought.what == BY_HAND:
            note = f"The file {name}{SUFFIX} was changed by hand: version {there.version}."
            found[name] = replace(found[name], note=note)
    return found


def _looks(place: Path) -> Any:
    """A value that changes whenever a file of rules does."""
    paths = [*sorted(place.glob(f"*{SUFFIX}")), place / ".nestream" / "history.jsonl"]
    found = []
    for path in paths if place.is_dir() else [place]:
        try:
            stat = path.stat()
        except OSError:
            continue
        found.append((path.name, stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return found
