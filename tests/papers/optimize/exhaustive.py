"""The best partition by looking at all of them: what the search is measured against, for few expressions.

A set of n expressions has Bell(n) partitions: 877 of 7, 115,975 of 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb

from nestream_papers.optimize.operators import Costing
from nestream_papers.optimize.partition import Partition

MOST = 10
"""How many expressions are looked at exhaustively."""


def bell(size: int) -> int:
    """The number of partitions of a set.

    >>> [bell(size) for size in range(8)]
    [1, 1, 2, 5, 15, 52, 203, 877]
    """
    numbers = [1]
    for n in range(size):
        numbers.append(sum(comb(n, k) * numbers[k] for k in range(n + 1)))
    return numbers[size]


def partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    """Every partition of the items.

    >>> [groups for groups in partitions([1, 2])]
    [[[2, 1]], [[1], [2]]]
    """
    if not items:
        yield []
        return
    first, *rest = items
    for groups in partitions(rest):
        for number, group in enumerate(groups):
            yield [*groups[:number], [*group, first], *groups[number + 1 :]]
        yield [[first], *groups]


def best_partition(costing: Costing) -> tuple[Partition, float]:
    """The cheapest partition of all, and its cost."""
    size = len(costing.shapes)
    if size > MOST:
        raise ValueError(f"{size} expressions have {bell(size)} partitions; at most {MOST} are looked at")
    found = [Partition.of(groups) for groups in partitions(range(size))]
    best = min(found, key=lambda partition: partition.cost(costing))
    return best, best.cost(costing)
