"""`OR(B, C, p)` is `OR((B, p), (C, p))`.

Law: a predicate of an OR can be written with each of its branches. It must be about what all branches bind,
or about events outside: about a branch that is not taken it would say something of unbound variables.

>>> from nestream.logical.nodes import Leaf, WinOr
>>> from nestream.logical.text import expression_text
>>> from nestream.model.expression import Attribute, Comparison, Literal
>>> outer = Comparison(">", (Attribute("a", "x"), Literal(1)))
>>> either = WinOr((Leaf("b", ("B",)), Leaf("c", ("C",))), (outer,))
>>> print(expression_text(PREDICATES_OF_DISJUNCTION.apply(either, Place())))
OR((B b, a.x > 1), (C c, a.x > 1))
"""

from __future__ import annotations

from nestream.logical.nodes import Component, WinOr, target_variables
from nestream.model.expression import variables
from nestream.model.text import print_expression
from nestream_papers.rewrite.parts import with_predicates
from nestream_papers.rewrite.rule import Outcome, Place, Refused, Rule


def _apply(component: Component, place: Place) -> Outcome:
    if not isinstance(component, WinOr) or not component.predicates:
        return None
    reason = crossing_predicate(component)
    if reason:
        return Refused(reason)
    return WinOr(tuple(with_predicates(branch, component.predicates) for branch in component.components))


def crossing_predicate(node: WinOr) -> str | None:
    """Why the predicates of the OR cannot go with each branch: one is about some of the branches only."""
    some = unshared_variables(node)
    for predicate in node.predicates:
        if variables(predicate) & some:
            return f"`{print_expression(predicate)}` is about one branch of an OR"
    return None


def unshared_variables(node: WinOr) -> frozenset[str]:
    """The variables that some branches bind and others do not."""
    bound = [target_variables(branch) for branch in node.components]
    return frozenset().union(*bound) - bound[0].intersection(*bound)


PREDICATES_OF_DISJUNCTION = Rule(
    "predicates of a disjunction", "a predicate of an OR can be written with each of its branches", _apply
)
