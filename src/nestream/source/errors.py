"""The error of data that cannot be read: what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence


class SourceError(Exception):
    """A file that cannot be read at all. A single malformed row is never a SourceError."""


def missing_column(where: str, role: str, name: str, columns: Sequence[str]) -> SourceError:
    """The column that holds the time or the type is not there: list what is, and guess what was meant."""
    shown = ", ".join(columns[:30]) + (f", and {len(columns) - 30} more" if len(columns) > 30 else "")
    close = {column.lower(): column for column in columns}
    usual = [column for column in columns if column.lower() in _USUAL[role]]
    cutoff = 0.8 if usual else 0.6  # a name that is usual is a better guess than one a bit alike
    guess = difflib.get_close_matches(name.lower(), list(close), n=1, cutoff=cutoff)
    meant = close[guess[0]] if guess else usual[0] if usual else None
    hint = f"did you mean {meant!r}? " if meant else ""
    separator = _foreign_separator(columns)
    if separator:
        hint = f"the header seems to be separated by {separator}, but commas are needed. "
    return SourceError(
        f"{where} has no {role} column {name!r}; its columns are: {shown}. "
        f"{hint}Name the {role} column with --{role} (or {role}= in Python)"
    )


def check_columns(where: str, found: Sequence[str], wanted: Collection[str]) -> None:
    """Refuse a file that lacks a wanted column; their order does not matter, and others are left out."""
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


def first_line(error: BaseException) -> str:
    """What a library says, without what follows and without a full stop."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
