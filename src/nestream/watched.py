"""`nestream.job(...)`: attach the console to your own job with one line, on Spark or in this process."""

from __future__ import annotations

import os
import threading
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from nestream.job.description import JobError
from nestream.job.folder import JobFolder
from nestream.job.live_rules import LiveRules
from nestream.job.progress import Progress, State
from nestream.job.rule_folder import RuleFolder
from nestream.job.spark_progress import SparkProgress
from nestream.job.stream_record import StreamRecord
from nestream.queries import Queries, queries, stream_rules
from nestream.query import Query
from nestream.query import query as parsed

TICK = 1.0
"""The seconds between two checks of a job."""


def job(
    folder: str | os.PathLike[str],
    rules: str | os.PathLike[str] | Query | Queries | Mapping[str, Any],
    query: Any = None,
    *,
    matches: str | os.PathLike[str] | None = None,
    events: str | os.PathLike[str] | None = None,
    late: str | os.PathLike[str] | None = None,
    time: str = "ts",
    type: str = "type",
    watermark: str | None = None,
    title: str | None = None,
    entity: str | None = None,
    place: str | None = None,
    facets: Sequence[str] | None = None,
    titles: Mapping[str, str] | None = None,
    severities: Mapping[str, str] | None = None,
) -> WatchedJob:
    """Describe a job in a folder, so that `nestream console FOLDER` shows it.

    `rules` are what you match: a query, a query set, a mapping, or a folder of `.neel` files. `query` is the
    started Spark query that writes the matches; the console shows its progress. `matches`, `events` and
    `late` are the places that it writes to and reads from: folders, files or `kafka://` addresses. For a
    stream in this process, call `stream()` on the result; it records events and matches itself. For files or
    topics on Spark, call `stream_files()`. With a folder of rules, both apply changes of the rules while they
    run, including those that you deploy from the console.

    `entity`, `place` and `facets` name attributes; `titles` and `severities` map rules to values. What you
    leave out stays as it is in job.json.

    >>> import tempfile
    >>> import nestream
    >>> with nestream.job(tempfile.mkdtemp(), {"pairs": "SEQ(A a, B b) WITHIN 10"}) as job:
    ...     stream = job.stream()
    ...     found = [*stream.push({"ts": 1, "type": "A"}), *stream.push({"ts": 2, "type": "B"})]
    >>> [match["query"] for match in found]
    ['pairs']
    """
    made = JobFolder(folder)
    found = _rules(made, rules)
    kept = {
        "title": title,
        "entity": entity,
        "place": place,
        "facets": None if facets is None else list(facets),
        "titles": None if titles is None else dict(titles),
        "severities": None if severities is None else dict(severities),
        "watermark": watermark,
        "matches": matches,
        "events": events,
        "late": late,
    }
    made.describe(
        rules=found[0],
        time=time,
        type=type,
        runtime="embedded" if query is None else "spark",
        live_rules=None,
        **{name: value for name, value in kept.items() if value is not None},
    )
    is_folder = isinstance(rules, str | os.PathLike) and Path(rules).is_dir()
    watched = WatchedJob(made, found[1], time, type, found[0] if is_folder else None)
    if query is not None:
        watched.watch(query)
    return watched


def _rules(folder: JobFolder, given: Any) -> tuple[Path, Query | Queries]:
    """The folder or file of some rules, and the rules."""
    if isinstance(given, str | os.PathLike):
        path = Path(given)
        if not path.exists():
            raise JobError(f"there is no file or folder {path}\n  hint: name a folder of .neel files")
        return path, queries(path) if path.is_dir() else parsed(path.read_text(encoding="utf-8"))
    found = given if isinstance(given, Query | Queries) else queries(given)
    members = {"query": found} if isinstance(found, Query) else dict(found.members)
    texts = {name: one.formatted if one.parameters else one.text for name, one in members.items()}
    return folder.keep_rules(texts), found


