"""The slices in which a matcher goes through the events."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nestream.engine.operator import Span


class Slices:
    """Ranges of positions that follow one another, each of about as many matches as fit in a piece."""

    def __init__(self, first: int, end: int, size: int) -> None:
        self.first, self.end, self.size = first, end, size

    def cut(self, at: Callable[[int, int, int], int]) -> Iterator[Span]:
        """The slices, each cut when it is asked for."""
        while self.first < self.end:
            first, self.first = self.first, at(self.first, self.size, self.end)
            yield first, self.first

    def adapt(self, span: Span, count: int, limit: int) -> None:
        """Take longer or shorter slices if one had far fewer or more matches than promised."""
        length = span[1] - span[0]
        if count >= limit:
            self.size = max(1, min(self.size, length // 2))
        elif length >= self.size and count < limit // 4:
            longer = length * max(2, min(16, limit // (2 * max(count, 1))))
            self.size = max(self.size, min(longer, max(self.end - span[1], 1)))
