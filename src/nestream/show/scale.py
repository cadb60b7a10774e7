"""Maps times to places on a drawing, from left to right; what reaches far beyond the events is cut off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nestream.show.moments import Moments
from nestream.show.timeline import Timeline, shown_events

_WIDEST = 3
"""An interval is drawn in full if the drawing then is at most this many times as wide as its events need."""


@dataclass(frozen=True)
class Scale:
    """Maps the times from `low` to `high` to the places from `left` to `right`."""

    low: int
    high: int
    left: float
    right: float

    @classmethod
    def of(cls, shown: Timeline, matches: Iterable[Mapping[str, Any]], left: float, right: float) -> Scale:
        """The scale for some matches and what their negations and groups examined."""
        matches = list(matches)
        places = {place for match in matches for place in shown_events(match)}
        at = [shown.events[place]["at"] for place in places]
        at += [match[end] for match in matches for end in ("from", "to")]
        low, high = (min(at), max(at)) if at else (0, 1)
        ends = [
            end
            for match in matches
            for interval in match["intervals"]
            for end in (shown.moments.number(interval[name]) for name in ("from", "to"))
            if end is not None
        ]
        first, last, width = min((low, *ends)), max((high, *ends)), high - low
        if width and last - first > _WIDEST * width:  # cut off, so that the events have room
            first, last = max(first, low - width // 2), min(last, high + width // 2)
        return cls(first, last, left, right)

    def x(self, at: int) -> float:
        """The place of a time."""
        if self.high == self.low:
            return (self.left + self.right) / 2
        return self.left + (self.right - self.left) * ((at - self.low) / (self.high - self.low))

    def holds(self, at: int) -> bool:
        """Whether a time is on the drawing."""
        return self.low <= at <= self.high

    def ends(self, interval: Mapping[str, Any], moments: Moments) -> Sequence[float]:
        """The places where an interval begins and ends, cut off at the ends of the drawing."""
        first, last = (moments.number(interval[end]) for end in ("from", "to"))
        return (
            self.left if first is None else self.x(max(first, self.low)),
            self.right if last is None else self.x(min(last, self.high)),
        )
