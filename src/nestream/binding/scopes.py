"""Scopes: where each variable of a query is declared, and where it is visible.

Each SEQ, AND and OR is a scope, and so is a primitive on its own: at the root, under a negation, or as a
branch of an OR. A variable is visible in the scope that declares it and in every scope nested there. A
variable of a positive nested scope is also visible in the scopes around it, up to an OR or a negation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from nestream.language.ast import Composite, Operator, Primitive, Repeated
from nestream.model.diagnostics import Span
from nestream.model.expression import Expression


class Unseen(StrEnum):
    """Why a variable cannot be mentioned in a scope."""

    NEGATED = "negated"
    """It is bound under a negation that does not contain the place."""
    GROUPED = "grouped"
    """It ranges over the members of a group that does not contain the place."""
    BRANCH = "branch"
    """Only one branch of an OR binds it, and the place is outside the OR."""
    OTHER_BRANCH = "other branch"
    """It is bound in another branch of the same OR."""
    SIBLING = "sibling"
    """It is declared inside a sibling of the place."""
    HIDDEN = "hidden"
    """An EXISTS between the place and its declaration drops it."""


AGGREGATED = "\1"
"""The prefix of the name for a group as a whole, which aggregates mention: `\\1f`."""


@dataclass(eq=False)
class Scope:
    """One event expression: the variables it declares, its nested scopes, the predicates placed in it.

    `items` holds the components in text order: the name of a variable for a primitive that the scope declares
    itself, a scope for everything else.
    """

    pattern: Primitive | Composite
    parent: Scope | None
    span: Span
    negated: bool = False
    group: Repeated | None = None
    """The group whose members the scope describes."""
    hidden: frozenset[str] = frozenset()
    leaves: dict[str, Primitive] = field(default_factory=dict)
    items: list[str | Scope] = field(default_factory=list)
    predicates: list[Expression] = field(default_factory=list)
    stands_for: str | None = None
    """For the negation that NEXT or DIRECTLY abbreviates, the variable written with the word."""

    @property
    def is_or(self) -> bool:
        """Whether the scope is an OR, so that its nested scopes are alternatives."""
        return isinstance(self.pattern, Composite) and self.pattern.operator is Operator.OR

    @property
    def variable(self) -> str | None:
        """The variable of the expression itself: `s` in `SEQ(A a, B b) s`."""
        return self.pattern.variable if isinstance(self.pattern, Composite) else None

    @property
    def group_name(self) -> str:
        """The variable of the group: its own name, or that of the repeated event."""
        assert self.group is not None
        return self.group.variable or next(iter(self.leaves), "")

    @property
    def apart(self) -> bool:
        """Whether the scope binds no event of the outer match: a negation or a group."""
        return self.negated or self.group is not None

    @property
    def nested(self) -> Iterator[Scope]:
        """The scopes directly inside this one."""
        return (item for item in self.items if isinstance(item, Scope))

    @property
    def path(self) -> list[Scope]:
        """The scopes from the root to this one."""
        return [*(self.parent.path if self.parent else ()), self]

    def walk(self) -> Iterator[Scope]:
        """This scope and all nested ones, outermost first."""
        yield self
        for scope in self.nested:
            yield from scope.walk()


def member_variables(scope: Scope) -> Iterator[str]:
    """The variables that a match of the scope's expression binds, in text order."""
    for item in scope.items:
        if isinstance(item, str):
            yield item
        elif not item.apart:
            yield from member_variables(item)


def group_names(scope: Scope) -> Iterator[str]:
    """The groups that a match of the scope's expression has, in text order."""
    for item in scope.nested:
        if item.group is not None:
            yield item.group_name
        elif not item.negated:
            yield from group_names(item)


