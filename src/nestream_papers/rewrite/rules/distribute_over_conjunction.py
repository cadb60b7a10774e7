"""`AND(A, OR(B, C), !D)` is `OR(AND(A, B, !D), AND(A, C, !D))`, also under a negation.

Law: an AND with an OR among its components is the OR of the ANDs with each of the branches in its place.
Since an AND passes its limits on, the branches keep theirs. An OR of constraints is distributed in the same
way, and so is one in an AND of constraints. Side condition: nothing outside the OR mentions a variable that
only some of its branches bind.

>>> from nestream.query import query
>>> from nestream.logical.text import expression_text
>>> plan = query("AND(A a, OR(B b, C c), !D d) WITHIN 10").plan
>>> print(expression_text(DISTRIBUTE_OVER_CONJUNCTION.apply(plan.root, Place())))
OR(AND(A a, B b, !D d), AND(A a, C c, !D d))
"""

from __future__ import annotations

from nestream.logical.nodes import Component, WinAnd
from nestream_papers.rewrite.rule import Outcome, Place, Rule
from nestream_papers.rewrite.rules.distribute import distribute


def _apply(component: Component, place: Place) -> Outcome:
    return distribute(component, place) if isinstance(component, WinAnd) else None


DISTRIBUTE_OVER_CONJUNCTION = Rule(
    "distribute over a conjunction",
    "an AND with an OR in it is the OR of the ANDs with each of its branches",
    _apply,
)
