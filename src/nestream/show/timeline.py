"""The timeline of matches: a lane for each event type, the events of each match, where its negations look.

`timeline` takes the table of a query's matches, `timeline_of_rows` rows of JSON, as those of a query set.
What is too much to look at is left out, and the answer says how much that is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from nestream.logical.nodes import Leaf, Node, WinAnd, WinOr, WinSeq, groups, leaves
from nestream.logical.text import expression_text
from nestream.model.columns import computable, to_table
from nestream.model.counting import showing, showing_matches
from nestream.model.event_types import ANY_TYPE, named_types
from nestream.model.output import CompositeColumn, EventColumn, GroupColumn, ValueColumn
from nestream.reference import Event, Interval, Meaning, Order
from nestream.show.moments import Moments
from nestream.why.search import root_negations
from nestream.why.shapes import shapes
from nestream.why.words import plain, shortened

MOST_MATCHES, MOST_EVENTS, MOST_LANES = 20, 400, 40
"""How many matches, events and lanes a timeline has unless told otherwise."""


@dataclass(frozen=True)
class Timeline:
    """What is drawn: plain data, and the drawing."""

    lanes: tuple[str, ...]
    events: tuple[Mapping[str, Any], ...]
    matches: tuple[Mapping[str, Any], ...]
    left_out: Mapping[str, int]
    moments: Moments = field(default=Moments(False), repr=False)
    more: bool = False
    """Whether there are more matches than anybody counted."""

    @property
    def told_matches(self) -> str:
        """How many matches are drawn of how many."""
        drawn = len(self.matches)
        return showing_matches(drawn, drawn + self.left_out["matches"], more=self.more)

    @property
    def told_events(self) -> str:
        """How many events are drawn of how many."""
        drawn = len(self.events)
        return showing(drawn, drawn + self.left_out["events"], "event")

    def json(self) -> dict[str, Any]:
        """The timeline as plain data."""
        return {
            "lanes": list(self.lanes),
            "events": [dict(event) for event in self.events],
            "matches": [dict(match) for match in self.matches],
            "left_out": dict(self.left_out),
            "more": self.more,
        }

    def svg(self) -> str:
        """The drawing."""
        from nestream.show.timeline_svg import timeline_svg

        return timeline_svg(self)

    def _repr_html_(self) -> str:
        return f'<div class="nestream">{self.svg()}</div>'


def timeline(
    query: Any,
    matches: Any,
    events: Any = None,
    *,
    time: str = "ts",
    type: str = "type",
    order: str = "time",
    most_matches: int = MOST_MATCHES,
    most_events: int = MOST_EVENTS,
) -> Timeline:
    """The timeline of a query's matches, in the form that `match` gives them.

    With `events`, those of the lanes' types around the matches are shown too. A match shows the events of the
    variables that the query returns; with RETURN expressions alone it shows its span.
    """
    table = to_table(matches)
    shown = [
        column
        for column in query.plan.output.columns
        if not isinstance(column, ValueColumn) and column.name in table.column_names
    ]
    rows = [
        {
            "match_start": row["match_start"],
            "match_end": row["match_end"],
            "events": [entry for column in shown for entry in _entries(column, row[column.name])],
        }
        for row in table.slice(0, most_matches).to_pylist()
    ]
    built = _Building({"": query}, time, type, order, most_events)
    built.take(rows, table.num_rows)
    if events is not None:
        built.surround(to_table(events, type, time))
    return built.done()


def _entries(column: EventColumn | GroupColumn | CompositeColumn, cell: Any) -> Iterator[dict[str, Any]]:
    """The events of a column of a match; those of a group one after the other, under its variable."""
    if cell is None:
        return
    if isinstance(column, CompositeColumn):
        for part in column.parts:
            yield from _entries(part, cell[part.name])
        return
    if isinstance(column, EventColumn):
        yield {"variable": column.name, "event": cell}
        return
    for member in cell:
        if not column.members:
            yield {"variable": column.name, "event": member}
        for name in column.members:
            if member[name] is not None:
                yield {"variable": f"{column.name}.{name}", "event": member[name]}


def timeline_of_rows(
    query: Any,
    rows: Iterable[Mapping[str, Any]],
    *,
    time: str = "ts",
    type: str = "type",
    order: str = "time",
    most_matches: int = MOST_MATCHES,
    most_events: int = MOST_EVENTS,
    total: int | None = None,
    more: bool = False,
) -> Timeline:
    """The timeline of matches as rows `{"query", "match_start", "match_end", "events"}`, as those of a set.

    `events` lists `{"variable", "event"}`. `query` is the one that they are matches of, a mapping of queries
    by name, or None: then there are no intervals. Times may be ISO-8601 texts. What does not have this form
    is left out. The rows are the first of `total` matches, or of more than that where `more` is set.
    """
    rows = list(rows)
    queries = query if isinstance(query, Mapping) else {"": query}
    built = _Building(queries, time, type, order, most_events)
    built.take(rows[:most_matches], len(rows) if total is None else total)
    built.more = more
    return built.done()


class _Building:
    """Gathers what a timeline shows."""

    def __init__(self, queries: Mapping[str, Any], time: str, type: str, order: str, most: int) -> None:
        self.queries = {name: query for name, query in queries.items() if query is not None}
        self.time, self.type, self.most = time, type, most
        self.order = Order(order)
        self.moments = Moments(False)
        self.ids: dict[tuple[str, int], int] = {}
        self.refused: set[tuple[str, int]] = set()
        self.around = 0  # how many events there are around the matches, theirs included
        self.events: list[dict[str, Any]] = []
        self.matches: list[dict[str, Any]] = []
        named = (leaf for query in self.queries.values() for leaf in leaves(query.plan.root))
        self.groups = {group.variable for query in self.queries.values() for group in groups(query.plan.root)}
        self.lanes = dict.fromkeys(named_types(name for leaf in named for name in leaf.types))
        self.left_out = {"matches": 0, "events": 0}
        self.more = False

    def take(self, rows: Sequence[Mapping[str, Any]], total: int) -> None:
        """Add the matches, of which there are `total`."""
        pairs = [(row, list(self._pairs(row))) for row in rows if isinstance(row, Mapping)]
        times = [event.get(self.time) for _, found in pairs for _, event in found]
        times += [row.get("match_start") for row, _ in pairs]
        self.moments = Moments.of(time for time in times if time is not None)
        for row, found in pairs:
            self._match(row, found)
        self.left_out["matches"] = total - len(self.matches)

    def _pairs(self, row: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        listed = row.get("events")
        for entry in listed if isinstance(listed, list | tuple) else ():
            if isinstance(entry, Mapping) and isinstance(entry.get("event"), Mapping):
                yield str(entry.get("variable")), entry["event"]

    def _match(self, row: Mapping[str, Any], found: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        bound: dict[str, int] = {}
        grouped: dict[str, list[int]] = {}
        seen: dict[str, int] = {}
        for variable, event in found:
            known = self._event(event, seen)
            if known is not None and variable.split(".")[0] in self.groups:
                grouped.setdefault(variable, []).append(known)
            elif known is not None:
                bound[variable] = known
        members = [place for places in grouped.values() for place in places]
        at = [self.events[place]["at"] for place in (*bound.values(), *members)]
        for end_of in ("match_start", "match_end"):
            number = self.moments.number(row.get(end_of))
            at += [] if number is None else [number]
        if not at:
            return
        start, end = min(at), max(at)
        name = row.get("query")
        words = self.moments.words
        self.matches.append(
            {
                "events": sorted(set(bound.values()), key=lambda place: self.events[place]["at"]),
                "variables": bound,
                "groups": grouped,
                "start": words.time(start),
                "end": words.time(end),
                "from": start,
                "to": end,
                "query": name if isinstance(name, str) else None,
                "intervals": self._intervals(name, bound),
            }
        )

    def _event(self, event: Mapping[str, Any], seen: dict[str, int]) -> int | None:
        """The number of an event; what looks alike is one event, unless a match has it twice."""
        at = self.moments.number(event.get(self.time))
        kind = str(event.get(self.type))
        if at is None:
            return None
        if kind not in self.lanes:
            if len(self.lanes) >= MOST_LANES:
                self.refused.add((kind, at))
                return None
            self.lanes[kind] = None
        shown = {str(name): plain(value) for name, value in event.items()}
        text = json.dumps(shown, sort_keys=True, default=str)
        copy = seen[text] = seen.get(text, -1) + 1
        key = (text, copy)
        if key not in self.ids:
            if len(self.events) >= self.most:
                self.refused.add(key)
                return None
            self.ids[key] = len(self.events)
            time = self.moments.words.time(at)
            self.events.append(
                {
                    "id": self.ids[key],
                    "lane": kind,
                    "ts": time,
                    "at": at,
                    "label": f"{kind} at {self.moments.words.time_text(at)}",
                    "attributes": {
                        name: shortened(value) if isinstance(value, str) else value
                        for name, value in shown.items()
                        if name not in (self.time, self.type)
                    },
                }
            )
        return self.ids[key]

    # -- negations -----------------------------------------------------------------------------------------

    def _intervals(self, name: Any, bound: Mapping[str, int]) -> list[dict[str, Any]]:
        """The intervals that the negations of a match look at, where all its events are known."""
        query = self.queries.get(name if isinstance(name, str) and name in self.queries else "")
        if query is None or not bound:
            return []
        shape = next((s for s in shapes(query.plan.root) if set(s.variables) == bound.keys()), None)
        if shape is None:
            return []
        ranked = sorted(bound, key=lambda variable: self.events[bound[variable]]["at"])
        binding = {
            variable: Event(pos, self.events[bound[variable]]["at"], self.events[bound[variable]]["lane"], {})
            for pos, variable in enumerate(ranked)
        }
        meaning = Meaning(query.plan, self.order, 1)
        return [
            self._interval(body, interval) for body, interval in root_negations(meaning, shape.part(binding))
        ]

    def _interval(self, body: Node, interval: Interval) -> dict[str, Any]:
        types = tuple(name for leaf in _positive(body) for name in leaf.types)
        return {
            "negation": f"!{expression_text(body)}",
            "lanes": list(self.lanes if ANY_TYPE in types else named_types(types)),
            **self.moments.words.interval(interval),
        }

    # -- around --------------------------------------------------------------------------------------------

    def surround(self, table: pa.Table) -> None:
        """Add the events of the lanes that lie around the matches, up to the most there may be."""
        if not self.matches or not table.num_rows:
            return
        low = min(match["from"] for match in self.matches)
        high = max(match["to"] for match in self.matches)
        margin = (high - low) // 10
        times = np.asarray(computable(table.column(self.time), "us", self.time))
        inside = np.flatnonzero((times >= low - margin) & (times <= high + margin))
        kinds = table.column(self.type).take(pa.array(inside)).to_pylist()
        rows = [int(row) for row, kind in zip(inside, kinds, strict=True) if kind in self.lanes]
        rows.sort(key=lambda row: int(times[row]))
        room = max(self.most - len(self.events), 0)
        seen: dict[str, int] = {}
        taken = rows[: room + len(self.events)]
        for event in table.take(pa.array(taken, pa.int64())).to_pylist():
            self._event(event, seen)
        self.around = len(rows)

    def done(self) -> Timeline:
        """The timeline."""
        self.left_out["events"] = max(len(self.refused), self.around - len(self.events))
        lanes = tuple(self.lanes)
        return Timeline(
            lanes, tuple(self.events), tuple(self.matches), self.left_out, self.moments, self.more
        )


def _positive(node: Node) -> Iterator[Leaf]:
    """The leaves that a match of a negated node would bind."""
    match node:
        case Leaf():
            yield node
        case WinSeq(components=inner) | WinAnd(components=inner) | WinOr(components=inner):
            for component in inner:
                if isinstance(component, Leaf | WinSeq | WinAnd | WinOr):
                    yield from _positive(component)
        case _:
            return
