"""`nestream console`: the web console, for a job, or for queries on data sets alone."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from nestream.cli.console import note, show_error
from nestream.data import sample_names


def console(
    job: Annotated[
        str | None,
        typer.Option(
            "--job", metavar="DIR", help="The folder of a running job, to be watched.", show_default=False
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes one that is free.")] = 0,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="A file of events to run queries on; may be given several times.",
            show_default=False,
        ),
    ] = None,
    time: Annotated[
        str,
        typer.Option("--time", metavar="COLUMN", help="The column with the time, in the files of --data."),
    ] = "ts",
    type: Annotated[
        str,
        typer.Option(
            "--type", metavar="COLUMN", help="The column with the event type, in the files of --data."
        ),
    ] = "type",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the address in a browser.")
    ] = True,
) -> None:
    """Watch a job, and write, run and question queries, in a browser.

    The address that is printed has a token; whoever has it may use the console. It listens on this
    machine alone.
    """
    files = _files(data or [])
    try:
        from nestream.console import JobError, serve
    except ModuleNotFoundError as missing:
        raise OSError(
            f"the console needs the package {missing.name}, which is not installed: "
            "run ./scripts/setup, or pip install '.[console]' in a checkout of nestream"
        ) from None

    def ready(address: str) -> None:
        note(f"the console is at {address}\nstop it with Ctrl-C")
        if browser:
            webbrowser.open(address)

    try:
        folder = Path(job) if job is not None else None
        serve(folder, port=port, data=files, time=time, type=type, ready=ready)
    except JobError as error:
        show_error(str(error))
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        note("stopped")


def _files(paths: list[str]) -> dict[str, Path]:
    """The files by the names that pages use for them."""
    found: dict[str, Path] = {}
    for path in map(Path, paths):
        if not path.is_file():
            raise typer.BadParameter(f"there is no file {str(path)!r}.", param_hint="--data")
        if path.name in found or path.name in (*sample_names(), "live"):
            raise typer.BadParameter(
                f"the name {path.name!r} is taken; rename the file.", param_hint="--data"
            )
        found[path.name] = path
    return found