class WatchedJob:
    """A job that the console shows while it runs."""

    def __init__(
        self, folder: JobFolder, rules: Query | Queries, time: str, type: str, place: Path | None = None
    ) -> None:
        self.folder = folder
        self._place = place
        """The folder of the rules, if you passed one: they may then change."""
        self.rules = rules
        self.progress = Progress()
        self._time, self._type = time, type
        self._record: StreamRecord | None = None
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self.folder.tell(self.progress)

    def watch(self, query: Any) -> None:
        """Show the progress of a started Spark query until it ends."""
        spark = getattr(query, "sparkSession", None)
        if spark is not None:
            with suppress(Exception):  # Spark Connect has no context, and some contexts have no page
                self.folder.describe(spark=spark.sparkContext.uiWebUrl)
        seen = SparkProgress(query, self.progress)
        self._every_second(lambda: not seen.look())

    def stream(self, **settings: Any) -> RecordedStream:
        """Stream the rules in this process; events and matches are recorded for the console."""
        with self._starting():
            record = self._record = StreamRecord(
                self.folder, self._time, settings.get("lateness", 0), self.progress
            )
        places = {name: record.places[name] for name in ("events", "matches", "late")}
        self.folder.describe(**places, watermark=_worded(settings.get("lateness")))
        late, dead = settings.pop("late", None), settings.pop("dead_letter", None)

        def start(rules: Any) -> Any:
            return rules.stream(
                time=self._time,
                type=self._type,
                late=record.late(late),
                dead_letter=record.dead(dead),
                **settings,
            )

        with self._starting():
            live = self._live_rules(start)
            stream = start(self.rules) if live is None else live.start()
        self._every_second(record.publish)
        return RecordedStream(stream, record, live)

    def stream_files(self, spark: Any, source: str, sink: str, **options: Any) -> Any:
        """Match files or topics on Spark, like `Queries.stream_files`, and show the progress.

        The checkpoint is in the folder of the job, unless you name another.
        """
        options = {"checkpoint": str(self.folder.path / "checkpoint"), **options}
        columns = {"time": self._time, "type": self._type}
        self.folder.describe(
            runtime="spark",
            events=source,
            matches=sink,
            late=options.get("late"),
            watermark=_worded(options.get("watermark")),
            spark=spark.sparkContext.uiWebUrl,
        )
        with self._starting():
            live = self._live_rules(lambda rules: rules)
            if live is None:
                started = self.rules.stream_files(spark, source, sink, **columns, **options)
            else:
                started = stream_rules(live, spark, source, sink, **columns, **options)
        self.progress = started.progress

        def ended() -> bool:
            with suppress(Exception):  # its progress says why it failed
                return bool(started.wait(0))
            return True

        self._every_second(ended)
        return started

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """Record a failure to start: the console would show a job that is starting, for ever."""
        try:
            yield
        except BaseException as problem:
            self.close(problem)
            raise

    def _live_rules(self, start: Any) -> LiveRules | None:
        """The rules of the folder, which may change; None for fixed rules."""
        if self._place is None:
            return None
        live = LiveRules(RuleFolder(self._place, noted=True), lambda texts: queries(dict(texts)), start)
        live.begin(None)
        self.folder.describe(live_rules=True)
        return live

    def _every_second(self, look: Any) -> None:
        def run() -> None:
            while not self._done.wait(TICK):
                if look():
                    break
                self.folder.tell(self.progress)
            self.folder.tell(self.progress)

        self.progress.state = State.RUNNING
        self._thread = threading.Thread(target=run, name="nestream job", daemon=True)
        self._thread.start()

    def close(self, error: BaseException | None = None) -> None:
        """Record that the job has ended."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()
        if self._record is not None:
            self._record.publish()
        if self.progress.state in (State.STARTING, State.RUNNING):
            self.progress.state = State.FINISHED if error is None else State.FAILED
            self.progress.error = None if error is None else str(error) or error.__class__.__name__
        self.folder.tell(self.progress)

    def __enter__(self) -> WatchedJob:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(error)


class RecordedStream:
    """A stream whose events and matches the console shows; otherwise like the stream itself.

    The rules of a folder are checked before events are taken, at most once a second.
    """

    def __init__(self, stream: Any, record: StreamRecord, live: LiveRules | None = None) -> None:
        self._stream, self._record, self._live = stream, record, live
        self._looked = clock.monotonic()
        if live is not None:
            record.of_rules(live)

    def _look(self) -> None:
        """Apply changes of the rules, if there are any."""
        now = clock.monotonic()
        if self._live is not None and now - self._looked >= TICK:
            self._looked = now
            self._record.of_rules(self._live, self._live.look(self._stream))

    def push(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Take an event; return the matches it decides."""
        self._look()
        begin = self._record.begin()
        found: list[dict[str, Any]] = self._stream.push(event)
        self._record.took([event], found, begin, self._stream)
        return found

    def push_batch(self, events: Any) -> Any:
        """Take many events; return the matches they decide as a table."""
        self._look()
        begin = self._record.begin()
        found = self._stream.push_batch(events)
        self._record.took(events, found, begin, self._stream)
        return found

    def finish(self) -> list[dict[str, Any]]:
        """End the input; return the pending matches."""
        begin = self._record.begin()
        found: list[dict[str, Any]] = self._stream.finish()
        self._record.took([], found, begin, self._stream)
        return found

    def finish_batch(self) -> Any:
        """End the input; return the pending matches as a table."""
        begin = self._record.begin()
        found = self._stream.finish_batch()
        self._record.took([], found, begin, self._stream)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _worded(lateness: Any) -> str | None:
    """A lateness as job.json writes it; a number has no unit there."""
    if isinstance(lateness, str):
        return lateness
    return f"{lateness.total_seconds():g} seconds" if hasattr(lateness, "total_seconds") else None
