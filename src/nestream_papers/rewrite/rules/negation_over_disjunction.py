"""`!OR(B, C)` is `!B, !C` side by side.

Law: an OR has no match in an interval if none of its branches has one there. The predicates of the OR go with
every branch, for which they must be about what all branches bind or about other events. Where the negation
stands alone in a place for one component, the two are written `AND(!B, !C)`.

>>> from nestream.query import query
>>> from nestream.logical.text import expression_text
>>> plan = query("SEQ(A a, !OR(B b, SEQ(C c, D d)), E e) WITHIN 10").plan
>>> print(expression_text(NEGATION_OVER_DISJUNCTION.apply(plan.root.components[1], Place())))
AND(!B b, !SEQ(C c, D d))
"""

from __future__ import annotations

from nestream.logical.nodes import Component, Negation, WinAnd, WinOr
from nestream_papers.rewrite.parts import with_predicates
from nestream_papers.rewrite.rule import Outcome, Place, Refused, Rule
from nestream_papers.rewrite.rules.predicates_of_disjunction import crossing_predicate


def _apply(component: Component, place: Place) -> Outcome:
    if not isinstance(component, Negation) or not isinstance(component.body, WinOr):
        return None
    either = component.body
    reason = crossing_predicate(either)
    if reason:
        return Refused(reason)
    return WinAnd(tuple(Negation(with_predicates(branch, either.predicates)) for branch in either.components))


NEGATION_OVER_DISJUNCTION = Rule(
    "negation over a disjunction", "an OR does not occur if none of its branches does", _apply
)
