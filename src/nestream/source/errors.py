"""The error for data that cannot be read: what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence


class SourceError(Exception):
    """A file that cannot be read at all. A single malformed row is never a SourceError."""


class MissingColumnError(SourceError):
    """A file without the time or type column."""


def missing_column(where: str, role: str, name: str, columns: Sequence[str]) -> MissingColumnError:
    """Report that the time or type column is missing: list the columns, and guess the intended one."""
    shown = ", ".join(columns[:30]) + (f", and {len(columns) - 30} more" if len(columns) > 30 else "")
    close = {column.lower(): column for column in columns}
    usual = [column for column in columns if column.lower() in _USUAL[role]]
    cutoff = 0.8 if usual else 0.6  # a usual name is a better guess than a slightly similar one
    guess = difflib.get_close_matches(name.lower(), list(close), n=1, cutoff=cutoff)
    meant = close[guess[0]] if guess else usual[0] if usual else None
    hint = f"Did you mean {meant!r}? " if meant else ""
    separator = _foreign_separator(columns)
    if separator:
        hint = f"The header seems to be separated by {separator}, but commas are needed. "
    return MissingColumnError(
        f"{where} has no {role} column {name!r}; its columns are: {shown}. "
        f"{hint}Name the {role} column with --{role} (or {role}= in Python)"
    )


def check_columns(where: str, found: Sequence[str], wanted: Collection[str]) -> None:
    """Refuse a file that lacks a wanted column; order does not matter, and other columns are ignored."""
    missing = [name for name in wanted if name not in found]
    if missing:
        raise SourceError(f"{where} has no column {missing[0]!r}; the columns are: {', '.join(wanted)}")


_USUAL = {
    "time": {"ts", "time", "timestamp", "date", "datetime", "event_time", "eventtime", "at"},
    "type": {"type", "event", "event_type", "eventtype", "kind", "name", "ticker", "activity"},
}


def _foreign_separator(columns: Sequence[str]) -> str | None:
    if len(columns) == 1:
        for character, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if character in columns[0]:
                return name
    return None


def without_path(problem: SourceError, path: str) -> str:
    """What is wrong with a file, where the file is named beside it."""
    said = str(problem)
    if said.startswith(f"{path}: "):
        return said.removeprefix(f"{path}: ")
    return f"the file{said.removeprefix(path)}" if said.startswith(f"{path} ") else said


def first_line(error: BaseException) -> str:
    """The first line of a library's message, without a full stop; the kind of error if it has none."""
    return (str(error).splitlines() or [""])[0].rstrip(".") or type(error).__name__
