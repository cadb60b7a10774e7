"""`nestream bench`: measure, check what was found, and write the results as JSON and into a page."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from nestream.cli.console import is_terminal, messages, note, output, show_error
from nestream.cli.spark import spark_errors

if TYPE_CHECKING:
    from nestream.bench import Suite

PAGE = Path("docs", "performance.md")


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
    for suite in _suites().values():
        typer.echo(f"{suite.name}: {suite.title}")
        for benchmark in suite.benchmarks:
            typer.echo(f"  {benchmark.name:<22}{benchmark.measure:<8}{benchmark.text or benchmark.title}")
    raise typer.Exit


QuickOption = Annotated[
    bool, typer.Option("--quick", help="Few events, each time taken once; nothing is written.")
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="BENCHMARK", help="This one, or those below it.", show_default=False),
]
EventsOption = Annotated[int | None, typer.Option("--events", min=1, help="How many.", show_default=False)]
RepeatsOption = Annotated[
    int | None, typer.Option("--repeats", min=1, help="How often each time is taken.", show_default=False)
]
LimitOption = Annotated[float, typer.Option("--limit", help="Seconds that one of them may take.")]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Where events are kept between runs.", show_default=False),
]
FormatOption = Annotated[ResultFormat, typer.Option("--format", help="How the results are printed.")]


def _command(
    name: str, about: str, *, quick_events: int, usual: int, limit: float, beside: bool = False
) -> None:
    """Register the command of a suite; only where other programs run beside it can they be left out."""
    others = typer.Option(True, help="Run other programs beside it.", hidden=not beside)

    def command(
        quick: QuickOption = False,
        only: OnlyOption = None,
        events: EventsOption = None,
        repeats: RepeatsOption = None,
        limit: LimitOption = limit,
        data: DataOption = None,
        format: FormatOption = ResultFormat.TABLE,
        peers: bool = others,
    ) -> None:
        suite = _suites()[name]
        from nestream.bench import RUNNERS, BenchError, Run

        how = Run(
            events=events or (quick_events if quick else suite.events),
            repeats=repeats or (1 if quick else usual),
            only=tuple(only or ()),
            folder=data,
            threads=min(2, os.cpu_count() or 1),
            limit=limit,
            peers=peers,
        )
        try:
            with _progress() as progress, spark_errors():
                found = RUNNERS[name](how, progress)
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
    "rewriting",
    "Nested execution against rewriting with sharing against auto; all must find the same matches.",
    quick_events=500,
    usual=5,
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
    usual=5,
    limit=300,
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
        _write(root, suite.name, found, text)


def _suites() -> dict[str, Suite]:
    try:
        from nestream.bench import SUITES
    except ModuleNotFoundError as missing:
        show_error(f"bench needs the package {missing.name}: pip install psutil polars duckdb")
        raise typer.Exit(1) from None
    return SUITES


def _write(root: Path, name: str, found: dict[str, Any], text: str) -> None:
    """The results as JSON, and as the part of the page that is theirs."""
    from nestream.bench import replaced

    results = root / "benchmarks" / "results" / f"{name}.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page = root / PAGE
    old = page.read_text(encoding="utf-8") if page.exists() else "# Performance\n"
    page.write_text(replaced(old, name, text), encoding="utf-8")
    note(f"written: {results} and {page}")


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar that names what is measured; nothing unless stderr is a terminal."""
    if not is_terminal(error=True):
        yield lambda what, done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=messages(), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
