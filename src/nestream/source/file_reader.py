"""What the readers of all formats share: the time and type columns, and where malformed rows go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from nestream.model.formats import Format
from nestream.source.dead_letter import DeadLetter, DeadLetters
from nestream.source.errors import SourceError
from nestream.source.input import Input

BATCH_ROWS = 65_536
_NONE: Mapping[str, pa.DataType] = MappingProxyType({})


class EventReader(ABC):
    """The events of one file as record batches, with the problems found.

    Opening decides the schema and finds every malformed row; iterating delivers the others, in file order, as
    often as you like.
    """

    schema: pa.Schema
    """The columns of the events, with their types."""

    def __init__(
        self,
        source: Input,
        time: str,
        type: str | None,
        letters: DeadLetters,
        *,
        declared: Mapping[str, pa.DataType] = _NONE,
        batch_rows: int = BATCH_ROWS,
        closed: bool = False,
    ) -> None:
        """Open a file; `declared` are types of columns that are not inferred.

        With `closed`, they are all the columns: others are ignored.
        """
        self._source, self._time, self._type, self._letters = source, time, type, letters
        self._declared, self._batch_rows, self._closed = declared, batch_rows, closed
        self._in_order = False
        self.rows = 0
        """Events delivered by the latest iteration."""
        self._open()

    @abstractmethod
    def _open(self) -> None:
        """Decide the schema, and find the malformed rows."""

    @property
    def in_order(self) -> bool:
        """Whether the times of the events never decrease; False for a small file, where it is not checked."""
        return self._in_order

    @property
    @abstractmethod
    def undecided(self) -> frozenset[str]:
        """The columns without a single value, whose type is a guess."""

    @abstractmethod
    def _batches(self) -> Iterator[pa.RecordBatch]:
        """The events, in file order."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.rows = 0
        for batch in self._batches():
            self.rows += batch.num_rows
            yield batch

    def read_all(self) -> pa.Table:
        """All events as one table."""
        return pa.Table.from_batches(list(self), schema=self.schema)

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

    def _too_far_apart(self) -> SourceError:
        return SourceError(
            f"{self._source.where}: the times are too far apart for nanoseconds. "
            "Nanoseconds cover the years 1677 to 2262"
        )
