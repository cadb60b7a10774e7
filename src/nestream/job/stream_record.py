"""Records the events and matches of a stream in your own program, so that the console can show them.

About once a second, a file of each appears in the folder of the job. Only the last files of events are kept:
they are for viewing, and the program has its own.
"""

from __future__ import annotations

import json
import time as clock
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa

from nestream.job.folder import JobFolder
from nestream.job.live_rules import Change, LiveRules
from nestream.job.progress import Progress
from nestream.model.lengths import difference_of
from nestream.sink import Sink, first_column, open_sink, plain

KEPT = 300
"""How many files of events are kept."""
NAMES = ("events", "matches", "late")


class StreamRecord:
    """What a stream took and found, in files that appear as a whole."""

    def __init__(self, folder: JobFolder, time: str, lateness: Any, progress: Progress) -> None:
        self.places = {name: str(folder.path / name) for name in NAMES}
        self._time, self._lateness, self._progress = time, difference_of(lateness, "lateness"), progress
        self._waiting: dict[str, list[str]] = {name: [] for name in NAMES}
        self._lock = Lock()
        self._sinks = {name: _opened(place) for name, place in self.places.items()}
        self._described: Callable[[], dict[str, Any]] | None = None
        self._published = clock.monotonic()
        self._counted, self._busy = 0, 0.0
        self._greatest: Any = None

    def begin(self) -> float:
        """The time before events are taken."""
        return clock.perf_counter()

    def took(self, events: Any, found: Any, begin: float, stream: Any) -> None:
        """Record events that were taken since, and the matches they decided."""
        took = clock.perf_counter() - begin
        taken, matches = _rows(events), [self._versioned(match) for match in _rows(found)]
        with self._lock:
            progress = self._progress
            self._add("events", taken)
            self._add("matches", matches)
            self._described = stream.describe
            progress.events += len(taken)
            progress.matches += len(matches)
            for match in matches:
                name = match.get("query")
                if isinstance(name, str):
                    progress.by_rule[name] = progress.by_rule.get(name, 0) + 1
            progress.batches += 1
            progress.at, progress.batch_seconds = datetime.now(UTC), took
            self._busy += took
            for event in taken:
                self._note_time(event.get(self._time))
            if self._greatest is not None:
                with suppress(TypeError, OverflowError):
                    progress.seen(self._greatest, self._lateness, progress.at)

    def _versioned(self, match: dict[str, Any]) -> dict[str, Any]:
        """A match with the version of its rule, if rules have versions."""
        version = self._progress.rules.get(str(match.get("query")))
        return match if version is None else {**match, "version": version}

    def _note_time(self, value: Any) -> None:
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                return
        with suppress(TypeError):
            if value is not None and (self._greatest is None or value > self._greatest):
                self._greatest = value

    def of_rules(self, live: LiveRules, change: Change | None = None) -> None:
        """Note which rules run, and what became of a change of them."""
        with self._lock:
            live.show(self._progress)
            if change is not None:
                self._progress.changed(change.json())

    def late(self, then: Callable[[dict[str, Any]], None] | None) -> Callable[[dict[str, Any]], None]:
        """A handler for late events, which also calls your own."""

        def note(event: dict[str, Any]) -> None:
            with self._lock:
                self._progress.late += 1
                self._add("late", [{**event, "reason": "late: behind the watermark"}])
            if then is not None:
                then(event)

        return note

    def dead(self, then: Callable[[Any, str], None] | None) -> Callable[[Any, str], None]:
        """A handler for events that cannot be used, with the reason, which also calls your own."""

        def note(event: Any, reason: str) -> None:
            shown = event if isinstance(event, dict) else {"raw": repr(event)}
            with self._lock:
                self._progress.malformed += 1
                self._add("late", [{**shown, "reason": reason}])
            if then is not None:
                then(event, reason)

        return note

    def _add(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        self._waiting[name] += [json.dumps(plain(dict(row)), ensure_ascii=False, default=str) for row in rows]

    def publish(self) -> bool:
        """Publish the files of what came since; returns False, because more will come."""
        with self._lock:
            for name, sink in self._sinks.items():
                rows, self._waiting[name] = self._waiting[name], []
                if rows:
                    sink.write(pa.table({"line": rows}))
                    position = sink.prepare()
                    sink.sync(position)
                    sink.commit(position)
            self._look()
        self._forget()
        return False

    def _look(self) -> None:
        """Update the progress."""
        progress, now = self._progress, clock.monotonic()
        passed = max(now - self._published, 1e-3)
        progress.rate = (progress.events - self._counted) / passed
        progress.busy = min(self._busy / passed, 1.0)
        self._published, self._counted, self._busy = now, progress.events, 0.0
        progress.looked = datetime.now(UTC)

    def _forget(self) -> None:
        """Remove the oldest files of events."""
        for path in sorted(Path(self.places["events"]).glob("part-*"))[:-KEPT]:
            path.unlink(missing_ok=True)


def _opened(place: str) -> Sink:
    """A folder of lines, which continues after the existing files."""
    sink = open_sink(place, "jsonl", encode=first_column)
    there = [path.stem.rpartition("-")[2] for path in Path(place).glob("part-*")]
    number = max((int(name) for name in there if name.isdigit()), default=-1) + 1
    sink.restore({"number": number, "prepared": []})
    return sink


def _rows(given: Any) -> list[dict[str, Any]]:
    """Events or matches as rows: a list of them, or anything that converts to a table."""
    if isinstance(given, list):
        return given
    if isinstance(given, pa.Table | pa.RecordBatch):
        return [_mapped(row) for row in given.to_pylist()]
    try:
        return [dict(row) for row in given]
    except (TypeError, ValueError):
        return [_mapped(row) for row in pa.table(given).to_pylist()]


def _mapped(row: dict[str, Any]) -> dict[str, Any]:
    values = row.get("values")
    return {**row, "values": dict(values)} if isinstance(values, list) and "query" in row else row
