"""Finds the steps that conjuncts share: the longest that occur twice, then the longest of the rest.

The conjuncts of a join are its variables in lines: each event of a line directly follows the one before it,
and no other does. These are the sequences of an AND, and the leaf components of a nested AND and SEQ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from nestream.engine.block import closure
from nestream.physical.equality import key_of
from nestream_papers.engine.program import Block, SharedSteps, Use
from nestream_papers.plan.block_equivalence import Common, Steps

FEWEST_STEPS = 2
"""A single shared step is a leaf, which all conjuncts share anyway."""

Line = tuple[int, tuple[str, ...]]
"""Variables of a block, by its number, that follow one another."""


def shared_steps(blocks: Sequence[Block], alone: Iterable[int]) -> tuple[SharedSteps, ...]:
    """What conjuncts of some blocks share; each variable is in at most one of these."""
    joins = [n for n in alone if blocks[n].chain is None and blocks[n].levels is None]
    left = [(n, line) for n in joins for line in _lines(blocks[n])]
    found: list[SharedSteps] = []
    while uses := _longest(blocks, left):
        found.append(_shared(blocks, uses))
        left = [rest for line in left for rest in _without(line, uses)]
    return tuple(found)


def _lines(block: Block) -> Iterator[tuple[str, ...]]:
    order = closure(block.order)
    next_to = {(x, y) for x, y in order if not any((x, z) in order and (z, y) in order for z in block.leaves)}
    after = {x: [y for left, y in next_to if left == x] for x in block.leaves}
    before = {y: [x for x, right in next_to if right == y] for y in block.leaves}
    single = {x: ys[0] for x, ys in after.items() if len(ys) == 1 and len(before[ys[0]]) == 1}
    for name in block.leaves:
        if name not in single.values():
            line = [name]
            while line[-1] in single:
                line.append(single[line[-1]])
            yield tuple(line)


def _longest(blocks: Sequence[Block], lines: Sequence[Line]) -> list[Line]:
    """The places of the longest steps that occur at least twice; of these, the most frequent."""
    places: dict[tuple[int, ...], list[Line]] = {}
    for number, line in lines:
        for start in range(len(line)):
            for end in range(start + FEWEST_STEPS, len(line) + 1):
                part = tuple(blocks[number].leaves[name] for name in line[start:end])
                taken = {name for n, names in places.get(part, ()) if n == number for name in names}
                if not taken & set(line[start:end]):
                    places.setdefault(part, []).append((number, line[start:end]))
    several = [part for part, uses in places.items() if len(uses) > 1]
    if not several:
        return []
    return places[max(several, key=lambda part: (len(part), len(places[part])))]


def _without(line: Line, uses: Sequence[Line]) -> Iterator[Line]:
    """What is left of a line on both sides of a use."""
    number, names = line
    for other, used in uses:
        if other == number and used[0] in names:
            start = names.index(used[0])
            yield from _without((number, names[:start]), uses)
            yield from _without((number, names[start + len(used) :]), uses)
            return
    if len(names) >= FEWEST_STEPS:
        yield line


def _shared(blocks: Sequence[Block], uses: Sequence[Line]) -> SharedSteps:
    """The steps with what all conjuncts require of them; the rest is left to the join."""
    lines = [_as_chain(blocks[n], names) for n, names in uses]
    keys = [line.key and [line.key[name] for name in line.chain or ()] for line in lines]
    if any(key != keys[0] for key in keys):
        lines = [replace(line, key=None) for line in lines]
    steps = [Steps(line, 0, len(names)) for line, (_, names) in zip(lines, uses, strict=True)]
    common = Common.of(steps)
    return SharedSteps(
        common.core,
        tuple(Use(n, names, tuple(common.said(run))) for run, (n, names) in zip(steps, uses, strict=True)),
    )


def _as_chain(block: Block, names: tuple[str, ...]) -> Block:
    """The block with some of its variables as a chain, with their key."""
    if block.key is not None:
        return replace(block, chain=names)
    within = [e for e in block.equalities if {e.left[0], e.right[0]} <= set(names)]
    return replace(block, chain=names, key=key_of(within, names)[0])
