"""What the commands of `nestream bench` share: the sizes of the suites, the suites themselves, a bar."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from nestream.cli.console import is_terminal, messages, note, show_error

if TYPE_CHECKING:
    from nestream.bench import Report, Suite

SIZES: dict[str, tuple[int, int, float]] = {}
"""For each suite the events of a quick run, the repeats, and the seconds that one program may take."""

USUAL = (10_000, 3, 60.0)
"""What holds for a suite without a command of its own."""
OnlyOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="BENCHMARK", help="This one, or those below it.", show_default=False),
]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Where events are kept between runs.", show_default=False),
]


def threads() -> int:
    """How many threads other programs get."""
    return min(2, os.cpu_count() or 1)


def suites() -> dict[str, Suite]:
    """The suites; without the packages they need, what to install is told."""
    try:
        from nestream.bench import SUITES
    except ModuleNotFoundError as missing:
        show_error(f"bench needs the package {missing.name}: pip install psutil polars duckdb")
        raise typer.Exit(1) from None
    return SUITES


def report_in(root: Path, *, minutes: float = 60, quick: bool = False, data: Path | None = None) -> Report:
    """A run of the suites whose results are kept below a folder."""
    known = suites()
    from nestream.bench import RUNNERS, Report, Size

    return Report(
        known,
        RUNNERS,
        {name: Size(*SIZES.get(name, USUAL)) for name in known},
        root,
        minutes=minutes,
        quick=quick,
        threads=threads(),
        data=data,
        tell=note,
    )


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar that names what is measured; nothing unless stderr is a terminal."""
    if not is_terminal(error=True):
        yield lambda what, done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=messages(), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
