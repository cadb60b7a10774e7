"""The canonical form of a rewritten expression, so that the same normal form reads the same.

Predicates are in the innermost operator that binds what they mention, in text order, and disjuncts in the
order of their events.

The place of a positive predicate never changes its meaning, nor does the order of predicates or branches, so
the rules may leave them in different ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from nestream.logical.nodes import (
    Component,
    Group,
    Leaf,
    Negation,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    Witness,
    is_constraint,
    target_variables,
)
from nestream.logical.text import expression_text
from nestream.model.expression import Expression, conjuncts, variables
from nestream.model.text import print_expression
from nestream_papers.rewrite.parts import children, positive_parts, with_children
from nestream_papers.rewrite.rule import Place


def canonical(component: Component, place: Place) -> Component:
    """The component in its canonical form; parts that keep their form keep it here too."""
    if place.keeps(component):
        return component
    match component:
        case WinOr(components=branches, predicates=predicates):
            written = [canonical(branch, place.inside(component)) for branch in branches]
            if place.root:
                written.sort(key=lambda branch: _branch_order(branch, place))
            return WinOr(tuple(written), _ordered(predicates, place))
        case Leaf(predicates=predicates):
            return replace(component, predicates=_ordered(predicates, place))
        case WinSeq() | WinAnd() if not is_constraint(component):
            return _placed(component, _gathered(component), place)
        case _:
            return with_children(
                component, [canonical(inner, place.inside(component)) for inner in children(component)]
            )


def _gathered(component: Component) -> list[Expression]:
    """The predicates of the positive part, up to the ORs in it."""
    if isinstance(component, WinOr) or is_constraint(component):
        return []
    assert not isinstance(component, Negation | Group | Witness)
    own = [formula for predicate in component.predicates for formula in conjuncts(predicate)]
    return own + [formula for inner in children(component) for formula in _gathered(inner)]


def _placed(component: WinSeq | WinAnd, formulas: Sequence[Expression], place: Place) -> Component:
    """The operator with the formulas that belong to it; those about one nested operator go into that."""
    rest = list(formulas)
    local = target_variables(component)
    parts: list[Component] = []
    for part in component.components:
        if isinstance(part, Leaf):
            parts.append(replace(part, predicates=()))
        elif isinstance(part, WinSeq | WinAnd) and not is_constraint(part):
            names = target_variables(part)
            inner = [f for f in rest if variables(f) & local and variables(f) & local <= names]
            rest = [f for f in rest if f not in inner]
            parts.append(_placed(part, inner, place.inside(component)))
        else:
            parts.append(canonical(part, place.inside(component)))
    return type(component)(tuple(parts), _ordered(rest, place))


def _ordered(predicates: Iterable[Expression], place: Place) -> tuple[Expression, ...]:
    split = dict.fromkeys(formula for predicate in predicates for formula in conjuncts(predicate))

    def order(formula: Expression) -> tuple[list[tuple[int, str]], str]:
        return sorted(map(place.rank, variables(formula))), print_expression(formula)

    return tuple(sorted(split, key=order))


def _branch_order(branch: Component, place: Place) -> tuple[Any, ...]:
    """By the bound events, then by the constraints from left to right, short witnesses first."""
    bound = [place.rank(part.variable) for part in positive_parts(branch) if isinstance(part, Leaf)]
    return bound, list(_constraints(branch, place)), expression_text(branch)


def _constraints(component: Component, place: Place) -> Iterable[tuple[int, tuple[int, str]]]:
    match component:
        case Witness(chain=chain, leaves=events):
            yield len(chain), place.rank(events[0].variable)
        case Negation(body=body):
            first = next(iter(_variables(body)), "")
            yield 0, place.rank(first)
        case Proj() | WinSeq() | WinAnd() | WinOr():
            for inner in children(component):
                yield from _constraints(inner, place)
        case Leaf():
            return


def _variables(component: Component) -> Iterable[str]:
    return (part.variable for part in positive_parts(component) if isinstance(part, Leaf))
