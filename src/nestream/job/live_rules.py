"""Changes the rules of a running job: what is bound, what is refused, and what a checkpoint keeps.

A rule that does not parse, bind or fit the events is refused: the job continues with the others, and with the
previous version of that rule. A rule that stops fitting the events, because a column turns out to be of
another kind, is suspended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from nestream.job.progress import Progress
from nestream.job.rules import RulesError, RuleSet, RuleSource
from nestream.model.diagnostics import QueryError, QuerySetError
from nestream.model.query_set_table import with_versions
from nestream.model.schema import EventError
from nestream.sink import plain


@dataclass(frozen=True)
class Change:
    """The outcome of a change of the rules."""

    version: int
    joined: dict[str, Any]
    """The rules with a new text, each with the time since which it sees events; None for all."""
    replaced: tuple[str, ...]
    """Those of them that existed before."""
    left: tuple[str, ...]
    refused: dict[str, str]
    """The rules that are newly refused, and why."""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def json(self) -> dict[str, Any]:
        """The change as plain data."""
        found: dict[str, Any] = plain(vars(self))
        return found


class LiveRules:
    """The rules of a job, as they run and as their source has them.

    `bind` makes a query set from texts, and raises if they are not queries; `start` makes a stream of it.
    `fits` raises if the named rules of a set read what the events do not have.
    """

    def __init__(
        self,
        source: RuleSource,
        bind: Callable[[Mapping[str, str]], Any],
        start: Callable[..., Any],
        fits: Callable[[Any, Collection[str]], None] = lambda parsed, names: None,
    ) -> None:
        self._source, self._bind, self._start, self._fits = source, bind, start, fits
        self.parsed: Any = None
        """The query set that runs."""
        self.running = RuleSet()
        self.refused: dict[str, str] = {}
        """The rules whose current text does not run, and why."""
        self._seen = RuleSet()
        self.problem: str | None = None
        """Why the rules cannot be read now."""

    def start(self, **handlers: Any) -> Any:
        """Start a stream of the running rules."""
        self.parsed = self._bind(self.running.texts)
        return self._start(self.parsed, **handlers)

    def with_versions(self, matches: pa.Table) -> pa.Table:
        """Matches with the versions of their rules."""
        return with_versions(matches, self.running.versions)

    def show(self, progress: Progress) -> None:
        """Record which rules run, which are refused, and why rules cannot be read."""
        progress.version, progress.rules = self.running.version, self.running.versions
        progress.refused, progress.rules_problem = self.refused, self.problem

    # -- checkpoints ---------------------------------------------------------------------------------------

    def begin(self, saved: Mapping[str, Any] | None) -> None:
        """Begin with the rules of a checkpoint, or with the current ones."""
        if saved is None:
            self.running = self._seen = self._source.read(None)
            return
        self.running = RuleSet.of(saved["running"])
        self._seen = RuleSet.of(saved["seen"]) if "seen" in saved else self.running
        self.refused = dict(saved["refused"])

    def json(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        saved = {"running": self.running.json(), "refused": self.refused}
        return saved if self._seen == self.running else {**saved, "seen": self._seen.json()}

    # -- changes -------------------------------------------------------------------------------------------

    def look(self, stream: Any) -> Change | None:
        """Check the rules, and apply what has changed to the stream; None if nothing has."""
        try:
            found = self._source.read(self._seen)
        except RulesError as problem:  # such as while a disk is away: nothing is known to have changed
            self.problem = str(problem)
            return None
        self.problem = None
        if found == self._seen:
            if found.topic != self._seen.topic:  # the same rules in a topic that was recreated
                self._seen, self.running = found, self.running.taking(found, [])
            return None
        self._seen = found
        joined: dict[str, Any] = {}
        before = self.running
        refused = self._take(stream, found, list(before.differences(found.texts)), joined)
        self.running = self.running.taking(found, [])
        left = tuple(name for name in before.rules if name not in self.running.rules)
        known, running = found.texts, self.running.texts
        new = {name: why for name, why in refused.items() if self.refused.get(name) != why}
        refused = {**self.refused, **refused}
        self.refused = {name: why for name, why in refused.items() if known.get(name) != running.get(name)}
        replaced = tuple(name for name in joined if name in before.rules)
        return Change(found.version, joined, replaced, left, new)

    def _take(self, stream: Any, found: RuleSet, names: list[str], joined: dict[str, Any]) -> dict[str, str]:
        """Apply all of some rules that can be applied; return the others, and why."""
        if not names:
            return {}
        wanted = self.running.taking(found, names)
        try:
            parsed = self._bind(wanted.texts)
            self._fits(parsed, names)
            joined |= stream.change(parsed)
            self.parsed = parsed
        except (
            Exception
        ) as problem:  # whatever is wrong with a rule, even a defect of nestream, stops no other
            refused = {name: str(error) for name, error in _errors(problem).items() if name in names}
            rest = [name for name in names if name not in refused]
            if refused:
                return {**refused, **self._take(stream, found, rest, joined)}
            if len(names) == 1:
                known = isinstance(problem, ValueError | EventError)
                return {names[0]: str(problem) if known else f"internal error: {problem!r}"}
            half = len(names) // 2  # it is unknown which one is at fault
            refused = self._take(stream, found, names[:half], joined)
            return {**refused, **self._take(stream, found, names[half:], joined)}
        self.running = wanted
        return {}

    def suspend(self, stream: Any, problem: QueryError) -> Change | None:
        """Continue the stream without the rules that an event does not fit; None if none would be left."""
        errors = _errors(problem)
        left = self.running.without(errors)
        if not errors or not left.rules:
            return None
        self.parsed = self._bind(left.texts)
        stream.change(self.parsed)
        self.running = left
        reasons = {name: str(error) for name, error in errors.items()}
        self.refused |= reasons
        return Change(left.version, {}, (), tuple(errors), reasons)


def _errors(problem: Exception) -> dict[str, QueryError]:
    """What is wrong with each rule, where known."""
    return problem.errors if isinstance(problem, QuerySetError) else {}
