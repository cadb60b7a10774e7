"""The interface of sources: batches of events one after the other, and positions to continue from.

A stream saves the position of its source with its own state. After a restart, it seeks there, and a source
that can be read again (files, Kafka) returns the same events from there on: none is lost, and none comes
twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from nestream.source.dead_letter import DeadLetter

Position = dict[str, Any]
"""Where a source is, as plain JSON. Only the source itself can interpret it."""


@dataclass(frozen=True)
class Batch:
    """Events in arrival order, and the rows between them that could not be read."""

    events: pa.Table
    dead: Sequence[DeadLetter] = ()


class Source(Protocol):
    """Events that are read batch by batch.

    `read` returns None if nothing came within `wait` seconds, or if the source has ended. `position` is the
    place after the last batch that `read` returned. `commit` informs the source that a position is saved
    durably: Kafka reports it to the broker, and files do nothing.
    """

    where: str
    """The name of the source in messages."""
    repeatable: bool
    """Whether events can be read again after a restart; those of a pipe cannot."""

    @property
    def ended(self) -> bool:
        """Whether no more events will arrive."""
        ...

    def seek(self, position: Position) -> None:
        """Continue from a saved position; raises `SourceError` if the source has changed."""
        ...

    def read(self, wait: float) -> Batch | None:
        """The next events."""
        ...

    def position(self) -> Position:
        """The place after the last batch."""
        ...

    def commit(self, position: Position) -> None:
        """A position is saved: what comes before it is not read again."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
