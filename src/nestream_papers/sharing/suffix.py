"""Suffix clustering: from a trigger, the rows of a common suffix are built once, then extended by each block.

Nothing is kept between batches: each trigger is processed once.
"""

from __future__ import annotations

from collections.abc import Iterator

from nestream_papers.engine.context import Bindings
from nestream_papers.sharing.group import SharedRun


class SuffixRun(SharedRun):
    """Blocks that end with the same steps."""

    def run(self, first: int, end: int) -> Iterator[Bindings]:
        """The matches decided in a range of positions."""
        core = self.chain(first, end)
        if core is None:
            yield from self.each_alone(first, end)
            return
        chains = self.chains(first)
        for suffix in core.matches(core.triggers(first, end)):
            for chain in chains:
                yield from chain.from_core([suffix.rows[name] for name in core.names])
