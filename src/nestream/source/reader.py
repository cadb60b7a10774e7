"""Reads events with one call for CSV, JSON lines, Parquet and Avro; it never stops for a malformed row."""

from __future__ import annotations

import builtins
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from nestream.model.counting import counted
from nestream.model.formats import Format
from nestream.source.avro_file import AvroFile
from nestream.source.csv_file import CsvFile
from nestream.source.dead_letter import DeadLetter, DeadLetters, dead_letter_path
from nestream.source.errors import SourceError
from nestream.source.file_reader import BATCH_ROWS, FileReader
from nestream.source.input import Input, Progress
from nestream.source.jsonl_file import JsonLinesFile
from nestream.source.parquet_file import ParquetFile

READERS: dict[Format, builtins.type[FileReader]] = {
    "csv": CsvFile,
    "jsonl": JsonLinesFile,
    "parquet": ParquetFile,
    "avro": AvroFile,
}


class EventReader:
    """The events of one file as record batches, with the problems found.

    Opening decides the schema and finds every malformed row; iterating delivers the others, in file order, as
    often as you like.
    """

    def __init__(self, reader: FileReader, source: Input, letters: DeadLetters) -> None:
        self._reader, self._source, self._letters = reader, source, letters
        self.schema: pa.Schema = reader.schema
        self.rows = 0
        """Events delivered by the latest iteration."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.rows = 0
        for batch in self._reader.batches():
            self.rows += batch.num_rows
            yield batch

    def read_all(self) -> pa.Table:
        """All events as one table."""
        return pa.Table.from_batches(list(self), schema=self.schema)

    @property
    def undecided(self) -> frozenset[str]:
        """The columns without a single value, whose type is a guess."""
        return self._reader.undecided

    @property
    def in_order(self) -> bool:
        """Whether the times of the events never decrease; False for a small file, where it is not checked."""
        return self._reader.in_order

    @property
    def path(self) -> str:
        """The file, as it was named."""
        return self._source.name

    @property
    def format(self) -> Format:
        """csv, jsonl, parquet or avro."""
        return self._source.format

    @property
    def malformed(self) -> int:
        """How many rows were malformed."""
        return self._letters.count

    @property
    def reasons(self) -> dict[str, int]:
        """Malformed rows by kind: fields, quote, encoding, json, object, avro, time, type, value."""
        return dict(self._letters.kinds)

    @property
    def examples(self) -> list[DeadLetter]:
        """The first few malformed rows, in line order."""
        return sorted(self._letters.examples, key=lambda letter: letter.line)

    @property
    def dead_letter(self) -> Path | None:
        """The file with the malformed rows, if it was requested and there are any."""
        return self._letters.path if self._letters.count else None


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
        reader = READERS[source.format](
            source, time, type, letters, declared=declared, batch_rows=batch_rows, closed=closed
        )
    finally:
        letters.close()
    return EventReader(reader, source, letters)


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
