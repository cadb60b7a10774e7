"""The columns that the files of a source declare: in a CSV header, or in the schema of Parquet or Avro.

JSON lines declare none, but their first events tell whether the time and the type are named right.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from nestream.model.formats import SUFFIXES, Format
from nestream.source.avro_file import stored_columns
from nestream.source.csv_file import CsvFile
from nestream.source.dead_letter import HeldLetters
from nestream.source.errors import MissingColumnError, SourceError, missing_column
from nestream.source.formats import compression_of, known_format, suffix_of
from nestream.source.input import Fragment, Input
from nestream.source.json_values import parse_line
from nestream.source.listing import matching_files
from nestream.source.parts import with_header

_BEGINNING = 1 << 16
"""The header of a CSV file, and the first events of JSON lines, are in this many of the first bytes."""
_FEW = 10
"""So many events of a file that grows tell that others will have the same columns."""


def declared_columns(
    place: str, time: str, type: str, format: str | None = None
) -> Iterator[dict[str, pa.DataType] | None]:
    """The columns of each file that is there now; None for one that declares none, or cannot be read.

    A column of CSV has the type NULL, because its values decide it. Pipes, sockets and topics have no files.
    """
    for path, own in _files(place, format):
        try:
            yield _columns(path, own, time, type)
        except (SourceError, pa.ArrowException, OSError):  # the stream itself reports it
            yield None


def refuse_missing(place: str, time: str, type: str, format: str | None = None, *, grows: bool) -> None:
    """Raise if no file that is there now has the time or the type column.

    The first events of JSON lines tell; of a file that grows, it takes a few.
    """
    problem: MissingColumnError | None = None
    for path, own in _files(place, format):
        try:
            columns = _first_names(path, grows=grows) if own == "jsonl" else _columns(path, own, time, type)
            for role, name in (("time", time), ("type", type)):
                if columns is not None and name not in columns:
                    raise missing_column(path, role, name, list(columns))
        except MissingColumnError as missing:
            problem = problem or missing
        except (SourceError, pa.ArrowException, OSError):  # the stream itself reports it
            return
        else:
            return
    if problem is not None:
        raise problem


def _files(place: str, format: str | None) -> Iterator[tuple[str, Format]]:
    """The files that are there now, each with its format."""
    if place == "-" or "://" in place:
        return
    chosen = None if format is None else known_format(format)
    for path in [place] if os.path.isfile(place) else matching_files(place):
        own = chosen or SUFFIXES.get(suffix_of(path))
        if own is not None:
            yield path, own


def _first_names(path: str, *, grows: bool) -> list[str] | None:
    """The attributes of the first events of JSON lines; None if they are too few to tell."""
    with pa.input_stream(path, compression=compression_of(path)) as file:
        lines = file.read(_BEGINNING).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    events = [event for line in lines if isinstance(event := parse_line(line)[0], dict)]
    enough = _FEW if grows else 1
    return None if len(events) < enough else list(dict.fromkeys(name for event in events for name in event))


def _columns(path: str, format: Format, time: str, type: str) -> dict[str, pa.DataType] | None:
    if format == "jsonl":
        return None
    if format == "csv":
        with pa.input_stream(path, compression=compression_of(path)) as file:
            header, _ = with_header(file.read(_BEGINNING))
        names = CsvFile(Fragment(path, "csv", header), time, type, HeldLetters(path)).schema.names
        return dict.fromkeys(names, pa.null())
    source = Input(path, format, None)
    with source.open() as file:
        if format == "avro":
            schema = stored_columns(file, path)
        else:
            schema = pq.ParquetFile(pa.PythonFile(file, mode="r"), pre_buffer=False).schema_arrow
    return dict(zip(schema.names, schema.types, strict=True))
