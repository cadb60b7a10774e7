"""`nestream bench spark`: batches on Spark, beside Spark's own shuffle and Spark SQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown

from nestream.cli.bench import QUICK_EVENTS, ResultFormat, _progress, _suites, _write
from nestream.cli.console import is_terminal, output, show_error
from nestream.cli.spark import spark_errors


def spark(
    quick: Annotated[
        bool,
        typer.Option("--quick", help=f"{QUICK_EVENTS:,} events, each time taken once; nothing is written."),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="BENCHMARK", help="two, flat, not-event, not-seq or stream.", show_default=False
        ),
    ] = None,
    events: Annotated[
        int | None, typer.Option("--events", min=1, help="How many.", show_default=False)
    ] = None,
    repeats: Annotated[
        int | None, typer.Option("--repeats", min=1, help="How often each time is taken.", show_default=False)
    ] = None,
    peers: Annotated[bool, typer.Option(help="Run Spark SQL beside it.")] = True,
    limit: Annotated[float, typer.Option("--limit", help="Seconds that a job may take.")] = 180,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Where events are kept between runs.", show_default=False),
    ] = None,
    format: Annotated[
        ResultFormat, typer.Option("--format", help="How the results are printed.")
    ] = ResultFormat.TABLE,
) -> None:
    """Batches on Spark with two cores, beside its own shuffle of the same rows and beside Spark SQL.

    A whole run inside the repository writes docs/performance.md and benchmarks/results.
    """
    _suites()  # tells what is not installed
    from nestream.bench import BenchError, Run, repository, section
    from nestream.bench.spark import SPARK, run_spark

    how = Run(
        events=events or (QUICK_EVENTS if quick else SPARK.events),
        repeats=repeats or (1 if quick else 3),
        only=tuple(only or ()),
        folder=data,
        limit=limit,
        peers=peers,
    )
    try:
        with _progress() as progress, spark_errors():
            found = run_spark(how, progress)
    except BenchError as error:
        show_error(str(error))
        raise typer.Exit(1) from None
    text = section(SPARK, found)
    if format is ResultFormat.JSON:
        typer.echo(json.dumps(found, ensure_ascii=False))
    elif is_terminal():
        output().print(Markdown(text))
    else:
        typer.echo(text)
    root = repository()
    if root is not None and peers and not (quick or only or events):
        _write(root, SPARK.name, found, text)
