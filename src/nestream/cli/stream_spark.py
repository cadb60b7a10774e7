"""`nestream stream` on Spark: matches files of a folder or messages of topics as they arrive."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import typer

from nestream import Query
from nestream.cli.failures import fail_if_all_malformed
from nestream.cli.live_rules import Binder, RulesProblem, change_lines
from nestream.cli.progress import ProgressFile
from nestream.cli.spark import SETTINGS, spark_errors
from nestream.cli.stream_job import StreamJob
from nestream.cli.stream_metrics import served
from nestream.cli.stream_status import events_left_out, interruption, live, note_pending, summary
from nestream.cli.terminal import is_terminal, messages, note
from nestream.job import Change, LiveRules
from nestream.queries import stream_rules
from nestream.query import spark_session
from nestream.sink.place import is_topic

LOOK = 0.5
"""The seconds between two checks of the progress."""


def goes_on(checkpoint: str | None, sink: str) -> bool:
    """Whether there is a checkpoint to continue from; one at an address is checked later."""
    kept = Path(checkpoint or _kept(sink)) / "nestream"
    return "://" in str(checkpoint) or any(kept.glob("commit-*"))


def _kept(sink: str) -> str:
    return str(Path(sink) / "_checkpoint")


def stream_on_spark(
    query: Query | Binder,
    source: str,
    sink: str,
    *,
    checkpoint: str | None,
    late: str | None,
    log: ProgressFile | None,
    metrics: str | None,
    job: StreamJob,
    master: str,
    jars: dict[str, str],
    **options: Any,
) -> None:
    """Start the stream and watch it until it ends or is stopped. The binder binds rules."""
    if not is_topic(source) and not Path(source).is_dir():
        raise typer.BadParameter(f"there is no folder {source!r}.", param_hint="--from")
    if checkpoint is not None and Path(checkpoint).exists() and not Path(checkpoint).is_dir():
        raise typer.BadParameter(f"{checkpoint!r} is not a folder.", param_hint="--checkpoint")
    if late is not None and not is_topic(late):
        late = str(Path(late).absolute())  # workers run in other folders
    kept = checkpoint or _kept(sink)
    with job.running(matches=sink, late=late, watermark=options["watermark"]):
        spark = spark_session(master, {**SETTINGS, **jars})
        try:
            job.describe(spark=spark.sparkContext.uiWebUrl)
            with spark_errors():
                if isinstance(query, Query):
                    running = query.stream_files(spark, source, sink, checkpoint=kept, late=late, **options)
                else:
                    rules = LiveRules(query.rules, query, lambda parsed: parsed)
                    running = stream_rules(rules, spark, source, sink, checkpoint=kept, late=late, **options)
            if log is not None:
                log.counts_on = True
            told = _Told(log, is_kept=late is not None)
            running.on_batch = told
            running.on_change = lambda change: told.of_change(change, running.progress)
            with served(metrics, lambda: running.progress, job):
                _watch(running, job)
            note(summary(running.progress))
            note_pending(running.progress)
            ended = running.progress
            fail_if_all_malformed(ended.events - ended.malformed, ended.malformed)
        finally:
            spark.stop()


class _Told:
    """Logs each micro-batch, and reports once for each kind of event that it is left out and kept nowhere."""

    def __init__(self, log: ProgressFile | None, *, is_kept: bool) -> None:
        self._log = log
        self._is_kept = is_kept
        self._reported: set[str] = set()

    def __call__(self, progress: Any) -> None:
        if self._log is not None:
            self._log(progress)
        for kind, left_out in ({} if self._is_kept else events_left_out(progress)).items():
            if kind not in self._reported:
                self._reported.add(kind)
                note(f"warning: {left_out} left out so far; --late DIR saves them with the reason")

    @staticmethod
    def of_change(change: Change, progress: Any) -> None:
        """Report the outcome of a change of the rules."""
        for line in change_lines(change, progress.rules):
            note(line)


def _watch(running: Any, job: StreamJob) -> None:
    """Show the progress until the stream ends or is interrupted."""
    problem = RulesProblem()
    shown = messages().status("starting") if is_terminal(error=True) else nullcontext()
    try:
        with shown as status, interruption(signal.SIGTERM) as interrupted:
            while not running.wait(LOOK):
                job.tell(running.progress)
                if interrupted.is_set():
                    running.stop()
                    note("stopped; run the same command to continue")
                    return
                if (said := problem(running.progress)) is not None:
                    note(said)
                if status is not None:
                    status.update(live(running.progress))
    finally:
        job.tell(running.progress)
