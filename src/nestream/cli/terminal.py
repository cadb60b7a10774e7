"""What the commands print: diagnostics in colour on a terminal, and progress on stderr, never in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

from nestream import Diagnostic, QueryError
from nestream.model.counting import counted as count
from nestream.model.counting import showing_matches

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["count", "showing_matches"]

ReadingProgress = Callable[[int, int, int], None]
_COLOURS = {"error": "bold red", "warning": "bold yellow"}


@cache
def _console() -> type[Console]:
    """Rich's console, loaded on first use."""
    from rich.console import Console

    class OurConsole(Console):
        def on_broken_pipe(self) -> None:
            """Rich would end the program here; the command line has one place for that."""
            raise BrokenPipeError

    return OurConsole


def output() -> Console:
    """Standard output, for answers."""
    return _console()(highlight=False)


def messages() -> Console:
    """Standard error, for everything that is not the answer."""
    return _console()(stderr=True, highlight=False)


def is_terminal(error: bool = False) -> bool:
    """Whether a person reads standard output (or error). Rich's own answer depends on FORCE_COLOR."""
    return (sys.stderr if error else sys.stdout).isatty()


def show_diagnostics(console: Console, diagnostics: Iterable[Diagnostic], text: str) -> None:
    """Print every diagnostic with its place underlined, separated by empty lines."""
    for number, diagnostic in enumerate(diagnostics):
        if number:
            console.print()
        rendered = str(QueryError([diagnostic], text))
        colour = _COLOURS[diagnostic.severity.value]
        for line in rendered.split("\n"):
            console.print(_coloured(line, colour), soft_wrap=True)


def _coloured(line: str, colour: str) -> Text:
    from rich.text import Text

    text = Text(line)
    for start in ("error:", "warning:"):
        if line.startswith(start):
            text.stylize(colour, 0, len(start))
            text.stylize("bold", len(start))
    for label in ("  hint:", "  write:"):
        if line.startswith(label):
            text.stylize("cyan", 0, len(label))
    if line.strip(" |").strip("^") == "" and "^" in line:
        text.stylize(colour, line.index("^"))
    return text


def show_error(message: str) -> None:
    """Print one error that is not about a query's text, in the shape of a diagnostic."""
    messages().print(_coloured(f"error: {message}", _COLOURS["error"]), soft_wrap=True)


def note(message: str) -> None:
    """Print one line on stderr."""
    from rich.text import Text

    messages().print(Text(message), soft_wrap=True)


def working(what: str) -> AbstractContextManager[Any]:
    """Show a spinner during work of unknown length, if stderr is a terminal."""
    return messages().status(what) if is_terminal(error=True) else nullcontext()


@contextmanager
def measured(what: str) -> Iterator[ReadingProgress | None]:
    """A progress bar, updated by calls with (rows, done, total); None unless stderr is a terminal."""
    if not is_terminal(error=True):
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]:,} events"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=messages(), transient=True) as bar:
        task = bar.add_task(what, total=None, rows=0)
        yield lambda rows, done, total: bar.update(task, completed=done, total=total, rows=rows)
