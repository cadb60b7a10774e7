"""Compares a draft with the deployed rule: which matches are new, which are gone, and which both find.

Two matches are the same if they have the same events, whatever the variables are called; for queries that
return only values, if they have the same times and values. Either query may find a match first: it then
counts as new, or as gone, until the other finds it too.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

SHOWN = 100
"""How many of the last new and gone matches are shown."""


class Comparison:
    """The matches of two queries over the same events, as they come."""

    def __init__(self) -> None:
        self.both = 0
        self._sides: tuple[_Side, _Side] = (_Side(), _Side())

    def add(self, row: dict[str, Any], *, deployed: bool) -> None:
        """Take a match of the deployed rule, or of the draft."""
        own, other = self._sides[deployed], self._sides[not deployed]
        key = _key(row)
        if other.take(key):
            self.both += 1
        else:
            own.add(key, row)

    def counts(self) -> dict[str, int]:
        """How many matches the draft adds, how many it loses, and how many stay."""
        new, gone = self._sides
        return {"new": new.total, "gone": gone.total, "both": self.both}

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The last new and gone matches, newest first."""
        return {name: side.last() for name, side in zip(("new", "gone"), self._sides, strict=True)}


class _Side:
    """The matches that only one of the queries has found so far."""

    def __init__(self) -> None:
        self.total = 0
        self._counts: Counter[int] = Counter()
        self._rows: dict[int, dict[str, Any]] = {}

    def add(self, key: int, row: dict[str, Any]) -> None:
        self.total += 1
        self._counts[key] += 1
        self._rows.pop(key, None)
        self._rows[key] = row
        if len(self._rows) > 2 * SHOWN:
            del self._rows[next(iter(self._rows))]

    def take(self, key: int) -> bool:
        """Remove a match, if it is here."""
        if not self._counts[key]:
            del self._counts[key]
            return False
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]
            self._rows.pop(key, None)
        self.total -= 1
        return True

    def last(self) -> list[dict[str, Any]]:
        return list(self._rows.values())[: -SHOWN - 1 : -1]


def _key(row: dict[str, Any]) -> int:
    """A number that is equal for equal matches: 8 bytes each, because there may be many."""
    events = [part.get("number", part.get("event")) for part in row["events"]]
    same = sorted(json.dumps(one, default=str, sort_keys=True) for one in events)
    if not events:
        same = [json.dumps([row.get("match_start"), row.get("match_end"), row["values"]], default=str)]
    return hash(tuple(same))
