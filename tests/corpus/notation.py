"""The compact notation of histories and matches: `a1 d2 b3`, `Recycle@1(id=7)`, and `a1 - match=3`.

tests/corpus/README.md describes it. An event's label, as it is written, rides along in the column `_event`,
so that a match can be written with the labels of its events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

LABEL_COLUMN = "_event"
START = datetime(2026, 1, 1)
"""The moment that times with a unit count from."""

_UNITS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_TIME = r"-?\d+(?:(?:ms|s|m|h|d)(?:\d+(?:ms|s|m|h|d))*)?"
_EVENT = re.compile(
    rf"""(?P<label>
        (?: (?P<short>[a-z]+?) (?P<short_time>{_TIME}) | (?P<type>`[^`]+`|[^\W\d][\w-]*) @ (?P<time>{_TIME}) )
        '*
    )
    (?: \( (?P<attributes> (?: [^()"'] | "[^"]*" | '[^']*' )* ) \) )?
    (?= \s | $ )""",
    re.VERBOSE,
)
_ATTRIBUTE = re.compile(r"""\s*([^\W\d][\w-]*)\s*=\s*("[^"]*"|'[^']*'|[^,\s]+)\s*(?:,|$)""")


class NotationError(ValueError):
    """Text that is not in the notation."""


@dataclass(frozen=True)
class History:
    """Events in the order in which they come."""

    rows: list[dict[str, Any]]

    def table(self) -> pa.Table:
        """The events as an Arrow table, each with its label."""
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        columns = {name: [row.get(name) for row in self.rows] for name in names}
        if not self.rows:
            return pa.table({"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string())})
        return pa.table({name: _column(values) for name, values in columns.items()})


def _column(values: list[Any]) -> pa.Array:
    # NaN and NULL are told apart on the way in: the language takes both for NULL.
    if any(isinstance(value, float) for value in values):
        return pa.array([None if v is None else float(v) for v in values], pa.float64(), from_pandas=False)
    return pa.array(values)


def read_history(text: str, letters: Mapping[str, str], columns: tuple[str, str] = ("ts", "type")) -> History:
    """The events that a text says; `letters` gives the type of each short name.

    `columns` are the names of the columns of time and type.
    """
    rows: list[dict[str, Any]] = []
    place = 0
    text = text.strip()
    while place < len(text):
        found = _EVENT.match(text, place)
        if found is None:
            raise NotationError(f"not an event: {text[place : place + 40]!r}")
        kind = found["type"].strip("`") if found["type"] else _type_of(found["short"], letters)
        row = {
            columns[0]: _time(found["time"] or found["short_time"]),
            columns[1]: kind,
            LABEL_COLUMN: found["label"],
            **_attributes(found["attributes"] or ""),
        }
        if any(row[LABEL_COLUMN] == other[LABEL_COLUMN] for other in rows):
            raise NotationError(f"two events are labelled {row[LABEL_COLUMN]}: write {row[LABEL_COLUMN]}'")
        rows.append(row)
        place = found.end()
        while place < len(text) and text[place].isspace():
            place += 1
    return History(rows)


def _type_of(short: str, letters: Mapping[str, str]) -> str:
    return letters.get(short, short.upper())


def _time(text: str) -> int | datetime:
    if text.lstrip("-").isdigit():
        return int(text)
    sign = -1 if text.startswith("-") else 1
    size = sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)(ms|s|m|h|d)", text))
    return START + sign * timedelta(microseconds=size)


def _attributes(text: str) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    place = 0
    while place < len(text):
        found = _ATTRIBUTE.match(text, place)
        if found is None:
            raise NotationError(f"not an attribute: {text[place:]!r}")
        attributes[found[1]] = read_value(found[2])
        place = found.end()
    return attributes


def read_value(text: str) -> Any:
    """An attribute's value: a number, true, false, null, nan, a quoted string, or a word."""
    if text[0] in "\"'":
        return text[1:-1]
    if text in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[text]
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d+(e-?\d+)?|nan", text):
        return float(text)
    return text


def write_matches(matches: pa.Table, time: str = "ts") -> list[str]:
    """The matches as text, one a line: labels of events, `-` for an unbound variable, `name=value`.

    Where a line does not show all its events, it ends with the span of the match.
    """
    events = {field.name for field in matches.schema if _holds_events(field.type)}
    return [_write_match(row, events, time) for row in matches.to_pylist()]


def _holds_events(datatype: pa.DataType) -> bool:
    """Whether a column holds an event, or the members of a group: a list of events or of structs of them."""
    if pa.types.is_list(datatype):
        inner = datatype.value_type
        return _holds_events(inner)
    if not pa.types.is_struct(datatype):
        return False
    return LABEL_COLUMN in _fields(datatype) or any(
        _holds_events(datatype.field(place).type) for place in range(datatype.num_fields)
    )


def _fields(datatype: pa.DataType) -> list[str]:
    if not pa.types.is_struct(datatype):
        return []
    return [datatype.field(place).name for place in range(datatype.num_fields)]


def _write_match(row: dict[str, Any], events: set[str], time: str) -> str:
    start, end = row.pop("match_start"), row.pop("match_end")
    parts, times = [], []
    for name, cell in row.items():
        if name not in events:
            parts.append(f"{name}={_shown(cell)}")
        elif cell is None:
            parts.append("-")
        elif isinstance(cell, list):
            members = [[one] if LABEL_COLUMN in one else list(one.values()) for one in cell]
            whole = all(len(member) == 1 for member in members)
            texts = [" ".join("-" if one is None else one[LABEL_COLUMN] for one in own) for own in members]
            parts.append("{" + (" " if whole else ", ").join(texts) + "}")
            times += [one[time] for own in members for one in own if one is not None]
        elif LABEL_COLUMN in cell:
            parts.append(cell[LABEL_COLUMN])
            times.append(cell[time])
        else:
            parts.append(_expression(cell, time, times))
    shown = " ".join(parts)
    if times and (min(times), max(times)) == (start, end):
        return shown
    return f"{shown} [{_shown_time(start)}..{_shown_time(end)}]"


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return _shown_time(value)
    if isinstance(value, timedelta):
        return _shown_size(value)
    return str(value)


def _expression(cell: dict[str, Any], time: str, times: list[Any]) -> str:
    """The match of an expression with a variable: its parts in parentheses."""
    parts = []
    for name, part in cell.items():
        if isinstance(part, dict) and LABEL_COLUMN in part:
            parts.append(part[LABEL_COLUMN])
            times.append(part[time])
        elif isinstance(part, dict):
            parts.append(_expression(part, time, times))
        elif isinstance(part, list):
            parts.append("{" + " ".join(one[LABEL_COLUMN] for one in part) + "}")
            times += [one[time] for one in part]
        elif name not in ("ts", "te"):
            parts.append("-")
    return f"({' '.join(parts)})"


def _shown_time(moment: Any) -> str:
    return _shown_size(moment - START) if isinstance(moment, datetime) else str(moment)


def _shown_size(size: timedelta) -> str:
    left = abs(size) // timedelta(microseconds=1)
    text = ""
    for unit, microseconds in reversed(_UNITS.items()):
        count, left = divmod(left, microseconds)
        text += f"{count}{unit}" if count else ""
    return ("-" if size < timedelta(0) else "") + (text or "0s")
