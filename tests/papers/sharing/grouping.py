"""Groups without an optimizer: blocks with the same positive events are told apart by marks; of the others,
those with the longest common prefix or suffix share its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nestream.engine.program import Decided
from nestream_papers.engine.program import Block, BlockProgram, Group, Sharing
from nestream_papers.plan.block_equivalence import Steps, alike, is_sharable
from nestream_papers.plan.groups import _marking, _sharing, _told_apart_by_marks

FEWEST_STEPS = 2
"""A single shared step is a leaf, which all blocks share anyway."""


def by_likeness(program: BlockProgram) -> Iterator[Group]:
    """Groups of the blocks that have the most in common, without an optimizer."""
    blocks, decided = program.blocks, program.decided
    groups = list(_by_marks(program))
    yield from groups
    told_apart = {member.block for group in groups for member in group.members}
    alone = [n for n, block in enumerate(blocks) if n not in told_apart and is_sharable(block)]
    while (found := _longest(blocks, decided, alone)) is not None:
        yield found
        alone = [n for n in alone if not any(n == member.block for member in found.members)]


def _by_marks(program: BlockProgram) -> Iterator[Group]:
    left = list(range(len(program.blocks)))
    while left:
        first, *rest = left
        same = [first, *(n for n in rest if _told_apart_by_marks(program, first, n))]
        left = [n for n in rest if n not in same]
        yield from _marking(program.blocks, same)


def _longest(blocks: Sequence[Block], decided: Sequence[Decided], left: list[int]) -> Group | None:
    """The group of the longest common prefix or suffix of any two blocks."""
    best: tuple[int, Sharing, int] | None = None
    for place, first in enumerate(left):
        for other in left[place + 1 :]:
            if decided[first] is not decided[other]:
                continue
            for operator in (Sharing.PREFIX, Sharing.SUFFIX):
                length = _common(blocks[first], blocks[other], operator)
                if length >= FEWEST_STEPS and (best is None or length > best[0]):
                    best = length, operator, first
    if best is None:
        return None
    length, operator, first = best
    members = [
        n
        for n in left
        if decided[n] is decided[first]
        and len(blocks[n].leaves) >= length
        and alike(_steps(blocks[first], operator, length), _steps(blocks[n], operator, length))
    ]
    return _sharing(blocks, operator, members, [_start(blocks[n], operator, length) for n in members], length)


def _start(block: Block, operator: Sharing, length: int) -> int:
    return 0 if operator is Sharing.PREFIX else len(block.leaves) - length


def _steps(block: Block, operator: Sharing, length: int) -> Steps:
    return Steps(block, _start(block, operator, length), length)


def _common(one: Block, other: Block, operator: Sharing) -> int:
    """How many steps at the start, or at the end, are alike."""
    most = min(len(one.leaves), len(other.leaves))
    for length in range(most, FEWEST_STEPS - 1, -1):
        if alike(_steps(one, operator, length), _steps(other, operator, length)):
            return length
    return 0
