"""Prints matches as a table: a row per match, a column per variable, each event with its time and values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from rich import box
from rich.table import Table
from rich.text import Text

from nestream.sink import json_lines

Row = dict[str, Any]
NUMBER = "number of the row"
"""The column with the number of an event, which `nestream why` uses."""
_ENDS = ("match_start", "match_end")
_MOST_MEMBERS = 5
"""How many events of a group a cell shows."""


def matches_table(matches: pa.Table, time: str, type: str) -> Table:
    """The matches; a date that all times share is above the table instead of in every cell.

    If all returned columns are events, their times show when a match starts and ends.
    """
    returned = matches.drop_columns(list(_ENDS))
    if all(is_event(field.type, time, type) for field in returned.schema):
        matches = returned
    rows = rows_of(matches)
    date = _common_date(matches.schema, rows)
    table = Table(box=box.ROUNDED, title=date, title_justify="left", title_style="dim", show_lines=True)
    cells = _Cells(time, type, date)
    columns = []
    for field in matches.schema:
        values = [row[field.name] for row in rows]
        if is_event(field.type, time, type):
            common = cells.common_type(values)
            heading = Text(field.name)
            if common is not None:
                heading.append("\n" + common, "dim")
            table.add_column(heading, overflow="fold")
            columns.append([cells.event(value, common is None) for value in values])
        elif is_event_list(field.type, time, type):
            table.add_column(Text(field.name), overflow="fold")
            columns.append([cells.listed(value) for value in values])
        elif pa.types.is_list(field.type) and is_event(field.type.value_type, time, type):
            table.add_column(Text(field.name), overflow="fold")
            columns.append([cells.group(value) for value in values])
        elif pa.types.is_map(field.type) and not any(values):
            continue
        else:
            is_time = pa.types.is_timestamp(field.type)
            numeric = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
            table.add_column(Text(field.name), overflow="fold", justify="right" if numeric else "left")
            columns.append([Text(cells.value(value, is_time)) for value in values])
    for cell in zip(*columns, strict=True):
        table.add_row(*cell)
    return table


def with_numbers(events: pa.Table) -> pa.Table:
    """The events with a column of their numbers, which the table of matches shows before their times."""
    if NUMBER in events.column_names or not events.num_rows:
        return events
    return events.append_column(NUMBER, pa.array(np.arange(events.num_rows)))


def is_event(datatype: pa.DataType, time: str, type: str) -> bool:
    """Whether a column holds events; an attribute of an event may be a struct as well."""
    return pa.types.is_struct(datatype) and {time, type} <= {field.name for field in datatype}


def is_event_list(datatype: pa.DataType, time: str, type: str) -> bool:
    """Whether a column lists the events of a match, as the matches of a query set do."""
    if not pa.types.is_list(datatype) or not pa.types.is_struct(datatype.value_type):
        return False
    fields = {field.name: field.type for field in datatype.value_type}
    return set(fields) == {"variable", "event"} and is_event(fields["event"], time, type)


def rows_of(matches: pa.Table) -> list[Row]:
    """Convert through JSON, so that people and programs see the same values."""
    lines = "".join(json_lines(batch) for batch in matches.to_batches())
    return [json.loads(line) for line in lines.split("\n") if line]


def _common_date(schema: pa.Schema, rows: Sequence[Row]) -> str | None:
    times = [row[f.name] for f in schema if pa.types.is_timestamp(f.type) for row in rows]
    # the span of a match covers its events, so a list of them need not be checked
    for field in schema:
        if pa.types.is_struct(field.type):
            names = [part.name for part in field.type if pa.types.is_timestamp(part.type)]
            times += [row[field.name][name] for row in rows if row[field.name] for name in names]
    dates = {time[:10] for time in times if time is not None}
    return dates.pop() if len(dates) == 1 else None


class _Cells:
    """How values and events are written in a cell."""

    def __init__(self, time: str, type: str, date: str | None) -> None:
        self._time, self._type, self._date = time, type, date

    def common_type(self, events: Sequence[Row | None]) -> str | None:
        """The type of all events, if there is only one."""
        types = {event[self._type] for event in events if event}
        return self._plain(types.pop()) if len(types) == 1 else None

    def event(self, event: Row | None, with_type: bool) -> Text:
        """Its number and time, then the values it has."""
        if event is None:
            return Text("-", "dim")
        cell = Text()
        if with_type:
            cell.append(self._plain(event[self._type]) + " ", "dim")
        if event.get(NUMBER) is not None:
            cell.append(f"#{event[NUMBER]} ", "dim")
        cell.append(self.value(event[self._time], is_time=True), "cyan")
        others = [
            (name, value)
            for name, value in event.items()
            if name not in (self._time, self._type, NUMBER) and value is not None
        ]
        for place, (name, value) in enumerate(others):
            cell.append(" " if place else "\n")
            cell.append(f"{name}=", "dim")
            cell.append(self.value(value))
        return cell

    def listed(self, entries: Sequence[Row]) -> Text:
        """The events of a match, each with its variable, one below the other."""
        lines = []
        for entry in entries:
            line = Text(f"{entry['variable']} ", "bold")
            line.append_text(Text(" ").join(self.event(entry["event"], with_type=True).split("\n")))
            lines.append(line)
        return Text("\n").join(lines)

    def group(self, members: Sequence[Row] | None) -> Text:
        """The events of a group, one below the other; only the first of many."""
        if members is None:
            return Text("-", "dim")
        shown = [
            Text(" ").join(self.event(member, with_type=True).split("\n"))
            for member in members[:_MOST_MEMBERS]
        ]
        if len(members) > _MOST_MEMBERS:
            shown.append(Text(f"and {len(members) - _MOST_MEMBERS:,} more", "dim"))
        return Text("\n").join(shown)

    def value(self, value: Any, is_time: bool = False) -> str:
        """One value; NULL is a hyphen."""
        if value is None:
            return "-"
        if isinstance(value, str) and (is_time or value[:10] == self._date):
            return (
                value[11:] if self._date == value[:10] and "T" in value[10:11] else value.replace("T", " ", 1)
            )
        return self._plain(value)

    @staticmethod
    def _plain(value: Any) -> str:
        if isinstance(value, str) and value.isprintable():
            return value
        return json.dumps(_bare(value), ensure_ascii=False)


def _bare(value: Any) -> Any:
    """A value without the numbers of the events in it."""
    if isinstance(value, dict):
        return {name: _bare(part) for name, part in value.items() if name != NUMBER}
    return [_bare(part) for part in value] if isinstance(value, list) else value
