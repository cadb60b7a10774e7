"""Puts blocks into the groups that the optimizer chose, each run by one operator that shares their work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from nestream.logical.nodes import Plan, WinOr, positive
from nestream.physical.choices import choices
from nestream_papers.engine.program import (
    Block,
    BlockProgram,
    Constraint,
    Group,
    Member,
    Negation,
    Sharing,
    Witness,
)
from nestream_papers.plan.block_equivalence import (
    Common,
    Steps,
    is_sharable,
    renamed,
    translated,
    translated_block,
)
from nestream_papers.plan.conjuncts import shared_steps

MOST_COLUMNS = 64
"""The maximum number of constraints in a row of facts."""


class Choice(Protocol):
    """A chosen group: expressions by number, an operator's name, and the shared steps."""

    @property
    def members(self) -> tuple[int, ...]:
        """The expressions, which are branches of the root OR."""

    @property
    def operator(self) -> str:
        """One of `Sharing`, or any other word for expressions that run alone."""

    @property
    def length(self) -> int:
        """How many steps are shared."""

    @property
    def starts(self) -> tuple[int, ...]:
        """Where they begin in each expression."""


def shared(program: BlockProgram, plan: Plan, chosen: Sequence[Choice]) -> BlockProgram:
    """The program with its blocks in the chosen groups."""
    return grouped(program, plan, tuple(_as_chosen(program, blocks_of_expressions(plan), chosen)))


def regrouped(
    program: BlockProgram, blocks: Sequence[Sequence[int]], chosen: Sequence[Choice]
) -> BlockProgram:
    """A running program with its blocks in other groups; `blocks` are those of each expression."""
    found = tuple(_as_chosen(program, blocks, chosen))
    return _in_groups(program, found, distinct=program.distinct)


def grouped(program: BlockProgram, plan: Plan, found: tuple[Group, ...]) -> BlockProgram:
    """The program with its blocks in groups; matches repeat only if two groups can find the same ones."""
    return _in_groups(program, found, distinct=plan.output.distinct)


def _in_groups(program: BlockProgram, found: tuple[Group, ...], *, distinct: bool) -> BlockProgram:
    """The program in groups; the conjuncts of blocks outside of groups share their steps."""
    together = {member.block for group in found for member in group.members}
    alone = [n for n in range(len(program.blocks)) if n not in together]
    return replace(
        program,
        groups=found,
        steps=shared_steps(program.blocks, alone),
        distinct=distinct or _repeats(program, found),
    )


def _repeats(program: BlockProgram, groups: Sequence[Group]) -> bool:
    """Whether two groups, or blocks besides them, bind the same variables."""
    bound = [frozenset(block.leaves) for block in program.blocks]
    by_marks = [{m.block for m in group.members} for group in groups if group.operator is Sharing.MARKING]
    units = [names for numbers in by_marks for names in {bound[n] for n in numbers}]
    units += [names for n, names in enumerate(bound) if not any(n in numbers for numbers in by_marks)]
    return len(set(units)) < len(units)


# -- as chosen ---------------------------------------------------------------------------------------------


def _as_chosen(
    program: BlockProgram, blocks: Sequence[Sequence[int]], chosen: Sequence[Choice]
) -> Iterator[Group]:
    """The groups of a choice; an expression that is not a single block, or fits no other, runs alone."""
    numbers = [own[0] if len(own) == 1 else None for own in blocks]
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
    """For each branch of the root OR, the numbers of its blocks."""
    branches = positive(plan.root) if isinstance(plan.root, WinOr) else (plan.root,)
    found: list[range] = []
    for branch in branches:
        first = found[-1].stop if found else 0
        found.append(range(first, first + len(choices(branch))))
    return found


# -- groups ------------------------------------------------------------------------------------------------


def _told_apart_by_marks(program: BlockProgram, one: int, other: int) -> bool:
    """Whether two blocks differ only in their constraints, and possibly in the names of their variables."""
    first, second = (replace(program.blocks[n], negations=(), witnesses=()) for n in (one, other))
    if len(first.leaves) != len(second.leaves) or program.decided[one] is not program.decided[other]:
        return False
    return first == translated_block(second, _names(first, second)) and first.levels is None


def _names(first: Block, other: Block) -> dict[str, str]:
    """For each variable of a block, that of the first one in its place, if sequences have other names."""
    if first.leaves.keys() == other.leaves.keys() or first.chain is None or other.chain is None:
        return {}
    return dict(zip(other.chain, first.chain, strict=True))


def _marking(blocks: Sequence[Block], numbers: Sequence[int]) -> Iterator[Group]:
    """Groups of blocks that differ in at most as many constraints as a row of facts can hold."""
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
    """The different constraints of some blocks, in terms of the first."""
    found: list[Constraint] = []
    for constraints in _in_terms_of_the_first(blocks, numbers):
        found += [part for part in constraints if part not in found]
    return found


def _in_terms_of_the_first(blocks: Sequence[Block], numbers: Sequence[int]) -> list[list[Constraint]]:
    """The constraints of each block, by the variables of the first; equal ones become identical."""
    first = blocks[numbers[0]]
    own = {name: name for name in first.leaves}
    known: list[tuple[Constraint, Constraint]] = []
    found: list[list[Constraint]] = []
    for number in numbers:
        names = _names(first, blocks[number])
        said: list[Constraint] = []
        for constraint in blocks[number].constraints:
            part = translated(constraint, names) if names else constraint
            spelled = renamed(part, own)
            same = next((one for form, one in known if form == spelled), None)
            if same is None:
                known.append((spelled, same := part))
            said += [same] if same not in said else []
        found.append(said)
    return found


def _marking_group(blocks: Sequence[Block], numbers: Sequence[int]) -> Group:
    first = blocks[numbers[0]]
    said = _in_terms_of_the_first(blocks, numbers)
    common = [c for c in said[0] if all(c in constraints for constraints in said)]
    core = replace(
        first,
        negations=tuple(part for part in common if isinstance(part, Negation)),
        witnesses=tuple(part for part in common if isinstance(part, Witness)),
    )
    members = []
    for number, constraints in zip(numbers, said, strict=True):
        names = tuple(_names(first, blocks[number]))
        members.append(Member(number, 0, tuple(c for c in constraints if c not in common), names))
    return Group(Sharing.MARKING, tuple(members), core)


def _sharing(
    blocks: Sequence[Block], operator: Sharing, numbers: Sequence[int], starts: Sequence[int], length: int
) -> Group:
    """A group that shares the rows of some steps; what not all of its blocks require is left to each."""
    steps = [Steps(blocks[n], start, length) for n, start in zip(numbers, starts, strict=True)]
    common = Common.of(steps)
    members = []
    for number, run in zip(numbers, steps, strict=True):
        said = list(common.said(run))
        members.append(Member(number, run.start, tuple(c for c in run.inner if c not in said)))
    return Group(operator, tuple(members), common.core)
