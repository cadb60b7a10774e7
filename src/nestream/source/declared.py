"""The columns that the files of a source declare: in a CSV header, or in the schema of Parquet or Avro."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from nestream.model.formats import SUFFIXES, Format
from nestream.source.avro_file import stored_columns
from nestream.source.csv_file import CsvFile
from nestream.source.dead_letter import HeldLetters
from nestream.source.errors import SourceError
from nestream.source.formats import compression_of, known_format, suffix_of
from nestream.source.input import Fragment, Input
from nestream.source.listing import matching_files
from nestream.source.parts import with_header

_BEGINNING = 1 << 16
"""The header of a CSV file is in this many of its first bytes."""


def declared_columns(
    place: str, time: str, type: str, format: str | None = None
) -> Iterator[dict[str, pa.DataType] | None]:
    """The columns of each file that is there now; None for one that declares none, or cannot be read.

    A column of CSV has the type NULL, because its values decide it. Pipes, sockets and topics have no files.
    """
    if place == "-" or "://" in place:
        return
    chosen = None if format is None else known_format(format)
    for path in [place] if os.path.isfile(place) else matching_files(place):
        own = chosen or SUFFIXES.get(suffix_of(path))
        if own is None:
            continue
        try:
            yield _columns(path, own, time, type)
        except (SourceError, pa.ArrowException, OSError):  # the stream itself reports it
            yield None


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
