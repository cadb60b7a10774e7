"""`SEQ(A, AND(!B, !C), D)` is `SEQ(A, !B, !C, D)`.

Law: an AND of constraints alone, in a SEQ, can be replaced by its components side by side. Constraints in a
gap do not see each other, and each has the whole gap as its interval, as the AND has. There are no side
conditions. Such an AND is what a negated OR becomes.

>>> from nestream.logical.nodes import Leaf, Negation, WinAnd, WinSeq
>>> from nestream.logical.text import expression_text
>>> a, b, c, d = (Leaf(name.lower(), (name,)) for name in "ABCD")
>>> root = WinSeq((a, WinAnd((Negation(b), Negation(c))), d))
>>> print(expression_text(FLATTEN_CONSTRAINTS.apply(root, Place())))
SEQ(A a, !B b, !C c, D d)
"""

from __future__ import annotations

from dataclasses import replace

from nestream.logical.nodes import Component, WinAnd, WinSeq, is_constraint
from nestream_papers.rewrite.rule import Outcome, Place, Rule


def _apply(component: Component, place: Place) -> Outcome:
    if not isinstance(component, WinSeq) or not any(map(_is_conjunction, component.components)):
        return None
    merged: list[Component] = []
    for part in component.components:
        merged += part.components if isinstance(part, WinAnd) and _is_conjunction(part) else (part,)
    return replace(component, components=tuple(merged))


def _is_conjunction(part: Component) -> bool:
    return isinstance(part, WinAnd) and is_constraint(part)


FLATTEN_CONSTRAINTS = Rule(
    "flatten constraints", "an AND of constraints in a SEQ can be replaced by its components", _apply
)
