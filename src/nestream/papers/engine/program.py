"""What the engine runs: leaves, blocks of joined leaves, and negations, as plain data.

A block is one choice of a branch of every OR: a conjunctive query over leaves with a partial order. A match
of the program is a match of one of its blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, TypeAlias

from nestream.model.expression import Expression, variables

EVENT = "_"
"""The variable that the filters of a leaf use for the event they test."""


@dataclass(frozen=True)
class LeafSpec:
    """The events of some types that pass single-event predicates: an active instance stack to be."""

    types: tuple[str, ...]
    filters: tuple[Expression, ...] = ()


class Edge(StrEnum):
    """A limit of the root that a negation's interval inherits."""

    WINDOW_START = "window start"
    """Events that fit in a window ending with the match's last event."""
    WINDOW_END = "window end"
    """Events that fit in a window starting with the match's first event: a trailing negation."""
    MATCH_END = "match end"
    """Events not after the match's last event: the right limit of a root AND."""


@dataclass(frozen=True)
class Interval:
    """Where a negation looks: after all of some variables and before all of others, or up to an edge."""

    after: tuple[str, ...] | Edge
    before: tuple[str, ...] | Edge


@dataclass(frozen=True)
class Equality:
    """`left.attribute = right.attribute`, usable to look events up."""

    left: tuple[str, str]
    right: tuple[str, str]


@dataclass(frozen=True)
class Shortcut:
    """An equality of an outer variable's attribute with an inner one's, looked at before the inner query is.

    `leaf` is that of the outer variable: what its values are compared with those of the inner one by number.
    """

    outer: tuple[str, str]
    inner: tuple[str, str]
    leaf: int


@dataclass(frozen=True)
class Stair:
    """How to find the latest start of an inner match: over a leaf, a sequence, or a conjunction.

    In a sequence `gaps[i]` are the negations between item i and item i + 1; its items are then all leaves.
    """

    kind: str
    leaf: str | None = None
    items: tuple[Stair, ...] = ()
    gaps: tuple[tuple[Negation, ...], ...] = ()


@dataclass(frozen=True)
class Negation:
    """One alternative of a negated expression, which must have no match in its interval.

    `stair` is set where the negation is a bound; `reason` says why, or why not. `key` names for each inner
    variable the attributes that equal the partition key, and for the outer match `link`, a variable with its
    attributes; None where the negation is not keyed. `viewed` says that a view answers it.
    """

    interval: Interval
    block: Block
    stair: Stair | None = None
    reason: str = ""
    key: Mapping[str, tuple[str, ...]] | None = None
    link: tuple[str, tuple[str, ...]] | None = None
    viewed: bool = False


@dataclass(frozen=True)
class WitnessStep:
    """One event of a witness: of a leaf, with own attributes that equal terms of the match, one each.

    `predicates` relate it to the match by more than equality; `apart` are the variables of the match whose
    events it could be and must not be.
    """

    variable: str
    leaf: int
    attributes: tuple[str, ...] = ()
    equal_to: tuple[tuple[str, str], ...] = ()
    predicates: tuple[Expression, ...] = ()
    apart: tuple[str, ...] = ()


@dataclass(frozen=True)
class Witness:
    """What must be found in an interval: the latest event of the last step, before it the latest of the one
    before, and so on; and no event of `absent` before the first of them."""

    interval: Interval
    chain: tuple[WitnessStep, ...]
    absent: WitnessStep | None = None

    @property
    def steps(self) -> tuple[WitnessStep, ...]:
        """All its steps in the order of their events, the absent one first."""
        return self.chain if self.absent is None else (self.absent, *self.chain)

    def needs(self, root: Block) -> frozenset[str]:
        """The variables that must be bound before it can be decided; edges depend on all of the root's."""
        names: set[str] = set()
        for limit in (self.interval.after, self.interval.before):
            names |= set(root.leaves) if isinstance(limit, Edge) else set(limit)
        for step in self.steps:
            names |= {variable for variable, _ in step.equal_to} | set(step.apart)
            names |= {name for p in step.predicates for name in variables(p)} - {step.variable}
        return frozenset(names)


Constraint: TypeAlias = Negation | Witness
"""What a match must satisfy beside its own events."""


@dataclass(frozen=True)
class Nested:
    """A nested expression of a block that a view answers: its variables, and those nested in it in turn."""

    variables: tuple[str, ...]
    inside: tuple[Nested, ...] = ()


class Views(StrEnum):
    """How much of an inner query its view holds."""

    AGGRESSIVE = "aggressive"
    """All results up to a bound that moves with the stream."""
    PASSIVE = "passive"
    """The results of the intervals that were asked for."""
    BALANCED = "balanced"
    """The results of the greatest intervals that sets of outer results ask for."""


