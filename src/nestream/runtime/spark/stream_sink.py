"""The files that a stream writes: the matches of a micro-batch, or the events that it left out.

The rows of a micro-batch are in one file. Workers pass them to the driver, which writes it; a bucket with
more than a few megabytes has its own file, which its worker writes. All files have hidden names until the
micro-batch is committed, and then get names that any reader sees.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from nestream.model.schema import EventError
from nestream.runtime.spark.stream_pack import packed, unpacked
from nestream.runtime.spark.stream_place import Place
from nestream.sink.json_text import json_lines

FORMATS = ("parquet", "json")
INLINE = 4 << 20
"""The maximum number of bytes that a bucket passes to the driver."""

Names = list[list[str]]
"""For each file, its hidden name and its final name."""


@dataclass(frozen=True)
class BatchFiles:
    """Files of a folder, by micro-batch; it is sent to the workers."""

    place: Place
    prefix: str
    format: str
    schema: pa.Schema

    def names(self, batch: int, bucket: int | None) -> list[str]:
        """A hidden name that nobody else uses, and the final name."""
        part = "" if bucket is None else f"-{bucket:05}"
        name = f"{self.prefix}-{batch:08}{part}.{self.format}"
        return [f".{name}.{uuid.uuid4().hex[:8]}", name]

    @contextmanager
    def writing(self, name: str) -> Iterator[Callable[[pa.Table], None]]:
        """Write rows to a file."""
        with self.place.writing(name) as file:
            if self.format == "parquet":
                with pq.ParquetWriter(file, self.schema, compression="zstd") as writer:
                    yield writer.write_table
            else:
                yield lambda rows: _write_lines(file, rows)

    def write(self, batch: int, tables: Iterable[pa.Table]) -> Names:
        """Write the rows that were passed to the driver, if there are any."""
        rows = pa.concat_tables(tables) if (tables := list(tables)) else None
        if rows is None or not rows.num_rows:
            return []
        names = self.names(batch, None)
        with self.writing(names[0]) as write:
            write(rows)
        return [names]

    def publish(self, names: Names, *, again: bool = False) -> None:
        """Give the files of a committed micro-batch their final names; those that have them keep them.

        If this was done before and is done `again`, another program may have removed the files.
        """
        there = set(self.place.names()) if names else set()
        for hidden, name in names:
            if hidden in there:
                self.place.move(hidden, name)
            elif name not in there and not again:
                raise self._missing(hidden, name)

    def _missing(self, hidden: str, name: str) -> EventError:
        return EventError(
            f"the file {self.place}/{name} of a micro-batch that is done is missing, and so is {hidden}\n"
            "  hint: restore folder and checkpoint from copies of the same moment; if another program took "
            "the file away, put an empty file of that name there"
        )

    def sweep(self) -> None:
        """Remove what an uncommitted micro-batch has left."""
        for name in self.place.names():
            if name.startswith(f".{self.prefix}-"):
                self.place.remove(name)

    def has_files(self) -> bool:
        """Whether the folder has files like these."""
        return any(name.startswith(f"{self.prefix}-") for name in self.place.names())


def _write_lines(file: IO[bytes], rows: pa.Table) -> None:
    for batch in rows.to_batches():
        file.write(json_lines(batch).encode())


@dataclass
class Spool:
    """The rows of one bucket: held for the driver while they are few, then written to a file."""

    files: BatchFiles
    batch: int
    bucket: int
    is_cut: bool = False
    """Whether the driver takes only some of the rows, and so must have them."""
    held: list[bytes] = field(default_factory=list)
    names: Names = field(default_factory=list)
    _size: int = 0
    _open: Any = None
    _write: Any = None

    def add(self, data: bytes) -> None:
        """Take a packed table."""
        self._size += len(data)
        if self._write is None and (self.is_cut or self._size <= INLINE):
            self.held.append(data)
            return
        if self._write is None:
            self.names.append(self.files.names(self.batch, self.bucket))
            self._open = self.files.writing(self.names[0][0])
            self._write = self._open.__enter__()
            for before in self.held:
                self._write(unpacked(before))
            self.held = []
        self._write(unpacked(data))

    def add_table(self, rows: pa.Table) -> None:
        """Take a table."""
        self.add(packed(rows.combine_chunks()))

    def close(self) -> None:
        """Complete the file, if there is one."""
        if self._open is not None:
            self._open.__exit__(None, None, None)
            self._open = self._write = None
