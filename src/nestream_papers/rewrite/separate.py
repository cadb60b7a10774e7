"""Assigns each predicate of an expression to the one part it is about, so that the parts can be separated.

A predicate that relates two parts belongs to neither, with one exception. If equalities on one attribute
reach an event outside the expression, `s.id = d.id = o.id` with `o` outside, each part can be compared with
that event instead: `s.id = o.id` and `d.id = o.id`. The terms must be attributes of one name, and so of one
kind, because equality is not transitive between integers and floats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nestream.logical.nodes import Component, Leaf, Negation, WinAnd, WinOr, WinSeq, free_variables
from nestream.model.expression import Attribute, Comparison, Expression, conjuncts, transform, variables
from nestream.model.text import print_expression
from nestream_papers.rewrite.parts import children, with_children, with_predicates
from nestream_papers.rewrite.rule import Place, Refused

Term = tuple[str, str]
"""A variable and one of its attributes."""


@dataclass(frozen=True)
class Anchors:
    """For each attribute of an inner event, the outer one that the predicates make it equal to."""

    outer: Mapping[Term, Attribute]

    def of(self, term: Expression) -> Attribute | None:
        if not isinstance(term, Attribute) or term.variable is None:
            return None
        return self.outer.get((term.variable, term.name))


def anchors(formulas: Iterable[Expression], inner: frozenset[str], place: Place) -> Anchors:
    """What the equalities among the formulas reach; of several outer terms, the first in the text."""
    classes: dict[Term, frozenset[Term]] = {}
    for formula in formulas:
        for left, right in _equal_pairs(formula):
            joined = classes.get(left, frozenset((left,))) | classes.get(right, frozenset((right,)))
            classes |= dict.fromkeys(joined, joined)
    found: dict[Term, Attribute] = {}
    for term, equal in classes.items():
        outside = [name for name, _ in equal if name not in inner]
        if term[0] in inner and outside:
            found[term] = Attribute(min(outside, key=place.rank), term[1])
    return Anchors(found)


def _equal_pairs(formula: Expression) -> Iterable[tuple[Term, Term]]:
    """The pairs of attributes of one name that the formula says are equal."""
    if not isinstance(formula, Comparison) or formula.operator != "=":
        return
    for left, right in pairwise(formula.operands):
        if _same_attribute(left, right):
            assert isinstance(left, Attribute)
            assert isinstance(right, Attribute)
            yield (left.variable or "", left.name), (right.variable or "", right.name)


def _same_attribute(left: Expression, right: Expression) -> bool:
    return isinstance(left, Attribute) and isinstance(right, Attribute) and left.name == right.name


def separate(
    formulas: Sequence[Expression], groups: Sequence[frozenset[str]], known: Anchors
) -> list[list[Expression]] | Refused:
    """The formulas of each group of variables; what is about no group goes to the last.

    Refused if a formula relates two groups and no anchor separates it.
    """
    found: list[list[Expression]] = [[] for _ in groups]

    def give(formula: Expression) -> bool:
        mentioned = variables(formula)
        about = [number for number, names in enumerate(groups) if names & mentioned] or [len(groups) - 1]
        if len(about) == 1:
            found[about[0]].append(_inner_first(formula, groups[about[0]]))
        return len(about) == 1

    for formula in formulas:
        if give(formula):
            continue
        pairs = (
            pairwise(formula.operands) if isinstance(formula, Comparison) and formula.operator == "=" else ()
        )
        parts = [part for left, right in pairs for part in _taken_apart(left, right, groups, known)]
        if not parts or not all(map(give, parts)):
            return Refused(f"`{print_expression(formula)}` relates events that would be separated")
    return [list(dict.fromkeys(own)) for own in found]


def _taken_apart(
    left: Expression, right: Expression, groups: Sequence[frozenset[str]], known: Anchors
) -> list[Expression]:
    """The equality of a pair, through their anchor if the two are in different groups."""
    whole = Comparison("=", (left, right))
    crossing = sum(bool(names & variables(whole)) for names in groups) > 1
    anchor = known.of(left)
    if not crossing or anchor is None or not _same_attribute(left, right):
        return [whole]
    return [Comparison("=", (left, anchor)), Comparison("=", (right, anchor))]


def _inner_first(formula: Expression, names: frozenset[str]) -> Expression:
    """An equality with an outer event, written with the inner event first."""
    match formula:
        case Comparison(operator="=", operands=(Attribute() as left, Attribute() as right)):
            if left.variable not in names and right.variable in names:
                return Comparison("=", (right, left))
    return formula


def chain_of(node: WinSeq, place: Place) -> tuple[Leaf, ...] | Refused:
    """The events of a sequence of only primitive events, each with its predicates."""
    events = [part for part in node.components if isinstance(part, Leaf)]
    names = [frozenset((leaf.variable,)) for leaf in events]
    formulas = [
        f
        for predicates in (node.predicates, *(e.predicates for e in events))
        for p in predicates
        for f in conjuncts(p)
    ]
    own = separate(formulas, names, anchors(formulas, frozenset().union(*names), place))
    if isinstance(own, Refused):
        return own
    return tuple(
        Leaf(leaf.variable, leaf.types, tuple(about)) for leaf, about in zip(events, own, strict=True)
    )


def independent_of(component: Component, names: frozenset[str], known: Anchors) -> Component | Refused:
    """The component with its mentions of the variables replaced by their anchors."""

    def anchored(part: Expression) -> Expression:
        if isinstance(part, Attribute) and part.variable in names:
            return known.of(part) or part
        return part

    def rebased(part: Component) -> Component:
        if not isinstance(part, Leaf | WinSeq | WinAnd | WinOr):
            return with_children(part, [rebased(inner) for inner in children(part)])
        changed = with_children(part, [rebased(inner) for inner in children(part)])
        assert isinstance(changed, Leaf | WinSeq | WinAnd | WinOr)
        predicates = tuple(transform(predicate, anchored) for predicate in part.predicates)
        if predicates == part.predicates:
            return changed
        return with_predicates(type(changed)(**{**vars(changed), "predicates": ()}), predicates)

    if not free_variables(component) & names:
        return component
    found = rebased(component)
    left = free_variables(found) & names
    if left:
        return Refused(f"a negation inside it mentions `{min(left)}`, which would be separated from it")
    assert isinstance(found, Negation) or not isinstance(component, Negation)
    return found
