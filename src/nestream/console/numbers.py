"""One number for each event, wherever a page shows it: its place among the events of the source.

A live event keeps the number it had on arrival; an event of a data set or a file has that of its row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from nestream.console.counts import CLOCK
from nestream.console.moments import moment

PLACE = "number of the event (nestream)"
"""The column that carries the numbers of events through a run."""


def with_places(table: pa.Table, first: int = 0) -> pa.Table:
    """The events with a column of their numbers, starting at the first one's."""
    return table.append_column(PLACE, pa.array(np.arange(first, first + table.num_rows)))


def with_numbers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Matches whose events carry their numbers: next to the event, not among its attributes."""
    for row in rows:
        for part in row["events"]:
            number = part["event"].pop(PLACE, None)
            if number is not None:
                part["number"] = number
    return rows


def searched(
    events: Callable[[], Iterable[tuple[int, dict[str, Any]]]], wanted: str, time: str, type: str, most: int
) -> list[dict[str, Any]]:
    """The first numbered events whose table row contains a text; if none does, all its words."""
    wanted = " ".join(wanted.lower().split())
    for holds in (_as_it_stands, _word_by_word):
        found = (
            {"place": place, "event": event}
            for place, event in events()
            if not wanted or holds(wanted, _row(place, event, time, type))
        )
        if rows := list(islice(found, most)):
            return rows
    return []


def _as_it_stands(wanted: str, row: str) -> bool:
    return wanted in row


def _word_by_word(wanted: str, row: str) -> bool:
    return set(wanted.split()) <= set(re.split(r"[\s,]+", row))


def _row(place: int, event: Mapping[str, Any], time: str, type: str) -> str:
    """An event's row as a table shows it, and the original values."""
    values = {name: _value(value) for name, value in event.items() if value is not None}
    at = moment(event.get(time))
    clock = ""
    if at is not None and at > CLOCK:
        clock = datetime.fromtimestamp(at / 1000, UTC).strftime("%H:%M:%S")
    others = {name: value for name, value in values.items() if name not in (time, type)}
    cells = [
        f"#{place} {place:,}",
        clock or values.get(time, ""),
        values.get(type, ""),
        ", ".join(f"{name} {value}" for name, value in others.items()),
        values.get(time, ""),
        " ".join(f"{name}={value}" for name, value in others.items()),
    ]
    return " ".join(cells).lower()


def _value(value: Any) -> str:
    """A value as a page shows it."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
