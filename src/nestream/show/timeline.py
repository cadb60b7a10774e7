"""The timeline of matches: a lane for each event type, the events of each match, what its negations found.

`timeline` takes the table of a query's matches, `timeline_of_rows` rows of JSON, like those of a query set.
What is too much to show is left out, and the result says how much that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nestream.model.columns import to_table
from nestream.model.counting import showing, showing_matches
from nestream.model.output import CompositeColumn, EventColumn, GroupColumn, ValueColumn
from nestream.model.python_rows import python_rows
from nestream.show.around import Around
from nestream.show.gathering import Gathering, Reading
from nestream.show.moments import Moments

MOST_MATCHES, MOST_EVENTS = 20, 400
"""The default number of matches and events in a timeline."""


@dataclass(frozen=True)
class Timeline:
    """What is drawn: plain data, and the drawing."""

    lanes: tuple[str, ...]
    events: tuple[Mapping[str, Any], ...]
    matches: tuple[Mapping[str, Any], ...]
    left_out: Mapping[str, int]
    moments: Moments = field(default=Moments(False), repr=False)
    more: bool = False
    """Whether there are more matches than were counted."""
    notes: tuple[str, ...] = ()
    """Notes about what could not be shown."""

    @property
    def told_matches(self) -> str:
        """How many of how many matches are drawn."""
        drawn = len(self.matches)
        return showing_matches(drawn, drawn + self.left_out["matches"], more=self.more)

    @property
    def told_events(self) -> str:
        """How many of how many events are drawn."""
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
            "notes": list(self.notes),
        }

    def text(self, width: int = 100) -> str:
        """The timeline for a terminal: for each match its lanes, its events and its evidence."""
        from nestream.show.timeline_text import timeline_text

        return timeline_text(self, width)

    __str__ = text

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
    types: Mapping[str, Iterable[str]] | None = None,
    most_matches: int = MOST_MATCHES,
    most_events: int = MOST_EVENTS,
    total: int | None = None,
) -> Timeline:
    """The timeline of a query's matches, as `match` returns them.

    With `events`, it shows what the negations and groups of each match examined, and the other events of the
    lanes' types around the matches. A match shows the events of the variables that the query returns; if
    RETURN has only expressions, it shows its span. The table may hold the first of `total` matches.
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
        for row in python_rows(table.slice(0, most_matches))
    ]
    around = None
    if events is not None:
        known = isinstance(events, Around)
        around = events if known else Around(events, time=time, type=type, types=types, order=order)
    built = Gathering({"": query}, Reading(time, type, order, most_events), around)
    built.take(rows, table.num_rows if total is None else total)
    built.surround()
    return _done(built)


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
    events: Any = None,
    *,
    first: int = 0,
    time: str = "ts",
    type: str = "type",
    order: str = "time",
    most_matches: int = MOST_MATCHES,
    most_events: int = MOST_EVENTS,
    total: int | None = None,
    more: bool = False,
) -> Timeline:
    """The timeline of matches as rows `{"query", "match_start", "match_end", "events"}`, like those of a set.

    `events` lists `{"variable", "event"}`, with the `number` of the event if known. `query` is their query, a
    mapping of queries by name, or None, which shows no intervals. Times may be ISO-8601 text. Rows of another
    form are left out. The rows are the first of `total` matches, or of more than that if `more` is set.

    `events` are those that the matches were found in; `first` is the number of the first. With them, the
    timeline shows what the negations and groups of each match examined.
    """
    rows = list(rows)
    queries = query if isinstance(query, Mapping) else {"": query}
    around = None
    if events is not None:
        around = Around(events, first, time=time, type=type, types=None, order=order)
    built = Gathering(queries, Reading(time, type, order, most_events), around)
    built.take(rows[:most_matches], len(rows) if total is None else total)
    return _done(built, more)


def shown_events(match: Mapping[str, Any]) -> set[int]:
    """The places of the events of a match, and of those that its negations and groups examined."""
    return {
        *match["variables"].values(),
        *match["hidden"].values(),
        *(place for places in match["groups"].values() for place in places),
        *(place for interval in match["intervals"] for place in interval["events"]),
    }


def _done(built: Gathering, more: bool = False) -> Timeline:
    built.count()
    return Timeline(
        tuple(built.lanes),
        tuple(built.events),
        tuple(built.matches),
        built.left_out,
        built.moments,
        more,
        tuple(built.notes),
    )
