"""Reads the events of files that arrive in a folder: Spark lists the files, and our readers read them.

Spark's CSV reader uses the header of one file for all others and turns what it cannot read into NULL. So
Spark only reports which files are new, exactly once each, and a worker reads every file on its own, with its
own header, like `nestream run`. A row that cannot be read becomes a row without event columns, with the
reason and the text of the row. Extra rows carry the greatest time of the events.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from nestream.model.formats import SUFFIXES, Format
from nestream.model.schema import EventError
from nestream.runtime.spark.collecting import collected
from nestream.runtime.spark.columns import RAW, UNREAD
from nestream.runtime.spark.shipping import shipped
from nestream.runtime.spark.stream_columns import LookedAt, common_columns
from nestream.runtime.spark.stream_pack import Batches
from nestream.runtime.spark.stream_place import Place
from nestream.source import DeadLetter, SourceError, read_events, refused_rows
from nestream.source.formats import compression_of, files_below, plain_copy, suffix_of

LISTED = "path string, modificationTime timestamp, length long, content binary"
"""The columns of Spark's file source."""
OLDEST = "36500d"
"""Spark ignores files that are this much older than the newest.

Its default of a week would lose events after a clock was wrong for a moment, and those of a copy that keeps
the times of its files.
"""
_LOOKED_AT = pa.schema(
    [("path", pa.string()), ("columns", pa.binary()), ("undecided", pa.string()), ("problem", pa.string())]
)


@dataclass(frozen=True)
class Files:
    """Which files of a folder are events, and how they are read; it is sent to the workers.

    Without `suffixes`, all files are events; otherwise only those with a suffix of the format.
    """

    format: Format
    time: str
    type: str
    suffixes: bool
    is_local: bool

    @classmethod
    def of(cls, source: str, format: str | None, time: str, type: str) -> Files:
        """The files of a folder, of the given format or of the one that their suffixes show."""
        is_local = "://" not in source
        chosen = format_of(source) if format is None else SUFFIXES[f".{format}"]
        return cls(chosen, time, type, format is None, is_local)

    def listed(self, spark: SparkSession, source: str, most: int | None) -> DataFrame:
        """The files as they arrive, with a maximum number per micro-batch."""
        reader = spark.readStream.format("binaryFile").schema(LISTED)
        reader = reader.option("recursiveFileLookup", "true").option("maxFileAge", OLDEST)
        if most is not None:
            reader = reader.option("maxFilesPerTrigger", most)
        return reader.load(source).select("path", *([] if self.is_local else ["content"]))

    def check_same(self, checkpoint: Place) -> None:
        """Raise if the checkpoint is of another source; a folder is the same as long as its name is."""

    def columns(self, spark: SparkSession, source: str) -> StructType:
        """The columns of the files present now."""
        listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(source)
        listed = listed.select("path", *([] if self.is_local else ["content"]))
        looked_at = collected(listed.mapInArrow(shipped(self.looking()), from_arrow_schema(_LOOKED_AT)))
        rows = looked_at.sort_by("path").to_pylist()
        schema = common_columns([LookedAt.of(row) for row in rows], source, self.format, self.time)
        return from_arrow_schema(schema, prefer_timestamp_ntz=True)

    def looking(self) -> Callable[[Batches], Batches]:
        """A function that finds the columns of each file."""

        def look(batches: Batches) -> Batches:
            for path, place in self._opened(batches):
                row: dict[str, object] = {"path": local_path(path)}
                try:
                    reader = read_events(place, self.time, self.type, format=self.format)
                    row["columns"] = reader.schema.serialize().to_pybytes()
                    row["undecided"] = json.dumps(sorted(reader.undecided))
                    if self.time in reader.undecided and reader.examples:
                        row["problem"] = f"line {reader.examples[0].line}: {reader.examples[0].reason}"
                except SourceError as problem:
                    row["problem"] = _without_place(problem, place)
                yield pa.RecordBatch.from_pylist([row], _LOOKED_AT)

        return look

    def reading(self, columns: pa.Schema, limit: datetime | None = None) -> Callable[[Batches], Batches]:
        """A function that yields the events of files, and the rows that cannot be used.

        An event after the limit would move the watermark far ahead, so it is set aside with the reason.
        """
        shown = [*(pa.field(f"c{n}", field.type) for n, field in enumerate(columns))]
        wanted = pa.schema([*shown, pa.field(UNREAD, pa.string()), pa.field(RAW, pa.string())])

        def read(batches: Batches) -> Batches:
            for path, place in self._opened(batches):
                letters: list[DeadLetter] = []
                for batch in self._events_of(place, columns, letters):
                    if limit is not None:
                        ahead, batch = split_at(batch, self.time, limit)
                        if ahead.num_rows:
                            yield _rows(ahead, wanted, f"in the future: after {limit:%Y-%m-%d %H:%M:%S} UTC")
                    yield _rows(batch, wanted)
                    if batch.num_rows:
                        yield told_time(batch, wanted, columns.names.index(self.time))
                told = [one for letter in letters if (one := self.told(letter, path)) is not None]
                if told:
                    absent = [pa.nulls(len(told), field.type) for field in columns]
                    reasons, raw = (pa.array(texts, pa.string()) for texts in zip(*told, strict=True))
                    yield pa.RecordBatch.from_arrays([*absent, reasons, raw], schema=wanted)

        return read

    def _events_of(self, place: str, columns: pa.Schema, letters: list[DeadLetter]) -> Batches:
        """The events of a file with exactly these columns; rows that are not events go to `letters`."""
        with tempfile.TemporaryDirectory() as folder:
            kept = Path(folder) / "dead.jsonl"
            try:
                reader = read_events(
                    place, self.time, self.type, kept, format=self.format, schema=columns, closed=True
                )
            except SourceError as problem:
                cause = problem.__cause__
                if isinstance(cause, OSError) and not isinstance(cause, pa.ArrowException):
                    raise EventError(str(problem)) from None  # the disk or the network: try again later
                letters += refused_rows(place, self.format, _without_place(problem, place))
                return
            if kept.exists():
                letters += [DeadLetter(**json.loads(line)) for line in kept.open(encoding="utf-8")]
            for batch in reader:
                yield pa.RecordBatch.from_arrays(
                    [_exactly(batch.column(field.name), field.type) for field in columns], schema=columns
                )

    def told(self, letter: DeadLetter, path: Any) -> tuple[str, str] | None:
        """Why a row is not an event, and its text; None if it is not to be reported."""
        return _reason(letter, path), letter.raw

    def _opened(self, batches: Batches) -> Iterator[tuple[Any, str]]:
        """The path of each file of events, and a place on this machine where it can be read."""
        for batch in batches:
            for row in batch.to_pylist():
                path = row["path"]
                if self.suffixes and suffix_of(path) not in SUFFIXES:
                    continue
                with self._placed(path, row.get("content")) as place:
                    if os.path.getsize(place):
                        yield path, place

    @contextmanager
    def _placed(self, path: str, content: bytes | None) -> Iterator[str]:
        compression = compression_of(path)
        if content is None and compression is None:
            yield local_path(path)
            return
        source = pa.BufferReader(content) if content is not None else pa.OSFile(local_path(path))
        with plain_copy(source, compression) as place:
            yield place


