"""Partitions of the expressions into groups, and the neighbours of a partition.

Neighbours have one group split or two merged, or one expression moved to another group, which is a split and
a merge at once. Splits and merges alone would reach every partition, but often through partitions that cost
more than both ends of the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, permutations
from random import Random

from nestream_papers.optimize.operators import Costing

Members = frozenset[int]
ALL_SPLITS = 7
"""The largest group with every split into two as a neighbour; of larger groups, single members leave."""


class PartitionError(AssertionError):
    """Groups that are not a partition: a defect of nestream."""


@dataclass(frozen=True)
class Partition:
    """Groups that contain each of `size` expressions exactly once."""

    groups: frozenset[Members]
    size: int

    def __post_init__(self) -> None:
        members = [member for group in self.groups for member in group]
        missing = set(range(self.size)) - set(members)
        if missing:
            raise PartitionError(f"no group holds the expressions {sorted(missing)}")
        if len(members) != self.size:
            several = sorted({member for member in members if members.count(member) > 1})
            raise PartitionError(
                f"expressions {several} are in several groups, or a group has an unknown expression"
            )
        if frozenset() in self.groups:
            raise PartitionError("a group without expressions")

    @classmethod
    def of(cls, groups: Iterable[Iterable[int]]) -> Partition:
        """The partition with these groups."""
        sets = [frozenset(group) for group in groups]
        return cls(frozenset(sets), sum(map(len, sets)))

    @property
    def ordered(self) -> list[Members]:
        """The groups, ordered by their least expressions."""
        return sorted(self.groups, key=min)

    def replaced(self, old: Iterable[Members], new: Iterable[Members]) -> Partition:
        """The partition with some groups in place of others."""
        return Partition((self.groups - frozenset(old)) | frozenset(new), self.size)

    def cost(self, costing: Costing) -> float:
        """The weight of the cost of all groups; infinite if no operator can run one of them."""
        return sum(costing.cost(group) for group in self.ordered)


@dataclass(frozen=True)
class Change:
    """Groups that replace others."""

    old: tuple[Members, ...]
    new: tuple[Members, ...]

    def gain(self, costing: Costing) -> float:
        """How much less the new groups cost."""
        return sum(map(costing.cost, self.old)) - sum(map(costing.cost, self.new))


def neighbours(partition: Partition) -> Iterator[Change]:
    """Every merge of two groups, every split of one (for a large one, of one member), every move."""
    groups = partition.ordered
    for one, other in combinations(groups, 2):
        yield Change((one, other), (one | other,))
    for group in groups:
        yield from splits(group)
    for one, other in permutations(groups, 2):
        if len(one) > 1:
            yield from (_moved(member, one, other) for member in sorted(one))


def _moved(member: int, one: Members, other: Members) -> Change:
    return Change((one, other), (one - {member}, other | {member}))


def splits(group: Members) -> Iterator[Change]:
    """The splits of a group."""
    if len(group) < 2:
        return
    first, *rest = sorted(group)
    if len(group) > ALL_SPLITS:
        for member in (first, *rest):
            yield Change((group,), (frozenset((member,)), group - {member}))
        return
    for size in range(len(rest)):
        for chosen in combinations(rest, size):
            part = frozenset((first, *chosen))
            yield Change((group,), (part, group - part))


def random_neighbour(partition: Partition, random: Random) -> Change | None:
    """A random merge, split or move; None if a partition of one expression has none."""
    groups = partition.ordered
    splittable = [group for group in groups if len(group) > 1]
    if len(groups) > 1 and splittable and random.random() < 0.33:
        one = random.choice(splittable)
        return _moved(random.choice(sorted(one)), one, random.choice([g for g in groups if g != one]))
    if len(groups) > 1 and (not splittable or random.random() < 0.5):
        one, other = random.sample(groups, 2)
        return Change((one, other), (one | other,))
    if not splittable:
        return None
    group = random.choice(splittable)
    members = sorted(group)
    random.shuffle(members)
    part = frozenset(members[: random.randint(1, len(members) - 1)])
    return Change((group,), (part, group - part))
