"""`nestream bench`: measure, check what was found, and write the results as JSON and into a page."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markdown import Markdown

from nestream.cli import bench_compare, bench_report
from nestream.cli.bench_common import (
    SIZES,
    DataOption,
    OnlyOption,
    progress_bar,
    report_in,
    suites,
    threads,
)
from nestream.cli.console import is_terminal, note, output, show_error
from nestream.cli.spark import spark_errors

if TYPE_CHECKING:
    from nestream.bench import Suite


class ResultFormat(StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"


app = typer.Typer(help="Measure how fast nestream is, beside other programs.", invoke_without_command=True)


@app.callback()
def bench(
    context: typer.Context,
    listing: Annotated[bool, typer.Option("--list", help="List the benchmarks.")] = False,
) -> None:
    """List the benchmarks."""
    if context.invoked_subcommand is not None and not listing:
        return
    for suite in suites().values():
        typer.echo(f"{suite.name}: {suite.title}")
        for benchmark in suite.benchmarks:
            typer.echo(f"  {benchmark.name:<22}{benchmark.measure:<8}{benchmark.text or benchmark.title}")
    raise typer.Exit


QuickOption = Annotated[
    bool, typer.Option("--quick", help="Few events, each time taken once; nothing is written.")
]
EventsOption = Annotated[int | None, typer.Option("--events", min=1, help="How many.", show_default=False)]
RepeatsOption = Annotated[
    int | None, typer.Option("--repeats", min=1, help="How often each time is taken.", show_default=False)
]
LimitOption = Annotated[float, typer.Option("--limit", help="Seconds that one of them may take.")]
FormatOption = Annotated[ResultFormat, typer.Option("--format", help="How the results are printed.")]


def _command(
    name: str,
    about: str,
    *,
    quick_events: int,
    usual: int,
    limit: float,
    beside: bool = False,
    installs: bool = False,
) -> None:
    """Register the command of a suite; only where other programs run beside it can they be left out."""
    SIZES[name] = (quick_events, usual, limit)
    others = typer.Option(True, help="Run other programs beside it.", hidden=not beside)
    missing = typer.Option(
        False, "--install", help="First install the peers that are missing.", hidden=not installs
    )

    def command(
        quick: QuickOption = False,
        only: OnlyOption = None,
        events: EventsOption = None,
        repeats: RepeatsOption = None,
        limit: LimitOption = limit,
        data: DataOption = None,
        format: FormatOption = ResultFormat.TABLE,
        peers: bool = others,
        install: bool = missing,
    ) -> None:
        suite = suites()[name]
        from nestream.bench import RUNNERS, BenchError, Run

        how = Run(
            events=events or (quick_events if quick else suite.events),
            repeats=repeats or (1 if quick else usual),
            only=tuple(only or ()),
            folder=data,
            threads=threads(),
            limit=limit,
            peers=peers,
            install=install,
        )
        try:
            begin = time.monotonic()
            with progress_bar() as progress, spark_errors():
                found = RUNNERS[name](how, progress)
            found["seconds"] = round(time.monotonic() - begin, 1)
        except BenchError as error:
            show_error(str(error))
            raise typer.Exit(1) from None
        present(suite, found, format, whole=peers and not (quick or only or events))

    page = "A whole run inside the repository writes docs/performance.md and benchmarks/results."
    app.command(name, help=f"{about}\n\n{page}")(command)


_command(
    "engine",
    "The columnar engine, beside Polars and DuckDB; all must find the same matches.",
    quick_events=500_000,
    usual=5,
    limit=60,
    beside=True,
)
_command(
    "queries",
    "Up to 1,000 rules over one stream: together, one alone, and one after the other.",
    quick_events=500_000,
    usual=3,
    limit=60,
)
_command(
    "spark",
    "Batches and streams on Spark with two cores, beside its own shuffle of the same rows and Spark SQL.",
    quick_events=500_000,
    usual=3,
    limit=180,
    beside=True,
)
_command(
    "peers",
    "Flink, Esper, Siddhi, Spark SQL, DuckDB and Polars, each in turns with nestream.",
    quick_events=250_000,
    usual=3,
    limit=40,
    installs=True,
)
_command(
    "rewriting",
    "Nested execution against rewriting with sharing against auto; all must find the same matches.",
    quick_events=500,
    usual=3,
    limit=300,
)
_command(
    "sase",
    "Stacks, partitions, windows and the index of SASE's plans, switched on and off.",
    quick_events=20_000,
    usual=4,
    limit=300,
)
_command(
    "views",
    "Aggressive, passive and balanced views against nested execution, rewriting and auto.",
    quick_events=2_000,
    usual=3,
    limit=300,
)
_command(
    "predicates",
    "Predicates pushed in and shortcuts between queries, on and off, beside the figures of the thesis.",
    quick_events=1_500,
    usual=3,
    limit=300,
)
_command(
    "strategies",
    "Every strategy on the workloads of the other suites, and auto beside the best of them.",
    quick_events=1_500,
    usual=8,
    limit=300,
)
_command(
    "scaling",
    "How the cost grows with events on disk, window, steps, rules, skew and cores; the rate kept up with.",
    quick_events=1_000_000,
    usual=2,
    limit=600,
)


def present(suite: Suite, found: dict[str, Any], format: ResultFormat, *, whole: bool) -> None:
    """Show the results; those of a whole run inside the repository are also written there."""
    from nestream.bench import repository, section

    text = section(suite, found)
    if format is ResultFormat.JSON:
        typer.echo(json.dumps(found, ensure_ascii=False))
    elif is_terminal():
        output().print(Markdown(text))
    else:
        typer.echo(text)
    root = repository()
    if root is not None and whole:
        report = report_in(root)
        note(f"written: {report.keep(found)} and {report.write()}")


app.command("report")(bench_report.report)
app.command("compare")(bench_compare.compare)
app.command("profile")(bench_compare.profile)
