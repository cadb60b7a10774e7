"""What is true of every logical plan; checked after binding and after every rewriting.

A failure is a defect of nestream, never of the query, and names the stage that made the plan.
"""

from __future__ import annotations

from nestream.logical.nodes import (
    Component,
    Leaf,
    Negation,
    Node,
    Plan,
    WinAnd,
    WinOr,
    WinSeq,
    free_variables,
    leaves,
    positive,
    target_variables,
)
from nestream.model.expression import Attribute, Equivalence, variables, walk


class PlanInvariantError(AssertionError):
    """A plan that no stage may produce."""


def check_plan(plan: Plan, stage: str) -> Plan:
    """Return the plan if every invariant holds, else raise a `PlanInvariantError` that names the stage."""
    problem = _problem(plan.root, frozenset()) or _output_problem(plan)
    if problem:
        raise PlanInvariantError(f"after {stage}: {problem}")
    return plan


def _output_problem(plan: Plan) -> str | None:
    targets = target_variables(plan.root)
    if not set(plan.output.kept) <= targets:
        return "the output keeps a variable that no match binds"
    if free_variables(plan.root) != targets:
        return f"free variables {sorted(free_variables(plan.root) - targets)} at the root"
    declared = {leaf.variable for leaf in leaves(plan.root)}
    if not declared <= set(plan.variables):
        return "a leaf's variable is missing from the variables of the plan"
    return None


def _problem(component: Component, visible: frozenset[str]) -> str | None:
    """The first broken invariant in the component, given the variables bound around it."""
    if isinstance(component, Negation):
        return _problem(component.body, visible)
    bound = visible | target_variables(component)
    for predicate in component.predicates:
        if any(isinstance(part, Equivalence) for part in walk(predicate)):
            return "an equivalence test was not expanded"
        if any(isinstance(part, Attribute) and part.variable is None for part in walk(predicate)):
            return "an attribute without variable"
        if not variables(predicate) <= bound:
            return f"a predicate mentions {sorted(variables(predicate) - bound)}, bound nowhere around it"
    match component:
        case Leaf(types=types):
            return None if types else "a leaf without types"
        case WinSeq() | WinAnd():
            if not positive(component):
                return f"{type(component).__name__} without a positive component"
            seen: set[str] = set()
            for inner in positive(component):
                if seen & target_variables(inner):
                    return "two components bind the same variable"
                seen |= target_variables(inner)
        case WinOr(components=branches):
            if not branches:
                return "WinOr without a branch"
            bound = visible
    return next(
        (problem for inner in _inner(component) if (problem := _problem(inner, bound)) is not None), None
    )


def _inner(node: Node) -> tuple[Component, ...]:
    return () if isinstance(node, Leaf) else node.components
