"""`SEQ(A, !B, C, D)`, where `C` only witnesses, is `Proj[a, d] SEQ(A, !B, C, D)`.

Law: an expression with a witness has the same matches under a Proj that names the variables it binds. A
witness binds nothing, so the Proj changes nothing; it tells a reader which events are the match's.

>>> from nestream.logical.nodes import Leaf, Witness
>>> from nestream.logical.text import expression_text
>>> a, b, c, d = (Leaf(name.lower(), (name,)) for name in "ABCD")
>>> print(expression_text(PROJECTION.apply(WinSeq((a, Witness((c,), b), d)), Place())))
Proj[a, d] SEQ(A a, !B b, C c, D d)
"""

from __future__ import annotations

from nestream.logical.nodes import Component, Proj, WinAnd, WinSeq, Witness, target_variables, walk
from nestream_papers.rewrite.rule import Outcome, Place, Rule


def _apply(component: Component, place: Place) -> Outcome:
    if not place.root or place.projected or not isinstance(component, WinSeq | WinAnd):
        return None
    if not any(isinstance(part, Witness) for part in walk(component)):
        return None
    return Proj(tuple(sorted(target_variables(component), key=place.rank)), component)


PROJECTION = Rule(
    "projection", "an expression with a witness is the same under a Proj of what it binds", _apply
)
