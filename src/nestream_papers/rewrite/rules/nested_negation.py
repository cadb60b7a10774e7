"""`!AND(B, !C)` is `OR(!B, C)`, where `C` stands for a witness: some `C` in the interval.

Law: an AND with a negation does not occur if one of its positive components does not, or if what it negates
does. Of `!SEQ(C, D)` inside, the witness is the chain `C, D`; of `!AND(C, !D)`, a witness `C` beside `!D`.
Side conditions are those of negation over a conjunction, for the negations too: none of their events could
be an event of the AND, whose events are spoken for, and their predicates do not mention the AND's events,
unless equalities lead on to an event of the match. What is negated must have a witness: primitive events in
sequence, or an AND of such.

>>> from nestream.query import query
>>> from nestream.logical.text import expression_text
>>> plan = query("SEQ(A a, !AND(B b, !SEQ(C c, D d)), E e) WITHIN 10").plan
>>> print(expression_text(NESTED_NEGATION.apply(plan.root.components[1], Place())))
OR(!B b, (C c, D d))
"""

from __future__ import annotations

from nestream.logical.nodes import (
    Component,
    Leaf,
    Negation,
    WinAnd,
    WinOr,
    WinSeq,
    Witness,
    constraints,
    is_constraint,
)
from nestream_papers.rewrite.rule import Outcome, Place, Refused, Rule
from nestream_papers.rewrite.rules.conjunction import take_apart
from nestream_papers.rewrite.rules.negation_over_conjunction import negated
from nestream_papers.rewrite.separate import chain_of


def _apply(component: Component, place: Place) -> Outcome:
    if not isinstance(component, Negation) or not isinstance(component.body, WinAnd) or place.negations:
        return None
    if not constraints(component.body):
        return None
    apart = take_apart(component.body, place)
    if isinstance(apart, Refused):
        return apart
    occurring = [occurrence(part.body, place) for part in apart.negations]
    for found in occurring:
        if isinstance(found, Refused):
            return found
    return WinOr(
        (*map(negated, apart.events), *(found for found in occurring if not isinstance(found, Refused)))
    )


def occurrence(node: Component, place: Place) -> Component | Refused:
    """The constraint that the expression has a match in the interval, or why there is none."""
    match node:
        case Leaf():
            return Witness((node,))
        case WinSeq() if all(isinstance(part, Leaf) for part in node.components):
            chain = chain_of(node, place)
            return chain if isinstance(chain, Refused) else Witness(chain)
        case WinAnd():
            apart = take_apart(node, place)
            if isinstance(apart, Refused):
                return apart
            parts: list[Component] = []
            for event in apart.events:
                found = occurrence(event, place)
                if isinstance(found, Refused):
                    return found
                parts.append(found)
            together = WinAnd((*parts, *apart.negations))
            assert is_constraint(together)
            return together
        case _:
            return Refused("what a negation inside it negates is no sequence of primitive events")


NESTED_NEGATION = Rule(
    "nested negation",
    "an AND with a negation does not occur if a component of it does not or what it negates does",
    _apply,
)
