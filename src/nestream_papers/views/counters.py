"""Counts what views do: results computed, reused and never used, and the bytes that they hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields


@dataclass
class Counters:
    """The numbers of one view, or of several together.

    `asked` counts query-intervals, and `answered` those for which no interval had to be loaded, besides those
    loaded for others. `computed` are the inner results that were built, and `kept` those of them that were
    added (under negation, the facts). `used` counts each use of a result by an outer result, and `reused` all
    but the first. `unused` are results that were purged, or are still there, without ever being used. `loads`
    counts how often something was computed, and `moved_left` the loaded intervals that begin before a
    view-interval they overlap.
    """

    asked: int = 0
    answered: int = 0
    loads: int = 0
    computed: int = 0
    kept: int = 0
    used: int = 0
    reused: int = 0
    unused: int = 0
    moved_left: int = 0
    bytes: int = 0
    peak: int = 0

    def hold(self, size: int) -> None:
        """Note the bytes that are held now."""
        self.bytes = size
        self.peak = max(self.peak, size)

    def __str__(self) -> str:
        """The numbers in words."""
        return (
            f"{self.computed:,} computed, {self.kept:,} kept, {self.used:,} used, {self.reused:,} again, "
            f"{self.unused:,} never; {self.answered:,} of {self.asked:,} intervals known, "
            f"{self.peak:,} bytes at most"
        )

    def numbers(self) -> dict[str, int]:
        """The numbers by name."""
        return asdict(self)


def total(parts: Iterable[Counters]) -> Counters:
    """The sums of the numbers of several views."""
    found = Counters()
    for part in parts:
        for field in fields(Counters):
            setattr(found, field.name, getattr(found, field.name) + getattr(part, field.name))
    return found
