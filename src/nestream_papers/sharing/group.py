"""A group of blocks that share rows of some steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nestream_papers.engine.context import Bindings, Evaluation
from nestream_papers.engine.program import Block, Group
from nestream_papers.engine.runs import BlockRun
from nestream_papers.sharing.steps import SharingChain


class SharedRun(BlockRun):
    """The blocks of a group, with what they share as a block of its own; each can also run alone.

    They do so if matches are wanted by their first event, which chains cannot do.
    """

    def __init__(
        self, evaluation: Evaluation, group: Group, blocks: Sequence[Block], limit: int, *, by_last: bool
    ) -> None:
        super().__init__(evaluation, group.core, limit, by_last=by_last)
        self.group = group
        self.members = [BlockRun(evaluation, blocks[m.block], limit, by_last=by_last) for m in group.members]
        self._chains: list[SharingChain] = []

    def promising(self, first: int, end: int) -> int:
        """How many positions at a time should stay within the budget, for shared rows and each block."""
        size = super().promising(first, end)
        return min(size, *(run.promising(first, end) for run in self.members))

    def each_alone(self, first: int, end: int) -> Iterator[Bindings]:
        """The matches of all blocks, with nothing shared."""
        for run in self.members:
            yield from run.run(first, end)

    def chains(self, since: int) -> list[SharingChain]:
        """The blocks, ready to take rows of the core; `since` is the first wanted position."""
        if not self._chains:
            size = len(self.group.core.leaves)
            self._chains = [
                SharingChain(self.evaluation, run.block, self.limit, (member.start, size), member.own, since)
                for run, member in zip(self.members, self.group.members, strict=True)
            ]
        return self._chains
