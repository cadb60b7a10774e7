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
from nestream_papers.rewrite.parts import flattened
from nestream_papers.rewrite.rule import Outcome, Place, Rule


def _apply(component: Component, place: Place) -> Outcome:
    return flattened(component, WinAnd)


FLATTEN_CONJUNCTION = Rule(
    "flatten a conjunction", "an AND directly in an AND can be replaced by its components", _apply
)
