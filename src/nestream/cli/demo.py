"""`nestream demo`: a case study that runs by one command. `hospital` is a ward with planted violations.

A process writes the events of the simulator, a Spark stream finds the violations, and the console shows them;
all they have in common is the job folder.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

import nestream
from nestream.cli.console import count, is_terminal, messages, note, output, show_error
from nestream.cli.progress import ProgressFile
from nestream.cli.spark import SETTINGS, spark_errors
from nestream.cli.stream import LOOK, interruption, live
from nestream.hospital.job import (
    WATERMARK,
    WATERMARK_SECONDS,
    Job,
    JobError,
    Settings,
    held,
    prepare,
    settings_of,
)
from nestream.hospital.score import Score, scores
from nestream.hospital.simulator import INSTRUMENTS_PER_WORKER, RATE_PER_WORKER
from nestream.hospital.writer import EventFiles, last_moment, write_in_process
from nestream.query import spark_session

SPEED = 10.0
TRIGGER = 0.5
"""The seconds from micro-batch to micro-batch, where they are not longer themselves."""
PATIENCE = 60.0
"""How long the stream may stand still at the end, in seconds, before it is given up."""
ON_SPARK = {
    **SETTINGS,
    "spark.sql.shuffle.partitions": "1",  # the rules have no key in common, so their events are not split
}

app = typer.Typer(help="Run a case study: simulator, stream and console.", no_args_is_help=True)


@app.callback()
def demo() -> None:
    """Run a case study: simulator, stream and console."""


@app.command()
def hospital(
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Where all is kept; by default nestream/hospital in the user's folder for state. "
            "A run that was stopped goes on.",
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew: remove the run that is in the folder.")
    ] = False,
    speed: Annotated[
        float | None,
        typer.Option(
            "--speed",
            metavar="N",
            min=0.1,
            help="Simulated seconds a second; by default 10.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Another seed gives other events.", show_default=False)
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            help="How many workers; by default 24. There are five instruments for each.",
            show_default=False,
        ),
    ] = None,
    events_per_second: Annotated[
        float | None,
        typer.Option(
            "--events-per-second",
            metavar="N",
            min=0.1,
            help="As many workers as it takes, or with --workers the speed.",
            show_default=False,
        ),
    ] = None,
    violations: Annotated[
        float | None,
        typer.Option(
            "--violations",
            metavar="FRACTION",
            min=0.0,
            max=1.0,
            help="The fraction of episodes that break a rule; by default 0.1.",
            show_default=False,
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            "--duration",
            metavar="SECONDS",
            min=0.0,
            help="End after that long, and compare what was found with what was planted.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="The console's port; 0 is any that is free.")
    ] = 0,
    console: Annotated[bool, typer.Option(" /--no-console", help="Go without the console.")] = True,
    master: Annotated[str, typer.Option("--master", metavar="URL", help="Where Spark runs.")] = "local[*]",
) -> None:
    """Watch a hospital ward: hand hygiene of workers, and instruments on their way to the next operation.

    Ctrl-C stops it; the same command goes on from there.
    """
    place = (folder or default_folder()).absolute()
    try:
        with held(place):
            there = None if fresh else settings_of(place)
            settings, pace = chosen(there, seed, workers, violations, speed, events_per_second)
            job = prepare(place, settings, trigger=TRIGGER, fresh=fresh)
            run = DemoRun(job, pace, duration, master)
            run.run(port if console else None)
    except JobError as problem:
        show_error(str(problem))
        raise typer.Exit(1) from None
    if run.inexact:
        raise typer.Exit(1)


def default_folder() -> Path:
    """Where a user's programs keep what outlasts them and is no document."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "nestream" / "hospital"


def chosen(
    there: Settings | None,
    seed: int | None,
    workers: int | None,
    violations: float | None,
    speed: float | None,
    rate: float | None,
) -> tuple[Settings, float]:
    """The settings and the speed; what is not told is that of the run that is there."""
    if rate is not None and workers is not None and speed is not None:
        raise typer.BadParameter(
            "with --workers and --speed the rate is given: leave out one of the three.",
            param_hint="--events-per-second",
        )
    base = there or Settings()
    pace = speed or SPEED
    if rate is not None and workers is None:
        workers = math.ceil(rate / RATE_PER_WORKER / pace)
    elif rate is not None and workers is not None:
        pace = rate / RATE_PER_WORKER / workers
    instruments = base.instruments if workers is None else INSTRUMENTS_PER_WORKER * workers
    return (
        Settings(
            seed=base.seed if seed is None else seed,
            workers=workers or base.workers,
            instruments=instruments,
            violations=base.violations if violations is None else violations,
        ),
        pace,
    )


