"""The command `nestream`: combines its commands, and maps each kind of failure to an exit code."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, ClassVar, NoReturn, TextIO

import typer
from typer.core import TyperGroup

import nestream
from nestream.cli.without_pandas import hide_pandas_from_arrow


@dataclass(frozen=True)
class Lazy:
    """A command whose module is loaded on use: `path` is the module and the function, or an app."""

    path: str
    examples: tuple[str, ...] = ()
    no_args_is_help: bool = True
    arrow: bool = False
    """Whether it computes with Arrow in this process."""
    owns_process: ClassVar[bool] = False
    """Whether this process runs one command and ends; Arrow then need not find pandas."""

    def load(self, name: str) -> Any:
        """The command."""
        if self.arrow and self.owns_process:
            hide_pandas_from_arrow()
        module, attribute = self.path.split(":")
        found: Callable[..., Any] | typer.Typer = getattr(import_module(module), attribute)
        if isinstance(found, typer.Typer):
            command = typer.main.get_command(found)
        else:
            alone = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
            lines = [line.replace("[", r"\[") for line in self.examples]
            epilog = "\n".join(["[bold]Examples[/bold]", *lines])
            alone.command(name, no_args_is_help=self.no_args_is_help, epilog=epilog)(found)
            command = typer.main.get_command(alone)
        command.name = name
        return command


COMMANDS = {
    "check": Lazy(
        "nestream.cli.check:check",
        (
            'nestream check "SEQ(Recycle r, !Washing w, Operating o) WITHIN 1 hour"',
            "nestream check query.neel --events hospital.csv",
            "nestream check query.neel --format json",
        ),
    ),
    "fmt": Lazy(
        "nestream.cli.fmt:fmt",
        ("nestream fmt query.neel", "nestream fmt --write *.neel", "nestream fmt --check *.neel"),
    ),
    "explain": Lazy(
        "nestream.cli.check:explain",
        (
            "nestream explain query.neel",
            "nestream explain query.neel --verbose",
            "nestream explain query.neel --format json",
        ),
        arrow=True,
    ),
    "run": Lazy(
        "nestream.cli.run:run",
        (
            "nestream run query.neel hospital.csv",
            "nestream run query.neel trades.parquet --time timestamp --type ticker --output matches.parquet",
            "nestream run query.neel hospital.csv | jq .match_end",
            "gzip -dc events.csv.gz | nestream run query.neel - --input-format csv",
        ),
        arrow=True,
    ),
    "why": Lazy(
        "nestream.cli.why:why",
        (
            "nestream why query.neel hospital.csv --events 12,40,77",
            "nestream why query.neel hospital.csv --events r=12,o=77 --format json",
            "nestream why query.neel events.parquet --by event --events A-17,B-4",
        ),
        arrow=True,
    ),
    "stream": Lazy(
        "nestream.cli.stream:stream",
        (
            "tail -f events.jsonl | nestream stream rules/ --local",
            "nestream stream rules/ --local --from events.jsonl --to matches.jsonl",
            "nestream stream rules/ --from events --to matches",
            'nestream stream query.neel --from events --to matches --watermark "5 minutes" --once',
        ),
    ),
    "rules": Lazy(
        "nestream.cli.rules:rules",
        (
            'nestream rules rules/ add dirty "SEQ(Recycle r, !Washing w, Operating o) WITHIN 1 hour"',
            "nestream rules rules/ replace dirty new-version.neel",
            "nestream rules rules/ remove dirty",
            "nestream rules rules/ history",
            "nestream rules rules/ rollback 2",
            "nestream rules kafka://localhost:9092/rules list",
        ),
    ),
    "data": Lazy(
        "nestream.cli.data:data",
        (
            "nestream data",
            "nestream data stock",
            "nestream data stock --events 1000000 --out trades.parquet",
            "nestream data hospital --seed 7 --set violations=0.1 --out hospital.csv",
        ),
        no_args_is_help=False,
        arrow=True,
    ),
    "console": Lazy(
        "nestream.cli.console_command:console",
        (
            "nestream console",
            "nestream console --data trades.parquet --no-browser",
            "nestream console hospital --port 8700",
        ),
        no_args_is_help=False,
    ),
    "lsp": Lazy(
        "nestream.cli.lsp:lsp",
        ("nestream lsp", "nestream lsp --events hospital.csv"),
        no_args_is_help=False,
    ),
    "doctor": Lazy(
        "nestream.cli.doctor:doctor",
        ("nestream doctor", "nestream doctor --format json"),
        no_args_is_help=False,
        arrow=True,
    ),
    "demo": Lazy("nestream.cli.demo:app"),
}
"""The commands in the order of the help."""


class Commands(TyperGroup):
    """Loads commands, and turns a user's mistakes into a message and an exit code.

    Usage errors are Typer's own (2).
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, name: str) -> Any:
        """The command of a name; None if there is none."""
        for wanted in [name] if name in COMMANDS else COMMANDS:  # an unknown name may be similar to any
            if wanted not in self.commands:
                self.commands[wanted] = COMMANDS[wanted].load(wanted)
        return self.commands.get(name)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            from nestream.cli.failures import shown_failure

            code = shown_failure(error)
            if code is None:
                raise
            raise typer.Exit(code) from None


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    from nestream.cli.terminal import note

    if not issubclass(category, nestream.UnseenTypeWarning):  # commands print notes instead
        note(f"warning: {message}")


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


def main() -> None:
    """The entry point."""
    for screen in (sys.stdout, sys.stderr):
        if hasattr(screen, "reconfigure"):  # a file name may contain what the terminal cannot show
            screen.reconfigure(errors="backslashreplace")
    code = 0
    Lazy.owns_process = True
    try:
        app(prog_name="nestream")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End the process without shutting down the interpreter.

    Threads of Arrow may still hold Python objects. A thread that releases them while the interpreter shuts
    down is terminated inside C++ code that does not expect it, and the process aborts instead of exiting.
    """
    atexit._run_exitfuncs()
    for screen in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it, or it is closed
            screen.flush()
    os._exit(code)
