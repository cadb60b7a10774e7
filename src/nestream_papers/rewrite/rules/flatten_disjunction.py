"""`OR(A, OR(B, C), D)` is `OR(A, B, C, D)`, and `OR(A)` is `A`.

Law: an OR directly in an OR can be replaced by its branches, and an OR of one branch by that branch. The
predicates of an OR that goes away hold of every branch of it, so each takes them along; for that they must be
about what all of its branches bind, or about other events. It is the same for an OR of constraints, which has
no predicates. A branch of a root OR has a root's limits, whichever OR it is in.

>>> from nestream.query import query
>>> from nestream.logical.text import expression_text
>>> plan = query("OR(A a, OR(B b, SEQ(C c, D d), b.x > 1)) WITHIN 10").plan
>>> print(expression_text(FLATTEN_DISJUNCTION.apply(plan.root, Place())))
OR(A a, (B b, b.x > 1), SEQ(C c, D d))
"""

from __future__ import annotations

from nestream.logical.nodes import Component, WinOr
from nestream_papers.rewrite.parts import with_predicates
from nestream_papers.rewrite.rule import Outcome, Place, Refused, Rule
from nestream_papers.rewrite.rules.predicates_of_disjunction import crossing_predicate


def _apply(component: Component, place: Place) -> Outcome:
    if not isinstance(component, WinOr):
        return None
    going = [part for part in component.components if isinstance(part, WinOr) and not place.keeps(part)]
    if not going and len(component.components) > 1:
        return None
    if len(component.components) == 1:
        going = [component]
    reason = next((reason for part in going if (reason := crossing_predicate(part))), None)
    if reason:
        return Refused(reason)
    if len(component.components) == 1:
        return _branches(component)[0]
    merged: list[Component] = []
    for part in component.components:
        merged += _branches(part) if isinstance(part, WinOr) and part in going else [part]
    return WinOr(tuple(merged), component.predicates)


def _branches(node: WinOr) -> list[Component]:
    """The branches with the predicates of their OR."""
    if not node.predicates:
        return list(node.components)
    return [with_predicates(branch, node.predicates) for branch in node.components]


FLATTEN_DISJUNCTION = Rule(
    "flatten a disjunction", "an OR directly in an OR can be replaced by its branches", _apply
)
