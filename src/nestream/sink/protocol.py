"""The interface of the sinks of a stream: matches as they come, and positions to go back to.

A stream saves its state, the position of its source and that of its sink together. After a failure, it goes
back to all three: what was written after the position is undone and written again. A sink that cannot undo (a
terminal, a socket) may then repeat matches.
"""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

Position = dict[str, Any]
"""Where a sink is, as plain JSON. Only the sink itself can interpret it."""


class Sink(Protocol):
    """Where matches go.

    A checkpoint takes four steps: `prepare` returns the position, `sync` makes everything up to it durable,
    the position is saved with the state, and `commit` publishes everything before it. `sync` and `commit` run
    in their own thread while more is written; `prepare` is called again only after `commit`.
    """

    where: str
    """The name of the sink in messages."""
    repeats: bool
    """Whether matches may be repeated after a failure."""

    def write(self, rows: pa.Table) -> None:
        """Take matches."""
        ...

    def prepare(self) -> Position:
        """Return the position after everything written."""
        ...

    def sync(self, position: Position) -> None:
        """Make everything durable up to the position that `prepare` last returned."""
        ...

    def commit(self, position: Position) -> None:
        """The position is saved: publish everything before it."""
        ...

    def restore(self, position: Position | None) -> None:
        """Go back to a saved position, or with None to the beginning; undo what was written after it."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
