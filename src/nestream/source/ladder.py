"""Places in a file that was read, by which a reader finds where the file was cut back.

A place is the end of a line with a hash of the bytes before it. The places are dense near the end and sparser
towards the beginning, so there are few. Reading continues before the cut by at most about as many bytes as
are missing after it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

BEFORE = 256
"""How many bytes before a place are hashed."""
_CLOSEST = 512
"""How many bytes two places are apart near the end, if there is a choice."""


class Place(NamedTuple):
    """The end of a line: its offset, the number of the next line, and a hash of so many bytes before it."""

    offset: int
    line: int
    length: int
    hash: str


class Ladder:
    """The places of one file, in the order of the file."""

    __slots__ = ("places",)

    def __init__(self, places: Iterable[Iterable[Any]] | None = None) -> None:
        self.places = [Place(*place) for place in places or ()]

    def add(self, data: bytes, offset: int, line: int, *, inside: bool) -> None:
        """Note whole lines that were read at an offset; with `inside`, also places among them."""
        ends, distance = [len(data)], _CLOSEST
        while inside and distance < len(data):
            ends.append(data.rfind(b"\n", 0, len(data) - distance) + 1)
            distance *= 2
        if inside and not offset:  # as long as the first line is there, the file was cut and not replaced
            ends.append(data.find(b"\n") + 1)
        for end in sorted({*ends} - {0}):
            before = data[max(0, end - BEFORE) : end]
            number = line + data.count(b"\n", 0, end)
            self.places.append(Place(offset + end, number, len(before), digest(before)))
        self._thin()

    def _thin(self) -> None:
        """Leave out places whose neighbours are close to each other, compared with how far back they are."""
        end, places = self.places[-1].offset, self.places
        kept = [places[-1]]
        for place, further in zip(places[-2:0:-1], places[-3::-1], strict=True):
            if kept[-1].offset - further.offset > max(_CLOSEST, (end - place.offset) // 4):
                kept.append(place)
        self.places = [*places[: len(places) > 1], *kept[::-1]]

    def still_there(self, read: Callable[[int, int], bytes]) -> bool:
        """Whether the file still has what was before the last place."""
        return not self.places or self._holds(self.places[-1], read)

    def go_back(self, size: int, read: Callable[[int, int], bytes]) -> tuple[int, int]:
        """The last place that the file still has: its offset and the number of its line; (0, 1) if none."""
        while self.places:
            place = self.places[-1]
            if place.offset <= size and self._holds(place, read):
                return place.offset, place.line
            self.places.pop()
        return 0, 1

    @staticmethod
    def _holds(place: Place, read: Callable[[int, int], bytes]) -> bool:
        return digest(read(place.offset - place.length, place.length)) == place.hash


def digest(data: bytes) -> str:
    """A hash of some bytes as text."""
    return hashlib.sha256(data).hexdigest()[:16]
