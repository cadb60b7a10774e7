"""`nestream bench predicates` and `nestream bench strategies`: queries by several strategies and switches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nestream.cli.bench import ResultFormat, _progress, _suites, present
from nestream.cli.console import show_error

_FEW = 1_500
QuickOption = Annotated[
    bool, typer.Option("--quick", help=f"{_FEW:,} events, each time taken once; nothing is written.")
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="BENCHMARK", help="This one, or those below it.", show_default=False),
]
EventsOption = Annotated[int | None, typer.Option("--events", min=1, help="How many.", show_default=False)]
RepeatsOption = Annotated[
    int | None, typer.Option("--repeats", min=1, help="How often each time is taken.", show_default=False)
]
LimitOption = Annotated[float, typer.Option("--limit", help="Seconds that an experiment may take.")]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Where events are kept between runs.", show_default=False),
]
FormatOption = Annotated[ResultFormat, typer.Option("--format", help="How the results are printed.")]


def predicates(
    quick: QuickOption = False,
    only: OnlyOption = None,
    events: EventsOption = None,
    repeats: RepeatsOption = None,
    limit: LimitOption = 300,
    data: DataOption = None,
    format: FormatOption = ResultFormat.TABLE,
) -> None:
    """Predicates pushed in and shortcuts between queries, on and off, beside the figures of the thesis.

    A whole run inside the repository writes docs/performance.md and benchmarks/results.
    """
    _run("predicates", quick, only, events, repeats or (1 if quick else 3), limit, data, format)


def strategies(
    quick: QuickOption = False,
    only: OnlyOption = None,
    events: EventsOption = None,
    repeats: RepeatsOption = None,
    limit: LimitOption = 300,
    data: DataOption = None,
    format: FormatOption = ResultFormat.TABLE,
) -> None:
    """Every strategy on the workloads of the other suites, and auto beside the best of them.

    A whole run inside the repository writes docs/performance.md and benchmarks/results.
    """
    _run("strategies", quick, only, events, repeats or (1 if quick else 5), limit, data, format)


def _run(
    name: str,
    quick: bool,
    only: list[str] | None,
    events: int | None,
    repeats: int,
    limit: float,
    data: Path | None,
    format: ResultFormat,
) -> None:
    suite = _suites()[name]
    from nestream.bench import BenchError, Run, run_ways

    how = Run(
        events=events or (_FEW if quick else suite.events),
        repeats=repeats,
        only=tuple(only or ()),
        folder=data,
        limit=limit,
    )
    try:
        with _progress() as progress:
            found = run_ways(suite, how, progress)
    except BenchError as error:
        show_error(str(error))
        raise typer.Exit(1) from None
    present(suite, found, format, whole=not (quick or only or events))
