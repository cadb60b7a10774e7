"""The Plan-Finder: searches for the cheapest partition of the expressions.

It starts with expressions of the same positive events in one group, and improves by splits, merges and moves
until no neighbour is better; then it restarts elsewhere, as long as its limits allow. The same seed finds the
same plan, unless the time limit ends the search.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from nestream_papers.optimize.cost import Cost, Model
from nestream_papers.optimize.operators import Costing, Group
from nestream_papers.optimize.partition import Partition, neighbours, random_neighbour
from nestream_papers.optimize.placement import Placement
from nestream_papers.optimize.shape import Shape

MANY = 64
"""From this many expressions on, they are placed one by one, and then improved at random."""
CHANGE = 250_000.0
"""The approximate nanoseconds to try a change."""


@dataclass(frozen=True)
class Search:
    """When the search ends: after that many changes, restarts without improvement, or seconds.

    With an `effort`, trying changes takes at most this share of the first plan's expected cost: where there
    is little to do, there is little to gain.
    """

    seed: int = 0
    iterations: int = 20_000
    plateau: int = 16
    seconds: float = 1.0
    effort: float | None = None


@dataclass(frozen=True)
class SharedPlan:
    """The groups in which the expressions run, their cost, and how they were found."""

    groups: tuple[Group, ...]
    cost: Cost
    start: Cost
    """The cost of the partition that the search began with."""
    alone: Cost
    """The cost if each expression ran alone."""
    tried: int
    stopped: str

    @property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """The expressions of each group."""
        return tuple(group.members for group in self.groups)


def find_plan(
    shapes: Sequence[Shape], model: Model | None = None, search: Search | None = None
) -> SharedPlan:
    """The cheapest grouping that the search finds."""
    return Finder(Costing(shapes, model or Model()), search or Search()).run()


class Finder:
    """One search."""

    def __init__(self, costing: Costing, search: Search) -> None:
        self.costing = costing
        self.search = search
        self.random = Random(search.seed)
        self.tried = 0
        self.iterations = search.iterations
        self.deadline = time.monotonic() + search.seconds

    def run(self) -> SharedPlan:
        """The best partition found."""
        size = len(self.costing.shapes)
        alone = Partition.of([number] for number in range(size))
        start = self.start() if size < MANY else Placement.of(self.costing).partition
        begin = self.total(start)
        if self.search.effort is not None:
            self.iterations = min(self.iterations, int(begin.nanoseconds * self.search.effort / CHANGE))
        best, stopped = self.improved(self.cheaper(start, alone)), "plateau"
        cost, unchanged = best.cost(self.costing), 0
        while unchanged < self.search.plateau and size > 2:
            if self.over:
                stopped = "time" if time.monotonic() > self.deadline else "iterations"
                break
            other = self.improved(self.elsewhere(best, alone, unchanged))
            if (found := other.cost(self.costing)) < cost * (1 - 1e-12):
                best, cost, unchanged = other, found, 0
            else:
                unchanged += 1
        groups = tuple(self.groups(best))
        return SharedPlan(groups, self.total(best), begin, self.total(alone), self.tried, stopped)

    def cheaper(self, one: Partition, other: Partition) -> Partition:
        """The cheaper of two partitions, so that no plan costs more than every expression alone."""
        return other if other.cost(self.costing) < one.cost(self.costing) else one

    def groups(self, partition: Partition) -> Iterator[Group]:
        """The groups of a partition, each with its operator."""
        for members in partition.ordered:
            group = self.costing.group(members)
            assert group is not None, "a group that no operator runs"
            yield group

    def total(self, partition: Partition) -> Cost:
        """The cost of all groups."""
        return sum((group.cost for group in self.groups(partition)), Cost())

    @property
    def over(self) -> bool:
        """Whether the limits are reached."""
        return self.tried >= self.iterations or time.monotonic() > self.deadline

    def start(self) -> Partition:
        """Expressions with the same positive events in one group; in their own if that is impossible."""
        groups: dict[object, list[int]] = {}
        for number, parts in enumerate(self.costing.parts):
            groups.setdefault(("alone", number) if parts.marked is None else parts.marked, []).append(number)
        return Partition.of(groups.values())

    def elsewhere(self, best: Partition, alone: Partition, turn: int) -> Partition:
        """Another start: all alone, placed in some order, grouped at random, or near the best."""
        size = len(self.costing.shapes)
        if turn == 0 and size < MANY:
            return alone
        if turn % 3 and size < MANY:
            order = list(range(size))
            self.random.shuffle(order)
            return Placement.of(self.costing, order).partition if turn % 3 == 1 else self.by_chance(order)
        partition = best
        for _ in range(self.random.randint(1, 2 + size // 8)):
            change = random_neighbour(partition, self.random)
            self.tried += 1
            if change is not None and change.gain(self.costing) > float("-inf"):
                partition = partition.replaced(change.old, change.new)
        return partition

    def by_chance(self, order: Sequence[int]) -> Partition:
        """Each expression in a group that some operator can run with it, or in its own, whatever it costs."""
        groups: list[frozenset[int]] = []
        for member in order:
            self.tried += len(groups)
            fitting = [g for g in groups if self.costing.group(g | {member}) is not None]
            chosen = self.random.choice([frozenset[int](), *fitting])
            groups = [group for group in groups if group != chosen] + [chosen | {member}]
        return Partition.of(groups)

    def improved(self, partition: Partition) -> Partition:
        """The partition after random improvements, until there are none."""
        while not self.over:
            change = self._better(partition)
            if change is None:
                break
            partition = change
        return partition

    def _better(self, partition: Partition) -> Partition | None:
        if partition.size >= MANY:
            return self._better_by_chance(partition)
        near = list(neighbours(partition))
        self.random.shuffle(near)
        for change in near:
            self.tried += 1
            if change.gain(self.costing) > 1e-9:
                return partition.replaced(change.old, change.new)
        return None

    def _better_by_chance(self, partition: Partition) -> Partition | None:
        """A better neighbour of a large partition; None after as many failures as expressions."""
        for _ in range(partition.size):
            change = random_neighbour(partition, self.random)
            self.tried += 1
            if self.over:
                return None
            if change is not None and change.gain(self.costing) > 1e-9:
                return partition.replaced(change.old, change.new)
        return None
