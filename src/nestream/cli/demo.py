"""`nestream demo`: runs a case study with one command. `hospital` is a ward with planted violations.

One process writes the events of the simulator, a Spark stream finds the violations, and the console shows
them; they share only the job folder.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated

import typer

import nestream
from nestream.cli.arguments import seconds
from nestream.cli.demo_run import TRIGGER, DemoRun
from nestream.cli.terminal import show_error
from nestream.hospital.job import JobError, Settings, held, prepare, settings_of
from nestream.hospital.simulator import INSTRUMENTS_PER_WORKER, RATE_PER_WORKER

SPEED = 10.0

app = typer.Typer(help="Run a case study on a Spark stream, and watch it in a browser.", no_args_is_help=True)


@app.callback()
def demo() -> None:
    """Run a case study on a Spark stream, and watch it in a browser."""


@app.command()
def hospital(
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Folder of the job; by default nestream/hospital in your folder for state. "
            "A stopped run continues.",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Remove the run in the folder and start over.")
    ] = False,
    speed: Annotated[
        float | None,
        typer.Option("--speed", metavar="N", min=0.1, help="Simulated seconds per second; 10 by default."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the simulation.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, help="Number of workers, with five instruments each; 24 by default."
        ),
    ] = None,
    events_per_second: Annotated[
        float | None,
        typer.Option(
            "--events-per-second",
            metavar="N",
            min=0.1,
            help="Choose the number of workers, or with --workers the speed, for this rate.",
        ),
    ] = None,
    violations: Annotated[
        float | None,
        typer.Option(
            "--violations",
            metavar="FRACTION",
            min=0.0,
            max=1.0,
            help="Fraction of episodes that break a rule; 0.1 by default.",
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Folder of .neel files to run instead of the bundled rules.",
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            "--duration",
            metavar="DURATION",
            parser=seconds,
            help="Stop after this time (5 minutes, or a number of seconds), and compare the matches "
            "with the planted violations.",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="Port of the console; 0 picks a free one.")
    ] = 0,
    console: Annotated[
        bool, typer.Option(" /--no-console", help="Do not start the console.", show_default=False)
    ] = True,
    master: Annotated[str, typer.Option("--master", metavar="URL", help="Spark master.")] = "local[*]",
) -> None:
    """Simulate a hospital ward, and find violations of its hygiene rules on a Spark stream.

    Stop with Ctrl-C; the same command continues.
    """
    place = (folder or default_folder()).absolute()
    try:
        if rules is not None:
            nestream.queries(rules)  # their errors are reported before anything is created or removed
        if not place.exists():
            chosen(None, seed, workers, violations, speed, events_per_second)
        with held(place):
            there = None if fresh else settings_of(place)
            settings, pace = chosen(there, seed, workers, violations, speed, events_per_second)
            job = prepare(place, settings, trigger=TRIGGER, rules=rules, fresh=fresh)
            run = DemoRun(job, pace, duration, master)
            run.run(port if console else None)
    except JobError as problem:
        show_error(str(problem))
        raise typer.Exit(1) from None
    if run.inexact:
        raise typer.Exit(1)


def default_folder() -> Path:
    """The folder for a user's program state that is not a document."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "nestream" / "hospital"


def chosen(
    there: Settings | None,
    seed: int | None,
    workers: int | None,
    violations: float | None,
    speed: float | None,
    rate: float | None,
) -> tuple[Settings, float]:
    """The settings, by default those of the existing run; and the speed, which is not saved."""
    if rate is not None and workers is not None and speed is not None:
        raise typer.BadParameter(
            "--workers and --speed already determine the rate; leave out one of the three.",
            param_hint="--events-per-second",
        )
    base = there or Settings()
    pace = speed or SPEED
    if rate is not None and workers is None:
        workers = math.ceil(rate / RATE_PER_WORKER / pace)
    elif rate is not None and workers is not None:
        pace = rate / RATE_PER_WORKER / workers
    instruments = base.instruments if workers is None else INSTRUMENTS_PER_WORKER * workers
    return (
        Settings(
            seed=base.seed if seed is None else seed,
            workers=workers or base.workers,
            instruments=instruments,
            violations=base.violations if violations is None else violations,
        ),
        pace,
    )