def split_at(events: pa.RecordBatch, time: str, limit: datetime) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The events after a moment in UTC, and the others."""
    column = events.column(time)
    moment = limit if column.type.tz else limit.replace(tzinfo=None)
    is_ahead = pc.fill_null(pc.greater(column, pa.scalar(moment, column.type)), False)
    return events.filter(is_ahead), events.filter(pc.invert(is_ahead))


def _rows(events: pa.RecordBatch, wanted: pa.Schema, reason: str | None = None) -> pa.RecordBatch:
    """Events as rows of a source, with a reason if they are not taken."""
    reasons = pa.array([reason] * events.num_rows, pa.string())
    return pa.RecordBatch.from_arrays(
        [*events.columns, reasons, pa.nulls(events.num_rows, pa.string())], schema=wanted
    )


def told_time(events: pa.RecordBatch, wanted: pa.Schema, time: int) -> pa.RecordBatch:
    """A row with the greatest time of some events and, as its text, their number.

    Events that do not matter to a query are not sent on, but they still move the watermark.
    """
    row = [pa.nulls(1, field.type) for field in wanted]
    row[time] = pa.array([pc.max(events.column(time))], wanted.types[time])
    row[-1] = pa.array([str(events.num_rows)], pa.string())
    return pa.RecordBatch.from_arrays(row, schema=wanted)


def _without_place(problem: SourceError, place: str) -> str:
    """What is wrong with a file, which may be a copy of the original."""
    return str(problem).replace(place, "the file")


def _exactly(values: pa.Array, datatype: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return values if values.type == datatype else values.cast(datatype)


def _reason(letter: DeadLetter, path: str) -> str:
    """Where a row is and what is wrong with it, on one line."""
    where = f"{local_path(path)}, line {letter.line}" if letter.line else local_path(path)
    return " ".join(f"{where}: {letter.reason}".split())


def local_path(path: str) -> str:
    """The path of a file on this machine, from Spark's URI without escapes."""
    return path.removeprefix("file://").removeprefix("file:")


def format_of(source: str) -> Format:
    """The format of the files of a folder, by their suffixes."""
    found = set(_formats(Path(source)))
    if not found:
        raise EventError(
            f"there are no files of events in {source} yet, so their columns are unknown\n"
            f"  hint: put a first file there ({', '.join(SUFFIXES)})"
        )
    if len(found) > 1:
        raise EventError(
            f"{source} has files of several formats ({', '.join(sorted(found))})\n"
            "  hint: name the format of the events, or keep each format in a folder of its own"
        )
    return found.pop()


def _formats(folder: Path) -> Iterator[Format]:
    if not folder.is_dir():
        raise EventError(f"there is no folder {folder}")
    for file in files_below(folder):
        if suffix_of(file.name) in SUFFIXES:
            yield SUFFIXES[suffix_of(file.name)]
