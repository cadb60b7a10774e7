"""The nodes of a logical plan: one operator node for each event expression of the query.

A node's predicates hold for every match that the node is part of, so a predicate of an OR branch or of a
negated expression does not constrain other matches. Branches of a WinOr may bind the same variables (a SASE
disjunction over a negative component does); the matches are a set.

Binding creates WinSeq, WinAnd, WinOr, Negation, Group and Leaf. Rewriting adds Witness, Proj, and operators
over constraints: a WinOr or WinAnd of only negations and witnesses binds nothing and may appear wherever a
negation may.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from nestream.model.diagnostics import NOWHERE, Span
from nestream.model.expression import Expression, variables
from nestream.model.keep import Keep
from nestream.model.output import Output, ValueColumn
from nestream.model.time import Window


@dataclass(frozen=True)
class Leaf:
    """Selects the events of one of its types for its variable."""

    variable: str
    types: tuple[str, ...]
    predicates: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class WinSeq:
    """Its positive components in strict order; its negations must not match in their gaps."""

    components: tuple[Component, ...]
    predicates: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class WinAnd:
    """Its positive components in any order; its negations must not match within its limits."""

    components: tuple[Component, ...]
    predicates: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class WinOr:
    """One of its components; either all of them bind events, or all are constraints."""

    components: tuple[Component, ...]
    predicates: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Negation:
    """A component that must have no match in the interval of its place."""

    body: Node


@dataclass(frozen=True)
class Group:
    """A component that takes all matches of its body in the interval of its place.

    The predicates of the body select them. A match has at least `least` of them, and at most `most` unless
    that is None. `variable` names the group; for a repeated event it is the variable of its leaf.
    """

    variable: str
    body: Node
    least: int = 0
    most: int | None = None


@dataclass(frozen=True)
class Witness:
    """A component that must hold in the interval of its place, and binds nothing.

    The last leaf of the chain has a latest event there, the one before it a latest event before that one, and
    so on; and no event of `absent` lies in the interval before the first of them. A leaf's predicates are
    about its own event and the match's, never about another event of the witness.
    """

    chain: tuple[Leaf, ...]
    absent: Leaf | None = None

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """All its leaves in the order of their events, the absent one first."""
        return self.chain if self.absent is None else (self.absent, *self.chain)


@dataclass(frozen=True)
class Proj:
    """A normalised expression and the variables that it binds: those of the query's positive events.

    It is the root or a branch of a root WinOr, and separates the events of a match from those that only
    witness it.
    """

    variables: tuple[str, ...]
    body: Node

    @property
    def predicates(self) -> tuple[Expression, ...]:
        """None of its own."""
        return ()


Operator: TypeAlias = WinSeq | WinAnd | WinOr
Node: TypeAlias = Leaf | WinSeq | WinAnd | WinOr | Proj
Component: TypeAlias = Leaf | WinSeq | WinAnd | WinOr | Proj | Negation | Group | Witness


@dataclass(frozen=True)
class Plan:
    """A whole query: its operator tree, window and output.

    With `exclusive` (the SASE dialect), a match must be shorter than the window, and the limits of the root
    are exclusive. `variables` are all variables in text order.
    """

    root: Node
    window: Window
    output: Output
    exclusive: bool = False
    limit: int | None = None
    keep: Keep | None = None
    variables: tuple[str, ...] = field(default=())
    window_span: Span = field(default=NOWHERE, compare=False, repr=False)


def is_constraint(component: Component) -> bool:
    """Whether the component binds no event: a negation, a group, a witness, or an OR or AND of only such."""
    match component:
        case Negation() | Group() | Witness():
            return True
        case WinOr(components=inner) | WinAnd(components=inner):
            return bool(inner) and all(map(is_constraint, inner))
        case _:
            return False


def positive(node: Operator) -> tuple[Node, ...]:
    """The positive components of an operator, in order."""
    return tuple(
        component
        for component in node.components
        if not isinstance(component, Negation | Group | Witness) and not is_constraint(component)
    )


def constraints(node: Operator) -> tuple[Component, ...]:
    """The constraints of an operator, in order."""
    return tuple(filter(is_constraint, node.components))


def walk(component: Component) -> Iterator[Component]:
    """The component and everything nested in it, outermost first, from left to right."""
    yield component
    match component:
        case Negation(body=body) | Group(body=body) | Proj(body=body):
            yield from walk(body)
        case WinSeq(components=nested) | WinAnd(components=nested) | WinOr(components=nested):
            for inner in nested:
                yield from walk(inner)
        case Witness():
            yield from component.leaves
        case Leaf():
            return


def leaves(component: Component) -> Iterator[Leaf]:
    """Every leaf of the component, including those under negation, in text order."""
    return (node for node in walk(component) if isinstance(node, Leaf))


def targets_in_order(component: Component) -> tuple[str, ...]:
    """The variables that a match of the component binds, in text order."""
    bound = target_variables(component)
    return tuple(leaf.variable for leaf in leaves(component) if leaf.variable in bound)


def target_variables(component: Component) -> frozenset[str]:
    """TV of the NEEL+ language: the variables that a match of the component binds; none for a constraint."""
    match component:
        case Leaf(variable=variable):
            return frozenset((variable,))
        case Negation() | Group() | Witness():
            return frozenset()
        case Proj(body=body):
            return target_variables(body)
        case WinSeq() | WinAnd() | WinOr():
            return frozenset().union(*(target_variables(inner) for inner in component.components))


def free_variables(component: Component) -> frozenset[str]:
    """FV of the NEEL+ language: the target variables and those that only the predicates mention."""
    match component:
        case Leaf(variable=variable, predicates=predicates):
            return frozenset((variable,)).union(*(variables(predicate) for predicate in predicates))
        case Negation(body=body) | Group(body=body):
            return free_variables(body) - target_variables(body)
        case Witness(leaves=inside):
            needed = frozenset().union(*map(free_variables, inside))
            return needed - {leaf.variable for leaf in inside}
        case Proj(body=body):
            return free_variables(body)
        case WinSeq() | WinAnd() | WinOr():
            own = (variables(predicate) for predicate in component.predicates)
            mentioned: frozenset[str] = frozenset().union(
                *(free_variables(inner) for inner in component.components), *own
            )
            return mentioned - group_members(component)


def groups(component: Component) -> Iterator[Group]:
    """The groups that a match of the component has, in text order."""
    match component:
        case Group():
            yield component
        case Proj(body=body):
            yield from groups(body)
        case WinSeq() | WinAnd() | WinOr():
            for inner in component.components:
                yield from groups(inner)
        case _:
            return


def has_groups(plan: Plan) -> bool:
    """Whether a query has a group anywhere."""
    return any(isinstance(node, Group) for node in walk(plan.root))


def group_members(component: Component) -> frozenset[str]:
    """The variables of the members of the component's groups, which outer aggregates mention."""
    return frozenset().union(*(target_variables(group.body) for group in groups(component)))


def expressions(plan: Plan) -> Iterator[Expression]:
    """Every expression of a plan: its predicates, then those of RETURN and KEEP."""
    for node in walk(plan.root):
        if not isinstance(node, Negation | Group | Witness):
            yield from node.predicates
    for column in plan.output.columns:
        if isinstance(column, ValueColumn):
            yield column.expression
    if plan.keep is not None:
        yield from plan.keep.expressions


def branches(plan: Plan) -> tuple[Node, ...]:
    """The branches of the root OR of a plan, or its root."""
    if not isinstance(plan.root, WinOr) or plan.root.predicates:
        return (plan.root,)
    return tuple(node for node in plan.root.components if not isinstance(node, Negation | Group | Witness))


def leaf_alone(leaf: Leaf, plan: Plan) -> Leaf:
    """The leaf with all predicates about its event alone, wherever they are."""
    own: dict[Expression, None] = {}
    for node in walk(plan.root):
        if not isinstance(node, Negation) and hasattr(node, "predicates"):
            own.update(dict.fromkeys(p for p in node.predicates if variables(p) == {leaf.variable}))
    return replace(leaf, predicates=tuple(own))
