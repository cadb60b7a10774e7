"""Prints a match for people who watch a stream: its span, then each event with its time and values."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from nestream.cli.table import is_event, is_event_list, rows_of

Row = dict[str, Any]


class MatchText:
    """Writes matches as text; `name` is the name of the query, if the matches do not have one."""

    def __init__(self, name: str, time: str, type: str) -> None:
        self._name, self._time, self._type = name, time, type

    def __call__(self, matches: pa.Table) -> str:
        """The lines of some matches."""
        lines = []
        for row in rows_of(matches):
            lines += self._match(row, matches.schema)
        return "".join(f"{line}\n" for line in lines)

    def _match(self, row: Row, schema: pa.Schema) -> list[str]:
        start, end = row.pop("match_start"), row.pop("match_end")
        events: list[tuple[str, Row]] = []
        values: Row = {}
        name = self._name
        for field in schema:
            if field.name not in row:
                continue
            value = row[field.name]
            if is_event(field.type, self._time, self._type):
                events += [(field.name, value)] if value is not None else []
            elif is_event_list(field.type, self._time, self._type):
                events += [(entry["variable"], entry["event"]) for entry in value]
            elif pa.types.is_map(field.type):
                values |= dict(value or {})
            elif field.name == "query":
                name = value
            elif field.name == "version" and "query" in row:
                name += f" v{value}" if value > 1 else ""
            else:
                values[field.name] = value
        span = self._moment(start, None) + ("" if start == end else f" to {self._moment(end, start)}")
        head = f"{name}  {span}" + "".join(f"  {key}={self._plain(item)}" for key, item in values.items())
        widths = [max((len(f"{own} {event[self._type]}") for own, event in events), default=0)]
        return [head, *(self._event(own, event, start, widths[0]) for own, event in events)]

    def _event(self, variable: str, event: Row, start: Any, width: int) -> str:
        label = f"{variable} {event[self._type]}".ljust(width)
        others = [
            f"{name}={self._plain(value)}"
            for name, value in event.items()
            if name not in (self._time, self._type) and value is not None
        ]
        return f"  {label}  {' '.join([self._moment(event[self._time], start), *others])}"

    @staticmethod
    def _moment(value: Any, start: Any) -> str:
        """A time; without its date if that is the date of the start of the match."""
        text = str(value)
        if isinstance(start, str) and text[:11] == start[:11] and text[10:11] == "T":
            return text[11:]
        return text.replace("T", " ", 1) if text[10:11] == "T" else text

    @staticmethod
    def _plain(value: Any) -> str:
        if value is None:
            return "-"
        if isinstance(value, str) and value.isprintable():
            return value
        return json.dumps(value, ensure_ascii=False)
