"""How the blocks of a program are run: those of a group by its operator, each other alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping

from nestream.papers.engine.chain import Chain
from nestream.papers.engine.context import Bindings, Round
from nestream.papers.engine.join import Join
from nestream.papers.engine.program import Decided, Group, Program, Sharing
from nestream.papers.engine.runs import BlockRun
from nestream.papers.sase.run import run_of
from nestream.papers.sharing.marked_chain import MarkedChain
from nestream.papers.sharing.marked_join import MarkedJoin
from nestream.papers.sharing.marking import EMap
from nestream.papers.sharing.middle import MiddleRun
from nestream.papers.sharing.prefix import PreCache, PrefixRun
from nestream.papers.sharing.suffix import SuffixRun
from nestream.papers.views.run import ViewRun
from nestream.papers.views.shelf import Shelf

Caches = MutableMapping[int, PreCache]
"""What the groups of a program keep between batches, by number."""


class MarkingRun(BlockRun):
    """Blocks that marks tell apart: one chain, or one join, for all of them."""

    def __init__(self, round: Round, group: Group, limit: int, *, by_last: bool) -> None:
        super().__init__(round, group.core, limit, by_last=by_last)
        self.emap = EMap.of_group(group)

    def new_chain(self, since: int) -> Chain:
        """The common steps as a chain with marks."""
        return MarkedChain(self.round, self.block, self.limit, self.emap, since)

    def new_join(self) -> Join:
        """The common leaves as a join with marks."""
        return MarkedJoin(self.round, self.block, self.block, None, self.limit, self.emap)


class InGroup(BlockRun):
    """A block whose matches the first block of its group gives."""

    def promising(self, first: int, end: int, length: int) -> int:
        """Any number of positions."""
        return end - first

    def matches(self, first: int, end: int, length: int) -> Iterator[Bindings]:
        """None of its own."""
        return iter(())


def runs_of(
    program: Program,
    round: Round,
    limit: int,
    caches: Caches,
    *,
    at_once: bool = False,
    shelves: Mapping[int, Shelf] | None = None,
) -> list[BlockRun]:
    """A run for each block; that of the first block of a group runs all of the group.

    Blocks with views are run by nested execution; `shelves` holds their views.
    """
    leaders = {group.members[0].block: number for number, group in enumerate(program.groups)}
    led = {member.block for group in program.groups for member in group.members[1:]}
    runs: list[BlockRun] = []
    for number, (block, decided) in enumerate(zip(program.blocks, program.decided, strict=True)):
        by_last = at_once or decided is not Decided.WINDOW
        if block.viewed:
            assert shelves is not None
            runs.append(ViewRun(round, block, limit, shelves[number], by_last=by_last))
        elif number in leaders:
            runs.append(_group_run(program, round, limit, caches, leaders[number], by_last=by_last))
        elif number in led:
            runs.append(InGroup(round, block, limit, by_last=by_last))
        else:
            runs.append(run_of(round, block, limit, by_last=by_last))
    return runs


def _group_run(
    program: Program, round: Round, limit: int, caches: Caches, number: int, *, by_last: bool
) -> BlockRun:
    group, blocks = program.groups[number], program.blocks
    match group.operator:
        case Sharing.MARKING:
            return MarkingRun(round, group, limit, by_last=by_last)
        case Sharing.SUFFIX:
            return SuffixRun(round, group, blocks, limit, by_last=by_last)
        case Sharing.PREFIX | Sharing.MIDDLE:
            cache = caches.setdefault(number, PreCache(group.core))
            run = PrefixRun if group.operator is Sharing.PREFIX else MiddleRun
            return run(round, group, blocks, limit, cache, by_last=by_last)
