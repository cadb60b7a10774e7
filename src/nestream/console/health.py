"""The health of a job: its state seen from outside, and its numbers over minutes, an hour and a day."""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any

from nestream.console.moments import moment
from nestream.job import State
from nestream.job.progress import STALLED, state_of
from nestream.model.counting import rough_duration

LEVELS = ((1, 300), (15, 240), (300, 288))
"""The seconds between two points, and how many are kept: five minutes, an hour, a day."""


class Series:
    """Points in three resolutions."""

    def __init__(self) -> None:
        self.levels: list[deque[dict[str, Any]]] = [deque(maxlen=kept) for _, kept in LEVELS]

    def add(self, point: dict[str, Any]) -> None:
        """Add a point; the coarse levels take one from time to time."""
        for (seconds, _), level in zip(LEVELS, self.levels, strict=True):
            if not level or point["at"] - level[-1]["at"] >= 1000 * seconds - 500:
                level.append(point)

    def json(self) -> list[list[dict[str, Any]]]:
        """The levels for the browser, finest first."""
        return [list(level) for level in self.levels]


def health_of(
    progress: dict[str, Any] | None, *, expected: bool, runtime: str | None, now: datetime | None = None
) -> dict[str, Any]:
    """The state of a job in a word, and a sentence about it.

    `expected` says whether the job writes its progress at all; one that does and has not yet is starting.
    """
    now = now or datetime.now(UTC)
    if progress is None:
        if not expected:
            return {"state": "unknown", "why": "The job does not write its progress.", "written": None}
        return {"state": State.STARTING.value, "why": _starting(runtime), "written": None}
    try:
        state = state_of(progress, now)
        age = (now - datetime.fromisoformat(progress["written"])) / timedelta(seconds=1)
    except (KeyError, TypeError, ValueError):
        return {"state": "unknown", "why": "progress.json is not that of a job.", "written": None}
    span = rough_duration(max(age, 0))
    why = {
        State.STARTING: _starting(runtime),
        State.RUNNING: "" if progress.get("batches") else "It is running and waiting for the first events.",
        State.STALLED: "A disk or a broker does not answer it."
        if progress["state"] == State.STALLED and age < STALLED
        else f"It has said nothing for {span}; after {STALLED:g} s a job counts as stalled. "
        "Its process was killed, or it is stuck.",
        State.FAILED: str(progress.get("error") or "It gave no reason."),
        State.STOPPED: f"It was stopped {span} ago. The same command continues.",
        State.FINISHED: f"All input was read {span} ago.",
    }[state]
    return {"state": state.value, "why": why[:4000], "written": moment(progress["written"])}


def _starting(runtime: str | None) -> str:
    if runtime == "spark":
        return "Spark is starting, which takes ten seconds to a minute. Matches follow after that."
    return "The job is starting."


def point_of(progress: dict[str, Any] | None, events: int, matches: int, late: int) -> dict[str, Any]:
    """One point of the series: the numbers that the job reports, or otherwise what the console counted."""
    told = progress or {}
    return {
        "at": time.time() * 1000,
        "events": _number(told.get("events"), events),
        "matches": matches,
        "late": _number(told.get("late"), late),
        "batch": _number(told.get("batch_seconds")),
        "lag": _number(told.get("lag")),
        "busy": _number(told.get("busy")),
        "state": _number(told.get("state_bytes")),
    }


def _number(value: Any, otherwise: Any = None) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else otherwise
