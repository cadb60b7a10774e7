"""`!AND(B, C)` is `OR(!B, !C)`.

Law: an AND does not occur in an interval if one of its components does not. Side conditions: no event can
be of two components, so that their types differ, those in negations inside them included; and no predicate
relates two components, except that equalities may do so by way of an event of the match, with which each is
then compared. An AND with negations of its own is the next rule's.

>>> from nestream.query import query
>>> from nestream.logical.text import expression_text
>>> plan = query("SEQ(A a, !AND(B b, SEQ(C c, D d), b.id = c.id = a.id), E e) WITHIN 10").plan
>>> print(expression_text(NEGATION_OVER_CONJUNCTION.apply(plan.root.components[1], Place())))
OR(!(B b, b.id = a.id), !SEQ(C c, D d, c.id = a.id))
"""

from __future__ import annotations

from nestream.logical.nodes import Component, Group, Negation, Proj, WinAnd, WinOr, Witness, constraints
from nestream_papers.rewrite.rule import Outcome, Place, Refused, Rule
from nestream_papers.rewrite.rules.conjunction import take_apart


def _apply(component: Component, place: Place) -> Outcome:
    if not isinstance(component, Negation) or not isinstance(component.body, WinAnd) or place.negations:
        return None
    if constraints(component.body):
        return None
    apart = take_apart(component.body, place)
    if isinstance(apart, Refused):
        return apart
    return WinOr(tuple(map(negated, apart.events)))


def negated(part: Component) -> Negation:
    """The negation of an expression that binds events."""
    assert not isinstance(part, Negation | Group | Witness | Proj)
    return Negation(part)


NEGATION_OVER_CONJUNCTION = Rule(
    "negation over a conjunction", "an AND does not occur if one of its components does not", _apply
)
