"""What every source of events offers: batches of events one after the other, and positions to go on from.

A stream keeps the position of its source beside its own state. After a restart it seeks there, and a source
that can be read again (files, Kafka) gives the same events again from there on: none is lost and none comes
twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from nestream.source.dead_letter import DeadLetter

Position = dict[str, Any]
"""Where a source is, as plain JSON. Only the source itself knows what it means."""


@dataclass(frozen=True)
class Batch:
    """Events in the order of their arrival, and the rows between them that could not be read."""

    events: pa.Table
    dead: Sequence[DeadLetter] = ()


class Events(Protocol):
    """Turns lines or messages into events, as they arrive; what it learns of them is kept in a checkpoint."""

    time: str
    """The column with the time."""

    def add_moment(self, name: str) -> None:
        """Text of this attribute may be a time."""
        ...

    def problem(self, value: bytes) -> str | None:
        """What is wrong with a message at a glance."""
        ...

    def position(self) -> dict[str, Any]:
        """What is known of the events so far."""
        ...

    def seek(self, position: Mapping[str, Any]) -> None:
        """Go on with what was known."""
        ...

    def batch(
        self, where: str, lines: Sequence[bytes], first: int, added: Sequence[Mapping[str, Any]] = ()
    ) -> Batch:
        """The events of some lines, of which `first` is the number of the first and `added` has more."""
        ...


class Source(Protocol):
    """Events that are read batch by batch.

    `read` returns None if nothing came within `wait` seconds, or if the source has ended. `position` is the
    place after the last batch that `read` returned. `commit` tells the source that a position is saved for
    good: Kafka reports it to the broker, files have nothing to do.
    """

    where: str
    """How messages name the source."""
    repeatable: bool
    """Whether events can be read again after a restart; those of a pipe cannot."""

    @property
    def ended(self) -> bool:
        """Whether no more events will come."""
        ...

    def seek(self, position: Position) -> None:
        """Go on from a saved position; raises `SourceError` where the source is no longer what it was."""
        ...

    def read(self, wait: float) -> Batch | None:
        """The next events."""
        ...

    def position(self) -> Position:
        """The place after the last batch."""
        ...

    def commit(self, position: Position) -> None:
        """A position is saved: what lies before it is not read again."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
