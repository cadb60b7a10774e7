"""Cuts the events into the slices that a matcher works through."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nestream.engine.operator import Span


class Slices:
    """Consecutive ranges of positions, each with about as many matches as fit in a piece."""

    def __init__(self, first: int, end: int, size: int) -> None:
        self.first, self.end, self.size = first, end, size

    def cut(self, at: Callable[[int, int, int], int]) -> Iterator[Span]:
        """Yield the slices, each cut when it is needed."""
        while self.first < self.end:
            first, self.first = self.first, at(self.first, self.size, self.end)
            yield first, self.first

    def adapt(self, span: Span, count: int, limit: int) -> None:
        """Make slices longer or shorter if one had far fewer or more matches than expected."""
        length = span[1] - span[0]
        if count >= limit:
            self.size = max(1, min(self.size, length // 2))
        elif length >= self.size and count < limit // 4:
            longer = length * max(2, min(16, limit // (2 * max(count, 1))))
            self.size = max(self.size, min(longer, max(self.end - span[1], 1)))
