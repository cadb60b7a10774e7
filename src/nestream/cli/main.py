"""The command `nestream`: its commands put together, and how each kind of failure ends the program."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from contextlib import suppress
from typing import Annotated, Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

import nestream
from nestream.cli.check import check, explain
from nestream.cli.console import messages, note, show_diagnostics, show_error
from nestream.cli.console_command import console
from nestream.cli.data import data
from nestream.cli.demo import app as demo
from nestream.cli.fmt import fmt
from nestream.cli.run import run
from nestream.cli.stream import stream
from nestream.cli.why import why
from nestream.job import CheckpointError
from nestream.sink import SinkError
from nestream.source import SourceError

_FAILURES = (
    nestream.EventError,
    nestream.StateError,
    nestream.TooManyMatchesError,
    CheckpointError,
    SinkError,
    SourceError,
)


class Commands(TyperGroup):
    """Turns what goes wrong for a user into a message and an exit code; usage errors are Typer's own (2)."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", nestream.UnseenTypeWarning)  # commands have notes for it
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except nestream.QueryError as error:
            show_diagnostics(messages(), error.diagnostics, error.text)
        except _FAILURES as error:
            show_error(str(error))
        except BrokenPipeError:  # the reader, `head` say, has seen enough
            _forget_output()
            raise typer.Exit(0) from None
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            show_error(f"{name}{error.strerror or error}")
        raise typer.Exit(1)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    note(f"warning: {message}")


def _forget_output() -> None:
    """Python flushes standard output once more at its end, which must not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


app = typer.Typer(
    name="nestream",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nestream {nestream.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find nested patterns in event data: sequences, combinations, alternatives and the absence of them.

    QUERY is a file or the text of a query.
    See `nestream COMMAND --help` for the options of a command.
    """


def _examples(*lines: str) -> str:
    """The foot of a command's help."""
    return "\n".join(["[bold]Examples[/bold]", *(line.replace("[", r"\[") for line in lines)])


app.command(
    no_args_is_help=True,
    epilog=_examples(
        'nestream check "SEQ(Recycle r, !Washing w, Operating o) WITHIN 1 hour"',
        "nestream check query.neel --events hospital.csv",
        "nestream check query.neel --format json",
    ),
)(check)
app.command(
    no_args_is_help=True,
    epilog=_examples("nestream fmt query.neel", "nestream fmt --write *.neel", "nestream fmt --check *.neel"),
)(fmt)
app.command(
    no_args_is_help=True,
    epilog=_examples(
        "nestream explain query.neel",
        "nestream explain query.neel --verbose",
        "nestream explain query.neel --format json",
    ),
)(explain)
app.command(
    no_args_is_help=True,
    epilog=_examples(
        "nestream run query.neel hospital.csv",
        "nestream run query.neel trades.parquet --time timestamp --type ticker --output matches.parquet",
        "nestream run query.neel hospital.csv | jq .match_end",
        "gzip -dc events.csv.gz | nestream run query.neel - --input-format csv",
    ),
)(run)
app.command(
    no_args_is_help=True,
    epilog=_examples(
        "nestream why query.neel hospital.csv --events 12,40,77",
        "nestream why query.neel hospital.csv --events r=12,o=77 --format json",
        "nestream why query.neel events.parquet --by event --events A-17,B-4",
    ),
)(why)
app.command(
    no_args_is_help=True,
    epilog=_examples(
        "tail -f events.jsonl | nestream stream rules/ --local",
        "nestream stream rules/ --local --from events.jsonl --to matches.jsonl",
        "nestream stream query.neel --from events --to matches",
        'nestream stream query.neel --from events --to matches --watermark "5 minutes" --once',
    ),
)(stream)
app.command(
    epilog=_examples(
        "nestream data",
        "nestream data stock",
        "nestream data stock --events 1000000 --out trades.parquet",
        "nestream data hospital --seed 7 --set violations=0.1 --out hospital.csv",
    ),
)(data)
app.command(
    epilog=_examples(
        "nestream console",
        "nestream console --data trades.parquet --no-browser",
        "nestream console --job hospital --port 8700",
    ),
)(console)
app.add_typer(demo, name="demo")


def main() -> None:
    """The entry point."""
    for screen in (sys.stdout, sys.stderr):
        if hasattr(screen, "reconfigure"):  # a file's name may hold what the terminal cannot show
            screen.reconfigure(errors="backslashreplace")
    code = 0
    try:
        app(prog_name="nestream")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End the process without taking the interpreter apart.

    Threads of Arrow may still hold objects of Python's. One that lets go of them while the interpreter ends
    is ended itself, in code of C++ that does not expect it, and the process aborts instead of exiting.
    """
    atexit._run_exitfuncs()
    for screen in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads on, or it is closed
            screen.flush()
    os._exit(code)
