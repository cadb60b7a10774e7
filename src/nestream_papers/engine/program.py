"""What the papers' engine runs: blocks of joined leaves, negations and witnesses, as plain data.

A block is one choice of a branch for every OR: a conjunctive query over leaves with a partial order. A match
of the program is a match of one of its blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from nestream.engine.operator import Execution, Measured
from nestream.engine.program import Edge, Equality, Interval, Program
from nestream.model.expression import Expression, variables
from nestream.model.schema import Schema
from nestream_papers.options import Options

if TYPE_CHECKING:
    from nestream_papers.optimize.explain import Explained


@dataclass(frozen=True)
class Shortcut:
    """An equality between an outer and an inner attribute, checked before the inner query runs.

    `leaf` is that of the outer variable: its values are compared with those of the inner one by number.
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

    `stair` is set if the negation is a bound; `reason` says why, or why not. `key` names, for each inner
    variable, the attributes that equal the partition key; `link` does so for the outer match, as a variable
    with its attributes. Both are None if the negation is not keyed. `viewed` says that a view answers it.
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
    """One event of a witness: a leaf, whose attributes equal terms of the match, one each.

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
    """What must be found in an interval: the latest event of each step, from the last step back.

    No event of `absent` may come before the first of them.
    """

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
"""What a match must satisfy besides its own events."""


@dataclass(frozen=True)
class Nested:
    """A nested expression of a block that a view answers: its variables, including those nested in it."""

    variables: tuple[str, ...]
    inside: tuple[Nested, ...] = ()


class Views(StrEnum):
    """How much of an inner query its view holds."""

    AGGRESSIVE = "aggressive"
    """All results up to a bound that moves with the stream."""
    PASSIVE = "passive"
    """The results of the requested intervals."""
    BALANCED = "balanced"
    """The results of the greatest intervals that sets of outer results request."""


@dataclass(frozen=True)
class Block:
    """A conjunctive query over leaves.

    `leaves` maps each variable to its leaf; `order` holds the pairs that must follow each other; `apart` the
    pairs that might be the same event and must not be. `equalities` and `predicates` relate variables.
    `chain` is set where the variables are totally ordered; `key` where every variable has attributes that are
    equal in all of them. `levels` is set for iterative nested execution: how deeply each variable is nested.
    `viewed` says that views answer inner queries; `nested` are those that are not negated.
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
        """The variables in text order."""
        return tuple(self.leaves)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Its negations and witnesses."""
        return (*self.negations, *self.witnesses)


class Sharing(StrEnum):
    """The shared operators, each of which runs several blocks."""

    MARKING = "bit-marking"
    PREFIX = "prefix caching"
    SUFFIX = "suffix clustering"
    MIDDLE = "shared middle"


@dataclass(frozen=True)
class Member:
    """A block of a group.

    `start` is where the shared steps begin in it. `own` are its constraints that the group does not share:
    for marking, the expression's row of the EMap; otherwise those between shared steps.
    """

    block: int
    start: int = 0
    own: tuple[Constraint, ...] = ()
    names: tuple[str, ...] = ()
    """For marking, its variables in the order of those of the core; empty if they are the same."""


@dataclass(frozen=True)
class Group:
    """Blocks that one operator runs; `core` is what they share, with the variables of the first of them."""

    operator: Sharing
    members: tuple[Member, ...]
    core: Block


@dataclass(frozen=True)
class Use:
    """The variables of a join for shared steps, and its tests that these have passed."""

    block: int
    names: tuple[str, ...]
    tested: tuple[Expression | Constraint, ...] = ()


@dataclass(frozen=True)
class SharedSteps:
    """Consecutive steps that conjuncts of joins share; `core` has the variables of the first use."""

    core: Block
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class BlockProgram(Program):
    """A program of blocks, with an operator for each; that of a group runs all blocks of the group."""

    blocks: tuple[Block, ...]
    options: Options
    groups: tuple[Group, ...] = ()
    """The blocks that run together; each other block runs alone."""
    steps: tuple[SharedSteps, ...] = ()
    """What the conjuncts of these other blocks share."""
    views: Views | None = None
    """How inner queries are kept, if views answer some of them."""
    sharing: Explained | None = None
    """Why these groups were chosen, if the Plan-Finder chose them."""

    @property
    def is_planned_by_statistics(self) -> bool:
        """Whether the Plan-Finder has something to group."""
        return self.sharing is not None and len(self.sharing.shapes) > 1

    def planned_for(self, events: pa.Table, schema: Schema) -> BlockProgram:
        """The program with groups for events like these, if they differ from those it was planned for."""
        from nestream_papers.flat import replanned

        return replanned(self, events, schema) if self.is_planned_by_statistics else self

    def start(self, limit: int) -> Execution:
        """Start the blocks, with the prefixes and views that they keep."""
        from nestream_papers.execution import BlockExecution  # it depends on readers of this module

        return BlockExecution(self, limit)

    def explain(self, measured: Sequence[Measured] = ()) -> str:
        """The blocks and groups as indented text, with the expected cost of the groups."""
        from nestream_papers.plan.explain import explain_program

        return explain_program(self, measured)

    def explain_json(self, measured: Sequence[Measured] = ()) -> dict[str, Any]:
        """The same as plain data."""
        from nestream_papers.plan.explain import explain_program_json

        return explain_program_json(self, measured)
