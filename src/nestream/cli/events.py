"""Reading the events that a command names, with progress, and reporting the rows that could not be read."""

from __future__ import annotations

import pyarrow as pa
import typer

import nestream
from nestream.cli.arguments import FileFormat
from nestream.cli.console import ReadingProgress, count, measured, note
from nestream.source import EventReader, read_events


def load_events(
    path: str, time: str, type: str, format: FileFormat | None, dead_letter: str | None
) -> tuple[EventReader, pa.Table]:
    """All events, and the reader that knows what was wrong with the others."""
    with measured("reading") as progress:
        reader = _open(path, time, type, format, dead_letter, progress)
        table = reader.read_all()
    _report_dead_letters(reader, "save with --dead-letter FILE")
    return reader, table


def schema_of(path: str, time: str, type: str, format: FileFormat | None) -> nestream.Schema:
    """The columns of a file of events; the file is read as a whole, as every row decides on the types."""
    with measured("reading") as progress:
        reader = _open(path, time, type, format, None, progress)
    _report_dead_letters(reader, "save with `nestream run --dead-letter FILE`")
    return nestream.Schema.of(reader.schema, time, type)


def _open(
    path: str,
    time: str,
    type: str,
    format: FileFormat | None,
    dead_letter: str | None,
    progress: ReadingProgress | None,
) -> EventReader:
    if path == "-" and format is None:
        raise typer.BadParameter(
            "standard input has no suffix; add --input-format csv, json or parquet.",
            param_hint="EVENTS",
        )
    stored = format.stored if format else None
    return read_events(path, time, type, dead_letter, format=stored, progress=progress)


def _report_dead_letters(reader: EventReader, how_to_keep: str) -> None:
    """One line on stderr: how many, and where they are or how to keep them."""
    if not reader.malformed:
        return
    where = "standard input" if reader.path == "-" else reader.path
    found = f"{count(reader.malformed, 'dead letter')} from {where}"
    if reader.dead_letter is not None:
        note(f"{found} saved in {reader.dead_letter}")
        return
    example = min(reader.examples, key=lambda letter: letter.line)
    reason = " ".join(example.reason.split())
    note(f"{found} (line {example.line}: {reason}); {how_to_keep}")
