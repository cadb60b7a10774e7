"""Reads several files of events as one: folders, patterns, files of one type, with different columns."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from nestream.model.formats import SUFFIXES, TYPED
from nestream.model.schema import EventError
from nestream.model.widening import converted, shown, widened
from nestream.source.dead_letter import DeadLetter
from nestream.source.errors import SourceError
from nestream.source.file_reader import EventReader
from nestream.source.formats import suffix_of
from nestream.source.input import Progress
from nestream.source.listing import is_pattern, matching_files
from nestream.source.reader import read_events


@dataclass(frozen=True)
class EventFile:
    """One file, and the type of its events if all have the same and there is no type column."""

    path: str
    type: str | None = None


def event_files(places: Sequence[str], format: str | None = None) -> list[EventFile]:
    """The files that some places name: a file, a folder, a pattern, or any of these as `TYPE=PLACE`."""
    found: dict[EventFile, None] = {}
    for place in places:
        type, path = _of_one_type(place)
        if path == "-" or not (os.path.isdir(path) or is_pattern(path)):
            found[EventFile(path, type)] = None
            continue
        paths = [name for name in matching_files(path) if format or suffix_of(name) in SUFFIXES]
        if not paths:
            what = "folder" if os.path.isdir(path) else "pattern"
            raise SourceError(
                f"the {what} {path} names no files of events. Their suffixes are {', '.join(SUFFIXES)}"
            )
        found |= {EventFile(name, type): None for name in paths}
    return list(found)


def _of_one_type(place: str) -> tuple[str | None, str]:
    """The type and the place of `TYPE=PLACE`; an existing path may contain an equals sign."""
    type, equals, path = place.partition("=")
    if not equals or not type or os.path.exists(place) or os.sep in type:
        return None, place
    return type, path


class EventFiles:
    """The events of all the files, file by file, with the columns of all of them.

    A column that is missing in a file is NULL in its events. Types widen if every value stays the same; text
    files are read as text if their types do not mix.
    """

    def __init__(
        self,
        files: Sequence[EventFile],
        time: str,
        type: str,
        dead_letter: str | None = None,
        *,
        format: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._time, self._type, self._format = time, type, format
        self._dead_letter = None if dead_letter is None else Path(dead_letter)
        self._progress = progress
        self.files = list(files)
        self.readers = [self._opened(number, {}) for number in range(len(self.files))]
        self.schema = self._common_schema()
        self._gather_letters()
        self.rows = 0
        """Events delivered by the latest iteration."""

    def _opened(self, number: int, declared: dict[str, pa.DataType]) -> EventReader:
        file = self.files[number]
        letters = self._dead_letter
        if letters is not None and len(self.files) > 1:
            letters = letters.with_name(f"{letters.name}.{number}")
        own = self._type if file.type is None else None
        reader = read_events(
            file.path,
            self._time,
            own,
            letters,
            format=self._format,
            schema=declared or None,
            progress=self._progress if len(self.files) == 1 else None,
        )
        if file.type is not None and self._type in reader.schema.names:
            raise SourceError(
                f"{file.path} has a column {self._type!r}, and {file.type}={file.path} says that "
                f"all its events are of one type. Leave out {file.type}=, or name another column with --type"
            )
        return reader

    def _common_schema(self) -> pa.Schema:
        """The columns of all files; a text file whose values need another type is opened again."""
        kinds: dict[str, pa.DataType] = {}
        holders: dict[str, str] = {}
        as_text: set[str] = set()
        for reader in self.readers:
            for field in reader.schema:
                held = kinds.setdefault(field.name, field.type)
                holders.setdefault(field.name, reader.path)
                wide = field.type if pa.types.is_null(held) else widened(held, field.type)
                if wide is None:
                    if field.name == self._time or not self._can_be_text(field.name):
                        raise SourceError(
                            f"column {field.name!r} holds {shown(held)} in {holders[field.name]} and "
                            f"{shown(field.type)} in {reader.path}. Convert one of them"
                        )
                    as_text.add(field.name)
                    wide = pa.string()
                kinds[field.name] = wide
        kinds |= dict.fromkeys(as_text, pa.string())
        for number, reader in enumerate(self.readers):
            changed = {
                n: pa.string() for n in as_text if n in reader.schema.names and not _is_text(reader, n)
            }
            if changed:
                self.readers[number] = self._opened(number, changed)
        if any(file.type is not None for file in self.files):
            kinds[self._type] = pa.string()
        return pa.schema(list(kinds.items()))

    def _can_be_text(self, name: str) -> bool:
        """Whether all files with the column are text files, or have text in it."""
        with_it = [reader for reader in self.readers if name in reader.schema.names]
        return all(reader.format not in TYPED or _is_text(reader, name) for reader in with_it)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.rows = 0
        for file, reader in zip(self.files, self.readers, strict=True):
            for batch in reader:
                self.rows += batch.num_rows
                yield self._fitted(batch, file)

    def _fitted(self, batch: pa.RecordBatch, file: EventFile) -> pa.RecordBatch:
        if file.type is None and batch.schema.equals(self.schema):
            return batch
        columns = []
        for field in self.schema:
            if field.name == self._type and file.type is not None:
                columns.append(pa.array([file.type] * batch.num_rows, pa.string()))
            elif field.name in batch.schema.names:
                try:
                    columns.append(converted(batch.column(field.name), field.type, field.name))
                except EventError as problem:
                    raise SourceError(f"{file.path}: {problem}") from None
            else:
                columns.append(pa.nulls(batch.num_rows, field.type))
        return pa.record_batch(columns, schema=self.schema)

    def read_all(self) -> pa.Table:
        """All events as one table."""
        return pa.Table.from_batches(list(self), schema=self.schema)

    @property
    def types(self) -> dict[str, list[str]] | None:
        """The attributes of each type, if every file holds one type."""
        if any(file.type is None for file in self.files):
            return None
        found: dict[str, list[str]] = {}
        for file, reader in zip(self.files, self.readers, strict=True):
            names = found.setdefault(str(file.type), [self._type])
            names += [name for name in reader.schema.names if name not in names]
        return found

    @property
    def can_be_streamed(self) -> bool:
        """Whether the events should not be held in memory, and come in time order."""
        return len(self.readers) == 1 and self.types is None and self.readers[0].in_order

    @property
    def malformed(self) -> int:
        """How many rows were malformed."""
        return sum(reader.malformed for reader in self.readers)

    @property
    def examples(self) -> list[DeadLetter]:
        """The first few malformed rows."""
        return [letter for reader in self.readers for letter in reader.examples]

    @property
    def dead_letter(self) -> Path | None:
        """The file with the malformed rows, if it was requested and there are any."""
        return self._dead_letter if self.malformed else None

    def _gather_letters(self) -> None:
        """Collect the malformed rows of all files in one."""
        if self._dead_letter is None or len(self.files) == 1:
            return
        with open(self._dead_letter, "wb") as whole:
            for number in range(len(self.files)):
                part = self._dead_letter.with_name(f"{self._dead_letter.name}.{number}")
                if part.exists():
                    with part.open("rb") as letters:
                        shutil.copyfileobj(letters, whole)
                    part.unlink()
        if not self.malformed:
            self._dead_letter.unlink()


def _is_text(reader: EventReader, name: str) -> bool:
    return bool(pa.types.is_string(reader.schema.field(name).type))