@dataclass(frozen=True)
class Block:
    """A conjunctive query over leaves.

    `leaves` gives each variable's leaf; `order` holds the pairs that must follow each other; `apart` the
    pairs that might be the same event and must not be. `equalities` and `predicates` relate variables.
    `chain` is set where the variables are totally ordered; `key` where every variable has attributes that are
    equal in all of them. `levels` is set for iterative nested execution: how deep each variable is nested.
    `viewed` says that views answer inner queries, `nested` which of these are not negated.
    """

    leaves: Mapping[str, int]
    order: frozenset[tuple[str, str]]
    apart: frozenset[tuple[str, str]]
    equalities: tuple[Equality, ...]
    predicates: tuple[Expression, ...]
    negations: tuple[Negation, ...]
    chain: tuple[str, ...] | None = None
    key: Mapping[str, tuple[str, ...]] | None = None
    levels: Mapping[str, int] | None = None
    nested: tuple[Nested, ...] = ()
    viewed: bool = False
    witnesses: tuple[Witness, ...] = ()
    shortcuts: tuple[Shortcut, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables in the order of the text."""
        return tuple(self.leaves)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Its negations and witnesses."""
        return (*self.negations, *self.witnesses)


class Measure(StrEnum):
    """What a window measures."""

    TIME = "time"
    EVENTS = "events"
    NONE = "none"


class Decided(StrEnum):
    """When a match of a block is known."""

    LAST = "with its last event"
    CLOSED = "when the time of its last event has passed"
    WINDOW = "when the window of its first event has passed"


class Sharing(StrEnum):
    """The shared operators, each of which runs several blocks."""

    MARKING = "bit-marking"
    PREFIX = "prefix caching"
    SUFFIX = "suffix clustering"
    MIDDLE = "shared middle"


@dataclass(frozen=True)
class Member:
    """A block of a group.

    `start` is where the shared steps begin in it. `own` are its constraints that the group does not have in
    common: for marking an expression's row of the EMap, else those between shared steps.
    """

    block: int
    start: int = 0
    own: tuple[Constraint, ...] = ()


@dataclass(frozen=True)
class Group:
    """Blocks that one operator runs; `core` is what they share, with the variables of the first of them."""

    operator: Sharing
    members: tuple[Member, ...]
    core: Block


@dataclass(frozen=True)
class Program:
    """Everything the engine needs to know of a query.

    `attributes` are the attributes that expressions read; `kept` the variables of a match that the output
    keeps, `distinct` whether several bindings may give the same ones. Times are integers in one resolution.
    """

    leaves: tuple[LeafSpec, ...]
    blocks: tuple[Block, ...]
    decided: tuple[Decided, ...]
    measure: Measure
    window: int
    exclusive: bool
    by_arrival: bool
    attributes: tuple[str, ...]
    kept: tuple[str, ...]
    distinct: bool
    looks_back: bool
    """Whether a negation looks before the match: then two windows are held where matches wait for one."""
    groups: tuple[Group, ...] = ()
    """The blocks that are run together; each other block is run alone."""
    views: Views | None = None
    """How inner queries are kept, where views answer some of them."""
    options: Options = field(default_factory=lambda: Options())

    @property
    def types(self) -> tuple[str, ...]:
        """The event types that the program reads."""
        return tuple(dict.fromkeys(name for leaf in self.leaves for name in leaf.types))


@dataclass(frozen=True)
class Options:
    """Switches of single techniques, all of them on: what each is worth can be measured.

    - bounds: negations whose condition holds are bounds, not joins.
    - partition: the equivalence attribute leads the order of the stacks (PAIS).
    - reach: no dead ends; a prefix that cannot reach into the window is not extended.
    - ordering: joins start at the leaf and follow the order that promise the fewest rows.
    - narrowing: leaves are narrowed to the windows around the rarest leaf before anything is built.
    - once: a negation that is a join is looked at once for all matches that are alike to it.
    - push_in: predicates are tested as soon as their variables are bound, not on complete results.
    - shortcut: nested execution asks whether an outer value occurs inside before it looks at what is inside.

    Those of SASE's plans; a sequence for which one of them, or `reach`, is off is run by `engine/sase`:

    - stacks: sequences are constructed from active instance stacks (AIS), not from all that came in a window.
    - composite: several equivalence tests partition the stacks together; without, one does.
    - multiple: and the stacks of the others are intersected in the scan (Multi-PAIS).
    - filtering: equalities beside the partition are tested while sequences are constructed.
    - window_scan: stacks take, and keep, only what is in a window.
    - window_construction: construction stops where the window does.
    - simple: tests of single events are made when they arrive.
    - negation_index: negative events are looked up by time and key.
    """

    bounds: bool = True
    partition: bool = True
    reach: bool = True
    ordering: bool = True
    narrowing: bool = True
    once: bool = True
    push_in: bool = True
    shortcut: bool = True
    stacks: bool = True
    composite: bool = True
    multiple: bool = True
    filtering: bool = True
    window_scan: bool = True
    window_construction: bool = True
    simple: bool = True
    negation_index: bool = True
    memory: int = 512 * 1024 * 1024

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The switches, without what is a number."""
        return tuple(option.name for option in fields(cls) if option.type == "bool")


Switches: TypeAlias = Options | Mapping[str, Any]
"""Options, or by name those that are not as they are by default."""


def options_of(given: Switches | None) -> Options:
    """The options that are meant; raises for a name that there is not, naming those there are."""
    if given is None or isinstance(given, Options):
        return given or Options()
    known = {option.name: option.type for option in fields(Options)}
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"unknown option {name!r}: one of {', '.join(known)}")
        wanted = bool if known[name] == "bool" else int
        if type(value) is not wanted:
            raise ValueError(f"the option {name} is {'True or False' if wanted is bool else 'a number'}")
    return Options(**given)
