"""`SEQ(A)` and `AND(A)` are `A`.

Law: a SEQ or AND of one component can be replaced by it. Inside another expression it passes its own limits
on, so nothing changes. At the root a SEQ looks a full window ahead and an AND to its last event only: there
the law needs a component without constraints, which no limit concerns.

>>> from nestream.query import query
>>> from nestream.logical.text import expression_text
>>> plan = query("SEQ(AND(A a, B b), a.id = b.id) WITHIN 10").plan
>>> print(expression_text(UNWRAP_SINGLE.apply(plan.root, Place())))
AND(A a, B b, a.id = b.id)
>>> UNWRAP_SINGLE.apply(query("SEQ(AND(A a, !B b)) WITHIN 10").plan.root, Place()) is None
True
"""

from __future__ import annotations

from nestream.logical.nodes import Component, WinAnd, WinSeq, is_constraint, walk
from nestream_papers.rewrite.parts import with_predicates
from nestream_papers.rewrite.rule import Outcome, Place, Rule


def _apply(component: Component, place: Place) -> Outcome:
    if not isinstance(component, WinSeq | WinAnd) or len(component.components) != 1:
        return None
    (only,) = component.components
    if place.root and any(map(is_constraint, walk(only))):
        return None
    return with_predicates(only, component.predicates) if component.predicates else only


UNWRAP_SINGLE = Rule(
    "unwrap a single component", "a SEQ or AND of one component can be replaced by it", _apply
)
