"""The progress of a query started on Spark, as Spark reports it.

Only public attributes of the query are used, so this works with any Spark, and without pyspark here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from nestream.job.progress import Progress, State

METRICS = "nestream"
"""The name under which a nestream query counts its events, matches, late and malformed events."""


class SparkProgress:
    """Reads the progress of a query on demand."""

    def __init__(self, query: Any, progress: Progress) -> None:
        self._query, self._progress = query, progress
        self._seen: tuple[str, int] = ("", -1)
        """The run and the number of the last micro-batch that was counted."""

    def look(self) -> bool:
        """Update the progress; return whether the query still runs."""
        active = bool(self._query.isActive)
        for one in self._query.recentProgress:
            self._take(_plain(one))
        self._progress.looked = datetime.now(UTC)
        if not active:
            problem = self._query.exception()
            self._progress.state = State.STOPPED if problem is None else State.FAILED
            self._progress.error = None if problem is None else str(problem)
        return active

    def _take(self, told: Mapping[str, Any]) -> None:
        place = (str(told.get("runId", "")), int(told.get("batchId", -1)))
        if place[0] == self._seen[0] and place[1] <= self._seen[1]:
            return
        self._seen, progress = place, self._progress
        counts = _counts(told)
        progress.events += int(counts.get("events", told.get("numInputRows") or 0))
        for name in ("matches", "late", "malformed"):
            setattr(progress, name, getattr(progress, name) + int(counts.get(name, 0)))
        progress.batch, progress.batches = place[1], progress.batches + 1
        progress.batch_seconds = float(told.get("batchDuration") or 0) / 1000
        progress.rate = float(told.get("processedRowsPerSecond") or 0)
        began = _moment(told.get("timestamp"))
        if began is not None:
            progress.at = began
        watermark = _moment((told.get("eventTime") or {}).get("watermark"))
        if watermark is not None and watermark.year > 1970:
            progress.seen(watermark, 0, datetime.now(UTC))
        operators = told.get("stateOperators") or ()
        progress.state_rows = sum(int(one.get("numRowsTotal") or 0) for one in operators)
        progress.state_bytes = sum(int(one.get("memoryUsedBytes") or 0) for one in operators)


def _counts(told: Mapping[str, Any]) -> dict[str, int]:
    observed = (told.get("observedMetrics") or {}).get(METRICS) or {}
    return observed.asDict() if hasattr(observed, "asDict") else dict(observed)


def _plain(told: Any) -> Mapping[str, Any]:
    """A Spark report as JSON data: a mapping, or an object that has it as text."""
    if isinstance(told, dict):
        return told
    text = told.json
    found: Mapping[str, Any] = json.loads(text() if callable(text) else str(text))
    return found


def _moment(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
