"""What the Plan-Finder sees of an expression: its steps in order, constraints on its gaps, its predicates.

Two expressions share work if a part of one, consecutive steps with everything that concerns only them, is a
part of the other. Variables do not matter for that, so a shape names an event by its place relative to what
mentions it. A shape is made from the logical plan; how it runs is not its concern.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

from nestream.model.event_types import said_types
from nestream.model.expression import Attribute, Comparison, Expression, attributes
from nestream.model.time import Window

LEAST = 2
"""The fewest steps worth sharing: one step is a leaf, which all expressions share anyway."""

EVENT = "_"
"""The variable of a step's filters."""


@dataclass(frozen=True)
class Step:
    """Events of some types that pass the filters."""

    types: tuple[str, ...]
    filters: tuple[Expression, ...] = ()

    @property
    def label(self) -> str:
        """The types as one name."""
        return said_types(self.types, "|")


@dataclass(frozen=True)
class Constraint:
    """What must or must not lie in a gap: the one before the step `gap` (0 is before the first).

    The events of `chain` occur, latest ones from the right, and no match of `absent` before the first of them
    (with an empty chain, anywhere in the gap). `first` and `last` are the places of the match that it depends
    on; `text` distinguishes it from others, wherever the gap is.
    """

    gap: int
    text: str
    absent: tuple[Step, ...] = ()
    chain: tuple[Step, ...] = ()
    first: int = 0
    last: int = 0
    key: str | None = None
    """The attribute by which it is joined with the match, if it is."""


@dataclass(frozen=True)
class Joint:
    """A predicate between steps; the earliest and the latest of them are at these places.

    Its variables are distances from the earliest, as text.
    """

    first: int
    last: int
    formula: Expression

    @property
    def equal(self) -> tuple[str, str] | None:
        """The attributes of the two steps that it equates, if that is all it says."""
        match self.formula:
            case Comparison(operator="=", operands=(Attribute() as left, Attribute() as right)):
                if left.variable != right.variable:
                    both = (left, right) if left.variable == "0" else (right, left)
                    return both[0].name, both[1].name
        return None


@dataclass(frozen=True, eq=False)
class Shape:
    """An expression as its steps, constraints and predicates; each is itself and no other.

    `names` are the variables that a match binds. `owner` is its query: only matches of one query can be
    duplicates of each other. Without `ordered`, it is not a plain sequence, and shares nothing.
    """

    name: str
    steps: tuple[Step, ...]
    constraints: tuple[Constraint, ...] = ()
    joints: tuple[Joint, ...] = ()
    names: tuple[str, ...] = ()
    window: Window | None = None
    exclusive: bool = False
    owner: str = ""
    ordered: bool = True

    def __len__(self) -> int:
        return len(self.steps)

    @cached_property
    def key(self) -> tuple[tuple[str, ...], ...]:
        """The attributes that are equal in all steps, step by step."""
        classes = [
            tuple(by_step[place] for place in range(len(self)))
            for by_step in _classes(self.joints)
            if len(by_step) == len(self)
        ]
        return tuple(sorted(classes)) if len(self) > 1 else ()

    @cached_property
    def is_chain(self) -> bool:
        """Whether it is a sequence with no equality besides its key, so that the engine can share it."""
        keyed = [{(place, name) for place, name in enumerate(names)} for names in self.key]
        return self.ordered and all(
            any({(j.first, j.equal[0]), (j.last, j.equal[1])} <= terms for terms in keyed)
            for j in self.joints
            if j.equal
        )

    @property
    def between(self) -> tuple[Constraint, ...]:
        """The constraints on the gap between two neighbours that depend only on these, or on the key."""
        return tuple(c for c in self.constraints if self.is_between(c))

    def is_between(self, constraint: Constraint) -> bool:
        """Whether a constraint is on the gap between two steps, and on nothing else."""
        inside = 0 < constraint.gap < len(self)
        return inside and (constraint.first, constraint.last) == (constraint.gap - 1, constraint.gap)

    # -- parts ---------------------------------------------------------------------------------------------

    @cached_property
    def context(self) -> Hashable:
        """What two expressions must have in common to share any part."""
        return (self.window, self.exclusive, len(self.key))

    def part(self, first: int, end: int) -> Hashable:
        """The steps from `first` up to `end` with everything that concerns only them."""
        return (
            self.context,
            self.steps[first:end],
            frozenset((c.gap - first, c.text) for c in self.between if first < c.gap < end),
            frozenset((j.first - first, j.formula) for j in self.joints if first <= j.first and j.last < end),
            tuple(names[first:end] for names in self.key),
        )

    @cached_property
    def prefixes(self) -> Mapping[Hashable, int]:
        """The prefixes of at least two steps, including the whole, with their lengths."""
        return {self.part(0, end): end for end in range(LEAST, len(self) + 1)} if self.is_chain else {}

    @cached_property
    def suffixes(self) -> Mapping[Hashable, int]:
        """The suffixes of at least two steps, with their lengths."""
        sizes = range(LEAST, len(self) + 1)
        return {self.part(len(self) - size, len(self)): size for size in sizes} if self.is_chain else {}

    @cached_property
    def middles(self) -> Mapping[Hashable, tuple[int, int]]:
        """All parts of at least two steps, and where they begin."""
        if not self.is_chain:
            return {}
        found: dict[Hashable, tuple[int, int]] = {}
        for first in range(len(self) - LEAST + 1):
            for end in range(first + LEAST, len(self) + 1):
                found.setdefault(self.part(first, end), (first, end))
        return found

    @cached_property
    def marked(self) -> Hashable | None:
        """What expressions must share to be distinguished only by marks: everything but their constraints.

        Variables do not matter: each expression gets the rows that it satisfies, under its own names.
        """
        if not self.is_chain:
            return None
        return (self.context, self.owner, self.steps, frozenset(self.joints), self.key)


def _classes(joints: tuple[Joint, ...]) -> list[dict[int, str]]:
    """The attributes by place that equalities make equal; an attribute of a place is in one class."""
    classes: list[dict[int, str]] = []
    for joint in joints:
        if joint.equal is None:
            continue
        terms = {joint.first: joint.equal[0], joint.last: joint.equal[1]}
        touching = [known for known in classes if known.items() & terms.items()]
        for known in touching:
            classes.remove(known)
            terms = {**known, **terms}
        classes.append(terms)
    return classes


def mentioned(formula: Expression) -> tuple[str, ...]:
    """The attributes that a formula reads."""
    return tuple(part.name for part in attributes(formula))
