"""What the readers of all formats share: the time and type columns, and where malformed rows go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pyarrow as pa

from nestream.source.dead_letter import DeadLetters
from nestream.source.errors import SourceError
from nestream.source.input import Input

BATCH_ROWS = 65_536
_NONE: Mapping[str, pa.DataType] = MappingProxyType({})


class FileReader(ABC):
    """A file of events: opening it decides the schema and finds the malformed rows.

    `declared` are types of columns that are not inferred. With `closed`, they are all the columns: others are
    ignored.
    """

    schema: pa.Schema

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
        self._source, self._time, self._type, self._letters = source, time, type, letters
        self._declared, self._batch_rows, self._closed = declared, batch_rows, closed
        self._in_order = False
        self._open()

    @abstractmethod
    def _open(self) -> None:
        """Decide the schema, and find the malformed rows."""

    @property
    def in_order(self) -> bool:
        """Whether the times never decrease; not checked for a small file."""
        return self._in_order

    @property
    @abstractmethod
    def undecided(self) -> frozenset[str]:
        """The columns without a single value, whose type is a guess."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """The events, in file order."""

    def _too_far_apart(self) -> SourceError:
        return SourceError(
            f"{self._source.where}: the times are too far apart for nanoseconds. "
            "Nanoseconds cover the years 1677 to 2262"
        )
