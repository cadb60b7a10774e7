"""What the core needs to know of a program: the events it reads, what decides its matches, how to start it.

A program is made by the planner of a strategy. Its operators find the matches. All that the matcher and the
runtimes need to know about them is in their outlines, as plain data, so that the core knows no operator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nestream.model.event_types import ANY_TYPE, named_types
from nestream.model.expression import TIME_ATTRIBUTE, Attribute, Comparison, Expression, Literal
from nestream.model.keep import Keep
from nestream.model.schema import Schema

if TYPE_CHECKING:
    from nestream.engine.operator import Execution, Measured

EVENT = "_"
"""The variable that the filters of a leaf use for the event they test."""
MEMORY = 512 * 1024 * 1024
"""The default budget for partial matches, in bytes."""


@dataclass(frozen=True)
class LeafSpec:
    """The events of some types that pass single-event predicates; without types, none."""

    types: tuple[str, ...]
    filters: tuple[Expression, ...] = ()

    def since(self, time: int) -> LeafSpec:
        """This leaf, limited to events that are not before a time."""
        later = Comparison(">=", (Attribute(EVENT, TIME_ATTRIBUTE), Literal(time)))
        return LeafSpec(self.types, (*self.filters, later))  # last: leaves share the first tests

    def before(self, time: int | None) -> LeafSpec:
        """The leaf that `since(time)` was called on; this leaf itself if the time is None."""
        return self if time is None else LeafSpec(self.types, self.filters[:-1])

    @classmethod
    def unused(cls, number: int) -> LeafSpec:
        """A leaf without events, in place of one whose queries have left."""
        return cls((), (Literal(number),))

    def covers(self, other: LeafSpec) -> bool:
        """Whether this leaf takes every event of another leaf."""
        takes_types = ANY_TYPE in self.types or set(self.types).issuperset(other.types)
        return takes_types and set(self.filters).issubset(other.filters)


class LeavesSince(dict[LeafSpec, int]):
    """The leaves of a set and their numbers, for a program that sees events only from some time on."""

    def __init__(self, leaves: Mapping[LeafSpec, int], time: int) -> None:
        super().__init__(leaves)
        self.time = time

    def setdefault(self, leaf: LeafSpec, number: int = 0) -> int:
        """The number of the leaf that takes only the later events of this one."""
        return super().setdefault(leaf.since(self.time), number)


class Edge(StrEnum):
    """A limit that a negation's interval inherits from the root."""

    WINDOW_START = "window start"
    """Events that fit in a window ending with the match's last event."""
    WINDOW_END = "window end"
    """Events that fit in a window starting with the match's first event: for a trailing negation."""
    MATCH_END = "match end"
    """Events not after the match's last event: the right limit of an AND at the root."""


@dataclass(frozen=True)
class Interval:
    """Where a negation applies: after all of some variables and before all of others, or up to an edge."""

    after: tuple[str, ...] | Edge
    before: tuple[str, ...] | Edge

    @property
    def is_wide(self) -> bool:
        """Whether it holds the windows before and after a match: up to two windows."""
        return self.after is Edge.WINDOW_START and self.before is Edge.WINDOW_END


@dataclass(frozen=True)
class Equality:
    """`left.attribute = right.attribute`, usable to look up events."""

    left: tuple[str, str]
    right: tuple[str, str]


class Measure(StrEnum):
    """What a window measures."""

    TIME = "time"
    EVENTS = "events"
    NONE = "none"


class Decided(StrEnum):
    """When a match is decided."""

    LAST = "with its last event"
    CLOSED = "when the time of its last event has passed"
    WINDOW = "when the window of its first event has passed"


@dataclass(frozen=True)
class Outline:
    """What the matcher and the runtimes know of one operator of a program.

    `bound` maps each variable that its matches bind to its leaf; one of the variables `last` is the last
    event of a match, one of `first` the first. `read` maps all its variables, including those of negations,
    to their leaves. `compared` are pairs of attributes that it compares by equality: their values get one
    numbering.
    """

    decided: Decided
    bound: Mapping[str, int]
    first: tuple[str, ...]
    last: tuple[str, ...]
    read: tuple[tuple[str, int], ...]
    compared: tuple[tuple[str, str], ...] = ()
    keys: frozenset[str] = frozenset()
    """Attributes that are equal in all events of a match and of its negations: Spark partitions by one."""
    null_keys: bool = True
    """Whether an event with NULL in such an attribute can be part of a match."""

    @property
    def leaves(self) -> frozenset[int]:
        """The leaves that it reads."""
        return frozenset(leaf for _, leaf in self.read)

    def ends(self, *, by_last: bool) -> list[int]:
        """The leaves of the last events of its matches, or of the first."""
        return [self.bound[name] for name in (self.last if by_last else self.first)]


@dataclass(frozen=True)
class Scope:
    """What a program, or the programs of a query set, read: how to filter, split and forget events.

    `attributes` are those that expressions read. `distinct` says that several operators, or several bindings
    of one, may find the same match. Times are integers in one resolution.
    """

    leaves: tuple[LeafSpec, ...]
    outlines: tuple[Outline, ...]
    measure: Measure
    window: int
    exclusive: bool
    by_arrival: bool
    attributes: tuple[str, ...]
    distinct: bool
    looks_back: bool
    """Whether a negation or group looks before the match.

    If matches also wait for their window, two windows of events are held.
    """

    keep_keys: frozenset[str] | None = field(default=None, kw_only=True)
    """The keys shared by all matches that KEEP compares; None without KEEP."""

    @property
    def types(self) -> tuple[str, ...]:
        """The event types that are read."""
        return named_types(name for leaf in self.leaves for name in leaf.types)

    @property
    def any_type(self) -> bool:
        """Whether events of every type are read."""
        return any(ANY_TYPE in leaf.types for leaf in self.leaves)

    @property
    def decided(self) -> tuple[Decided, ...]:
        """For each operator, when its matches are decided."""
        return tuple(outline.decided for outline in self.outlines)


@dataclass(frozen=True)
class Program(Scope, ABC):
    """A query, ready to run: its scope, and operators that find its matches.

    `kept` are the variables of a match that the output keeps; `memory` is the budget for partial matches.
    """

    kept: tuple[str, ...]
    memory: int
    keep: Keep | None = field(default=None, kw_only=True)
    """Which matches are kept; a duration in it is in the unit of the times."""

    @property
    def width(self) -> int:
        """The maximum number of variables that a match binds."""
        return max(len(outline.bound) for outline in self.outlines)

    @abstractmethod
    def start(self, limit: int) -> Execution:
        """Start the program in one matcher, which holds about `limit` partial matches at a time."""

    @property
    def is_planned_by_statistics(self) -> bool:
        """Whether statistics of the events decide how it runs."""
        return False

    def planned_for(self, events: pa.Table, schema: Schema) -> Program:
        """The program for events like these: itself, or one with the same outlines that runs differently."""
        return self

    @abstractmethod
    def explain(self, measured: Sequence[Measured] = ()) -> str:
        """How the program runs, as indented text, with the measurements of each operator if it has run."""

    @abstractmethod
    def explain_json(self, measured: Sequence[Measured] = ()) -> dict[str, Any]:
        """How the program runs, as plain data under `engine`."""
