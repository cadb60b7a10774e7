"""What the matcher and the runtimes must know of a block: the events that end its matches, and its keys."""

from __future__ import annotations

from collections.abc import Iterator

from nestream.engine.block import Block, Negation
from nestream.engine.operators.derived import MatchStair
from nestream.engine.program import Decided, Outline


def outline_of(block: Block, decided: Decided) -> Outline:
    """The outline of a block, given when its matches are decided."""
    return Outline(
        decided=decided,
        bound=block.leaves,
        first=tuple(block.outermost(last=False)),
        last=tuple(block.outermost(last=True)),
        read=tuple(_all_leaves(block)),
        compared=tuple(dict.fromkeys(_compared(block))),
        keys=frozenset(_keys(block)),
        null_keys=block.key is None,
    )


def _all_leaves(block: Block) -> Iterator[tuple[str, int]]:
    """The variables of a block with their leaves, including those of its negations."""
    yield from block.leaves.items()
    for negation in looking(block):
        yield from _all_leaves(negation.block)


def looking(block: Block) -> list[Negation]:
    """The parts that search an interval of a match: its negations, and the alternatives of its groups."""
    return [*block.negations, *(one for group in block.groups for one in group.alternatives)]


def _compared(block: Block) -> Iterator[tuple[str, str]]:
    """The pairs of attributes whose values need one numbering."""
    yield from ((equality.left[1], equality.right[1]) for equality in block.equalities)
    keys = list((block.key or {}).values())
    for key in keys:
        yield from zip(keys[0], key, strict=True)
    for negation in looking(block):
        yield from _compared(negation.block)
        derived = negation.derived
        if derived is not None:
            yield from zip(derived.key, (attribute for _, attribute in negation.link), strict=True)
            if isinstance(derived.stair, MatchStair):
                yield from _compared(derived.stair.operator.block)


def _keys(block: Block) -> set[str]:
    """The attributes that are equal in all events of a match and of its negations."""
    if len(block.leaves) == 1 and not looking(block):
        return set()
    if block.key is not None:
        found = {names[0] for names in zip(*block.key.values(), strict=True) if len(set(names)) == 1}
    elif len(block.leaves) == 1:
        (name,) = block.leaves
        found = {
            attribute
            for negation in looking(block)
            for equality in negation.block.equalities
            for term, attribute in (equality.left, equality.right)
            if term == name
        }
    else:
        found = set()
    return {attribute for attribute in found if _all_linked(block, attribute)}


def _all_linked(block: Block, attribute: str) -> bool:
    """Whether all events of a block's negations equal the match in an attribute."""
    return all(_linked(negation, attribute, set(block.leaves)) for negation in looking(block))


def _linked(negation: Negation, attribute: str, outer: set[str]) -> bool:
    """Whether all events of a negation, at any depth, equal the outer match in an attribute."""
    own = set(negation.block.leaves)
    equal = {
        name
        for e in negation.block.equalities
        if e.left[1] == e.right[1] == attribute
        for name in (e.left[0], e.right[0])
    }
    pairs = [
        {e.left[0], e.right[0]} for e in negation.block.equalities if e.left[1] == e.right[1] == attribute
    ]
    reached = equal - own
    while True:
        more = {name for pair in pairs if pair & reached for name in pair} - reached
        if not more:
            break
        reached |= more
    return own <= reached and _all_linked(negation.block, attribute)
