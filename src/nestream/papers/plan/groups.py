"""Puts blocks into groups that share their work, each run by one operator.

Without a choice of the optimizer, blocks with the same positive events are told apart by marks; of the
others, those with the longest common prefix or suffix share its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from nestream.engine.program import Decided
from nestream.logical.nodes import Plan, WinOr, positive
from nestream.papers.engine.program import (
    Block,
    BlockProgram,
    Constraint,
    Group,
    Member,
    Negation,
    Sharing,
    Witness,
)
from nestream.physical.choices import choices
from nestream.papers.plan.likeness import Steps, alike, is_sharable

MOST_COLUMNS = 64
"""How many constraints a row of facts has room for."""

FEWEST_STEPS = 2
"""A single shared step is a leaf, which all blocks share anyway."""


class Choice(Protocol):
    """A group that was chosen: expressions by number, an operator's name, and the steps that are shared."""

    @property
    def members(self) -> tuple[int, ...]:
        """The expressions, which are branches of the root OR."""

    @property
    def operator(self) -> str:
        """One of `Sharing`, or any other word for expressions that are run alone."""

    @property
    def length(self) -> int:
        """How many steps are shared."""

    @property
    def starts(self) -> tuple[int, ...]:
        """Where they begin in each expression."""


def shared(program: BlockProgram, plan: Plan, chosen: Sequence[Choice] | None = None) -> BlockProgram:
    """The program with its blocks in groups; given twice is then only what two groups could give."""
    found = tuple(_default(program) if chosen is None else _as_chosen(program, plan, chosen))
    return replace(program, groups=found, distinct=plan.output.distinct or _repeats(program, found))


def _repeats(program: BlockProgram, groups: Sequence[Group]) -> bool:
    """Whether two groups, or blocks beside them, bind the same variables."""
    by_marks = [{m.block for m in group.members} for group in groups if group.operator is Sharing.MARKING]
    units = [min(numbers) for numbers in by_marks]
    units += [n for n in range(len(program.blocks)) if not any(n in numbers for numbers in by_marks)]
    return len({frozenset(program.blocks[n].leaves) for n in units}) < len(units)


# -- without a choice --------------------------------------------------------------------------------------


def _default(program: BlockProgram) -> Iterator[Group]:
    blocks, decided = program.blocks, program.decided
    groups = list(_by_marks(program))
    yield from groups
    told_apart = {member.block for group in groups for member in group.members}
    alone = [n for n, block in enumerate(blocks) if n not in told_apart and is_sharable(block)]
    while (found := _longest(blocks, decided, alone)) is not None:
        yield found
        alone = [n for n in alone if not any(n == member.block for member in found.members)]


def _by_marks(program: BlockProgram) -> Iterator[Group]:
    left = list(range(len(program.blocks)))
    while left:
        first, *rest = left
        same = [first, *(n for n in rest if _told_apart_by_marks(program, first, n))]
        left = [n for n in rest if n not in same]
        yield from _marking(program.blocks, same)


def _longest(blocks: Sequence[Block], decided: Sequence[Decided], left: list[int]) -> Group | None:
    """The group of the longest common prefix or suffix of any two blocks."""
    best: tuple[int, Sharing, int] | None = None
    for place, first in enumerate(left):
        for other in left[place + 1 :]:
            if decided[first] is not decided[other]:
                continue
            for operator in (Sharing.PREFIX, Sharing.SUFFIX):
                length = _common(blocks[first], blocks[other], operator)
                if length >= FEWEST_STEPS and (best is None or length > best[0]):
                    best = length, operator, first
    if best is None:
        return None
    length, operator, first = best
    members = [
        n
        for n in left
        if decided[n] is decided[first]
        and len(blocks[n].leaves) >= length
        and alike(_steps(blocks[first], operator, length), _steps(blocks[n], operator, length))
    ]
    return _sharing(blocks, operator, members, [_start(blocks[n], operator, length) for n in members], length)


def _start(block: Block, operator: Sharing, length: int) -> int:
    return 0 if operator is Sharing.PREFIX else len(block.leaves) - length


def _steps(block: Block, operator: Sharing, length: int) -> Steps:
    return Steps(block, _start(block, operator, length), length)


def _common(one: Block, other: Block, operator: Sharing) -> int:
    """How many steps at the start, or at the end, are alike."""
    most = min(len(one.leaves), len(other.leaves))
    for length in range(most, FEWEST_STEPS - 1, -1):
        if alike(_steps(one, operator, length), _steps(other, operator, length)):
            return length
    return 0


# -- as chosen ---------------------------------------------------------------------------------------------


