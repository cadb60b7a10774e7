"""`nestream stream`: the matches of a query over files that keep coming to a folder, on Spark."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import typer

from nestream.cli.arguments import (
    DialectOption,
    InputFormatOption,
    QueriesArgument,
    SetOption,
    TimeOption,
    TypeOption,
    queries_of,
)
from nestream.cli.console import count, is_terminal, messages, note
from nestream.cli.progress import ProgressFile, progress_path
from nestream.cli.spark import SETTINGS, spark_errors
from nestream.cli.types import TypesOption, warn_of_undeclared, with_types
from nestream.query import spark_session

LOOK = 0.5
"""How often the progress is looked at, in seconds."""


class StreamFormat(StrEnum):
    """How matches are written. json is one object a line."""

    PARQUET = "parquet"
    JSON = "json"


def stream(
    query: QueriesArgument,
    source: Annotated[
        str,
        typer.Option(
            "--from", metavar="DIR", help="Folder where files of events arrive.", show_default=False
        ),
    ],
    sink: Annotated[
        str, typer.Option("--to", metavar="DIR", help="Folder for the matches.", show_default=False)
    ],
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="Folder for the checkpoint; by default _checkpoint in the folder for the matches.",
            show_default=False,
        ),
    ] = None,
    late: Annotated[
        str | None,
        typer.Option(
            "--late",
            metavar="DIR",
            help="Folder for late events and dead letters, with the reason.",
            show_default=False,
        ),
    ] = None,
    time: TimeOption = "ts",
    type: TypeOption = "type",
    watermark: Annotated[
        str, typer.Option("--watermark", metavar="DURATION", help="Allowed lateness of events.")
    ] = "10 seconds",
    once: Annotated[
        bool, typer.Option("--once", help="Process the files that are there now, then stop.")
    ] = False,
    files: Annotated[
        int | None,
        typer.Option("--files", min=1, help="Maximum number of files per micro-batch.", show_default=False),
    ] = None,
    progress: Annotated[
        str | None,
        typer.Option(
            "--progress",
            metavar="FILE",
            help="Append a line of JSON per micro-batch to this file: counts, watermark, lag, state.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[StreamFormat, typer.Option("--format", help="Format of the matches.")] = (
        StreamFormat.PARQUET
    ),
    master: Annotated[str, typer.Option("--master", metavar="URL", help="Spark master.")] = "local[*]",
    types: TypesOption = None,
    dialect: DialectOption = None,
    set: SetOption = None,
    input_format: InputFormatOption = None,
) -> None:
    """Match the files of a folder on a Spark stream, and new ones as they arrive.

    Stop with Ctrl-C; the same command continues from the checkpoint.
    Every match is written exactly once.
    """
    parsed = with_types(queries_of(query, dialect, set), types)
    warn_of_undeclared(parsed)
    if not Path(source).is_dir():
        raise typer.BadParameter(f"there is no folder {source!r}.", param_hint="--from")
    if Path(sink).exists() and not Path(sink).is_dir():
        raise typer.BadParameter(f"{sink!r} is not a folder.", param_hint="--to")
    if late is not None and Path(late).exists() and not Path(late).is_dir():
        raise typer.BadParameter(f"{late!r} is not a folder.", param_hint="--late")
    log = None if progress is None else ProgressFile(progress_path(progress))
    aside = None if late is None else str(Path(late).absolute())  # workers run in folders of their own
    kept = checkpoint or str(Path(sink) / "_checkpoint")
    spark = spark_session(master, SETTINGS)
    try:
        with spark_errors():
            running = parsed.stream_files(
                spark,
                source,
                sink,
                checkpoint=kept,
                time=time,
                type=type,
                watermark=watermark,
                late=aside,
                format=None if input_format is None else input_format.value,
                output=format.value,
                once=once,
                files=files,
            )
        running.on_batch = _Told(log, is_kept=late is not None)
        _watch(running)
        note(_summary(running.progress))
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


def _watch(running: Any) -> None:
    """Show the progress until the stream ends or is interrupted."""
    shown = messages().status("starting") if is_terminal(error=True) else nullcontext()
    with shown as status, interruption() as interrupted:
        while not running.wait(LOOK):
            if interrupted.is_set():
                running.stop()
                note("stopped; run the same command to continue")
                return
            if status is not None:
                status.update(live(running.progress))


@contextmanager
def interruption() -> Iterator[Event]:
    """Take Ctrl-C as a wish to stop; the second one ends the command at once.

    An exception in the middle of a call to Spark would break the connection to it.
    """
    wished = Event()

    def interrupt(*_: Any) -> None:
        if wished.is_set():
            raise KeyboardInterrupt
        wished.set()

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield wished
    finally:
        signal.signal(signal.SIGINT, before)


def live(progress: Any) -> str:
    """How far a stream is, on one line."""
    parts = [
        f"{progress.events:,} events",
        f"{progress.matches:,} matches",
        f"{progress.rate:,.0f} events/s",
    ]
    if progress.watermark is not None:
        parts.append(f"watermark {progress.watermark:%Y-%m-%d %H:%M:%S}")
        parts.append(f"lag {_duration(progress.lag)}")
    parts.append(f"state {_size(progress.state_bytes)}")
    if progress.late:
        parts.append(f"{progress.late:,} late")
    if progress.malformed:
        parts.append(f"{progress.malformed:,} malformed")
    return ", ".join(parts)


def _summary(progress: Any) -> str:
    parts = [
        count(progress.events, "event"),
        count(progress.matches, "match", "matches"),
        f"{progress.late:,} late",
        f"{progress.malformed:,} malformed",
        count(progress.batches, "micro-batch", "micro-batches"),
    ]
    if progress.watermark is not None:
        parts.append(f"watermark {progress.watermark:%Y-%m-%d %H:%M:%S} UTC")
    return ", ".join([*parts, f"state {_size(progress.state_bytes)}"])


def _duration(seconds: float) -> str:
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:,.0f} s"


def _size(count: int) -> str:
    for size, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if count >= size:
            return f"{count / size:,.1f} {name}"
    return f"{count} B"
