"""Decides whether a negation can be a bound, and describes the stair that finds its latest starts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from nestream.logical.nodes import Leaf, WinAnd, WinSeq
from nestream.physical.choices import OrAlternative
from nestream_papers.engine.program import Block, Negation, Stair


def stair_of(
    chosen: OrAlternative,
    block: Block,
    key: Mapping[str, tuple[str, ...]] | None,
    link: tuple[str, tuple[str, ...]] | None,
) -> tuple[Stair | None, str]:
    """The bound of a negation whose predicates allow one, or the reason why its structure does not."""
    if block.witnesses:
        return None, "a witness is looked for inside it"
    if not block.negations:
        return _plain_stair(chosen), ""
    if block.chain is None:
        return None, "it has a negation inside that is not between two events of a sequence"
    gaps: list[list[Negation]] = [[] for _ in block.chain[1:]]
    for inner in block.negations:
        pairs = [((left,), (right,)) for left, right in pairwise(block.chain)]
        place = (inner.interval.after, inner.interval.before)
        if place not in pairs:
            return None, "a negation inside it looks up to the limits of the outer interval"
        if inner.stair is None:
            return None, "a negation inside it is not a bound"
        if not _same_key(inner, key, link):
            return None, "a negation inside it has another key"
        gaps[pairs.index(place)].append(inner)
    items = tuple(Stair("leaf", name) for name in block.chain)
    return Stair("seq", items=items, gaps=tuple(map(tuple, gaps))), ""


def _same_key(
    inner: Negation,
    key: Mapping[str, tuple[str, ...]] | None,
    link: tuple[str, tuple[str, ...]] | None,
) -> bool:
    """Whether the inner negation is not keyed, or has exactly the key of the expression around it."""
    if inner.link is None:
        return True
    name, attributes = inner.link
    if key is not None and name in key:
        return key[name] == attributes
    return link is not None and link == inner.link


def _plain_stair(chosen: OrAlternative) -> Stair:
    match chosen.node:
        case Leaf(variable=variable):
            return Stair("leaf", variable)
        case WinSeq():
            return Stair("seq", items=tuple(map(_plain_stair, chosen.parts)))
        case WinAnd():
            return Stair("and", items=tuple(map(_plain_stair, chosen.parts)))
