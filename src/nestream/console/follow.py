"""Follows the places of a job: each look returns the new rows, read as a stream would read them.

Nothing is left out, whatever the place is: files of any format, a growing file, a Kafka topic. Nothing is
returned twice either, except a few rows before the cut when a growing file is cut back and, with `keeps=0`,
the rows of a file that was gone and comes back. A look that fails returns what it read before, and
the next one continues after that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nestream.console.tables import match_of, plain
from nestream.model.python_rows import python_rows
from nestream.source import Batch, Source, SourceError, open_source

MANY = 10_000
"""The maximum number of rows of one look, or one batch more; the rest waits for the next."""

LOOK = 0.2
"""The seconds to wait for rows when all of them are read."""


class Follower:
    """The rows of one place as they arrive, from a position on; `how` are more settings of `open_source`."""

    def __init__(
        self,
        place: str,
        time: str,
        type: str | None,
        *,
        position: dict[str, Any] | None = None,
        **how: Any,
    ) -> None:
        self.place = place
        self.failed: Exception | None = None
        """What ended the last look too early, if anything."""
        self.unreadable = 0
        """How many rows were not objects."""
        self.has_more = False
        """Whether the last look ended before everything was read."""
        self._columns, self._how = (time, type), how
        self._begin = position
        self._source: Source | None = None
        self._opening: Future[Source] | None = None

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing at the place yet; unknown for an address."""
        return "://" not in self.place and not os.path.exists(self.place)

    def new(self) -> list[dict[str, Any]]:
        """What has arrived since the last look; if not all can be read, what could be read, and `failed`."""
        found: list[dict[str, Any]] = []
        self.failed, self.has_more = None, False
        try:
            source = self._opened()
            while source is not None and (batch := source.read(0)) is not None:
                found.extend(self._rows(batch))
                if len(found) >= MANY:
                    self.has_more = True
                    break
        except Exception as error:
            self.failed = error
        return found

    def everything(self) -> Iterator[list[dict[str, Any]]]:
        """All rows that are there now, in pieces; waits for brokers, and raises if they cannot be read."""
        if self.is_missing:
            return
        self._check()
        self._how["once"] = True
        source = self._source = self._open()
        while not source.ended:
            if (batch := source.read(LOOK)) is not None:
                yield list(self._rows(batch))

    def position(self) -> dict[str, Any] | None:
        """The position after what was read, to continue from later; None before anything was there."""
        return self._begin if self._source is None else self._source.position()

    def close(self) -> None:
        """Close files and connections."""
        if self._source is not None:
            self._source.close()

    def _opened(self) -> Source | None:
        if self._source is None and not self.is_missing:
            if "://" not in self.place:
                self._source = self._open()
            else:  # it may take long to find out that nobody is there
                self._source = self._open_aside()
        return self._source

    def _open(self) -> Source:
        time, type = self._columns
        source = open_source(self.place, time, type, moments=(), **self._how)
        if self._begin is not None:
            source.seek(self._begin)
        return source

    def _check(self) -> None:
        if "://" in self.place and not self.place.startswith("kafka://"):
            raise SourceError(f"{self.place} cannot be read again. Write to files or to Kafka to see it here")

    def _open_aside(self) -> Source | None:
        self._check()
        if self._opening is None:
            thread = ThreadPoolExecutor(1)
            self._opening = thread.submit(self._open)
            thread.shutdown(wait=False)
        if not self._opening.done():
            return None
        done, self._opening = self._opening, None
        return done.result()

    def _rows(self, batch: Batch) -> Iterator[dict[str, Any]]:
        yield from rows_of_table(batch.events)
        for letter in batch.dead:  # one that does not fit the others is shown as it is
            try:
                row = json.loads(letter.raw)
            except (ValueError, RecursionError):
                row = None
            if isinstance(row, dict):
                yield row
            else:
                self.unreadable += 1


def rows_of_table(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows as plain data; a missing value is not in its row."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            coarser = pc.cast(table.column(place), pa.timestamp("us", field.type.tz), safe=False)
            table = table.set_column(place, field.name, coarser)
    for batch in table.to_batches():
        yield from (plain(row) for row in python_rows(batch))


def match_row(row: dict[str, Any], only: str | None) -> dict[str, Any]:
    """A row of a sink as a match. JSON lines are read with nested values as text."""
    nested = ("events", "values") if "query" in row and "events" in row else tuple(row)
    return match_of({**row, **{name: _decoded(row.get(name)) for name in nested}}, only or "query")


def _decoded(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def read_progress(path: str | None) -> dict[str, Any] | None:
    """The object in progress.json; None if there is none yet."""
    if path is None:
        return None
    try:
        found = json.loads(Path(path).read_bytes()[: 4 << 20])
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        raise ValueError(f"{Path(path).name} is not JSON") from None
    return found if isinstance(found, dict) else None
