"""Splits a WHERE clause over the pattern, as SASE defines it.

Conjuncts that mention a negative component belong to that negation; the others are predicates of the match. A
disjunction over a negative component is the union of its branches: the clause is split into alternatives,
each a list of conjuncts, and the query is the union of the pattern under each alternative. `[id]` requires
equal ids in all events, `[id = 1]` that value in all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from nestream.binding.scopes import Scopes
from nestream.model.expression import (
    And,
    Attribute,
    Comparison,
    Equivalence,
    Expression,
    Literal,
    Not,
    Or,
    conjuncts,
    variables,
)

MOST_ALTERNATIVES = 64
"""The maximum number of alternatives that a clause is split into."""


class TooManyAlternativesError(Exception):
    """A WHERE clause whose disjunctions over negative components multiply beyond `MOST_ALTERNATIVES`."""


def expand_equivalences(where: Expression, order: tuple[str, ...], scopes: Scopes) -> Expression:
    """The clause with every `[attribute]` and `[attribute = value]` expanded."""
    match where:
        case Equivalence(attribute=attribute, value=value, span=span):
            if value is not None:
                tests: list[Expression] = [
                    Comparison("=", (Attribute(name, attribute, span), value), span) for name in order
                ]
            else:
                tests = [
                    Comparison(
                        "=", (Attribute(anchor, attribute, span), Attribute(name, attribute, span)), span
                    )
                    for name in order
                    if (anchor := _anchor(name, order, scopes)) is not None
                ]
            return And(tuple(tests), span)
        case And(operands=operands, span=span):
            return And(tuple(expand_equivalences(part, order, scopes) for part in operands), span)
        case Or(operands=operands, span=span):
            return Or(tuple(_said(expand_equivalences(part, order, scopes)) for part in operands), span)
        case Not(operand=operand, span=span):
            return Not(_said(expand_equivalences(operand, order, scopes)), span)
        case _:
            return where


def _said(formula: Expression) -> Expression:
    """The formula, or TRUE if nothing is left of it: `[id]` requires nothing of a single event."""
    return Literal(True, formula.span) if isinstance(formula, And) and not formula.operands else formula


def _anchor(name: str, order: tuple[str, ...], scopes: Scopes) -> str | None:
    """The positive variable that the given one is compared with, so that all events of a match agree.

    This is the first variable that every match binds, if it is visible. If no variable that may be in the
    same match is visible, the first of them is returned, and placing the comparison reports why it fails.
    """
    before = order[: order.index(name)]
    certain = [other for other in order if other != name and scopes.certain(other)]
    if scopes.certain(name):
        candidates = [other for other in certain if other in before]
    else:
        others = before if scopes.positive(name) else order
        candidates = certain + [
            other
            for other in others
            if scopes.positive(other) and other not in certain and not scopes.alternatives(other, name)
        ]
    visible = (other for other in candidates if scopes.see_each_other(other, name))
    return next(visible, candidates[0] if candidates else None)


def alternatives(where: Expression, is_negative: Callable[[Expression], bool]) -> list[list[Expression]]:
    """The clause as alternatives of conjuncts, split only where a disjunction needs it.

    Raises `TooManyAlternativesError` if there would be more than `MOST_ALTERNATIVES`.
    """
    choices: list[list[list[Expression]]] = []
    total = 1
    for conjunct in conjuncts(inward(where)):
        if is_negative(conjunct) and isinstance(conjunct, Or):
            choice = [part for branch in conjunct.operands for part in alternatives(branch, is_negative)]
        else:
            choice = [[conjunct]]
        total *= len(choice)
        if total > MOST_ALTERNATIVES:
            raise TooManyAlternativesError
        choices.append(choice)
    return [[formula for part in combination for formula in part] for combination in product(*choices)]


def inward(formula: Expression) -> Expression:
    """Move NOT inwards over AND and OR; formulas are two-valued, so the meaning does not change."""
    match formula:
        case Not(operand=And(operands=operands), span=span):
            return Or(tuple(inward(Not(part, part.span)) for part in operands), span)
        case Not(operand=Or(operands=operands), span=span):
            return And(tuple(inward(Not(part, part.span)) for part in operands), span)
        case Not(operand=Not(operand=operand)):
            return inward(operand)
        case And(operands=operands, span=span):
            return And(tuple(inward(part) for part in operands), span)
        case Or(operands=operands, span=span):
            return Or(tuple(inward(part) for part in operands), span)
        case _:
            return formula


def mentions_negative(formula: Expression, scopes: Scopes) -> bool:
    """Whether the formula mentions a variable that is bound only under a negation."""
    return any(name in scopes.of and scopes.negated(name) for name in variables(formula))
