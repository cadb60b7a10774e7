"""The running parts of `nestream demo hospital`: simulator, console and stream, and how they end."""

from __future__ import annotations

import math
import multiprocessing
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from rich.table import Table

import nestream
from nestream.cli.spark import SETTINGS, spark_errors
from nestream.cli.stream_spark import LOOK
from nestream.cli.stream_status import interruption, live
from nestream.cli.terminal import count, is_terminal, messages, note, output, show_error
from nestream.hospital.compliance import Compliance
from nestream.hospital.job import WATERMARK, WATERMARK_SECONDS, Job, JobError
from nestream.hospital.score import Score, matches, scores
from nestream.hospital.writer import EventFiles, last_moment, write_in_process
from nestream.job import Progress
from nestream.job.folder import JobFolder
from nestream.query import spark_session

TRIGGER = 0.5
"""The minimum seconds between two micro-batches."""
FINISHING = 10.0
"""How many seconds the stream may take for the last events after Ctrl-C."""
PATIENCE = 60.0
"""How many seconds the stream may make no progress at the end before it is given up."""
MOST_WORKERS = 5
"""For how many workers compliance is shown at the end: those with the lowest."""
MOST_ALERTS = 5
ON_SPARK = {
    **SETTINGS,
    "spark.sql.shuffle.partitions": "1",  # the rules share no key, so their events are not split
}


@dataclass(frozen=True)
class Writer:
    """The process that writes events, and how to stop it."""

    process: Any
    stop: Any


