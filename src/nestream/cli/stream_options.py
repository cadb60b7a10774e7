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
        show_default=False,
    ),
]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="PLACE",
        help="Folder for the matches, or kafka://HOST:PORT/TOPIC. With --local also a .jsonl file, - for "
        "standard output (the default), tcp://HOST:PORT or unix:///PATH to connect to.",
        show_default=False,
    ),
]
LocalOption = Annotated[
    bool, typer.Option("--local", help="Run in this process, without Spark and Java.", show_default=False)
]
CheckpointOption = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Folder for the checkpoint; by default _checkpoint in the folder for the matches, "
        "or FILE.checkpoint beside a file.",
        show_default=False,
    ),
]
LateOption = Annotated[
    str | None,
    typer.Option(
        "--late",
        metavar="PLACE",
        help="Folder for late events and dead letters, with the reason, or kafka://HOST:PORT/TOPIC. With "
        "--local also a .jsonl file.",
        show_default=False,
    ),
]
WatermarkOption = Annotated[
    str | None,
    typer.Option(
        "--watermark",
        metavar="DURATION",
        help="Allowed lateness of events; 10 seconds on Spark and 0 with --local by default.",
        show_default=False,
    ),
]
OnceOption = Annotated[
    bool, typer.Option("--once", help="Process the events that are there now, then stop.", show_default=False)
]
FlushOption = Annotated[
    bool,
    typer.Option(
        "--flush",
        help="At the end of the input, emit the pending matches and stop.",
        show_default=False,
    ),
]
FutureOption = Annotated[
    str | None,
    typer.Option(
        "--future",
        metavar="DURATION",
        help="Set aside events whose time is further ahead of the clock than this.",
        show_default=False,
    ),
]
FilesOption = Annotated[
    int | None,
    typer.Option(
        "--files", min=1, help="On Spark: maximum number of files per micro-batch.", show_default=False
    ),
]
PartitionsOption = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        min=1,
        help="On Spark: number of partitions that events are split into by key, fixed at the first start; "
        "with 1, later rules may have any key.",
        show_default=False,
    ),
]
ProgressOption = Annotated[
    str | None,
    typer.Option(
        "--progress",
        metavar="FILE",
        help="Append a line of JSON per micro-batch (or second) to this file: counts, watermark, lag, state.",
        show_default=False,
    ),
]
JobOption = Annotated[
    str | None,
    typer.Option(
        "--job",
        metavar="DIR",
        help="Describe the job in this folder, for `nestream console DIR`. Matches and late events go there "
        "too, unless --to and --late name other places.",
        show_default=False,
    ),
]
MetricsOption = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="[HOST:]PORT",
        help="Serve /metrics for Prometheus on this port.",
        show_default=False,
    ),
]
SchemaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--schema",
        metavar="FILE.avsc",
        help="With --input-format avro: schema of the messages of topics, or ID=FILE.avsc with its id in a "
        "schema registry; repeat for more ids.",
        show_default=False,
    ),
]
StreamFormatOption = Annotated[
    StreamFormat | None,
    typer.Option(
        "--format",
        help="Format of the matches; by default parquet in a folder, json elsewhere, text on a terminal.",
        show_default=False,
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Spark master; local[*] by default.", show_default=False),
]
PackagesOption = Annotated[
    str | None,
    typer.Option(
        "--packages",
        metavar="NAME:NAME:VERSION",
        help="On Spark: packages that Spark fetches by Maven coordinates, such as its connector to Kafka.",
        show_default=False,
    ),
]
JarsOption = Annotated[
    str | None,
    typer.Option("--jars", metavar="PATH,PATH", help="On Spark: jars to add.", show_default=False),
]
