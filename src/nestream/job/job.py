"""Runs a stream from a source to a sink: batch after batch, with a checkpoint now and then.

A checkpoint has the state of the stream and the positions of the source and the sinks, after the same batch.
It is written in the background, one at a time, while the next events are taken. After a failure, all of them
go back to it. So each event is taken once and each match is written once, provided that the source can be
read again and the sink can be cut back.
"""

from __future__ import annotations

import json
import os
import time as clock
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import shorten
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nestream.job.background import Background
from nestream.job.checkpoint import Checkpoint, CheckpointError, Saved
from nestream.job.live_rules import Change, LiveRules
from nestream.job.progress import FILE, STALLED, Progress, State
from nestream.job.unseen import Unseen
from nestream.model.by_rule import matches_by_rule
from nestream.model.diagnostics import QueryError
from nestream.model.lengths import difference_of
from nestream.model.python_rows import python_rows
from nestream.model.schema import EventError
from nestream.model.wording import reason
from nestream.sink import Sink, SinkError, plain
from nestream.source import Batch, Source

WAIT = 0.1
"""How many seconds to wait for new events before checking the clock."""
TICK = 1.0
"""The seconds between two checkpoints, and between two updates of the progress."""
LOOK = 1.0
"""The seconds between two checks of the rules."""
SHARE = 10
"""Events wait for checkpoints at most this fraction of the time."""
LONGEST = 10.0
"""How many seconds a checkpoint may take before events wait for it, so that sinks stay bounded."""
LEAVING = 10.0
"""How many seconds a job that is asked to stop waits for a sink that has not yet taken its matches."""
BRIEFLY = 1.0
"""How many seconds a job that has to end at once waits for the checkpoint in progress."""
Start = Callable[..., Any]
"""Makes a stream: `push_batch`, `finish_batch`, `save`, `restore`, `describe`, and the counts."""