@dataclass
class DemoRun:
    """Simulator, stream and console over one job folder."""

    job: Job
    speed: float
    duration: float | None
    master: str
    inexact: bool = False
    """Whether a comparison with what was planted found a difference."""

    def run(self, port: int | None) -> None:
        """Run until interrupted, or for as long as wanted."""
        note(f"job      {self.job.folder}")
        workers, instruments = self.job.settings.workers, self.job.settings.instruments
        note(
            f"ward     {count(workers, 'worker')}, {count(instruments, 'instrument')}, "
            f"{self.speed:g} simulated seconds a second"
        )
        rules = nestream.queries(self.job.rules)
        with interruption() as interrupted, self._writer() as writer, self._console(port), spark_errors():
            spark = spark_session(self.master, ON_SPARK)
            try:
                if not interrupted.is_set():
                    self._stream(rules, spark, writer, interrupted)
            finally:
                spark.stop()

    @contextmanager
    def _writer(self) -> Iterator[Any]:
        """The process that writes events; it has its first file written when this goes on."""
        context = multiprocessing.get_context("spawn")
        stop = context.Event()
        arguments = (self.job, self.speed, stop, self.duration)
        process = context.Process(target=write_in_process, args=arguments, daemon=True)
        process.start()
        try:
            while not any(self.job.events.glob("part-*.jsonl")):
                if process.exitcode is not None:
                    raise JobError("the simulator ended before it wrote events; what it said is above")
                time.sleep(0.05)
            yield process
        finally:
            stop.set()
            process.join(10)
            if process.exitcode is None:
                process.terminate()
                process.join()

    @contextmanager
    def _console(self, port: int | None) -> Iterator[None]:
        """The console in a thread, where it is wanted and there is one."""
        if port is None:
            note("console  none, as wanted")
            yield
            return
        try:
            from nestream.console import serve
        except ImportError as missing:
            note(f"console  none: {missing.name} is not installed (pip install 'nestream[console]')")
            yield
            return
        stop = threading.Event()

        def show() -> None:
            try:
                serve(self.job.folder, port=port, ready=lambda url: note(f"console  {url}"), stop=stop)
            except Exception as problem:  # the stream goes on without it
                show_error(f"the console ended: {problem}")

        thread = threading.Thread(target=show, name="console", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(10)

    def _stream(self, rules: nestream.Queries, spark: Any, writer: Any, interrupted: threading.Event) -> None:
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
        running.on_batch = ProgressFile(self.job.progress, self._lag)
        note("stream   running; Ctrl-C stops it")
        shown = messages().status("starting") if is_terminal(error=True) else nullcontext()
        with shown as status:
            self._watch(running, writer, interrupted, status)
        running.stop()
        if interrupted.is_set():
            note(f"stopped after {live(running.progress)}; the same command goes on from here")
        else:
            self._summary(running.progress)

    def _lag(self, watermark: datetime) -> float:
        """The seconds of the clock from the last event in a file to the watermark."""
        last = last_moment(self.job) or watermark
        return round((last - watermark).total_seconds() / self.speed, 3)

    def _watch(self, running: Any, writer: Any, interrupted: threading.Event, status: Any) -> None:
        """Wait for Ctrl-C, or until the writer is done and the stream has decided all it wrote."""
        end, moved, seen = None, time.monotonic(), -1
        while not interrupted.is_set() and not running.wait(LOOK):
            if status is not None:
                status.update(live(running.progress))
            if writer.exitcode is None:
                continue
            if writer.exitcode:
                raise JobError("the simulator failed; what it said is above")
            if end is None and (last := last_moment(self.job)) is not None:
                end = last - timedelta(seconds=WATERMARK_SECONDS)
                moved = time.monotonic()
            if running.progress.batch > seen:
                seen, moved = running.progress.batch, time.monotonic()
            reached = running.progress.watermark
            if reached is not None and end is not None and reached >= end:
                return
            if time.monotonic() - moved > PATIENCE:
                show_error(
                    f"the stream has stood still for {PATIENCE:.0f} seconds; it did not get to the end"
                )
                return

    def _summary(self, progress: Any) -> None:
        result = scores(self.job)
        self.inexact = any(score.missed or score.false for score in result)
        note(live(progress))
        output().print(summary_table(result))
        output().print(verdict(EventFiles(self.job).last_event, result))


def summary_table(result: list[Score]) -> Table:
    """A row for each rule."""
    table = Table("rule", box=None)
    for name in ("planted", "found", "missed", "false"):
        table.add_column(name, justify="right")
    for score in result:
        numbers = (score.found + score.missed, score.found, score.missed, score.false)
        table.add_row(score.rule, *(f"{number:,}" for number in numbers))
    return table


def verdict(events: int, result: list[Score]) -> str:
    """All rules together, in a line."""
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
