"""What a user sees when a command fails: a message and an exit code, never a traceback for a mistake."""

from __future__ import annotations

import os
import sys

import typer

import nestream
from nestream.cli.terminal import messages, note, show_diagnostics, show_error
from nestream.job import CheckpointError, JobError, RulesError
from nestream.query import StrategyError
from nestream.sink import SinkError
from nestream.source import SourceError

ALL_MALFORMED = 3
"""The exit code if every row was malformed."""
_FAILURES = (
    nestream.EventError,
    nestream.StateError,
    nestream.TooManyMatchesError,
    CheckpointError,
    JobError,
    RulesError,
    SinkError,
    SourceError,
    StrategyError,
)


def shown_failure(error: Exception) -> int | None:
    """Print what went wrong and return the exit code; None if it is not a failure that a user can cause."""
    if isinstance(error, nestream.QueryError):
        of_set: dict[str, nestream.QueryError] = getattr(error, "errors", {})
        for name, one in of_set.items():
            note(f"query {name}:")
            show_diagnostics(messages(), one.diagnostics, one.text)
        if not of_set:
            show_diagnostics(messages(), error.diagnostics, error.text)
    elif isinstance(error, _FAILURES):
        show_error(str(error))
    elif isinstance(error, BrokenPipeError):  # the reader, such as `head`, has seen enough
        _forget_output()
        return 0
    elif isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        show_error(f"{name}{error.strerror or error}")
    else:
        return None
    return 1


def fail_if_all_malformed(events: int, malformed: int) -> None:
    """Exit with a special code if no row could be read: "no matches" would then be misleading."""
    if malformed and not events:
        note("error: every row is malformed, so there are no events to match")
        raise typer.Exit(ALL_MALFORMED)


def _forget_output() -> None:
    """Python flushes standard output once more at exit, which must not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
