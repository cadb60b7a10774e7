"""Splits an AND under a negation into its components, if they do not depend on each other.

They do not if no event can be in two of them, which their types show, and no predicate relates two.
"""

from __future__ import annotations

from dataclasses import dataclass

from nestream.logical.nodes import Component, Negation, WinAnd, positive, target_variables
from nestream.model.event_types import ANY_TYPE, shared_types
from nestream_papers.rewrite.parts import (
    all_types,
    is_settled,
    positive_predicates,
    positive_types,
    with_predicates,
    without_predicates,
)
from nestream_papers.rewrite.rule import Place, Refused
from nestream_papers.rewrite.separate import anchors, independent_of, separate


@dataclass(frozen=True)
class Apart:
    """The components of an AND, each with its own predicates."""

    events: tuple[Component, ...]
    negations: tuple[Negation, ...]


def take_apart(node: WinAnd, place: Place) -> Apart | Refused:
    """The components of an AND, if each occurs or not whatever the others do; otherwise why not."""
    if not is_settled(node):
        return Refused("it has an OR inside that stays there")
    events = positive(node)
    for number, part in enumerate(events):
        for other in (*events[:number], *events[number + 1 :]):
            if shared := shared_types(positive_types(part), all_types(other)):
                return _serves_twice(shared)
    formulas = positive_predicates(node)
    groups = [target_variables(part) for part in events]
    bound = frozenset().union(*groups)
    known = anchors(formulas, bound, place)
    own = separate(formulas, groups, known)
    if isinstance(own, Refused):
        return own
    apart: list[Component] = []
    for part, names, predicates in zip(events, groups, own, strict=True):
        alone = independent_of(without_predicates(part), bound - names, known)
        if isinstance(alone, Refused):
            return alone
        apart.append(with_predicates(alone, predicates))
    negations = _negations(node, bound, place)
    return negations if isinstance(negations, Refused) else Apart(tuple(apart), negations)


def _serves_twice(types: frozenset[str]) -> Refused:
    kind = "any type" if ANY_TYPE in types else f"type {min(types)}"
    return Refused(f"an event of {kind} could serve in two components of the AND")


def _negations(node: WinAnd, bound: frozenset[str], place: Place) -> tuple[Negation, ...] | Refused:
    """The negations of the AND, without mention of its events."""
    known = anchors(positive_predicates(node), bound, place)
    types = frozenset().union(*map(positive_types, positive(node)))
    found: list[Negation] = []
    for part in node.components:
        if not isinstance(part, Negation):
            continue
        if shared := shared_types(all_types(part), types):
            return _serves_twice(shared)
        alone = independent_of(part, bound, known)
        if isinstance(alone, Refused):
            return alone
        assert isinstance(alone, Negation)
        found.append(alone)
    return tuple(found)
