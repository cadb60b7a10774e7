"""`nestream bench report`: every suite, and the page docs/performance.md from what they found."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from nestream.cli.bench_common import DataOption, progress_bar, report_in, suites
from nestream.cli.console import note, show_error


def report(
    quick: Annotated[
        bool, typer.Option("--quick", help="Few events, each time taken once; nothing in the repository.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="SUITE", help="This suite alone.", show_default=False),
    ] = None,
    minutes: Annotated[float, typer.Option("--minutes", help="A suite that takes longer is left out.")] = 60,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a report that was interrupted.")
    ] = False,
    from_results: Annotated[
        bool, typer.Option("--from-results", help="Measure nothing: write the page of the kept results.")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="Where to write, if not here.", show_default=False),
    ] = None,
    data: DataOption = None,
) -> None:
    """Measure everything that is claimed, and write docs/performance.md with tables and plots from it.

    Results are kept in benchmarks/results as they come. A suite that cannot be measured is told in the page.
    """
    suites()
    from nestream.bench import BenchError, repository

    root = to or (Path(tempfile.mkdtemp(prefix="nestream-report-")) if quick else repository())
    if root is None:
        show_error("run it inside the repository, or say where to write: --to DIR")
        raise typer.Exit(1)
    running = report_in(root, minutes=minutes, quick=quick, data=data)
    if from_results:
        note(f"written: {running.write()}")
        return
    try:
        with progress_bar() as progress:
            failed = running.run(only or (), resume=resume, progress=progress)
    except BenchError as error:
        show_error(str(error))
        raise typer.Exit(1) from None
    note(f"written: {root / 'docs' / 'performance.md'}")
    for line in failed:
        show_error(line)
    if failed:
        raise typer.Exit(1)
