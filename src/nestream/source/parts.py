"""The files of a stream, each read from its position: JSON lines and CSV as they grow, others as a whole."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from io import BytesIO
from typing import TypeAlias

import pyarrow as pa

from nestream.model.formats import Format
from nestream.source.csv_file import CsvFile
from nestream.source.csv_records import records
from nestream.source.dead_letter import DeadLetter, HeldLetters
from nestream.source.errors import SourceError, without_path
from nestream.source.input import Fragment, Input
from nestream.source.json_events import JsonEvents
from nestream.source.json_values import beginning
from nestream.source.ladder import digest
from nestream.source.protocol import Batch, Position
from nestream.source.reader import READERS
from nestream.source.saved_types import saved_types, types_of
from nestream.source.text_file import TextFile, check_inode, warn_of_new_file

_ENDS = 1024
"""How many of the first and last bytes distinguish a file from another of the same name."""


class Columns:
    """What is known of the columns of all files: the first file of a format decides the types."""

    def __init__(self, time: str, type: str | None, moments: Collection[str] | None) -> None:
        self.time, self.type = time, type
        self.json = JsonEvents(time, type, moments)
        self.csv: dict[str, pa.DataType] = {}

    def position(self) -> Position:
        """The types so far."""
        return {"json": self.json.position(), "csv": saved_types(self.csv)}

    def seek(self, position: Position) -> None:
        """Continue with these types."""
        self.json.seek(position["json"])
        self.csv = types_of(position["csv"])


class JsonPart(TextFile):
    """A file of JSON lines."""

    __slots__ = ("_columns",)

    def __init__(self, path: str, columns: Columns, alone: bool, forgiving: bool) -> None:
        super().__init__(path, follows=alone, forgiving=forgiving, check=_check_beginning)
        self._columns = columns

    def read(self, *, to_end: bool) -> Batch | None:
        """Return more of its events; None if there is nothing new."""
        data = self.take(to_end=to_end)
        if not data:
            return None
        first = self.line - data.count(b"\n")  # known only now: the file may have been replaced
        return self._columns.json.batch(self.path, data.split(b"\n"), first)


def _check_beginning(path: str, data: bytes) -> None:
    """Refuse a file whose first line is not one of JSON lines."""
    beginning(path, data.partition(b"\n")[0])


class CsvPart(TextFile):
    """A CSV file; its first line names the columns."""

    __slots__ = ("_alone", "_columns", "_header")

    def __init__(self, path: str, columns: Columns, alone: bool, forgiving: bool) -> None:
        super().__init__(path, quoted=True, follows=alone, forgiving=forgiving)
        self._columns, self._alone = columns, alone
        self._header = b""

    def read(self, *, to_end: bool) -> Batch | None:
        """Return more of its events; None if there is nothing new."""
        data = self.take(to_end=to_end)
        if not data:
            return None
        first = self.line - data.count(b"\n")  # known only now: the file may have been replaced
        if self.offset == len(data):
            self._header = b""
        if not self._header:
            self._header, data = with_header(data)
            first += self._header.count(b"\n")
        try:
            return self._batch(data, first - 1 - self._header.count(b"\n"))
        except SourceError as problem:
            if self._alone:
                raise
            why = without_path(problem, self.path)
            letters = HeldLetters(self.path, first - 1)
            for record in records(BytesIO(data)):
                letters.add(record.line, "file", why, record.raw)
            return Batch(pa.table({}), letters.examples)

    def _batch(self, data: bytes, before: int) -> Batch:
        columns = self._columns
        letters = HeldLetters(self.path, before)
        source = Fragment(self.path, "csv", self._header + data)
        file = CsvFile(source, columns.time, columns.type, letters, declared=columns.csv)
        events = file.read_all()
        for field in events.schema:
            if not pa.types.is_null(field.type) and events.num_rows:
                columns.csv.setdefault(field.name, field.type)
        return Batch(events, file.examples)

    def position(self) -> Position:
        """The position, with the header that names the columns of what follows."""
        return {**super().position(), "header": self._header.decode("latin-1")}

    def seek(self, position: Position) -> None:
        """Go to a position; raises if a followed file is a different one."""
        super().seek(position)
        self._header = position["header"].encode("latin-1")


def with_header(data: bytes) -> tuple[bytes, bytes]:
    """The first record with its line end, and the rest."""
    end = 0
    while True:
        end = data.find(b"\n", end) + 1
        if not end:
            return data + b"\n", b""
        if data.count(b'"', 0, end) % 2 == 0 and data[:end].strip(b"\r\n \xef\xbb\xbf"):
            return data[:end], data[end:]


class WholePart:
    """A file that exists as a whole or not at all, such as Parquet; its methods are those of a text file."""

    __slots__ = ("_batches", "_columns", "_dead", "_done", "_ends", "_format", "_path", "_rows", "inode")
    is_fixed = True

    def __init__(self, path: str, format: Format, columns: Columns) -> None:
        self._path, self._format, self._columns = path, format, columns
        self._rows = 0
        self._done = False
        self._ends: str | None = None
        """The size of the file with a hash of its first and last bytes, once it was opened."""
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._dead: list[DeadLetter] = []
        self.inode = 0

    @property
    def is_begun(self) -> bool:
        return self._rows > 0

    def continues(self) -> bool:
        return self._ends is None or self._now() == self._ends

    def _now(self) -> str:
        ends = _ends_of(self._path)
        check_inode(self._path, self.inode, os.stat(self._path))
        return ends

    def read(self, *, to_end: bool) -> Batch | None:
        if self._done:
            return None
        if self._batches is None:
            self._open()
        assert self._batches is not None
        batch = next(self._batches, None)
        self._done = batch is None
        dead, self._dead = (self._dead, []) if self._done else ([], self._dead)
        if batch is None:
            self._batches = None
            return Batch(pa.table({}), dead) if dead else None
        self._rows += batch.num_rows
        return Batch(pa.Table.from_batches([batch]))

    def _open(self) -> None:
        self._ends = self._now()
        letters, columns = HeldLetters(self._path), self._columns
        source = Input(self._path, self._format, None)
        file = READERS[self._format](source, columns.time, columns.type, letters)
        self._batches, self._dead = _after(file, self._rows), file.examples

    def changed(self) -> None:
        ends = self._now()
        if self._ends is not None and ends != self._ends:
            if self._rows:
                warn_of_new_file(self._path)
            self._rows, self._done, self._batches, self._dead = 0, False, None, []
        self._ends = ends

    def give_up(self) -> None:
        self._done, self._batches, self._dead = True, None, []

    def position(self) -> Position:
        return {"rows": self._rows, "done": self._done, "ends": self._ends}

    def seek(self, position: Position) -> None:
        self._rows, self._done, self._ends = position["rows"], position["done"], position.get("ends")

    def close(self) -> None:
        self._batches = None


Part: TypeAlias = JsonPart | CsvPart | WholePart
"""One file of a source."""


def part_of(path: str, format: Format, columns: Columns, *, alone: bool, forgiving: bool = False) -> Part:
    """The file as a part; `alone` if the source is this one file, which may be replaced by a new one.

    With `forgiving`, a position in a text file that was replaced or cut back since is no error.
    """
    if format == "jsonl":
        return JsonPart(path, columns, alone, forgiving)
    if format == "csv":
        return CsvPart(path, columns, alone, forgiving)
    return WholePart(path, format, columns)


def _ends_of(path: str) -> str:
    """The size of a file, with a hash of its first and last bytes."""
    with open(path, "rb") as file:
        first = file.read(_ENDS)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _ENDS))
        return f"{size} {digest(first + file.read())}"


def _after(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The batches without the first rows."""
    for batch in batches:
        if rows >= batch.num_rows:
            rows -= batch.num_rows
        else:
            yield batch.slice(rows)
            rows = 0
