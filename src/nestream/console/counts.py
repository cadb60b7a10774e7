"""Counts the matches of a job in bounded memory: by value, and by time."""

from __future__ import annotations

from collections import Counter
from typing import Any

MOST_KEYS = 1_000
"""How many values are counted separately; the rest are counted together."""
MOST_ATTRIBUTES = 12
"""How many attributes are counted if the job names no facets."""
MOST_SHOWN = 50
OTHER = "(others)"
WIDTHS = (5, 60, 1800)
"""The widths of the buckets in seconds, or in units of a time that is a plain number."""
BUCKETS = 180
MOST_RULES = 50
CLOCK = 1e11
"""A time beyond this is in milliseconds since 1970; a smaller one is a plain number."""


class Tally:
    """Counts by key, for a bounded number of keys."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, key: Any) -> None:
        """Count one more."""
        name = str(key)[:80]
        self.counts[name if name in self.counts or len(self.counts) < MOST_KEYS else OTHER] += 1

    def top(self) -> dict[str, int]:
        """The most frequent keys, and how often they occur."""
        return dict(self.counts.most_common(MOST_SHOWN))


class Facets:
    """Counts matches by the values of attributes: the named ones, or the first that occur.

    A match counts once for each value of an attribute in its events.
    """

    def __init__(self, names: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> None:
        self.named, self.without = names, without
        self.tallies: dict[str, Tally] = {name: Tally() for name in names}

    def add(self, events: list[dict[str, Any]], values: dict[str, Any]) -> None:
        """Count a match by its events and its values."""
        found: dict[str, dict[str, None]] = {}
        for event in [*(part["event"] for part in events), values]:
            for name, value in event.items():
                if value is not None and not isinstance(value, float) and self._counts(name):
                    found.setdefault(name, {})[str(value)[:80]] = None
        for name, distinct in found.items():
            for value in distinct:
                self.tallies[name].add(value)

    def _counts(self, name: str) -> bool:
        if name in self.tallies:
            return True
        if self.named or name in self.without or len(self.tallies) >= MOST_ATTRIBUTES:
            return False
        self.tallies[name] = Tally()
        return True

    def json(self) -> dict[str, Any]:
        """The counts by attribute, each with the number of values."""
        return {
            name: {"values": tally.top(), "distinct": len(tally.counts)}
            for name, tally in self.tallies.items()
        }


class Rates:
    """How many matches each rule had in each interval of event time, in three resolutions."""

    def __init__(self) -> None:
        self.levels: list[dict[int, Counter[str]]] = [{} for _ in WIDTHS]
        self.rules: set[str] = set()

    def add(self, rule: str, end: float | None) -> None:
        """Count a match by its end; one older than all kept intervals is ignored."""
        if end is None:
            return
        if rule not in self.rules and len(self.rules) >= MOST_RULES:
            rule = OTHER
        self.rules.add(rule)
        for width, level in zip(WIDTHS, self.levels, strict=True):
            bucket = int(end // (width * (1000 if end > CLOCK else 1)))
            if bucket not in level:
                if len(level) >= BUCKETS:
                    oldest = min(level)
                    if bucket < oldest:
                        continue
                    del level[oldest]
                level[bucket] = Counter()
            level[bucket][rule] += 1

    def json(self) -> list[dict[str, Any]]:
        """The levels for the browser, which continues to count by itself."""
        return [
            {"width": width, "buckets": {str(at): dict(counts) for at, counts in level.items()}}
            for width, level in zip(WIDTHS, self.levels, strict=True)
        ]
