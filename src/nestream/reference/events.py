"""Section "Events" of docs/reference/semantics.md: an event is a time, a type, attributes and a position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nestream.model.expression import TIME_ATTRIBUTE, TYPE_ATTRIBUTE


@dataclass(frozen=True)
class Event:
    """One event. Its position is its identity; `row` is its row in the input."""

    pos: int
    ts: int
    type: str
    attributes: Mapping[str, Any] = field(compare=False, hash=False)
    row: int = field(default=0, compare=False)

    def __getitem__(self, name: str) -> Any:
        if name == TIME_ATTRIBUTE:
            return self.ts
        if name == TYPE_ATTRIBUTE:
            return self.type
        return self.attributes.get(name)


def history(times: Sequence[int], types: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    """The events in the order of `(ts, arrival)`, each with its rank as its position."""
    arrival = sorted(range(len(times)), key=lambda row: (times[row], row))
    return [Event(pos, times[row], types[row], rows[row], row) for pos, row in enumerate(arrival)]