class Scopes:
    """The scope tree of a query with the scope of every variable."""

    def __init__(self, root: Scope) -> None:
        self.root = root
        self.of: dict[str, Scope] = {name: scope for scope in root.walk() for name in scope.leaves}
        self.groups: dict[str, Scope] = {}
        """The groups by their variables."""
        for scope in root.walk():
            if scope.group is not None and scope.parent is not None:
                self.groups[scope.group_name] = scope
                self.of[AGGREGATED + scope.group_name] = scope.parent
        self.named: dict[str, Scope] = {}
        """The expressions that have a variable."""
        for scope in root.walk():
            if scope.variable is not None:
                self.named[scope.variable] = self.of[scope.variable] = scope
        self.unwritten = frozenset(name for name, scope in self.of.items() if scope.stands_for is not None)
        """The variables that the text does not declare."""

    def negated(self, variable: str) -> bool:
        """Whether the variable is bound only under a negation."""
        return any(scope.negated for scope in self.of[variable].path)

    def positive(self, variable: str) -> bool:
        """Whether an event of the match can be bound to the variable: no negation and no group around it."""
        return not any(scope.apart for scope in self.of[variable].path)

    def group_of(self, variable: str) -> str | None:
        """The group whose members the variable ranges over."""
        for scope in reversed(self.of[variable].path):
            if scope.group is not None:
                return next(name for name, known in self.groups.items() if known is scope)
        return None

    def group_of_match(self, variable: str) -> str | None:
        """The group of the match, not under a negation, that contains the variable."""
        for scope in self.of[variable].path:
            if scope.negated:
                return None
            if scope.group is not None:
                return scope.group_name
        return None

    def unseen(self, variable: str, place: Scope) -> Unseen | None:
        """Why the variable cannot be mentioned in the scope; None if it can."""
        declaring = self.of[variable].path
        here = place.path
        shared = 0
        while shared < min(len(declaring), len(here)) and declaring[shared] is here[shared]:
            shared += 1
        for scope in declaring:
            if variable.removeprefix(AGGREGATED) in scope.hidden and scope not in here:
                return Unseen.HIDDEN
        below = declaring[shared:]
        if not below:
            return None
        outermost = next((scope for scope in below if scope.apart), None)
        if outermost is not None:
            return Unseen.NEGATED if outermost.negated else Unseen.GROUPED
        meeting = declaring[shared - 1]
        if meeting is not place:
            return Unseen.OTHER_BRANCH if meeting.is_or else Unseen.SIBLING
        if any(scope.is_or for scope in declaring[shared:-1]):
            return Unseen.BRANCH
        return None

    def meeting(self, first: str, second: str) -> Scope:
        """The innermost scope that contains the declarations of both variables."""
        around = self.of[second].path
        return next(scope for scope in reversed(self.of[first].path) if scope in around)

    def alternatives(self, first: str, second: str) -> bool:
        """Whether two branches of one OR bind the variables, so that no match has both."""
        return self.meeting(first, second).is_or and self.of[first] is not self.of[second]

    def see_each_other(self, first: str, second: str) -> bool:
        """Whether a predicate on both variables can be written somewhere."""
        places = (self.of[first], self.of[second], self.meeting(first, second))
        return any(
            self.unseen(first, place) is None and self.unseen(second, place) is None for place in places
        )

    def certain(self, variable: str) -> bool:
        """Whether every match binds the variable: no negation, no group and no OR is around it."""
        return not any(scope.apart or scope.is_or for scope in self.of[variable].path)

    def branch(self, variable: str, place: Scope) -> Scope | None:
        """The branch of the OR `place` that binds the variable; None for a variable from elsewhere."""
        path = self.of[variable].path
        if place not in path or path[-1] is place:
            return None
        return path[path.index(place) + 1]

    def innermost(self, mentioned: frozenset[str], place: Scope) -> Scope:
        """The innermost positive scope, from `place` inwards, that sees all mentioned variables."""
        while True:
            step = next(
                (
                    scope
                    for scope in place.nested
                    if not scope.apart
                    and any(scope in self.of[name].path for name in mentioned)
                    and all(self.unseen(name, scope) is None for name in mentioned)
                ),
                None,
            )
            if step is None:
                return place
            place = step
