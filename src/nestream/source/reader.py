"""Reads events with one call for CSV, JSON lines, Parquet and Avro; it never stops for a malformed row."""

from __future__ import annotations

import builtins
import os
import warnings
from collections.abc import Mapping

import pyarrow as pa

from nestream.model.counting import counted
from nestream.model.formats import Format
from nestream.source.avro_file import AvroFile
from nestream.source.csv_file import CsvFile
from nestream.source.dead_letter import DeadLetters, dead_letter_path
from nestream.source.errors import SourceError
from nestream.source.file_reader import BATCH_ROWS, EventReader
from nestream.source.input import Input, Progress
from nestream.source.jsonl_file import JsonLinesFile
from nestream.source.parquet_file import ParquetFile

READERS: dict[Format, builtins.type[EventReader]] = {
    "csv": CsvFile,
    "jsonl": JsonLinesFile,
    "parquet": ParquetFile,
    "avro": AvroFile,
}


def read_events(
    path: str | os.PathLike[str],
    time: str = "ts",
    type: str | None = "type",
    dead_letter: bool | str | os.PathLike[str] | None = None,
    batch_rows: int = BATCH_ROWS,
    *,
    format: str | None = None,
    schema: Mapping[str, pa.DataType] | pa.Schema | None = None,
    closed: bool = False,
    progress: Progress | None = None,
) -> EventReader:
    """Open a file of events ("-" is standard input, with a `format`).

    `time`, `type`: the columns that hold the time and the event type; None if all have one type and
    there is no column. `dead_letter`: where malformed rows go, True for `<input>.dead.jsonl`; they are always
    counted. `schema`: types of columns that are not inferred; a value that does not fit makes its row
    malformed. `closed`: the schema has all columns. Others are ignored, and a file that lacks one is refused;
    in JSON lines, a missing attribute is NULL. `progress` is called with (rows, bytes read, total bytes).
    Raises SourceError if the file cannot be read at all.
    """
    if batch_rows < 1:
        raise ValueError(f"batch_rows must be at least 1, got {batch_rows}")
    if time == type:
        raise SourceError(f"time and type cannot both be column {time!r}. Name two columns")
    source = Input(path, format, progress)
    if schema is None:
        declared: dict[str, pa.DataType] = {}
    elif isinstance(schema, pa.Schema):
        declared = {field.name: field.type for field in schema}
    else:
        declared = dict(schema)
    letters = DeadLetters(source.name, dead_letter_path(dead_letter, source.name))
    try:
        return READERS[source.format](
            source, time, type, letters, declared=declared, batch_rows=batch_rows, closed=closed
        )
    finally:
        letters.close()


def read_table(
    path: str | os.PathLike[str],
    time: str = "ts",
    type: str = "type",
    dead_letter: bool | str | os.PathLike[str] | None = None,
    *,
    format: str | None = None,
    schema: Mapping[str, pa.DataType] | pa.Schema | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    """All events of a file as one table; see `read_events`.

    A warning reports malformed rows, unless `dead_letter` saves them.
    """
    reader = read_events(path, time, type, dead_letter, format=format, schema=schema, progress=progress)
    if reader.malformed and reader.dead_letter is None:
        first, rows = reader.examples[0], counted(reader.malformed, "malformed row")
        warnings.warn(
            f"{rows} of {os.fsdecode(path)} left out; the first is line "
            f"{first.line}: {first.reason}\n  hint: save malformed rows with dead_letter=",
            stacklevel=2,
        )
    return reader.read_all()
