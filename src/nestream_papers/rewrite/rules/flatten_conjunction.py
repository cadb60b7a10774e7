"""`AND(A, AND(B, !C), D)` is `AND(A, B, !C, D)`.

Law: an AND directly in an AND can be replaced by its components. The inner AND has the limits of the outer
one, so its constraints look as far as before. Its predicates become the outer one's. There are no side
conditions. An AND of constraints alone is flattened in the same way.

>>> from nestream.query import query
>>> from nestream.logical.text import expression_text
>>> plan = query("AND(A a, AND(B b, !C c, b.x > 1), D d) WITHIN 10").plan
>>> print(expression_text(FLATTEN_CONJUNCTION.apply(plan.root, Place())))
AND(A a, B b, !C c, D d, b.x > 1)
"""

from __future__ import annotations

from nestream.logical.nodes import Component, WinAnd
from nestream.model.expression import Expression
from nestream_papers.rewrite.parts import with_predicates
from nestream_papers.rewrite.rule import Outcome, Place, Rule


def _apply(component: Component, place: Place) -> Outcome:
    if not isinstance(component, WinAnd) or not any(
        isinstance(part, WinAnd) for part in component.components
    ):
        return None
    merged: list[Component] = []
    predicates: list[Expression] = []
    for part in component.components:
        if isinstance(part, WinAnd):
            merged += part.components
            predicates += part.predicates
        else:
            merged.append(part)
    return with_predicates(WinAnd(tuple(merged), component.predicates), predicates)


FLATTEN_CONJUNCTION = Rule(
    "flatten a conjunction", "an AND directly in an AND can be replaced by its components", _apply
)
