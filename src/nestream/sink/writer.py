"""Writes tables of matches or events: JSON lines, CSV or Parquet, to a file or standard output."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from nestream.model.formats import WRITTEN, WRITTEN_SUFFIXES
from nestream.model.wording import reason
from nestream.sink.flat import csv_header, csv_rows, flatten
from nestream.sink.json_text import json_lines

_ROWS = 16_384  # rows converted to text at a time


class SinkError(Exception):
    """An output that cannot be written: what, where, and what to do."""


def write_matches(
    batches: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch | pa.Table],
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    schema: pa.Schema | None = None,
) -> int:
    """Write matches and return how many; "-" is standard output.

    `format`: jsonl, csv or parquet; by default from the suffix, and jsonl for standard output. CSV has one
    column for each field of a struct (`r.id`). `schema` is needed only for CSV and Parquet from an iterable
    that may be empty. Batches are written as they come. Raises SinkError.
    """
    name = os.fspath(path)
    chosen = _format(name, format)
    stream = _batches(batches)
    first = next(stream, None)
    if schema is None:
        schema = batches.schema if isinstance(batches, (pa.Table, pa.RecordBatch)) else None
    if schema is None and first is not None:
        schema = first.schema
    if schema is None and chosen != "jsonl":
        raise SinkError(f"cannot write {name}: there are no batches to take the columns from. Pass a schema")
    with _output(name) as file, _writer(chosen, file, schema) as write:
        rows = 0
        while first is not None:
            write(first)
            rows += first.num_rows
            if chosen == "jsonl":
                file.flush()
            first = next(stream, None)
    return rows


def write_events(table: pa.Table, path: str | os.PathLike[str], format: str | None = None) -> int:
    """Write a table of events; the suffix decides the format."""
    return write_matches(table, path, format)


def _batches(data: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(data, pa.RecordBatch):
        yield data
    elif isinstance(data, pa.Table):
        yield from data.to_batches() or [pa.RecordBatch.from_pylist([], schema=data.schema)]
    else:
        for item in data:
            yield from _batches(item)


@contextlib.contextmanager
def _writer(format: str, file: IO[bytes], schema: pa.Schema | None) -> Iterator[Any]:
    if format == "jsonl":

        def write(batch: pa.RecordBatch) -> None:
            for start in range(0, batch.num_rows, _ROWS):
                file.write(json_lines(batch.slice(start, _ROWS)).encode())

        yield write
    elif format == "csv":
        empty = flatten(pa.RecordBatch.from_pylist([], schema=schema))
        file.write(csv_header(empty.schema.names))
        yield lambda batch: file.write(csv_rows(flatten(batch)))
    else:
        with pq.ParquetWriter(pa.PythonFile(file, mode="w"), schema, compression="zstd") as writer:
            yield lambda batch: writer.write_batch(batch)


@contextlib.contextmanager
def _output(name: str) -> Iterator[IO[bytes]]:
    if name == "-":
        sys.stdout.flush()
        file = cast(IO[bytes], sys.stdout.buffer)
        yield cast(IO[bytes], _Unclosed(file))
        file.flush()
        return
    try:
        opened = open(name, "wb")
    except OSError as error:
        raise SinkError(f"cannot write {name}: {reason(error)}. Choose another path") from error
    with opened:
        yield opened


class _Unclosed:
    """Standard output, which Arrow's writers must not close."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._position = 0

    def write(self, data: bytes) -> int:
        self._position += len(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.flush()


def _format(name: str, wanted: str | None) -> str:
    if wanted is not None:
        if wanted not in WRITTEN:
            raise SinkError(f"unknown format {wanted!r}. The formats are {', '.join(WRITTEN)}")
        return wanted
    if name == "-":
        return "jsonl"
    suffix = Path(name).suffix.lower()
    if suffix not in WRITTEN_SUFFIXES:
        raise SinkError(
            f"the suffix of {name} is not known. "
            f"Use one of {', '.join(WRITTEN_SUFFIXES)}, or name the format: {', '.join(WRITTEN)}"
        )
    return WRITTEN_SUFFIXES[suffix]