class Job:
    """A stream that runs in this process until its source ends or it is stopped."""

    def __init__(
        self,
        start: Start,
        source: Source,
        sink: Sink,
        *,
        aside: Sink | None = None,
        checkpoint: Checkpoint | None = None,
        time: str = "ts",
        lateness: Any = 0,
        flush: bool = False,
        future: str | timedelta | None = None,
        limit: int | None = None,
        interval: float = TICK,
        on_tick: Callable[[Progress], None] | None = None,
        on_batch: Callable[[Progress], None] | None = None,
        rules: LiveRules | None = None,
        on_change: Callable[[Change], None] | None = None,
        unseen: Unseen | None = None,
    ) -> None:
        self._rules, self._on_change, self._unseen = rules, on_change, unseen
        self._looked = 0.0
        self._start, self._source, self._sink, self._aside = start, source, sink, aside
        self._checkpoint = checkpoint
        self._time, self._flush = time, flush
        self._lateness = difference_of(lateness, "lateness")
        self._future = None if future is None else _ahead(future)
        self._limit, self._interval = limit, interval
        self._on_tick, self._on_batch = on_tick, on_batch
        self._put_aside: list[dict[str, Any]] = []
        self._stream: Any = None
        self._greatest: Any = None
        self._due = 0.0
        self._stop = Event()
        self._leaving: float | None = None
        """Until when a job that is asked to stop waits for its sinks."""
        self._saving: Background | None = None
        """What waits for disks and brokers: the checkpoint in progress, or what the last one left to do."""
        self._is_kept = True
        """Whether a checkpoint has all that this does, so that a restart can do it."""
        self._begun = 0.0
        """When it began."""
        self._committed: dict[str, Any] = {}
        """The position of the source in it."""
        self._is_told = True
        """Whether progress.json could be written last time."""
        self._ticked, self._counted, self._worked = 0.0, 0, 0.0
        self.progress = Progress()
        self.first_problems: dict[str, str] = {}
        """What was wrong with the first event of each kind that was left out: late, malformed or future."""

    def run(self, stop: Event) -> Progress:
        """Run until the source ends, the LIMIT of the query is reached, or `stop` is set."""
        self._stop = stop
        try:
            self._begin()
            self._tick()
            while not stop.is_set() and not self._is_done():
                if self._rules is not None and clock.monotonic() >= self._looked + LOOK:
                    self._look()
                batch = self._source.read(WAIT)
                if batch is not None:
                    self._take(batch)
                self._save_in_time()
                is_first = batch is not None and self.progress.batches == 1
                if is_first or clock.monotonic() >= self._ticked + TICK:
                    self._tick()
                elif batch is not None and self._on_batch is not None:
                    self._on_batch(self.progress)
            self._end(stopped=stop.is_set() and not self._is_done())
        except BaseException as problem:
            self.progress.state = State.FAILED
            self.progress.error = str(problem) or type(problem).__name__
            if self._saving is not None and isinstance(problem, Exception):
                with suppress(Exception):
                    self._wait()
            elif self._saving is not None:
                self._saving.ends_within(BRIEFLY)
            with suppress(OSError, SinkError):  # the disk may be full
                self._tick()
            raise
        finally:
            for part in (self._source, self._sink, self._aside, self._checkpoint):
                is_in_use = part is not self._source and self._saving is not None and not self._saving.is_done
                if part is not None and not is_in_use:
                    part.close()
        return self.progress

    def _is_done(self) -> bool:
        return self._source.ended or (self._limit is not None and self.progress.matches >= self._limit)

    # -- beginning and end ---------------------------------------------------------------------------------

    def _begin(self) -> None:
        saved = self._checkpoint.open() if self._checkpoint is not None else None
        if self._rules is not None:
            self._rules.begin(None if saved is None else saved.rules)
            self._rules.show(self.progress)
        self._stream = self._start(late=self._late, dead_letter=self._dead)
        self._begun, self._saving = clock.monotonic(), Background(lambda: self._restore(saved))
        self._wait()
        if saved is not None:
            self._go_on(saved)
        else:
            self._save()  # so that there is a beginning to go back to
        self.progress.state = State.RUNNING
        self._due = clock.monotonic() + self._interval

    def _restore(self, saved: Saved | None) -> None:
        """Let the sinks go back to a checkpoint, and do what is left to do."""
        self._sink.restore(None if saved is None else saved.sink)
        if self._aside is not None:
            self._aside.restore(None if saved is None else saved.aside)

    def _go_on(self, saved: Saved) -> None:
        place = self._place()
        if saved.place != place:
            raise CheckpointError(
                f"the checkpoint reads events from {saved.place}, not from {place}\n"
                "  hint: name the same source, or give this job a checkpoint of its own"
            )
        self._stream.restore(saved.state)
        self._source.seek(saved.source)
        self.progress.batch = saved.number
        for name, value in saved.counts.items():
            setattr(self.progress, name, value)
        greatest = saved.greatest
        self._greatest = datetime.fromisoformat(greatest) if isinstance(greatest, str) else greatest
        if self._unseen is not None:
            self._unseen.go_on(saved.came or {})

    def _place(self) -> str:
        where = self._source.where
        if where.startswith("kafka://"):  # brokers come and go; the source knows its cluster
            return f"topic {where.rpartition('/')[2]}"
        return os.path.abspath(where) if self._source.repeatable and "://" not in where else where

    def _end(self, *, stopped: bool) -> None:
        """Report the pending matches, or emit them with `flush`; then save for the last time."""
        if self._flush and not stopped:
            self._write(self._stream.finish_batch())
            self.progress.flushed = True
        elif not stopped:
            self.progress.pending = self._count_pending()
        self._save()
        self.progress.state = State.STOPPED if stopped else State.FINISHED
        self._tick()

    def _count_pending(self) -> int:
        """Count the matches that would follow if the input ended, by finishing a copy of the stream."""
        copy = self._start(late=None, dead_letter=None).restore(self._stream.save())
        return int(copy.finish_batch().num_rows)

    # -- rules ---------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Check the rules; a change is a checkpoint, so that a restart applies it too."""
        assert self._rules is not None
        change = self._rules.look(self._stream)
        self._rules.show(self.progress)
        if change is not None:
            self._changed(self._rules, change)
            self._save()
        self._looked = clock.monotonic()

    def _changed(self, rules: LiveRules, change: Change) -> None:
        """Report a change."""
        if self._aside is not None:
            self._put_aside += [
                {"rule": name, "version": change.version, "reason": reason}
                for name, reason in change.refused.items()
            ]
            self._write_aside()
        rules.show(self.progress)
        self.progress.changed(change.json())
        if self._on_change is not None:
            self._on_change(change)

    # -- events --------------------------------------------------------------------------------------------

    def _take(self, batch: Batch) -> None:
        begin = clock.perf_counter()
        progress = self.progress
        for letter in batch.dead:
            where = f"{letter.file}, line {letter.line}" if letter.line else letter.file
            reason = f"{where}: {letter.reason}"
            self.first_problems.setdefault("malformed", reason)
            self._leave("malformed", {"reason": reason, "raw": letter.raw}, reason)
        events = batch.events
        if self._unseen is not None:
            self._unseen.note(events)
        if events.num_rows and self._future is not None:
            events = self._without_future(events)
        if events.num_rows:
            self._push(events)
        progress.events += batch.events.num_rows + len(batch.dead)
        progress.batches += 1
        progress.at = datetime.now(UTC)
        progress.batch_seconds = clock.perf_counter() - begin
        self._worked += progress.batch_seconds
        self._write_aside()

    def _push(self, events: pa.Table) -> None:
        """Push the events; if they do not fit together, those that fit."""
        if self.progress.flushed:
            raise CheckpointError(
                "new events arrived after a run with --flush, which ended the input\n"
                "  hint: remove the checkpoint and the matches, and start over without --flush"
            )
        try:
            found = self._stream.push_batch(events)
        except (EventError, QueryError) as problem:
            if isinstance(problem, QueryError) and not self._stream.events_in:
                raise  # the query does not fit these events at all
            if events.num_rows == 1:
                if isinstance(problem, QueryError) and self._suspended(problem):
                    self._push(events)
                else:
                    self._dead(_event(events, 0), str(problem))
                return
            half = events.num_rows // 2
            self._push(events.slice(0, half))
            self._push(events.slice(half))
            return
        self._write(found)
        if self._time in events.column_names:
            self._note_time(events.column(self._time))

    def _suspended(self, problem: QueryError) -> bool:
        """Whether the job can continue without the rules that an event does not fit."""
        change = None if self._rules is None else self._rules.suspend(self._stream, problem)
        if self._rules is None or change is None:
            return False
        self._changed(self._rules, change)
        return True

    def _write(self, found: pa.Table) -> None:
        if not found.num_rows:
            return
        if self._rules is not None:
            found = self._rules.with_versions(found)
        self._sink.write(found)
        self.progress.matches += found.num_rows
        self.progress.by_rule = dict(Counter(self.progress.by_rule) + matches_by_rule(found))

    def _note_time(self, column: pa.ChunkedArray) -> None:
        try:
            greatest = pc.max(column).as_py()
        except (ValueError, OverflowError):  # beyond the years that Python supports
            return
        if greatest is not None and (self._greatest is None or greatest > self._greatest):
            self._greatest = greatest

    def _without_future(self, events: pa.Table) -> pa.Table:
        """The events up to now plus the tolerance.

        The others are set aside: one would move the watermark far ahead.
        """
        assert self._future is not None
        if self._time not in events.column_names:
            return events
        column = events.column(self._time)
        if not pa.types.is_timestamp(column.type):
            return events
        now = datetime.now(UTC) + self._future
        limit = pa.scalar(now if column.type.tz else now.replace(tzinfo=None), column.type)
        ahead = pc.fill_null(pc.greater(column, limit), False).to_numpy(zero_copy_only=False)
        if not ahead.any():
            return events
        for row in np.flatnonzero(ahead).tolist():
            self._leave(
                "future", _event(events, row), f"after {now:%Y-%m-%d %H:%M:%S} UTC", said="in the future: "
            )
        return events.filter(pa.array(~ahead))

    def _late(self, event: dict[str, Any]) -> None:
        self._leave("late", event, "behind the watermark", said="late: ")

    def _dead(self, event: Any, reason: str) -> None:
        shown = event if isinstance(event, dict) else {"raw": repr(event)}
        self._leave("malformed", shown, reason)

    def _leave(self, kind: str, event: dict[str, Any], why: str, *, said: str = "") -> None:
        """Count an event that is left out, and put it aside; `said` comes before the reason there."""
        setattr(self.progress, kind, getattr(self.progress, kind) + 1)
        if kind not in self.first_problems:
            shown = shorten(json.dumps(plain(event), ensure_ascii=False), 200, placeholder=" …")
            self.first_problems[kind] = f"{shown}: {why}"
        if self._aside is not None:
            self._put_aside.append({**event, "reason": said + why})

    def _write_aside(self) -> None:
        if self._put_aside and self._aside is not None:
            rows, self._put_aside = self._put_aside, []
            self._aside.write(
                pa.table({"line": [json.dumps(plain(row), ensure_ascii=False) for row in rows]})
            )

    # -- checkpoints ---------------------------------------------------------------------------------------

    def _save(self) -> None:
        """Save now, and wait until it is done."""
        self._finish_saving()
        self._begin_saving()
        self._finish_saving()

    def _save_in_time(self) -> None:
        """Begin a checkpoint if it is due, and end one that is written or takes too long."""
        now = clock.monotonic()
        if self._saving is None:
            if now >= self._due:
                self._begin_saving()
        elif self._saving.is_done or now >= self._begun + LONGEST:
            self._finish_saving()

    def _begin_saving(self) -> None:
        """Record the state and the positions; the background work waits for disks and brokers.

        What is written from now on belongs to the next checkpoint.
        """
        self._begun = clock.monotonic()
        sinks = [(sink, sink.prepare()) for sink in (self._sink, self._aside) if sink is not None]
        packed: bytes | None = None
        if self._checkpoint is not None:
            self.progress.batch += 1
            state = self._stream.save()
            positions = [position for _, position in sinks]
            saved = Saved(
                state=state,
                number=self.progress.batch,
                place=self._place(),
                source=self._source.position(),
                sink=positions[0],
                aside=positions[1] if self._aside is not None else None,
                counts=self.progress.counts(),
                rules=None if self._rules is None else self._rules.json(),
                greatest=plain(self._greatest),
                came=None if self._unseen is None else self._unseen.json(),
            )
            self.progress.state_bytes = len(state)
            packed = self._checkpoint.packed(saved)
            self._committed = saved.source

        self._is_kept = False

        def write() -> None:
            for sink, position in sinks:
                sink.sync(position)
            if self._checkpoint is not None and packed is not None:
                self._checkpoint.write(packed)
                self._is_kept = True
            for sink, position in sinks:
                sink.commit(position)

        self._saving = Background(write)
        taken = clock.monotonic() - self._begun
        self._worked += taken
        self._due = self._begun + max(self._interval, SHARE * taken)

    def _finish_saving(self) -> None:
        """Wait for the checkpoint in progress."""
        if self._saving is None:
            return
        begin = clock.monotonic()
        self._wait()
        if self._checkpoint is not None:
            self._source.commit(self._committed)
        now = clock.monotonic()
        self._worked += now - max(begin, self._ticked)
        self.progress.checkpoint_seconds = now - self._begun

    def _wait(self) -> None:
        """Wait for disks and brokers, and raise their error; if they take long, the job is stalled.

        A job that is asked to stop gives up sinks that do not take what a checkpoint has.
        """
        work, state = self._saving, self.progress.state
        assert work is not None
        while not work.ends_within(WAIT):
            now = clock.monotonic()
            if self._stop.is_set() and self._is_kept:
                self._leaving = self._leaving or now + LEAVING
                if now >= self._leaving:
                    places = " and ".join(one.where for one in (self._sink, self._aside) if one is not None)
                    raise CheckpointError(
                        f"stopped before {places} took all that the last checkpoint has\n"
                        "  hint: run the same command to continue"
                    )
            if state is not State.FAILED and now >= max(self._begun + STALLED, self._ticked + TICK):
                self.progress.state = State.STALLED
                self._worked = now - self._ticked
                self._tick()
        self.progress.state, self._saving = state, None
        work.check()

    def _tick(self) -> None:
        """Update the progress, and report it."""
        progress, now = self.progress, clock.monotonic()
        if self._ticked:
            passed = max(now - self._ticked, 1e-3)
            progress.rate = (progress.events - self._counted) / passed
            progress.busy = min(self._worked / passed, 1.0)
        self._ticked, self._counted, self._worked = now, progress.events, 0.0
        progress.looked = datetime.now(UTC)
        if self._greatest is not None:
            progress.seen(self._greatest, self._lateness, progress.at or datetime.now(UTC))
        if self._unseen is not None and progress.state is not State.FAILED:
            ended = progress.state in (State.STOPPED, State.FINISHED)
            progress.unseen = self._unseen.sentences(ended=ended)
        if self._stream is not None and progress.state is not State.FAILED:
            held = self._stream.describe()
            progress.state_rows = held["events"] + held["waiting"]
            progress.seconds_by_rule = held.get("seconds", {})
            if self._checkpoint is None:
                progress.state_bytes = held["bytes"]
        if self._checkpoint is not None and self._checkpoint.folder.is_dir():
            self._tell(self._checkpoint.folder / FILE)
        if self._on_tick is not None:
            self._on_tick(progress)

    def _tell(self, path: Path) -> None:
        """Replace progress.json; if that fails, the job continues and reports it once."""
        try:
            self.progress.write(path)
            self._is_told = True
        except OSError as error:
            if self._is_told:
                warnings.warn(f"cannot write {path}: {reason(error)}; the job continues", stacklevel=2)
            self._is_told = False


def _ahead(given: str | timedelta) -> timedelta:
    length = difference_of(given, "time ahead of the clock")
    if not isinstance(length, timedelta):
        raise ValueError(f'the time ahead of the clock is {given}, without a unit\n  hint: write "1 hour"')
    return length


def _event(events: pa.Table, row: int) -> dict[str, Any]:
    return python_rows(events.slice(row, 1))[0]
