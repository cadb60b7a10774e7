"""`!SEQ(B, C, D)` is `OR(!D, (!C, D), (!B, C, D))`, of the latest `D`, the latest `C` before it, and so on.

Law: events follow each other in an interval exactly if they do so when each is taken as late as it can be,
from the last one back. So a SEQ does not occur if that fails at one of its events: there is none, or none
before the latest one of the next. Side conditions: the SEQ is over primitive events alone, since a negation
inside it would make an earlier event count, and an AND has no latest start; and its predicates are about one
of its events each, and whatever events of the match, or equate two of them by way of such an event. The law
takes nothing from window, limits, ties or neighbours: the witness looks into the same interval.

Only a negation that is in no other is taken apart: inside another it could not be put to use.

>>> from nestream.query import query
>>> from nestream.logical.text import expression_text
>>> plan = query("SEQ(A a, !SEQ(B b, C c, D d), E e) WITHIN 10").plan
>>> print(expression_text(NEGATION_OVER_SEQUENCE.apply(plan.root.components[1], Place())))
OR(!D d, (!C c, D d), (!B b, C c, D d))
>>> plan = query("SEQ(A a, !SEQ(B b, C c, b.id = c.id = a.id), E e) WITHIN 10").plan
>>> print(expression_text(NEGATION_OVER_SEQUENCE.apply(plan.root.components[1], Place())))
OR(!(C c, c.id = a.id), (!(B b, b.id = a.id), (C c, c.id = a.id)))
"""

from __future__ import annotations

from nestream.logical.nodes import Component, Leaf, Negation, WinOr, WinSeq, Witness, constraints
from nestream_papers.rewrite.rule import Outcome, Place, Refused, Rule
from nestream_papers.rewrite.separate import chain_of


def _apply(component: Component, place: Place) -> Outcome:
    if not isinstance(component, Negation) or not isinstance(component.body, WinSeq) or place.negations:
        return None
    body = component.body
    if len(body.components) == 1:
        return None
    if constraints(body):
        return Refused("a negation inside a negated SEQ makes more than the latest events count")
    if not all(isinstance(part, Leaf) for part in body.components):
        return Refused("a negated SEQ over more than primitive events has no latest witness")
    chain = chain_of(body, place)
    if isinstance(chain, Refused):
        return chain
    *_, last = chain
    witnesses = [Witness(chain[at + 1 :], chain[at]) for at in reversed(range(len(chain) - 1))]
    return WinOr((Negation(last), *witnesses))


NEGATION_OVER_SEQUENCE = Rule(
    "negation over a sequence",
    "a SEQ does not occur if its latest events end without one that is before the next",
    _apply,
)
