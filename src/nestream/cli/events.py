"""Reads the events that a command names, with progress, and reports the rows that could not be read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import typer

from nestream.cli.arguments import EventFormat
from nestream.cli.terminal import ReadingProgress, count, measured, note, working
from nestream.source import EventFiles, event_files

LOOKED_THROUGH = 100_000
"""In how many of the first events values are looked for that make a column text."""
MOSTLY = 20
"""How many distinct numbers a column has for each other value, to be a column of numbers by intent."""
NUMBER = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def load_events(
    places: Sequence[str], time: str, type: str, format: EventFormat | None, dead_letter: str | None
) -> tuple[EventFiles, pa.Table]:
    """All events of some places, and the readers, which know the malformed rows."""
    reader = open_events(places, time, type, format, dead_letter)
    return reader, read_all(reader)


def read_all(reader: EventFiles) -> pa.Table:
    """All events as one table."""
    with working("reading"):
        return reader.read_all()


def open_events(
    places: Sequence[str], time: str, type: str, format: EventFormat | None, dead_letter: str | None
) -> EventFiles:
    """Open the events of some places: inspected, but not read yet."""
    with measured("reading") as progress:
        reader = _open(places, time, type, format, dead_letter, progress)
    _report_dead_letters(reader, "save with --dead-letter FILE")
    return reader


def note_unseen(told: Iterable[str]) -> None:
    """Print one line on stderr for each type that the query names and no event has."""
    for sentence in told:
        note(f"note: {sentence}")


def note_text(attributes: Iterable[str], table: pa.Table) -> None:
    """Print one line on stderr for each attribute that a few values make text, among many numbers."""
    for name in attributes:
        if name not in table.column_names or not pa.types.is_string(table.column(name).type):
            continue
        values = pc.unique(table.column(name).slice(0, LOOKED_THROUGH)).drop_null()
        others = values.filter(pc.invert(pc.match_substring_regex(values, NUMBER)))
        if 0 < len(others) <= len(values) // MOSTLY:
            more = f" and {count(len(others) - 1, 'other value')}" if len(others) > 1 else ""
            verb = "is not a number" if len(others) == 1 else "are not numbers"
            note(f"note: column `{name}` is text, because {others[0].as_py()[:40]!r}{more} {verb}")


def columns_of(
    places: Sequence[str], time: str, type: str, format: EventFormat | None
) -> tuple[pa.Schema, pa.ChunkedArray]:
    """The columns of files of events, which depend on every row, and the types that occur in them."""
    with measured("reading") as progress:
        reader = _open(places, time, type, format, None, progress)
    _report_dead_letters(reader, "save with `nestream run --dead-letter FILE`")
    kinds = pa.chunked_array([pc.unique(batch.column(type)) for batch in reader], pa.string())
    return reader.schema, kinds


def _open(
    places: Sequence[str],
    time: str,
    type: str,
    format: EventFormat | None,
    dead_letter: str | None,
    progress: ReadingProgress | None,
) -> EventFiles:
    stored = format.stored if format else None
    files = event_files(places, stored)
    if format is None and any(file.path == "-" for file in files):
        raise typer.BadParameter(
            "standard input has no suffix; add --input-format csv, json or parquet.",
            param_hint="EVENTS",
        )
    if dead_letter is not None:
        for file in files:
            _check_dead_letter(dead_letter, file.path)
    return EventFiles(files, time, type, dead_letter, format=stored, progress=progress)


def _check_dead_letter(path: str, events: str) -> None:
    """Refuse a place for dead letters before the work begins, not when the first one comes."""
    wrong = None
    if os.path.isdir(path):
        wrong = f"{path!r} is a folder."
    elif not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        wrong = f"there is no folder {os.path.dirname(path)!r}."
    elif os.path.exists(path) and os.path.exists(events) and os.path.samefile(path, events):
        wrong = "this file holds the events."
    if wrong is not None:
        raise typer.BadParameter(wrong, param_hint="--dead-letter")


def _report_dead_letters(reader: EventFiles, how_to_keep: str) -> None:
    """Print one line on stderr: how many, and where they are or how to keep them."""
    if not reader.malformed:
        return
    example = reader.examples[0]
    where = "standard input" if example.file == "-" else example.file
    if len(reader.files) > 1:
        where = count(sum(part.malformed > 0 for part in reader.readers), "file")
    found = f"{count(reader.malformed, 'dead letter')} from {where}"
    if reader.dead_letter is not None:
        note(f"{found} saved in {reader.dead_letter}")
        return
    reason = " ".join(example.reason.split())
    place = f"{example.file}, line" if len(reader.files) > 1 else "line"
    note(f"{found} ({place} {example.line}: {reason}); {how_to_keep}")
