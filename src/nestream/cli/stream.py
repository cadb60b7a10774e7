"""`nestream stream`: the matches of a query over files that keep coming to a folder, on Spark."""

from __future__ import annotations

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from nestream.cli.arguments import (
    DialectOption,
    FileFormat,
    InputFormatOption,
    QueryArgument,
    TimeOption,
    TypeOption,
    query_text,
)
from nestream.cli.console import count, is_terminal, messages, note
from nestream.query import spark_session

LOOK = 0.5
"""How often the progress is looked at, in seconds."""


class StreamFormat(StrEnum):
    """How matches are written. json is one object a line."""

    PARQUET = "parquet"
    JSON = "json"


def stream(
    query: QueryArgument,
    source: Annotated[
        str, typer.Option("--from", metavar="DIR", help="The folder the events come to.", show_default=False)
    ],
    sink: Annotated[
        str, typer.Option("--to", metavar="DIR", help="The folder for the matches.", show_default=False)
    ],
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="Where the stream keeps how far it is; by default _checkpoint in the folder of matches.",
            show_default=False,
        ),
    ] = None,
    time: TimeOption = "ts",
    type: TypeOption = "type",
    watermark: Annotated[
        str, typer.Option("--watermark", metavar="DURATION", help="How late an event may be.")
    ] = "10 seconds",
    once: Annotated[
        bool, typer.Option("--once", help="Stop when all the files that are there now are done.")
    ] = False,
    files: Annotated[
        int | None,
        typer.Option("--files", min=1, help="The most files in a micro-batch.", show_default=False),
    ] = None,
    format: Annotated[StreamFormat, typer.Option("--format", help="How matches are written.")] = (
        StreamFormat.PARQUET
    ),
    master: Annotated[str, typer.Option("--master", metavar="URL", help="Where Spark runs.")] = "local[*]",
    dialect: DialectOption = None,
    input_format: InputFormatOption = None,
) -> None:
    """Find the matches of a query in files that keep coming to a folder.

    Stop it with Ctrl-C and start it again to go on: every match is written exactly once.
    """
    parsed = query_text(query).parse(dialect)
    if not Path(source).is_dir():
        raise typer.BadParameter(f"there is no folder {source!r}.", param_hint="--from")
    if Path(sink).exists() and not Path(sink).is_dir():
        raise typer.BadParameter(f"{sink!r} is not a folder.", param_hint="--to")
    kept = checkpoint or str(Path(sink) / "_checkpoint")
    spark = spark_session(master)
    try:
        stored = None if input_format is None else input_format.value
        running = parsed.stream_files(
            spark,
            source,
            sink,
            checkpoint=kept,
            time=time,
            type=type,
            watermark=watermark,
            format="json" if stored == FileFormat.JSONL else stored,
            output=format.value,
            once=once,
            files=files,
        )
        _watch(running)
        note(_summary(running.progress))
    finally:
        spark.stop()


def _watch(running: Any) -> None:
    """Show the progress until the stream ends or is interrupted."""
    shown = messages().status("starting") if is_terminal(error=True) else nullcontext()
    with shown as status:
        try:
            while not running.wait(LOOK):
                if status is not None:
                    status.update(_live(running.progress))
        except KeyboardInterrupt:
            running.stop()
            note("stopped; the same command goes on from here")


def _live(progress: Any) -> str:
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
