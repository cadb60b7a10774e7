"""`nestream stream` on Spark: files of a folder or messages of topics, and new ones as they arrive."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import typer

from nestream import Queries, Query
from nestream.cli.console import is_terminal, messages, note
from nestream.cli.progress import ProgressFile
from nestream.cli.spark import SETTINGS, spark_errors
from nestream.cli.stream_job import StreamJob
from nestream.cli.stream_metrics import served
from nestream.cli.stream_status import interruption, live, note_pending, summary
from nestream.query import spark_session
from nestream.sink.place import is_topic

LOOK = 0.5
"""How often the progress is looked at, in seconds."""


def stream_on_spark(
    parsed: Query | Queries,
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
    """Start the stream and watch it until it ends or is stopped."""
    if not is_topic(source) and not Path(source).is_dir():
        raise typer.BadParameter(f"there is no folder {source!r}.", param_hint="--from")
    if late is not None and Path(late).exists() and not Path(late).is_dir():
        raise typer.BadParameter(f"{late!r} is not a folder.", param_hint="--late")
    if checkpoint is not None and Path(checkpoint).exists() and not Path(checkpoint).is_dir():
        raise typer.BadParameter(f"{checkpoint!r} is not a folder.", param_hint="--checkpoint")
    if late is not None and not is_topic(late):
        late = str(Path(late).absolute())  # workers run in folders of their own
    kept = checkpoint or str(Path(sink) / "_checkpoint")
    with job.running(matches=sink, late=late, watermark=options["watermark"]):
        _stream(parsed, source, sink, kept, late, log, metrics, job, (master, jars), options)


def _stream(
    parsed: Query | Queries,
    source: str,
    sink: str,
    kept: str,
    late: str | None,
    log: ProgressFile | None,
    metrics: str | None,
    job: StreamJob,
    where: tuple[str, dict[str, str]],
    options: dict[str, Any],
) -> None:
    master, jars = where
    spark = spark_session(master, {**SETTINGS, **jars})
    try:
        job.describe(spark=spark.sparkContext.uiWebUrl)
        with spark_errors():
            running = parsed.stream_files(spark, source, sink, checkpoint=kept, late=late, **options)
        if log is not None:
            log.counts_on = True
        running.on_batch = _Told(log, is_kept=late is not None)
        with served(metrics, lambda: running.progress, job):
            _watch(running, job)
        note(summary(running.progress))
        note_pending(running.progress)
    finally:
        spark.stop()


class _Told:
    """Logs each micro-batch, and says once that events are left out where they are kept nowhere."""

    def __init__(self, log: ProgressFile | None, *, is_kept: bool) -> None:
        self._log = log
        self._silent = is_kept

    def __call__(self, progress: Any) -> None:
        if self._log is not None:
            self._log(progress)
        left_out = [f"{progress.late:,} late"] if progress.late else []
        left_out += [f"{progress.malformed:,} malformed"] if progress.malformed else []
        if left_out and not self._silent:
            note(f"warning: {' and '.join(left_out)} left out so far; --late DIR keeps them with the reason")
            self._silent = True


def _watch(running: Any, job: StreamJob) -> None:
    """Show the progress until the stream ends or is interrupted."""
    shown = messages().status("starting") if is_terminal(error=True) else nullcontext()
    try:
        with shown as status, interruption() as interrupted:
            while not running.wait(LOOK):
                job.tell(running.progress)
                if interrupted.is_set():
                    running.stop()
                    note("stopped; run the same command to continue")
                    return
                if status is not None:
                    status.update(live(running.progress))
    finally:
        job.tell(running.progress)
