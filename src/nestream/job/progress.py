"""The progress of an embedded job: its state, its counts, its watermark and what it holds."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from nestream.job.checkpoint import replace_file

FILE = "progress.json"
CHANGES = 100
"""How many of the last changes of the rules are shown."""
STALLED = 30.0
"""After this many seconds without an update, a running job counts as stalled."""


class State(StrEnum):
    """What a job is doing."""

    STARTING = "starting"
    RUNNING = "running"
    STALLED = "stalled"
    FAILED = "failed"
    STOPPED = "stopped"
    FINISHED = "finished"


@dataclass
class Progress:
    """Counts since the first start, and the current state."""

    state: State = State.STARTING
    events: int = 0
    matches: int = 0
    late: int = 0
    malformed: int = 0
    future: int = 0
    by_rule: dict[str, int] = field(default_factory=dict)
    """Matches of each query of a set."""
    seconds_by_rule: dict[str, float] = field(default_factory=dict)
    """The seconds spent on finding the matches of each query of a set, since this start."""
    batches: int = 0
    """The micro-batches of this run."""
    batch: int = -1
    """The number of the last checkpoint."""
    at: datetime | None = None
    """When the last batch of events arrived."""
    watermark: Any = None
    """The time up to which events are decided; an integer if times are integers."""
    lag: float | None = None
    """The seconds from the watermark to the last batch."""
    batch_seconds: float = 0.0
    """How long the last batch took."""
    checkpoint_seconds: float = 0.0
    """How long the last checkpoint took."""
    rate: float = 0.0
    """Events per second since the last update."""
    busy: float = 0.0
    """The share of time spent on batches and checkpoints since the last update; at 1 it cannot keep up.
    """
    looked: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When the job last updated its progress."""
    state_bytes: int = 0
    state_rows: int = 0
    version: int | None = None
    """The version of the rules, if they may change."""
    rules: dict[str, int] = field(default_factory=dict)
    """The running rules, each with the version that brought it."""
    refused: dict[str, str] = field(default_factory=dict)
    """The rules that do not run, and why."""
    unseen: dict[str, list[str]] = field(default_factory=dict)
    """The attributes and types that each query names and no event has had so far, each as a sentence."""
    rules_problem: str | None = None
    """Why the rules cannot be read now."""
    changes: list[dict[str, Any]] = field(default_factory=list)
    """The last changes of the rules."""
    pending: int | None = None
    """At the end, the matches that would follow if the input ended."""
    flushed: bool = False
    """Whether the input was ended for good."""
    error: str | None = None

    def counts(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        names = ("events", "matches", "late", "malformed", "future", "by_rule", "flushed", "changes")
        return {name: getattr(self, name) for name in names}

    def changed(self, change: dict[str, Any]) -> None:
        """Record a change of the rules, and how many events came before it."""
        self.changes = [*self.changes, {**change, "events": self.events}][-CHANGES:]

    def seen(self, greatest: Any, lateness: Any, now: datetime) -> None:
        """Record the greatest time seen, and with it the watermark."""
        try:
            self.watermark = greatest - lateness if lateness else greatest
        except (TypeError, OverflowError):  # a number in the unit of the time column, or before all time
            self.watermark = greatest
        if isinstance(self.watermark, datetime):
            zoned = self.watermark if self.watermark.tzinfo else self.watermark.replace(tzinfo=UTC)
            self.lag = (now - zoned) / timedelta(seconds=1)

    def json(self) -> dict[str, Any]:
        """The progress as plain data."""
        shown = dict(vars(self))
        del shown["looked"]
        shown["state"] = self.state.value
        for name in ("at", "watermark"):
            if isinstance(shown[name], datetime):
                shown[name] = shown[name].isoformat()
        for name in ("rate", "busy"):
            shown[name] = round(shown[name], 3)
        shown["seconds_by_rule"] = {name: round(took, 6) for name, took in self.seconds_by_rule.items()}
        return {"written": datetime.now(UTC).isoformat(), **shown}

    def state_now(self) -> State:
        """The current state, as an observer sees it: a job without activity for long has stalled."""
        return _state_at(self.state, self.looked, datetime.now(UTC))

    def write(self, path: Path) -> None:
        """Replace the file that informs others."""
        replace_file(path, json.dumps(self.json()).encode() + b"\n", durable=False)


def state_of(told: dict[str, Any], now: datetime | None = None) -> State:
    """The state in progress.json, seen from outside: a job without updates has stalled."""
    return _state_at(State(told["state"]), datetime.fromisoformat(told["written"]), now or datetime.now(UTC))


def _state_at(state: State, looked: datetime, now: datetime) -> State:
    if state in (State.STARTING, State.RUNNING):
        age = abs(now - looked) / timedelta(seconds=1)  # clocks may be set back
        return State.STALLED if age > STALLED else state
    return state
