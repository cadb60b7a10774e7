"""`nestream lsp`: the language server for editors, over standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import nestream
from nestream.cli.arguments import TimeOption, TypeOption
from nestream.model.extras import needs

if TYPE_CHECKING:
    from nestream import Schema
    from nestream.editor.server import EventFile

_MOST_ROWS = 200_000
"""In how many events types and their attributes are looked for."""


def lsp(
    events: Annotated[
        str | None,
        typer.Option(
            "--events", metavar="FILE", help="File of events, for the names of types and attributes."
        ),
    ] = None,
    time: TimeOption = "ts",
    type: TypeOption = "type",
) -> None:
    """Start the language server, which editors run: diagnostics, hover, completion, formatting and fixes.

    It speaks the Language Server Protocol over standard input and output.
    """
    try:
        from nestream.editor.server import EventFile, make_server
    except ModuleNotFoundError as missing:
        raise OSError(needs("the language server", missing.name or "pygls", "lsp")) from None
    file = None if events is None else EventFile(events, time, type)
    make_server(nestream.__version__, file, _schema).start_io()


def _schema(file: EventFile) -> Schema:
    """The columns and types of a file; raises a ValueError if it cannot be read."""
    from nestream.source import SourceError

    try:
        return _first_events(file)
    except SourceError as problem:
        raise ValueError(str(problem)) from None


def _first_events(file: EventFile) -> Schema:
    """The columns of a file, and the types in its first events with the attributes that each has."""
    import pyarrow as pa

    from nestream.editor.catalog import schema_of
    from nestream.source import EventFiles, event_files

    reader = EventFiles(event_files([file.path], None), file.time, file.type, None)
    found, rows = [], 0
    for batch in reader:
        found.append(batch)
        rows += batch.num_rows
        if rows >= _MOST_ROWS:
            break
    return schema_of(pa.Table.from_batches(found, reader.schema), file.time, file.type)
