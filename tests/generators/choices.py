"""Where random decisions come from: Hypothesis, which can shrink them, or a seeded generator, which is fast.

The generators of queries and histories are written once, against `Choices`. They put what is simple first,
so that Hypothesis shrinks towards it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices(Protocol):
    """A source of decisions."""

    def integer(self, low: int, high: int) -> int:
        """A whole number between two, both included; the lowest is the simplest."""


class RandomChoices:
    """Decisions of a seeded generator."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def integer(self, low: int, high: int) -> int:
        return low + int(self.random.random() * (high - low + 1))


class DrawnChoices:
    """Decisions drawn from Hypothesis."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))


def chance(choices: Choices, percent: int) -> bool:
    """True in so many cases of a hundred; False is the simplest."""
    return percent > 0 and choices.integer(0, 99) >= 100 - percent


def pick(choices: Choices, items: Sequence[T]) -> T:
    """One of the items; the first is the simplest."""
    return items[choices.integer(0, len(items) - 1)]


def weighted(choices: Choices, *items: tuple[int, T]) -> T:
    """One of the items, each as often as its weight says; the first is the simplest."""
    at = choices.integer(0, sum(weight for weight, _ in items) - 1)
    for weight, item in items:
        if at < weight:
            return item
        at -= weight
    raise AssertionError("the weights were counted wrongly")


def some(choices: Choices, items: Sequence[T], least: int, most: int) -> list[T]:
    """Several different items in a random order; few are the simplest."""
    rest = list(items)
    count = choices.integer(least, min(most, len(rest)))
    return [rest.pop(choices.integer(0, len(rest) - 1)) for _ in range(count)]
