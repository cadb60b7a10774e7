"""The options of `nestream stream`, for both ways to run it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class StreamFormat(StrEnum):
    """How matches are written. json is one object per line; text is for people."""

    PARQUET = "parquet"
    JSON = "json"
    TEXT = "text"


FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="PLACE",
        help="Folder where files of events arrive, or kafka://HOST:PORT/TOPIC. With --local also a file that "
        "grows, a pattern, - for standard input (the default for a pipe), tcp://HOST:PORT or unix:///PATH to "
        "listen on.",
    ),
]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="PLACE",
        help="Folder for the matches, or kafka://HOST:PORT/TOPIC. With --local also a .jsonl file, - for "
        "standard output (the default), tcp://HOST:PORT or unix:///PATH to connect to.",
    ),
]
LocalOption = Annotated[bool, typer.Option("--local", help="Run in this process, without Spark and Java.")]
CheckpointOption = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Folder for the checkpoint; by default _checkpoint in the folder for the matches, "
        "or FILE.checkpoint beside a file.",
    ),
]
LateOption = Annotated[
    str | None,
    typer.Option(
        "--late",
        metavar="PLACE",
        help="Folder for late events and dead letters, with the reason, or kafka://HOST:PORT/TOPIC. With "
        "--local also a .jsonl file.",
    ),
]
WatermarkOption = Annotated[
    str | None,
    typer.Option(
        "--watermark",
        metavar="DURATION",
        help="Allowed lateness of events; 10 seconds on Spark and 0 with --local by default.",
    ),
]
OnceOption = Annotated[bool, typer.Option("--once", help="Process the events that are there now, then stop.")]
FlushOption = Annotated[
    bool, typer.Option("--flush", help="At the end of the input, emit the pending matches and stop.")
]
FutureOption = Annotated[
    str | None,
    typer.Option(
        "--future",
        metavar="DURATION",
        help="Set aside events whose time is further ahead of the clock than this.",
    ),
]
FilesOption = Annotated[
    int | None,
    typer.Option("--files", min=1, help="On Spark: maximum number of files per micro-batch."),
]
PartitionsOption = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        min=1,
        help="On Spark: number of partitions that events are split into by key, fixed at the first start; "
        "with 1, later rules may have any key.",
    ),
]
ProgressOption = Annotated[
    str | None,
    typer.Option(
        "--progress",
        metavar="FILE",
        help="Append a line of JSON per micro-batch (or second) to this file: counts, watermark, lag, state.",
    ),
]
JobOption = Annotated[
    str | None,
    typer.Option(
        "--job",
        metavar="DIR",
        help="Describe the job in this folder, for `nestream console DIR`. Matches and late events go there "
        "too, unless --to and --late name other places.",
    ),
]
MetricsOption = Annotated[
    str | None,
    typer.Option("--metrics", metavar="[HOST:]PORT", help="Serve /metrics for Prometheus on this port."),
]
SchemaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--schema",
        metavar="FILE.avsc",
        help="With --input-format avro: schema of the messages of topics, or ID=FILE.avsc with its id in a "
        "schema registry; repeat for more ids.",
    ),
]
StreamFormatOption = Annotated[
    StreamFormat | None,
    typer.Option(
        "--format",
        help="Format of the matches; by default parquet in a folder, json elsewhere, text on a terminal.",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Spark master; local[*] by default."),
]
PackagesOption = Annotated[
    str | None,
    typer.Option(
        "--packages",
        metavar="NAME:NAME:VERSION",
        help="On Spark: packages that Spark fetches by Maven coordinates, such as its connector to Kafka.",
    ),
]
JarsOption = Annotated[
    str | None,
    typer.Option("--jars", metavar="PATH,PATH", help="On Spark: jars to add."),
]
