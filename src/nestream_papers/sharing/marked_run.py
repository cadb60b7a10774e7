"""Bit-marking: the first block of a group runs all of it, and the others run nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nestream_papers.engine.chain import Chain
from nestream_papers.engine.context import Bindings, Evaluation
from nestream_papers.engine.join import Join
from nestream_papers.engine.program import Group
from nestream_papers.engine.runs import BlockRun
from nestream_papers.sharing.marked_chain import MarkedChain
from nestream_papers.sharing.marked_join import MarkedJoin
from nestream_papers.sharing.marking import EMap, Marked


class MarkingRun(BlockRun):
    """Blocks that marks distinguish: one chain, or one join, for all of them."""

    def __init__(self, evaluation: Evaluation, group: Group, limit: int, *, by_last: bool) -> None:
        super().__init__(evaluation, group.core, limit, by_last=by_last)
        self.emap = EMap.of_group(group)
        order = group.core.chain or tuple(group.core.leaves)
        owned: dict[tuple[str, ...], list[int]] = {}
        for member in group.members:
            owned.setdefault(member.names or order, []).append(self.emap.mask(member.own))
        self.order = order
        self.expressions = {names: replace(self.emap, masks=tuple(masks)) for names, masks in owned.items()}
        """The expressions by the variables they bind."""

    def run(self, first: int, end: int) -> Iterator[Bindings]:
        """The matches decided in a range of positions, for each expression under its own variables."""
        for found in super().run(first, end):
            if len(self.expressions) == 1:
                yield found
                continue
            assert isinstance(found, Marked)
            for names, emap in self.expressions.items():
                part = found.only(emap.covered(found.facts))
                rows = {own: part.rows[name] for own, name in zip(names, self.order, strict=True)}
                yield Bindings(rows, part.count, part.outer)

    def new_chain(self, since: int) -> Chain:
        """The common steps as a chain with marks."""
        return MarkedChain(self.evaluation, self.block, self.limit, self.emap, since)

    def new_join(self) -> Join:
        """The common leaves as a join with marks."""
        return MarkedJoin(self.evaluation, self.block, self.block, None, self.limit, self.emap)


class InGroup(BlockRun):
    """A block whose matches the first block of its group finds."""

    def promising(self, first: int, end: int) -> int:
        """Any number of positions."""
        return end - first

    def run(self, first: int, end: int) -> Iterator[Bindings]:
        """None of its own."""
        return iter(())
