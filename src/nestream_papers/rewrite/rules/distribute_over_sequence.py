"""`SEQ(A, OR(B, C), D)` is `OR(SEQ(A, B, D), SEQ(A, C, D))`, also under a negation.

Law: a SEQ with an OR among its components is the OR of the SEQs with each of the branches in its place. An
OR of constraints is distributed in the same way: `SEQ(A, OR(!B, !C), D)`. The branches keep their gap and
their limits, and of a root OR each branch is a root. Side condition: nothing outside the OR mentions a
variable that only some of its branches bind. Matches that several branches give are one, since matches are
a set.

>>> from nestream.query import query
>>> from nestream.logical.text import expression_text
>>> plan = query("SEQ(A a, OR(B b, SEQ(C c, !X x, D d)), a.id = 1) WITHIN 10").plan
>>> print(expression_text(DISTRIBUTE_OVER_SEQUENCE.apply(plan.root, Place())))
OR(SEQ(A a, B b, a.id = 1), SEQ(A a, SEQ(C c, !X x, D d), a.id = 1))
"""

from __future__ import annotations

from nestream.logical.nodes import Component, WinSeq
from nestream_papers.rewrite.rule import Outcome, Place, Rule
from nestream_papers.rewrite.rules.distribute import distribute


def _apply(component: Component, place: Place) -> Outcome:
    return distribute(component, place) if isinstance(component, WinSeq) else None


DISTRIBUTE_OVER_SEQUENCE = Rule(
    "distribute over a sequence",
    "a SEQ with an OR in it is the OR of the SEQs with each of its branches",
    _apply,
)
