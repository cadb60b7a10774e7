"""The files of a stream, each read from its position: JSON lines and CSV as they grow, others as a whole."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
from io import BytesIO
from typing import Protocol

import pyarrow as pa

from nestream.model.formats import Format
from nestream.source.csv_file import CsvFile
from nestream.source.csv_records import records
from nestream.source.dead_letter import DeadLetter, HeldLetters
from nestream.source.errors import SourceError, without_path
from nestream.source.input import Fragment, Input
from nestream.source.json_events import JsonEvents, beginning
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


class Part(Protocol):
    """One file of a source."""

    inode: int
    """That of the file; if its name belongs to another one, reading raises FileNotFoundError. 0 is any."""

    @property
    def is_begun(self) -> bool:
        """Whether some of it was read."""
        ...

    def continues(self) -> bool:
        """Whether the file has what was read of it."""
        ...

    @property
    def is_fixed(self) -> bool:
        """Whether it is written at once and does not grow."""
        ...

    def read(self, *, to_end: bool) -> Batch | None:
        """Return more of its events; None if there is nothing new."""
        ...

    def changed(self) -> None:
        """Take note that the file may have changed after it had nothing more."""
        ...

    def give_up(self) -> None:
        """Take note that the file cannot be read; nothing more comes unless it changes."""
        ...

    def position(self) -> Position:
        """The position after the last events."""
        ...

    def seek(self, position: Position) -> None:
        """Continue from a position."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


def part_of(path: str, format: Format, columns: Columns, *, alone: bool, forgiving: bool = False) -> Part:
    """The file as a part; `alone` if the source is this one file, which may be replaced by a new one.

    With `forgiving`, a position in a text file that was replaced or cut back since is no error.
    """
    if format == "jsonl":
        return JsonPart(path, columns, alone, forgiving)
    if format == "csv":
        return CsvPart(path, columns, alone, forgiving)
    return WholePart(path, format, columns)


class JsonPart:
    """A file of JSON lines."""

    __slots__ = ("_columns", "_text")

    def __init__(self, path: str, columns: Columns, alone: bool, forgiving: bool) -> None:
        self._columns = columns
        self._text = TextFile(path, follows=alone, forgiving=forgiving, check=_check_beginning)

    def skip(self, offset: int) -> None:
        self._text.skip(offset)

    def read(self, *, to_end: bool) -> Batch | None:
        data = self._text.take(to_end=to_end)
        if not data:
            return None
        first = self._text.line - data.count(b"\n")  # known only now: the file may have been replaced
        return self._columns.json.batch(self._text.path, data.split(b"\n"), first)

    @property
    def inode(self) -> int:
        return self._text.inode

    @inode.setter
    def inode(self, inode: int) -> None:
        self._text.inode = inode

    @property
    def is_begun(self) -> bool:
        return self._text.offset > 0

    def continues(self) -> bool:
        return self._text.continues()

    @property
    def is_fixed(self) -> bool:
        return self._text.is_fixed

    def changed(self) -> None:
        self._text.changed()

    def give_up(self) -> None:
        self._text.give_up()

    def position(self) -> Position:
        return self._text.position()

    def seek(self, position: Position) -> None:
        self._text.seek(position)

    def close(self) -> None:
        self._text.close()


def _check_beginning(path: str, data: bytes) -> None:
    """Refuse a file whose first line is not one of JSON lines."""
    beginning(path, data.partition(b"\n")[0])


class CsvPart:
    """A CSV file; its first line names the columns."""

    __slots__ = ("_alone", "_columns", "_header", "_text")

    def __init__(self, path: str, columns: Columns, alone: bool, forgiving: bool) -> None:
        self._columns, self._alone = columns, alone
        self._text = TextFile(path, quoted=True, follows=alone, forgiving=forgiving)
        self._header = b""

    def read(self, *, to_end: bool) -> Batch | None:
        data = self._text.take(to_end=to_end)
        if not data:
            return None
        first = self._text.line - data.count(b"\n")  # known only now: the file may have been replaced
        if self._text.offset == len(data):
            self._header = b""
        if not self._header:
            self._header, data = with_header(data)
            first += self._header.count(b"\n")
        try:
            return self._batch(data, first - 1 - self._header.count(b"\n"))
        except SourceError as problem:
            if self._alone:
                raise
            why = without_path(problem, self._text.path)
            letters = HeldLetters(self._text.path, first - 1)
            for record in records(BytesIO(data)):
                letters.add(record.line, "file", why, record.raw)
            return Batch(pa.table({}), letters.letters)

    def _batch(self, data: bytes, before: int) -> Batch:
        columns = self._columns
        letters = HeldLetters(self._text.path, before)
        source = Fragment(self._text.path, "csv", self._header + data)
        file = CsvFile(source, columns.time, columns.type, letters, declared=columns.csv)
        events = pa.Table.from_batches(list(file.batches()), schema=file.schema)
        for field in events.schema:
            if not pa.types.is_null(field.type) and events.num_rows:
                columns.csv.setdefault(field.name, field.type)
        return Batch(events, letters.letters)

    @property
    def inode(self) -> int:
        return self._text.inode

    @inode.setter
    def inode(self, inode: int) -> None:
        self._text.inode = inode

    @property
    def is_begun(self) -> bool:
        return self._text.offset > 0

    def continues(self) -> bool:
        return self._text.continues()

    @property
    def is_fixed(self) -> bool:
        return self._text.is_fixed

    def changed(self) -> None:
        self._text.changed()

    def give_up(self) -> None:
        self._text.give_up()

    def position(self) -> Position:
        return {**self._text.position(), "header": self._header.decode("latin-1")}

    def seek(self, position: Position) -> None:
        self._text.seek(position)
        self._header = position["header"].encode("latin-1")

    def close(self) -> None:
        self._text.close()


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
    """A file that exists as a whole or not at all, such as Parquet."""

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
        self._batches, self._dead = _after(file.batches(), self._rows), letters.letters

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


def _ends_of(path: str) -> str:
    """The size of a file, with a hash of its first and last bytes."""
    with open(path, "rb") as file:
        first = file.read(_ENDS)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _ENDS))
        return f"{size} {hashlib.sha256(first + file.read()).hexdigest()[:16]}"


def _after(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The batches without the first rows."""
    for batch in batches:
        if rows >= batch.num_rows:
            rows -= batch.num_rows
        else:
            yield batch.slice(rows)
            rows = 0
