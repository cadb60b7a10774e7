"""`nestream demo`: a case study that runs by one command. `hospital` is a ward with planted violations.

A process writes the events of the simulator, a Spark stream finds the violations, and the console shows them;
all they have in common is the job folder.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated

import typer

import nestream
from nestream.cli.console import show_error
from nestream.cli.demo_run import TRIGGER, DemoRun
from nestream.hospital.job import JobError, Settings, held, prepare, settings_of
from nestream.hospital.simulator import INSTRUMENTS_PER_WORKER, RATE_PER_WORKER

SPEED = 10.0

app = typer.Typer(help="Run a case study: simulator, stream and console.", no_args_is_help=True)


@app.callback()
def demo() -> None:
    """Run a case study: simulator, stream and console."""


@app.command()
def hospital(
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Where all is kept; by default nestream/hospital in the user's folder for state. "
            "A run that was stopped goes on.",
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew: remove the run that is in the folder.")
    ] = False,
    speed: Annotated[
        float | None,
        typer.Option(
            "--speed",
            metavar="N",
            min=0.1,
            help="Simulated seconds a second; by default 10.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Another seed gives other events.", show_default=False)
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            help="How many workers; by default 24. There are five instruments for each.",
            show_default=False,
        ),
    ] = None,
    events_per_second: Annotated[
        float | None,
        typer.Option(
            "--events-per-second",
            metavar="N",
            min=0.1,
            help="As many workers as it takes, or with --workers the speed.",
            show_default=False,
        ),
    ] = None,
    violations: Annotated[
        float | None,
        typer.Option(
            "--violations",
            metavar="FRACTION",
            min=0.0,
            max=1.0,
            help="The fraction of episodes that break a rule; by default 0.1.",
            show_default=False,
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="A folder of .neel files to run instead of the papers' rules.",
            show_default=False,
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            "--duration",
            metavar="SECONDS",
            min=0.0,
            help="End after that long, and compare what was found with what was planted.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="The console's port; 0 is any that is free.")
    ] = 0,
    console: Annotated[
        bool, typer.Option(" /--no-console", help="Go without the console.", show_default=False)
    ] = True,
    master: Annotated[str, typer.Option("--master", metavar="URL", help="Where Spark runs.")] = "local[*]",
) -> None:
    """Watch a hospital ward: hand hygiene of workers, and instruments on their way to the next operation.

    Ctrl-C stops it; the same command goes on from there.
    """
    place = (folder or default_folder()).absolute()
    try:
        if rules is not None:
            nestream.queries(rules)  # what is wrong with them is told before anything is made or removed
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
    """Where a user's programs keep what outlasts them and is no document."""
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
    """The settings, where not told those of the run that is there; and the speed, which no run keeps."""
    if rate is not None and workers is not None and speed is not None:
        raise typer.BadParameter(
            "with --workers and --speed the rate is given: leave out one of the three.",
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
