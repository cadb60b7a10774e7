"""Derives negations that depend on the outer match only through their interval and a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from nestream.engine.block import Block, Group, Negation, Term, group_needs, has_groups, why_no_range
from nestream.engine.operators.derived import (
    AllKeysStair,
    ConjunctionStair,
    Count,
    Derived,
    Gap,
    LeafStair,
    MatchStair,
    SequenceStair,
    Stair,
)
from nestream.engine.program import Equality
from nestream.logical.nodes import Component, Leaf, WinAnd, WinOr, WinSeq
from nestream.logical.nodes import Group as LogicalGroup
from nestream.logical.nodes import Negation as LogicalNegation
from nestream.model.expression import Attribute, Comparison, Expression, conjuncts, transform, variables
from nestream.physical.choices import OrAlternative
from nestream.physical.equality import classes, linked_key

if TYPE_CHECKING:
    from nestream.physical.planner import Planner
    from nestream.physical.writing import Outer

Key = Mapping[str, tuple[str, ...]]
Link = tuple[str, tuple[str, ...]]
"""An outer variable, and its attributes that equal the key."""


def derive(planner: Planner, chosen: OrAlternative, negation: Negation, outer: Outer) -> Negation:
    """Return the negation, derived where that is correct, with the reason why it is or is not."""
    block, own = negation.block, set(negation.block.leaves)
    if any(has_groups(inner.block) and inner.derived is None for inner in block.negations):
        return replace(negation, reason="a group deep inside it is counted match by match")
    if not all(_looks_inside(group, own) for group in block.groups):
        return replace(negation, reason="a group inside it looks at the match around it")
    if _meets_outside(block, frozenset()):
        return replace(negation, reason="an event could be one of the match's own")
    if any(not variables(predicate) <= own for predicate in block.predicates):
        return replace(negation, reason="a predicate relates it to the match by more than equality")
    judged = {name for predicate in block.judged for name in variables(predicate)}
    if not judged <= own.union(*(group.variables for group in block.groups)):
        return replace(negation, reason="an aggregate inside it is compared with the match")
    derived = _from_parts(chosen, block, outer.facts, list(outer.types))
    if derived is not None:
        return replace(negation, derived=derived[0], link=derived[1], reason="from its parts")
    return _from_matches(planner, chosen, negation, outer)


def _meets_outside(block: Block, around: frozenset[str]) -> bool:
    """Whether an event of an expression, or of what is nested in it, could be one of the match's own.

    `around` are the variables of the expression around a nested block.
    """
    own = around | set(block.leaves)
    nested = (*block.negations, *(one for group in block.groups for one in group.alternatives))
    return any(not own.issuperset(pair) for pair in block.apart) or any(
        _meets_outside(one.block, own) for one in nested
    )


def _looks_inside(group: Group, own: set[str]) -> bool:
    """Whether the members of a group relate to events outside the expression only by equalities."""
    names = own | set(group.variables)
    return all(
        not one.block.negations
        and not one.block.groups
        and all(variables(predicate) <= names for predicate in one.block.predicates)
        for one in group.alternatives
    )


# -- from parts, without building an inner match -----------------------------------------------------------


def _from_parts(
    chosen: OrAlternative, block: Block, facts: Sequence[Equality], outer: list[str]
) -> tuple[Derived, tuple[Term, ...]] | None:
    """The staircase of an expression whose events are related only by one key; None for any other."""
    names = list(block.leaves)
    keyed = linked_key(block.equalities, facts, names, outer)
    if keyed is None or block.predicates or block.apart or block.judged:
        return None
    key, link = keyed
    has_gaps = block.negations or block.groups
    stair = _with_gaps(block, key, link) if has_gaps else _stair(chosen, block, key)
    if stair is None:
        return None
    if key is None:
        return Derived(stair), ()
    if link is None:
        return Derived(AllKeysStair(stair)), ()
    return Derived(stair, key[names[0]]), tuple((link[0], attribute) for attribute in link[1])


def _stair(chosen: OrAlternative, block: Block, key: Key | None) -> Stair:
    """The staircase of an expression without negations."""
    match chosen.node:
        case Leaf(variable=variable):
            return LeafStair(block.leaves[variable], key[variable] if key else None)
        case WinSeq():
            items = tuple(_stair(part, block, key) for part in chosen.parts)
            return SequenceStair(items, ((),) * (len(items) - 1))
        case WinAnd():
            return ConjunctionStair(tuple(_stair(part, block, key) for part in chosen.parts))


def _with_gaps(block: Block, key: Key | None, link: Link | None) -> Stair | None:
    """The staircase of a sequence with negations and groups between its events; None if they prevent it."""
    if block.chain is None:
        return None
    pairs = [((left,), (right,)) for left, right in pairwise(block.chain)]
    gaps: list[list[Gap]] = [[] for _ in pairs]
    for inner in block.negations:
        place = (inner.interval.after, inner.interval.before)
        if place not in pairs or inner.derived is None or not _same_key(inner, key, link):
            return None
        gaps[pairs.index(place)].append(Gap(inner.derived, bool(inner.link)))
    counts: list[list[Count]] = [[] for _ in pairs]
    for group in block.groups:
        place = (group.interval.after, group.interval.before)
        if place not in pairs:
            return None
        count = _count(group, key, link, block.chain[pairs.index(place) + 1])
        if count is None:
            return None
        counts[pairs.index(place)].append(count)
    leaves = tuple(LeafStair(block.leaves[name], key[name] if key else None) for name in block.chain)
    return SequenceStair(leaves, tuple(map(tuple, gaps)), tuple(map(tuple, counts)))


def _count(group: Group, key: Key | None, link: Link | None, later: str) -> Count | None:
    """A group counted back from the item after it; None if its members are not a range by key."""
    if why_no_range(group) is not None:
        return None
    block = group.alternatives[0].block
    ((name, leaf),) = block.leaves.items()
    mine: dict[Term, str] = {}
    for equality in block.equalities:
        own, other = equality.left, equality.right
        if own[0] != name:
            own, other = other, own
        mine[other] = own[1]
    if not mine:
        return Count(leaf, (), (), group.least, group.most)
    if key is None:
        return None
    for whose, attributes in (*key.items(), *((link,) if link else ())):
        terms = [(whose, attribute) for attribute in attributes]
        if set(mine) == set(terms):
            return Count(leaf, tuple(mine[term] for term in terms), key[later], group.least, group.most)
    return None


def _same_key(inner: Negation, key: Key | None, link: Link | None) -> bool:
    """Whether an inner negation has no key, or exactly the key of the expression around it."""
    if not inner.link:
        return True
    names = {name for name, _ in inner.link}
    if len(names) > 1:
        return False
    name, attributes = names.pop(), tuple(attribute for _, attribute in inner.link)
    if key is not None and name in key:
        return key[name] == attributes
    return link == (name, attributes)


# -- from matches ------------------------------------------------------------------------------------------


def _from_matches(planner: Planner, chosen: OrAlternative, negation: Negation, outer: Outer) -> Negation:
    """The negation, derived from the matches of its expression, which runs on its own."""
    from nestream.physical.planner import edges, operator_of

    own = set(negation.block.leaves)
    link: list[Term] = []
    key: list[Term] = []
    inner_of: dict[Term, Term] = {}
    known = classes(outer.facts)
    for terms in classes(negation.block.equalities):
        inside, linked = min(term for term in terms if term[0] in own), set[Term]()
        for term in sorted(term for term in terms if term[0] not in own):
            equal = next((facts for facts in known if term in facts), frozenset())
            if not equal & linked:  # otherwise an equal one is already linked
                link.append(term)
                key.append(inside)
                linked.add(term)
            inner_of[term] = inside
    free = planner.root_block(_substituted(chosen, inner_of))
    needed = {name for predicate in free.predicates for name in variables(predicate)}
    for inner in free.negations:
        needed |= inner.needs(free)
    for group in free.groups:
        needed |= group_needs(group, free)
    if edges(free) or not needed <= own:
        what = "a negation or group" if free.groups else "a negation"
        return replace(negation, reason=f"{what} inside it looks at the match around it")
    attributes = tuple(attribute for _, attribute in key)
    derived = Derived(MatchStair(operator_of(free), tuple(key), outer.is_wide), attributes)
    return replace(negation, derived=derived, link=tuple(link), reason="from its matches")


def _compares_itself(formula: Expression) -> bool:
    """Whether a formula compares a term with itself: a link to the outer match, now tested by the key."""
    return isinstance(formula, Comparison) and formula.operator == "=" and len(set(formula.operands)) == 1


def _substituted(chosen: OrAlternative, inner_of: Mapping[Term, Term]) -> OrAlternative:
    """The expression with outer terms replaced by inner ones that equal them."""

    def term(part: Expression) -> Expression:
        if isinstance(part, Attribute) and (part.variable, part.name) in inner_of:
            return Attribute(*inner_of[part.variable or "", part.name])
        return part

    def formulas(found: tuple[Expression, ...]) -> tuple[Expression, ...]:
        changed = (transform(formula, term) for part in found for formula in conjuncts(part))
        return tuple(formula for formula in changed if not _compares_itself(formula))

    def node(component: Component) -> Component:
        match component:
            case Leaf(predicates=predicates):
                return replace(component, predicates=formulas(predicates))
            case LogicalNegation(body=body) | LogicalGroup(body=body):
                return replace(component, body=node(body))  # type: ignore[arg-type]  # a node stays one
            case WinSeq() | WinAnd() | WinOr():
                parts = tuple(map(node, component.components))
                return replace(component, components=parts, predicates=formulas(component.predicates))
            case _:
                return component

    return OrAlternative(
        node(chosen.node),  # type: ignore[arg-type]
        tuple(_substituted(part, inner_of) for part in chosen.parts),
        formulas(chosen.predicates),
    )
