"""What the core must know of a block: the events that end its matches, its comparisons, and its keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nestream.engine.program import Decided, Outline
from nestream_papers.engine.join import outermost
from nestream_papers.engine.program import Block, Negation


def outline_of(block: Block, decided: Decided) -> Outline:
    """The outline of a block, given when its matches are decided."""
    return Outline(
        decided=decided,
        bound=block.leaves,
        first=tuple(outermost(block, by_last=False)),
        last=tuple(outermost(block, by_last=True)),
        read=tuple(_all_leaves(block)),
        compared=tuple(dict.fromkeys(_compared((block,)))),
        keys=frozenset(_keys(block)),
        null_keys=block.key is None,
    )


def _all_leaves(block: Block) -> Iterator[tuple[str, int]]:
    """The variables of a block with their leaves, including those of its constraints."""
    yield from block.leaves.items()
    for witness in block.witnesses:
        yield from ((step.variable, step.leaf) for step in witness.steps)
    for negation in block.negations:
        yield from _all_leaves(negation.block)


def _compared(blocks: Iterable[Block]) -> Iterable[tuple[str, str]]:
    for block in blocks:
        for equality in block.equalities:
            yield equality.left[1], equality.right[1]
        for shortcut in block.shortcuts:
            yield shortcut.outer[1], shortcut.inner[1]
        for step in (step for witness in block.witnesses for step in witness.steps):
            yield from zip(step.attributes, (attribute for _, attribute in step.equal_to), strict=True)
        yield from _key_pairs(list((block.key or {}).values()))
        for negation in block.negations:
            key = list((negation.key or {}).values())
            yield from _key_pairs([*key, negation.link[1]] if negation.link else key)
            yield from _compared((negation.block,))


def _key_pairs(keys: list[tuple[str, ...]]) -> Iterable[tuple[str, str]]:
    for key in keys:
        yield from zip(keys[0], key, strict=True)


def _keys(block: Block) -> set[str]:
    """The possible keys of a block: attributes equal in all its variables, negations and witnesses."""
    if len(block.leaves) == 1 and not block.constraints:
        return set()
    found: set[str] | None = None
    if block.key is not None:
        found = {names[0] for names in zip(*block.key.values(), strict=True) if len(set(names)) == 1}
    elif len(block.leaves) == 1:
        (name,) = block.leaves
        found = {
            attribute
            for negation in block.negations
            if negation.link is not None and negation.link[0] == name
            for attribute in negation.link[1]
        }
        found |= {attribute for w in block.witnesses for step in w.steps for _, attribute in step.equal_to}
    return {attribute for attribute in found or () if _all_linked(block, attribute)}


def _all_linked(block: Block, attribute: str) -> bool:
    """Whether all events of a block's constraints equal the match in an attribute."""
    steps = (step for witness in block.witnesses for step in witness.steps)
    return all(_linked(negation, attribute) for negation in block.negations) and all(
        (attribute, attribute)
        in ((own, term[1]) for own, term in zip(step.attributes, step.equal_to, strict=True))
        for step in steps
    )


def _linked(negation: Negation, attribute: str) -> bool:
    """Whether all events of a negation, at any depth, equal the outer match in an attribute."""
    if negation.key is None or negation.link is None or attribute not in negation.link[1]:
        return False
    place = negation.link[1].index(attribute)
    if any(attributes[place] != attribute for attributes in negation.key.values()):
        return False
    return _all_linked(negation.block, attribute)