@dataclass
class DemoRun:
    """Simulator, stream and console over one job folder."""

    job: Job
    speed: float
    duration: float | None
    master: str
    inexact: bool = False
    """Whether the comparison with the planted violations found a difference."""

    @cached_property
    def _folder(self) -> JobFolder:
        return JobFolder(self.job.folder)

    def run(self, port: int | None) -> None:
        """Run until interrupted, or for the given time."""
        note(f"job      {self.job.folder}")
        workers, instruments = self.job.settings.workers, self.job.settings.instruments
        note(
            f"ward     {count(workers, 'worker')}, {count(instruments, 'instrument')}, "
            f"{self.speed:g} simulated seconds a second"
        )
        rules = nestream.queries(self.job.rules)
        self._folder.tell(Progress())
        with self._writer() as writer, self._console(port), spark_errors():
            spark = spark_session(self.master, ON_SPARK)
            try:
                # after Spark's start, which handles Ctrl-C itself
                with interruption(signal.SIGTERM) as interrupted:
                    self._stream(rules, spark, writer, interrupted)
            except nestream.EventError as problem:
                raise self._explained(problem) from None
            finally:
                spark.stop()

    def _explained(self, problem: nestream.EventError) -> Exception:
        """The failure of a stream, with what to do about it in the demo."""
        said = str(problem)
        if not said.startswith("the checkpoint belongs to another query"):
            return problem
        return JobError(
            f"the rules in {self.job.rules} are not the ones this run was started with\n"
            "  hint: copy them to a folder of your own and start over with --rules and --fresh"
        )

    @contextmanager
    def _writer(self) -> Iterator[Writer]:
        """Start the process that writes events, and wait for its first file."""
        context = multiprocessing.get_context("spawn")
        stop = context.Event()
        arguments = (self.job, self.speed, stop, self.duration)
        process = context.Process(target=write_in_process, args=arguments, daemon=True)
        process.start()
        try:
            while not any(self.job.events.glob("part-*.jsonl")):
                if process.exitcode is not None:
                    raise JobError("the simulator ended before it wrote events; its output is above")
                time.sleep(0.05)
            yield Writer(process, stop)
        finally:
            stop.set()
            process.join(10)
            if process.exitcode is None:
                process.terminate()
                process.join()

    @contextmanager
    def _console(self, port: int | None) -> Iterator[None]:
        """Run the console in a thread, if it is wanted and installed."""
        if port is None:
            note("console  off")
            yield
            return
        try:
            from nestream.console import serve
        except ImportError as missing:
            note(f"console  off: {missing.name} is not installed (run ./scripts/setup in the checkout)")
            yield
            return
        stop = threading.Event()

        def show() -> None:
            try:
                serve(self.job.folder, port=port, ready=lambda url: note(f"console  {url}"), stop=stop)
            except Exception as problem:  # the stream continues without it
                show_error(f"the console ended: {problem}")

        thread = threading.Thread(target=show, name="console", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(10)

    def _stream(
        self, rules: nestream.Queries, spark: Any, writer: Writer, interrupted: threading.Event
    ) -> None:
        running = rules.stream_files(
            spark,
            str(self.job.events),
            str(self.job.matches),
            checkpoint=str(self.job.matches / "_checkpoint"),
            watermark=WATERMARK,
            late=str(self.job.late),
            format="json",
            output="json",
            trigger=TRIGGER,
        )
        note("stream   running; press Ctrl-C to stop it")
        shown = messages().status("starting") if is_terminal(error=True) else nullcontext()
        with shown as status:
            self._watch(running, writer, interrupted, status)
        running.stop()
        self._tell(running.progress)
        if interrupted.is_set():
            note(f"stopped after {live(running.progress)}; run the same command to continue")
        else:
            self._summary(running.progress)

    def _tell(self, progress: Any) -> None:
        if progress.watermark is not None:
            progress.lag = self._lag(progress.watermark)
        self._folder.tell(progress)

    def _lag(self, watermark: datetime) -> float:
        """The seconds of wall-clock time from the watermark to the last written event."""
        last = last_moment(self.job) or watermark
        return round((last - watermark).total_seconds() / self.speed, 3)

    def _watch(self, running: Any, writer: Writer, interrupted: threading.Event, status: Any) -> None:
        """Wait until the writer is done, at the latest after Ctrl-C, and all its events are decided."""
        end, moved, seen, last_call = None, time.monotonic(), -1, math.inf
        while not running.wait(LOOK) and time.monotonic() < last_call:
            self._tell(running.progress)
            if status is not None:
                status.update(live(running.progress))
            if interrupted.is_set() and last_call == math.inf:
                note("stopping after the last events; press Ctrl-C again to stop now")
                last_call = time.monotonic() + FINISHING
                writer.stop.set()
            if writer.process.exitcode is None:
                continue
            if writer.process.exitcode:
                raise JobError("the simulator failed; its output is above")
            if end is None and (last := last_moment(self.job)) is not None:
                end = last - timedelta(seconds=WATERMARK_SECONDS)
                moved = time.monotonic()
            if running.progress.batch > seen:
                seen, moved = running.progress.batch, time.monotonic()
            reached = running.progress.watermark
            if reached is not None and end is not None and reached >= end:
                return
            if time.monotonic() - moved > PATIENCE:
                show_error(f"the stream made no progress for {PATIENCE:.0f} seconds and did not finish")
                return

    def _summary(self, progress: Any) -> None:
        result = scores(self.job)
        self.inexact = any(score.missed or score.false for score in result)
        note(live(progress))
        output().print(summary_table(result))
        output().print(verdict(EventFiles(self.job).last_event, result))
        compliance = Compliance(matches(self.job))
        output().print(compliance_table(compliance))
        for alert in compliance.alerts()[-MOST_ALERTS:]:
            output().print(f"alert: {alert}")


def summary_table(result: list[Score]) -> Table:
    """A row for each rule."""
    table = Table("rule", box=None)
    for name in ("planted", "found", "missed", "false"):
        table.add_column(name, justify="right")
    for score in result:
        numbers = (score.found + score.missed, score.found, score.missed, score.false)
        table.add_row(score.rule, *(f"{number:,}" for number in numbers))
    return table


def compliance_table(compliance: Compliance) -> Table:
    """Violations and opportunities by rule, room, role and shift, and for the workers who comply least."""
    table = Table("by", "", box=None)
    for name in ("opportunities", "violations", "compliance"):
        table.add_column(name, justify="right")
    for what in ("rule", "room", "role", "shift", "worker"):
        rows = compliance.by(what)
        if what == "worker":
            rows = dict(sorted(rows.items(), key=lambda row: row[1].compliance)[:MOST_WORKERS])
        for name, ratio in rows.items():
            numbers = (f"{ratio.opportunities:,}", f"{ratio.violations:,}", f"{ratio.compliance:.1%}")
            table.add_row(what, name, *numbers)
    return table


def verdict(events: int, result: list[Score]) -> str:
    """All rules together, on one line."""
    total = Score(
        "all",
        sum(score.found for score in result),
        sum(score.missed for score in result),
        sum(score.false for score in result),
    )
    return (
        f"{count(events, 'event')}, {count(total.found + total.false, 'match', 'matches')}: "
        f"precision {total.precision:.3f}, recall {total.recall:.3f}"
    )
