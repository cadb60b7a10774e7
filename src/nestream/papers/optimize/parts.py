"""Which way is chosen for each block of a query, and with views, what answers each of its negations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nestream.papers.optimize.cost import Cost
from nestream.papers.optimize.strategies import Alternative, Inner, Outline, Strategies

Choose = Callable[[Sequence[Alternative]], Alternative]
"""Takes one of several alternatives; the first is the one that it takes a clear gain to leave."""
OWN, NESTED, VIEWS = "bounds", "nested", "views-balanced"


@dataclass(frozen=True)
class Answered:
    """A negation of a block with views: what answers it, and what that and the other would cost."""

    names: str
    number: int
    by: str
    alternatives: tuple[Alternative, ...]

    @property
    def cost(self) -> Cost:
        """What it costs as it is answered."""
        return next(one.cost for one in self.alternatives if one.strategy == self.by)


@dataclass(frozen=True)
class Part:
    """A block, the way that was chosen for it, and what each way would cost."""

    names: str
    way: str
    alternatives: tuple[Alternative, ...]
    inner: tuple[Answered, ...] = ()
    """Where views were chosen, the negations that are no bounds."""

    @property
    def cost(self) -> Cost:
        """What it costs in the way that was chosen."""
        return next(one.cost for one in self.alternatives if one.strategy == self.way)

    @property
    def joined(self) -> frozenset[int]:
        """The negations that are joins beside views of others."""
        return frozenset(one.number for one in self.inner if one.by == "join")

    def lines(self) -> list[str]:
        """The choice as lines of text."""
        found = [f"({self.names}) by {self.way}: {_costs(self.alternatives)}"]
        return found + [f"  ! ({one.names}) by a {one.by}: {_costs(one.alternatives)}" for one in self.inner]

    def json(self) -> dict[str, Any]:
        """The same as plain data."""
        inner = [
            {"variables": one.names.split(", "), "by": one.by, "alternatives": _plain(one.alternatives)}
            for one in self.inner
        ]
        return {
            "variables": self.names.split(", "),
            "by": self.way,
            "alternatives": _plain(self.alternatives),
            "negations": inner,
        }


def part_of(strategies: Strategies, outline: Outline, choose: Choose, running: str = OWN) -> Part:
    """The choice for a block."""
    inner = tuple(_answered(strategies, one, outline, choose) for one in outline.inner if not one.is_sought)
    sought = [strategies.viewed(one, outline) for one in outline.inner if one.is_sought]
    views = strategies.around_views(outline) + sum((*sought, *(one.cost for one in inner)), Cost())
    ways = [
        Alternative(OWN, strategies.own(outline)),
        Alternative(NESTED, strategies.nested(outline)),
        Alternative(VIEWS, views),
    ]
    ways.sort(key=lambda one: one.strategy != running)
    chosen = choose(ways).strategy
    return Part(outline.shape.name, chosen, tuple(ways), inner if chosen == VIEWS else ())


def _answered(strategies: Strategies, inner: Inner, outline: Outline, choose: Choose) -> Answered:
    ways = (
        Alternative("view", strategies.viewed(inner, outline)),
        Alternative("join", strategies.unviewed(inner, outline)),
    )
    return Answered(inner.shape.name, inner.number, choose(ways).strategy, ways)


def _costs(alternatives: Sequence[Alternative]) -> str:
    return ", ".join(f"{one.strategy} {one.cost.nanoseconds / 1e6:,.2f} ms" for one in alternatives)


def _plain(alternatives: Sequence[Alternative]) -> dict[str, float]:
    return {one.strategy: one.cost.nanoseconds for one in alternatives}