def _as_chosen(program: BlockProgram, plan: Plan, chosen: Sequence[Choice]) -> Iterator[Group]:
    """The groups of a choice; an expression that is no single block, or fits no other, is run alone."""
    numbers = [own[0] if len(own) == 1 else None for own in blocks_of_expressions(plan)]
    operators = {operator.value: operator for operator in Sharing}
    for choice in chosen:
        members = [numbers[n] for n in choice.members if numbers[n] is not None]
        starts = [s for n, s in zip(choice.members, choice.starts, strict=True) if numbers[n] is not None]
        operator = operators.get(str(choice.operator))
        if operator is None or len(members) < 2:
            continue
        yield from _fitting(program, operator, [n for n in members if n is not None], starts, choice.length)


def _fitting(
    program: BlockProgram, operator: Sharing, members: list[int], starts: list[int], length: int
) -> Iterator[Group]:
    first, blocks = members[0], program.blocks
    if operator is Sharing.MARKING:
        yield from _marking(
            blocks, [n for n in members if n == first or _told_apart_by_marks(program, first, n)]
        )
        return
    same = [
        (n, start)
        for n, start in zip(members, starts, strict=True)
        if is_sharable(blocks[n])
        and program.decided[n] is program.decided[first]
        and Steps(blocks[n], start, length).skeleton == Steps(blocks[first], starts[0], length).skeleton
    ]
    if len(same) > 1:
        yield _sharing(blocks, operator, [n for n, _ in same], [start for _, start in same], length)


def blocks_of_expressions(plan: Plan) -> list[range]:
    """For each branch of the root OR the numbers of its blocks."""
    branches = positive(plan.root) if isinstance(plan.root, WinOr) else (plan.root,)
    found: list[range] = []
    for branch in branches:
        first = found[-1].stop if found else 0
        found.append(range(first, first + len(choices(branch))))
    return found


# -- groups ------------------------------------------------------------------------------------------------


def _told_apart_by_marks(program: BlockProgram, one: int, other: int) -> bool:
    """Whether two blocks differ in their constraints alone."""
    first, second = (replace(program.blocks[n], negations=(), witnesses=()) for n in (one, other))
    return first == second and program.decided[one] is program.decided[other] and first.levels is None


def _marking(blocks: Sequence[Block], numbers: Sequence[int]) -> Iterator[Group]:
    """Groups of blocks that differ in at most as many constraints as a row of facts has room for."""
    held: list[int] = []
    for number in numbers:
        if len(_columns(blocks, [*held, number])) > MOST_COLUMNS:
            if len(held) > 1:
                yield _marking_group(blocks, held)
            held = []
            if len(_columns(blocks, [number])) > MOST_COLUMNS:
                continue
        held.append(number)
    if len(held) > 1:
        yield _marking_group(blocks, held)


def _columns(blocks: Sequence[Block], numbers: Sequence[int]) -> list[Constraint]:
    """The different constraints of some blocks."""
    found: list[Constraint] = []
    for number in numbers:
        found += [part for part in blocks[number].constraints if part not in found]
    return found


def _marking_group(blocks: Sequence[Block], numbers: Sequence[int]) -> Group:
    first = blocks[numbers[0]]
    common = [c for c in first.constraints if all(c in blocks[n].constraints for n in numbers)]
    core = replace(
        first,
        negations=tuple(part for part in common if isinstance(part, Negation)),
        witnesses=tuple(part for part in common if isinstance(part, Witness)),
    )
    members = [Member(n, 0, tuple(c for c in blocks[n].constraints if c not in common)) for n in numbers]
    return Group(Sharing.MARKING, tuple(members), core)


def _sharing(
    blocks: Sequence[Block], operator: Sharing, numbers: Sequence[int], starts: Sequence[int], length: int
) -> Group:
    """A group that shares the rows of some steps; what is not said in all of its blocks is left to each."""
    steps = [Steps(blocks[n], start, length) for n, start in zip(numbers, starts, strict=True)]
    first = steps[0]
    required = [list(map(run.spelled, run.constraints)) for run in steps]
    tested = [list(map(run.spelled_predicate, run.predicates)) for run in steps]
    constraints = [
        c for c in first.constraints if first.alone(c) and all(first.spelled(c) in said for said in required)
    ]
    predicates = [p for p in first.predicates if all(first.spelled_predicate(p) in said for said in tested)]
    common = list(map(first.spelled, constraints))
    members = []
    for number, run, said in zip(numbers, steps, required, strict=True):
        own = tuple(c for c, spelled in zip(run.inner, said, strict=True) if spelled not in common)
        members.append(Member(number, run.start, own))
    return Group(operator, tuple(members), first.taken_out(predicates, constraints))
