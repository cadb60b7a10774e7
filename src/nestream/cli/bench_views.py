"""`nestream bench views`: the experiments of the paper on continuous sliding views."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nestream.cli.bench import ResultFormat, _progress, _suites, present
from nestream.cli.console import show_error

_FEW = 2_000


def views(
    quick: Annotated[
        bool, typer.Option("--quick", help=f"{_FEW:,} events, each time taken once; nothing is written.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="BENCHMARK", help="This one, or those below it.", show_default=False),
    ] = None,
    events: Annotated[
        int | None, typer.Option("--events", min=1, help="How many.", show_default=False)
    ] = None,
    repeats: Annotated[
        int | None, typer.Option("--repeats", min=1, help="How often each time is taken.", show_default=False)
    ] = None,
    limit: Annotated[float, typer.Option("--limit", help="Seconds that a benchmark may take.")] = 300,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Where events are kept between runs.", show_default=False),
    ] = None,
    format: Annotated[
        ResultFormat, typer.Option("--format", help="How the results are printed.")
    ] = ResultFormat.TABLE,
) -> None:
    """Aggressive, passive and balanced views against nested execution, rewriting and auto.

    A whole run inside the repository writes docs/performance.md and benchmarks/results.
    """
    suite = _suites()["views"]
    from nestream.bench import BenchError, Run, run_views

    how = Run(
        events=events or (_FEW if quick else suite.events),
        repeats=repeats or (1 if quick else 3),
        only=tuple(only or ()),
        folder=data,
        limit=limit,
    )
    try:
        with _progress() as progress:
            found = run_views(how, progress)
    except BenchError as error:
        show_error(str(error))
        raise typer.Exit(1) from None
    present(suite, found, format, whole=not (quick or only or events))
