"""What distribution over SEQ and over AND share: an OR among the components moves outwards.

The expression is repeated with each branch in place of the OR. The rest of it must not mention variables that
some branches do not bind; the language ensures that, and a plan that violates it is refused.
"""

from __future__ import annotations

from nestream.logical.nodes import Component, WinAnd, WinOr, WinSeq, free_variables, is_constraint
from nestream.model.expression import variables
from nestream_papers.rewrite.parts import with_components, with_predicates
from nestream_papers.rewrite.rule import Outcome, Place, Refused
from nestream_papers.rewrite.rules.predicates_of_disjunction import unshared_variables


def distribute(node: WinSeq | WinAnd, place: Place) -> Outcome:
    """The OR of the expressions with each branch of the first OR that does not keep its form."""
    refused: Refused | None = None
    for index, part in enumerate(node.components):
        if not isinstance(part, WinOr) or place.keeps(part):
            continue
        before, after = node.components[:index], node.components[index + 1 :]
        mentioned = frozenset().union(
            *map(free_variables, (*before, *after)),
            *map(variables, (*node.predicates, *part.predicates)),
        )
        if mentioned & unshared_variables(part):
            name = min(mentioned & unshared_variables(part))
            refused = Refused(f"something outside the OR mentions `{name}`, which one of its branches binds")
            continue
        return WinOr(tuple(_with_branch(node, before, branch, after, part) for branch in part.components))
    return refused


def _with_branch(
    node: WinSeq | WinAnd,
    before: tuple[Component, ...],
    branch: Component,
    after: tuple[Component, ...],
    disjunction: WinOr,
) -> Component:
    repeated = with_components(node, (*before, branch, *after))
    return repeated if is_constraint(repeated) else with_predicates(repeated, disjunction.predicates)
