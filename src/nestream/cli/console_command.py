"""`nestream console`: the web console, for a job, or just for queries on data sets."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from nestream.cli.terminal import note
from nestream.data import sample_names
from nestream.model.extras import needs


def console(
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="[DIR]",
            help="Folder of the job to watch, with its job.json; without one, queries on data sets alone.",
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 picks a free one.")] = 0,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", metavar="FILE", help="File of events to run queries on; repeat for more."),
    ] = None,
    time: Annotated[
        str,
        typer.Option(
            "--time", metavar="COLUMN", help="Column with the time of an event, in the files of --data."
        ),
    ] = "ts",
    type: Annotated[
        str,
        typer.Option(
            "--type", metavar="COLUMN", help="Column with the type of an event, in the files of --data."
        ),
    ] = "type",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the console in a browser.")
    ] = True,
) -> None:
    """Open the console in a browser: watch a job, write and run queries, and ask why events do not match.

    The address contains a token: anyone who has it can use the console.
    The console listens on this machine only.
    """
    files = _files(data or [])
    try:
        from nestream.console import serve
    except ModuleNotFoundError as missing:
        raise OSError(needs("the console", missing.name or "starlette", "console")) from None

    def ready(address: str) -> None:
        note(f"the console runs at {address}\npress Ctrl-C to stop it")
        if browser:
            webbrowser.open(address)

    with suppress(KeyboardInterrupt):  # which the server may handle itself
        serve(Path(job) if job else None, port=port, data=files, time=time, type=type, ready=ready)
    note("stopped")


def _files(paths: list[str]) -> dict[str, Path]:
    """The files by the names that pages use for them."""
    found: dict[str, Path] = {}
    for path in map(Path, paths):
        if not path.is_file():
            raise typer.BadParameter(f"there is no file {str(path)!r}.", param_hint="--data")
        if path.name in found or path.name in (*sample_names(), "live"):
            raise typer.BadParameter(
                f"another data set is named {path.name!r}; rename the file.", param_hint="--data"
            )
        found[path.name] = path
    return found
