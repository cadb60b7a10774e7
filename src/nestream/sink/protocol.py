"""What every sink of a stream offers: matches as they come, and positions that a checkpoint can go back to.

A stream saves its state, the position of its source and that of its sink together. After a failure it goes
back to all three, so what was written after the position is undone, and is written again. A sink that cannot
undo (a terminal, a socket) may then repeat matches.
"""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

Position = dict[str, Any]
"""Where a sink is, as plain JSON. Only the sink itself knows what it means."""


class Sink(Protocol):
    """Where matches go.

    A checkpoint takes four steps: `prepare` returns the position, `sync` makes durable what was written up to
    it, the position is saved with the state, and `commit` publishes what lies before it. `sync` and `commit`
    run in a thread of their own while more is written; `prepare` is called again only after `commit`.
    """

    where: str
    """How messages name the sink."""
    repeats: bool
    """Whether matches may come again after a failure."""

    def write(self, rows: pa.Table) -> None:
        """Take matches."""
        ...

    def prepare(self) -> Position:
        """The position after all that was written."""
        ...

    def sync(self, position: Position) -> None:
        """Make durable what was written up to the position that `prepare` returned last."""
        ...

    def commit(self, position: Position) -> None:
        """The position is saved: publish what lies before it."""
        ...

    def restore(self, position: Position | None) -> None:
        """Go back to a saved position, or with None to the beginning; what was written after it is undone."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
