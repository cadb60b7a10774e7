"""`SEQ(A, SEQ(B, !C, D), E)` is `SEQ(A, B, !C, D, E)`.

Law: a SEQ directly in a SEQ can be replaced by its components. The inner SEQ's limits are those of a negation
in its place, so a constraint at its ends looks into the same gap before and after, beside those of the outer
SEQ at the seam. Its predicates become the outer one's. There are no side conditions: at the root both have
the limits of a SEQ.

>>> from nestream.query import query
>>> from nestream.logical.text import expression_text
>>> plan = query("SEQ(A a, !X x, SEQ(!Y y, B b, C c, b.id = c.id), D d) WITHIN 10").plan
>>> print(expression_text(FLATTEN_SEQUENCE.apply(plan.root, Place())))
SEQ(A a, !X x, !Y y, B b, C c, D d, b.id = c.id)
"""

from __future__ import annotations

from nestream.logical.nodes import Component, WinSeq
from nestream_papers.rewrite.parts import flattened
from nestream_papers.rewrite.rule import Outcome, Place, Rule


def _apply(component: Component, place: Place) -> Outcome:
    return flattened(component, WinSeq)


FLATTEN_SEQUENCE = Rule(
    "flatten a sequence", "a SEQ directly in a SEQ can be replaced by its components", _apply
)
