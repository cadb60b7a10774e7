"""Invariants of every logical plan, checked after binding and after every rewriting.

A failure is a defect of nestream, never of the query, and names the stage that made the plan.
"""

from __future__ import annotations

from collections.abc import Iterable

from nestream.logical.nodes import (
    Component,
    Group,
    Leaf,
    Negation,
    Plan,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    Witness,
    free_variables,
    group_members,
    is_constraint,
    leaves,
    positive,
    target_variables,
    walk,
)
from nestream.model.expression import Attribute, Equivalence, Expression, variables
from nestream.model.expression import walk as walk_expression


class PlanInvariantError(AssertionError):
    """A plan that no stage may produce."""


def check_plan(plan: Plan, stage: str) -> Plan:
    """Return the plan if every invariant holds, else raise a `PlanInvariantError` that names the stage."""
    problem = _problem(plan.root, frozenset()) or _place_problem(plan.root) or _output_problem(plan)
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


def _place_problem(root: Component) -> str | None:
    """What is wrong with the place of a Proj: it must be in the root or a root OR, and name what it binds."""
    if is_constraint(root):
        return "a constraint as the root"
    if isinstance(root, WinOr):
        return next((problem for branch in root.components if (problem := _place_problem(branch))), None)
    body = root.body if isinstance(root, Proj) else root
    if any(isinstance(deeper, Proj) for deeper in walk(body)):
        return "a Proj that is neither the root nor a branch of it"
    if isinstance(root, Proj) and set(root.variables) != target_variables(body):
        return "a Proj that does not name the variables that its body binds"
    return None


def _problem(component: Component, visible: frozenset[str]) -> str | None:
    """The first broken invariant in the component, given the variables bound around it."""
    if isinstance(component, Negation | Group | Proj):
        return _problem(component.body, visible)
    if isinstance(component, Witness):
        return _witness_problem(component, visible)
    bound = visible | target_variables(component) | group_members(component)
    problem = _predicate_problem(component.predicates, bound)
    if problem:
        return problem
    match component:
        case Leaf(types=types):
            return None if types else "a leaf without types"
        case WinSeq() | WinAnd():
            problem = _operator_problem(component)
        case WinOr():
            problem = _branches_problem(component)
            bound = visible
    return problem or next(
        (problem for inner in component.components if (problem := _problem(inner, bound)) is not None), None
    )


def _predicate_problem(predicates: Iterable[Expression], bound: frozenset[str]) -> str | None:
    for predicate in predicates:
        if any(isinstance(part, Equivalence) for part in walk_expression(predicate)):
            return "an equivalence test was not expanded"
        if any(isinstance(part, Attribute) and part.variable is None for part in walk_expression(predicate)):
            return "an attribute without variable"
        if not variables(predicate) <= bound:
            return f"a predicate mentions {sorted(variables(predicate) - bound)}, bound nowhere around it"
    return None


def _operator_problem(node: WinSeq | WinAnd) -> str | None:
    if not positive(node) and not is_constraint(node):
        return f"{type(node).__name__} without a positive component"
    if is_constraint(node) and node.predicates:
        return "predicates of a conjunction of constraints"
    seen: set[str] = set()
    for inner in positive(node):
        if seen & target_variables(inner):
            return "two components bind the same variable"
        seen |= target_variables(inner)
    return None


def _branches_problem(node: WinOr) -> str | None:
    if not node.components:
        return "WinOr without a branch"
    constraining = [is_constraint(branch) for branch in node.components]
    if any(constraining) and not all(constraining):
        return "WinOr of an expression that binds events and a constraint"
    if any(constraining) and node.predicates:
        return "predicates of a disjunction of constraints"
    return None


def _witness_problem(witness: Witness, visible: frozenset[str]) -> str | None:
    if not witness.chain:
        return "a witness without an event"
    names = [leaf.variable for leaf in witness.leaves]
    if len(set(names)) < len(names):
        return "a witness names a variable twice"
    return next(
        (problem for leaf in witness.leaves if (problem := _problem(leaf, visible)) is not None), None
    )
