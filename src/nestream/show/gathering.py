"""Gathers what a timeline shows: matches with their events, and what their negations and groups examined.

The events of all matches come first, then those that their negations and groups examined, then others of the
lanes' types around them. Events without room are counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nestream.logical.nodes import Node, groups, leaves
from nestream.logical.text import expression_text
from nestream.model.event_types import ANY_TYPE, named_types
from nestream.model.schema import EventError
from nestream.reference import Event, Interval, Meaning, Order
from nestream.show.around import Around
from nestream.show.moments import Moments
from nestream.why.evidence import MOST_LOOKED, Evidence, spread
from nestream.why.matches import FoundMatch
from nestream.why.search import negations
from nestream.why.shapes import shapes
from nestream.why.words import plain, shortened

MOST_LANES = 40
"""The maximum number of lanes."""

Entry = tuple[str, Mapping[str, Any], int | None]


@dataclass(frozen=True)
class Reading:
    """How the events of matches are read, and how many are shown."""

    time: str
    type: str
    order: str
    most: int


class Gathering:
    """Gathers what a timeline shows; `around` are the events that the matches were found in, if known."""

    def __init__(self, queries: Mapping[str, Any], reading: Reading, around: Around | None = None) -> None:
        self.queries = {name: query for name, query in queries.items() if query is not None}
        self.reading, self.around = reading, around
        self.moments = Moments(False) if around is None else around.moments
        self.ids: dict[object, int] = {}
        self.refused: set[object] = set()
        self.surrounding = 0  # how many events there are around the matches, including their own
        self.events: list[dict[str, Any]] = []
        self.matches: list[dict[str, Any]] = []
        self.notes: dict[str, None] = {}
        named = (leaf for query in self.queries.values() for leaf in leaves(query.plan.root))
        self.groups = {group.variable for query in self.queries.values() for group in groups(query.plan.root)}
        self.lanes = dict.fromkeys(named_types(name for leaf in named for name in leaf.types))
        self.left_out = {"matches": 0, "events": 0}

    def take(self, rows: Sequence[Mapping[str, Any]], total: int) -> None:
        """Add the matches, out of `total`."""
        pairs = [(row, list(_entries(row))) for row in rows if isinstance(row, Mapping)]
        if self.around is None:
            times = [event.get(self.reading.time) for _, found in pairs for _, event, _ in found]
            times += [row.get("match_start") for row, _ in pairs]
            self.moments = Moments.of(time for time in times if time is not None)
        places = [self._match(row, found) for row, found in pairs]
        for match, rows_of_match in (found for found in places if found is not None):
            self._look(match, rows_of_match)
        self.left_out["matches"] = total - len(self.matches)

    # -- matches -------------------------------------------------------------------------------------------

    def _match(
        self, row: Mapping[str, Any], found: Sequence[Entry]
    ) -> tuple[dict[str, Any], dict[str, int] | None] | None:
        """Add a match; return it with the rows of its single events, or None if one of them is not found."""
        bound: dict[str, int] = {}
        grouped: dict[str, list[int]] = {}
        seen: dict[str, int] = {}
        rows: dict[str, int | None] = {}
        for variable, event, number in found:
            taken = [place for place in rows.values() if place is not None]
            place = None if self.around is None else self.around.row(event, number, taken)
            known = self._event(event, seen, place)
            if variable.split(".")[0] in self.groups:
                if known is not None:
                    grouped.setdefault(variable, []).append(known)
                continue
            rows[variable] = place
            if known is not None:
                bound[variable] = known
        members = [place for places in grouped.values() for place in places]
        at = [self.events[place]["at"] for place in (*bound.values(), *members)]
        for end_of in ("match_start", "match_end"):
            number = self.moments.number(row.get(end_of))
            at += [] if number is None else [number]
        if not at:
            return None
        start, end = min(at), max(at)
        name = row.get("query")
        words = self.moments.words
        match = {
            "events": self._in_order(bound),
            "variables": bound,
            "hidden": {},
            "groups": grouped,
            "counts": {},
            "start": words.time(start),
            "end": words.time(end),
            "from": start,
            "to": end,
            "query": name if isinstance(name, str) else None,
            "intervals": [],
            "told": [],
        }
        self.matches.append(match)
        located = {variable: place for variable, place in rows.items() if place is not None}
        return match, located if len(located) == len(rows) else None

    def _in_order(self, bound: Mapping[str, int]) -> list[int]:
        return sorted(set(bound.values()), key=lambda place: self.events[place]["at"])

    def _event(
        self, event: Mapping[str, Any], seen: dict[str, int] | None = None, row: int | None = None
    ) -> int | None:
        """The place of an event; without rows, equal events are one, unless a match has it twice."""
        at = self.moments.number(event.get(self.reading.time))
        kind = str(event.get(self.reading.type))
        if at is None:
            return None
        if kind not in self.lanes:
            if len(self.lanes) >= MOST_LANES:
                self.refused.add((kind, at))
                return None
            self.lanes[kind] = None
        shown = {str(name): plain(value) for name, value in event.items()}
        key: object = row
        if row is None:
            text = json.dumps(shown, sort_keys=True, default=str)
            copies = seen if seen is not None else {}
            copies[text] = copies.get(text, -1) + 1
            key = (text, copies[text])
        if key not in self.ids:
            if len(self.events) >= self.reading.most:
                self.refused.add(key)
                return None
            self.ids[key] = len(self.events)
            self.events.append(self._shown(self.ids[key], kind, at, shown, row))
        return self.ids[key]

    def _shown(
        self, place: int, kind: str, at: int, shown: Mapping[str, Any], row: int | None
    ) -> dict[str, Any]:
        words = self.moments.words
        number = None if row is None or self.around is None else row + self.around.first
        label = f"{kind} at {words.time_text(at)}"
        return {
            "id": place,
            "number": number,
            "lane": kind,
            "ts": words.time(at),
            "at": at,
            "label": label if number is None else f"{label} (#{number})",
            "attributes": {
                name: shortened(value) if isinstance(value, str) else value
                for name, value in shown.items()
                if name not in (self.reading.time, self.reading.type)
            },
        }

    # -- negations and groups ------------------------------------------------------------------------------

    def _look(self, match: dict[str, Any], rows: Mapping[str, int] | None) -> None:
        """Add what the negations and groups of a match examined; just intervals if its events are unknown."""
        query = self.queries.get(match["query"] if match["query"] in self.queries else "")
        if query is None:
            return
        found = self._found(query, rows)
        if found is None:
            match["intervals"] = self._intervals(query, match["variables"])
            return
        hidden = {name: event for name, event in found.binding.items() if name not in (rows or {})}
        match["hidden"] = dict(zip(hidden, self._places(list(hidden.values())), strict=False))
        for evidence in found.evidence:
            if evidence.kind == "group":
                self._members(match, evidence)
            else:
                match["intervals"].append(self._interval(evidence))
            match["told"].append(evidence.told)

    def _found(self, query: Any, rows: Mapping[str, int] | None) -> FoundMatch | None:
        if self.around is None:
            return None
        if rows is None:
            told = "some events of a match are not among the events, so what lies between them is not shown"
            self.notes[told] = None
            return None
        try:
            return self.around.found(query, rows)
        except EventError as problem:
            self.notes[f"what lies between the events of a match is not shown: {problem}"] = None
            return None

    def _interval(self, evidence: Evidence) -> dict[str, Any]:
        places = self._places(evidence.events)
        missing = len(evidence.events) - len(places)
        return {
            "negation": evidence.what,
            "lanes": self._lanes(evidence.types),
            **evidence.place,
            "text": evidence.told,
            "events": places,
            "more": evidence.more + missing,
        }

    def _members(self, match: dict[str, Any], evidence: Evidence) -> None:
        """Draw the members of a group, up to a maximum number."""
        assert evidence.variable is not None
        drawn = spread(evidence.members, MOST_LOOKED)
        grouped: dict[str, list[int]] = {}
        for member in drawn:
            for name, place in zip(member, self._places(list(member.values())), strict=False):
                variable = evidence.variable if name == evidence.variable else f"{evidence.variable}.{name}"
                grouped.setdefault(variable, []).append(place)
        own = (evidence.variable, f"{evidence.variable}.")
        others = {name: ids for name, ids in match["groups"].items() if not f"{name}.".startswith(own[1])}
        match["groups"] = {**others, **grouped}
        match["counts"][evidence.variable] = {
            "members": len(evidence.members),
            "more": len(evidence.members) - len(drawn),
            "text": evidence.text,
        }

    def _places(self, events: Sequence[Event]) -> list[int]:
        assert self.around is not None
        rows = [event.row for event in events]
        found = [
            self._event(event, None, row) for row, event in zip(rows, self.around.events(rows), strict=True)
        ]
        return [place for place in found if place is not None]

    def _intervals(self, query: Any, bound: Mapping[str, int]) -> list[dict[str, Any]]:
        """The intervals of the negations of a match, if all its events are known."""
        shape = next((s for s in shapes(query.plan.root) if set(s.variables) == bound.keys()), None)
        if shape is None or not bound:
            return []
        ranked = sorted(bound, key=lambda variable: self.events[bound[variable]]["at"])
        binding = {
            variable: Event(pos, self.events[bound[variable]]["at"], self.events[bound[variable]]["lane"], {})
            for pos, variable in enumerate(ranked)
        }
        meaning = Meaning(query.plan, Order(self.reading.order), 1)
        root = shape.part(binding).root
        return [
            self._looked_at(body, interval)
            for body, interval in negations(meaning, root, meaning.root_limits(root))
        ]

    def _looked_at(self, body: Node, interval: Interval) -> dict[str, Any]:
        types = tuple(name for shape in shapes(body) for leaf in shape.leaves for name in leaf.types)
        return {
            "negation": f"!{expression_text(body)}",
            "lanes": self._lanes(types),
            **self.moments.words.interval(interval),
            "text": None,
            "events": [],
            "more": 0,
        }

    def _lanes(self, types: Sequence[str]) -> list[str]:
        return list(self.lanes if ANY_TYPE in types else named_types(types))

    # -- around --------------------------------------------------------------------------------------------

    def surround(self) -> None:
        """Add the events of the lanes around the matches, up to the maximum."""
        if not self.matches or self.around is None:
            return
        low = min(match["from"] for match in self.matches)
        high = max(match["to"] for match in self.matches)
        margin = (high - low) // 10
        rows = self.around.between(low - margin, high + margin, self.lanes)
        room = max(self.reading.most - len(self.events), 0)
        taken = rows[: room + len(self.events)]
        for row, event in zip(taken, self.around.events(taken), strict=True):
            self._event(event, None, row)
        self.surrounding = len(rows)

    def count(self) -> None:
        """Note how many events are not shown."""
        outside = len(self.refused)
        self.left_out["events"] = max(outside, self.surrounding - len(self.events))


def _entries(row: Mapping[str, Any]) -> Iterator[Entry]:
    """The variables and events of a match, with the numbers of the events if known."""
    listed = row.get("events")
    for entry in listed if isinstance(listed, list | tuple) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("event"), Mapping):
            number = entry.get("number")
            yield str(entry.get("variable")), entry["event"], number if isinstance(number, int) else None
