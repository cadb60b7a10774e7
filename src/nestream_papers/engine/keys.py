"""Key numbers as 64-bit integers, which leave room for a position in the same coordinate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nestream.engine.event_buffer import EventBuffer, Ints
from nestream.engine.keys import Numbering


class Keys:
    """The numbers of key values for the rows of the events; -1 for NULL."""

    def __init__(self, events: EventBuffer, key_classes: Mapping[str, str]) -> None:
        self.key_classes = key_classes
        self._numbering = Numbering(events, key_classes)
        self._numbers: dict[tuple[str, ...], Ints] = {}

    def numbers(self, attributes: tuple[str, ...]) -> Ints:
        """The number of the attributes' values for every row, equal for equal values."""
        if attributes not in self._numbers:
            self._numbers[attributes] = self._numbering.of(attributes).astype(np.int64)
        return self._numbers[attributes]

    def size(self, attributes: tuple[str, ...]) -> int:
        """The number of key numbers for the attributes."""
        return self._numbering.size(attributes)

    def combine(self, attributes: tuple[str, ...], columns: Sequence[Ints]) -> tuple[Ints, int]:
        """Combine the numbers of several attributes into one; also returns how many there are."""
        narrow = [column.astype(np.int32) for column in columns]
        return self._numbering.combine(attributes, narrow).astype(np.int64), self.size(attributes)
