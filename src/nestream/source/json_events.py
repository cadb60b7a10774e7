"""Converts JSON lines to tables of events as they arrive, without seeing all of them first.

The first value of an attribute decides what it holds: numbers, booleans, times or text. An integer may be
followed by a fraction, and text takes every value as its JSON text. Any other value that does not fit makes
its line a dead letter. So how the lines are split into batches never changes the events.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nestream.source.dead_letter import RAW_LIMIT, DeadLetter
from nestream.source.errors import SourceError
from nestream.source.json_table import EXACT, read_flat
from nestream.source.json_values import (
    MOST_ATTRIBUTES,
    beginning,
    json_kind,
    not_json,
    parse_line,
    parse_together,
    surrogates,
)
from nestream.source.kinds import ARROW_TYPES, Kind
from nestream.source.protocol import Batch
from nestream.source.times import INSTANT, INTEGER, TIMESTAMP, time_form, wrong_times


class Holds(Enum):
    """What an attribute holds. Numbers are small integers first; then integers, or exact floats."""

    BOOLEANS = "booleans"
    NUMBERS = "numbers"
    INTEGERS = "integers"
    FLOATS = "floats"
    TIMESTAMPS = "timestamps without zone"
    INSTANTS = "timestamps with zone"
    TEXT = "text"


_TAKES: Mapping[Holds, frozenset[type]] = {
    Holds.BOOLEANS: frozenset({bool}),
    Holds.NUMBERS: frozenset({int, float}),
    Holds.INTEGERS: frozenset({int}),
    Holds.FLOATS: frozenset({int, float}),
    Holds.TIMESTAMPS: frozenset({str}),
    Holds.INSTANTS: frozenset({str}),
}
_MOMENTS = {Holds.TIMESTAMPS: Kind.TIMESTAMP, Holds.INSTANTS: Kind.INSTANT}
_FORMS = {
    Kind.INTEGER: INTEGER,
    Kind.TIMESTAMP: TIMESTAMP,
    Kind.TIMESTAMP_NS: TIMESTAMP,
    Kind.INSTANT: INSTANT,
    Kind.INSTANT_NS: INSTANT,
}
_FINER = {Kind.TIMESTAMP: Kind.TIMESTAMP_NS, Kind.INSTANT: Kind.INSTANT_NS}
_NUMBERS = frozenset({Holds.NUMBERS, Holds.INTEGERS, Holds.FLOATS})
_READ = {
    Holds.BOOLEANS: pa.bool_(),
    Holds.NUMBERS: pa.int64(),
    Holds.INTEGERS: pa.int64(),
    Holds.FLOATS: pa.float64(),
}
"""How Arrow reads an attribute; all others are strings."""
Problems = dict[int, str]


class JsonEvents:
    """Converts lines to events. Text is read as a time only in the time column and in the `moments`.

    Without a type column, rows need none.
    """

    def __init__(self, time: str, type: str | None, moments: Collection[str] | None = None) -> None:
        self.time = self._time = time
        self._type, self._moments = type, moments
        self._time_kind: Kind | None = None
        self._holds: dict[str, Holds] = {}
        self._names = {time} if type is None else {time, type}
        """The attributes so far."""

    def add_moment(self, name: str) -> None:
        """Declare that text of another attribute may be a time."""
        if self._moments is not None:
            self._moments = {*self._moments, name}

    def problem(self, value: bytes) -> str | None:
        """What is wrong with a message that is not text."""
        return not_json(value)

    def position(self) -> dict[str, Any]:
        """What the attributes hold so far."""
        time = None if self._time_kind is None else self._time_kind.value
        return {"time": time, "holds": {name: held.value for name, held in self._holds.items()}}

    def seek(self, position: Mapping[str, Any]) -> None:
        """Continue with what the attributes held."""
        if "holds" not in position:
            raise SourceError(
                "the checkpoint belongs to a stream of Avro. Start over, or read Avro as before"
            )
        self._time_kind = None if position["time"] is None else Kind(position["time"])
        self._holds = {name: Holds(held) for name, held in position["holds"].items()}
        self._names.update(self._holds)

    def batch(
        self,
        where: str,
        lines: Sequence[bytes],
        first: int,
        added: Sequence[Mapping[str, Any]] = (),
        *,
        inside: bool = False,
    ) -> Batch:
        """The events of some lines; `first` is the number of the first line, including blank ones.

        `added` has more attributes for each line, which replace those of the same name. With `inside`, line 1
        is not the beginning of a text either.
        """
        begins = first == 1 and not inside
        if begins and lines:
            lines = [beginning(where, lines[0]), *lines[1:]]
        texts = [line.strip() for line in lines]
        places = [place for place, text in enumerate(texts) if text]
        if not begins and not added:
            together = self._together(texts if len(places) == len(texts) else [texts[at] for at in places])
            if together is not None:
                return Batch(together)
        problems: Problems = {}
        rows = self._objects([texts[place] for place in places], places, problems, added)
        columns = self._columns(rows, problems)
        dead = [
            DeadLetter(where, first + place, problems[place], texts[place].decode(errors="backslashreplace"))
            for place in sorted(problems)
        ]
        return Batch(columns, [_cut(letter) for letter in dead])

    def _together(self, texts: list[bytes]) -> pa.Table | None:
        """The events of plain lines with known attributes; None if a line needs a closer look."""
        if self._time_kind is None:
            return None
        time = pa.int64() if self._time_kind is Kind.INTEGER else pa.string()
        types = {self._time: time} if self._type is None else {self._time: time, self._type: pa.string()}
        types |= {name: _READ.get(held, pa.string()) for name, held in self._holds.items()}
        table = read_flat(texts, pa.schema(list(types.items())))
        if table is None or table.column(self._time).null_count:
            return None
        if self._type is not None:
            kinds = table.column(self._type)
            if kinds.null_count or pc.any(pc.equal(kinds, "")).as_py():
                return None
        columns: dict[str, Any] = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            held = self._holds.get(name)
            if name == self._time and self._time_kind is not Kind.INTEGER:
                column = _cast(pc.utf8_trim_whitespace(column), self._time_kind)
            elif held is Holds.NUMBERS and not _are_small(column):
                return None
            elif held in _MOMENTS:
                column = _moments(column, held)
            if column is None:
                return None
            columns[name] = column
        return pa.table(columns)

    def _objects(
        self,
        texts: list[bytes],
        places: list[int],
        problems: Problems,
        added: Sequence[Mapping[str, Any]],
    ) -> list[tuple[int, dict[str, Any]]]:
        together = parse_together(texts) if texts else []
        if together is not None and added:
            for place, value in zip(places, together, strict=True):
                _add(value, added[place])
        if together is not None and self._are_plain(texts, together):
            return list(zip(places, together, strict=True))
        rows = []
        for at, place in enumerate(places):
            value, wrong = (together[at], None) if together is not None else parse_line(texts[at])
            if together is None and added:
                _add(value, added[place])
            problem = wrong[1] if wrong is not None else self._problem(value)
            if problem is None:
                rows.append((place, value))
            else:
                problems[place] = problem
        return rows

    def _are_plain(self, texts: list[bytes], values: list[Any]) -> bool:
        """Whether all values are events with known attributes, by a quick check: nearly always they are."""
        if set(map(type, values)) != {dict} or any(b"\\u" in text for text in texts):
            return False
        if any(not self._names.issuperset(names) for names in set(map(tuple, values))):
            return False
        if self._type is None:
            return True
        kinds = [value.get(self._type) for value in values]
        return set(map(type, kinds)) == {str} and "" not in kinds

    def _problem(self, value: Any) -> str | None:
        if type(value) is not dict:
            return f"expected a JSON object, found {json_kind(value)}"
        for item in value.values():
            if type(item) is str and not item.isascii() and surrogates(item):
                return "a value is not valid Unicode"
        if not self._names.issuperset(value):
            if any(surrogates(name) for name in value):
                return "an attribute's name is not valid Unicode"
            if len(self._names.union(value)) > MOST_ATTRIBUTES:
                return f"the events have more than {MOST_ATTRIBUTES} different attributes"
            self._names.update(value)
        if self._type is None:
            return None
        kind = value.get(self._type)
        if kind is None or kind == "":
            return f"type is missing: no `{self._type}`" if kind is None else "type is missing"
        if isinstance(kind, bool | float | list | dict):
            return f"type is {json_kind(kind)}, but text is needed"
        return None

    def _columns(self, rows: list[tuple[int, dict[str, Any]]], problems: Problems) -> pa.Table:
        """The events as a table, without those that have a problem."""
        rows = self._with_times(rows, problems)
        shapes = dict.fromkeys(tuple(row) for _, row in rows)
        names = dict.fromkeys(name for shape in shapes for name in shape)
        for name in names:
            if name not in (self._time, self._type):
                self._check(name, rows, problems)
        if problems:
            rows = [(place, row) for place, row in rows if place not in problems]
        columns = {name: self._column(name, [row.get(name) for _, row in rows]) for name in names}
        return pa.table(columns)

    def _with_times(
        self, rows: list[tuple[int, dict[str, Any]]], problems: Problems
    ) -> list[tuple[int, dict[str, Any]]]:
        """The rows that have a time; the first one decides its form."""
        values = [row.get(self._time) for _, row in rows]
        if self._time_kind is None:
            found = next((kind for value in values if (kind := _time_kind(value)) is not None), None)
            if found is None:
                for place, row in rows:
                    said = row.get(self._time)
                    problems[place] = wrong_times(_texts([said]), None)[0] + (
                        f": no `{self._time}`" if said is None else ""
                    )
                return []
            self._time_kind = found
        kind = self._time_kind
        if kind is Kind.INTEGER and {*map(type, values)} == {int}:
            wrong = {at: _too_large(v) for at, v in enumerate(values) if not -(2**63) <= v < 2**63}  # type: ignore[operator]
        else:
            texts = _texts(values)
            is_plain = kind is not Kind.INTEGER and not texts.null_count
            if is_plain and _cast(texts, kind) is not None:
                return rows
            wrong = wrong_times(texts, _FORMS[kind])
            for at in range(len(texts)):
                if at not in wrong and _cast(texts.slice(at, 1), kind) is None:  # in a finer unit
                    wrong[at] = (
                        f"time {texts[at].as_py()!r} does not fit: the times so far are {ARROW_TYPES[kind]}"
                    )
        for at, reason in wrong.items():
            missing = f": no `{self._time}`" if values[at] is None else ""
            problems[rows[at][0]] = reason + missing
        return [row for at, row in enumerate(rows) if at not in wrong] if wrong else rows

    def _check(self, name: str, rows: list[tuple[int, dict[str, Any]]], problems: Problems) -> None:
        """Record the rows whose value does not fit what the attribute holds; its first value decides that."""
        values = [row.get(name) for _, row in rows]
        types = set(map(type, values)) - {type(None)}
        if not types:
            return
        if name not in self._holds:
            self._holds[name] = self._held(name, next(value for value in values if value is not None))
        if self._holds[name] is Holds.NUMBERS and types & {int, float}:
            self._holds[name] = _numbers(values)
        held = self._holds[name]
        takes = _TAKES.get(held)
        if takes is None:
            return

        def refuse(at: int, what: str, holds: Holds = held) -> None:
            first = f"this attribute holds {holds.value} because an earlier value was one"
            problems.setdefault(rows[at][0], f"`{name}` is {what}, and {first}")

        if not types <= takes:
            for at, value in enumerate(values):
                if value is None or type(value) in takes:
                    continue
                if type(value) is float and held is Holds.INTEGERS:
                    refuse(at, json.dumps(value))
                else:  # which numbers it holds may depend on later values
                    refuse(at, json_kind(value), Holds.NUMBERS if held in _NUMBERS else held)
        if held in _MOMENTS and self._moments_of(values, held) is None:
            for at, value in enumerate(values):
                if type(value) is str and self._moments_of([value], held) is None:
                    refuse(at, repr(value))
        elif int in types and held in _NUMBERS:
            for at, value in enumerate(values):
                if type(value) is not int:
                    continue
                if not -(2**63) <= value < 2**63:
                    problems.setdefault(rows[at][0], f"`{name}` is {value}, which does not fit in 64 bits")
                elif held is Holds.FLOATS and not -EXACT <= value < EXACT:
                    refuse(at, f"{value}, which no float holds exactly")

    def _held(self, name: str, value: Any) -> Holds:
        if isinstance(value, bool):
            return Holds.BOOLEANS
        if isinstance(value, int | float):
            return Holds.NUMBERS if isinstance(value, float) or -(2**63) <= value < 2**63 else Holds.TEXT
        if isinstance(value, str) and (self._moments is None or name in self._moments):
            form = time_form(value)
            return {TIMESTAMP: Holds.TIMESTAMPS, INSTANT: Holds.INSTANTS}.get(str(form), Holds.TEXT)
        return Holds.TEXT

    @staticmethod
    def _moments_of(values: list[Any], held: Holds) -> pa.Array | None:
        """Text as times, in microseconds if all fit; None if one is not such a time."""
        texts = pa.array([value if type(value) is str else None for value in values], pa.string())
        return _moments(texts, held)

    def _column(self, name: str, values: list[Any]) -> pa.Array:
        if name == self._type:
            return pa.array([value if type(value) is str else str(value) for value in values], pa.string())
        if name == self._time:
            assert self._time_kind is not None
            if self._time_kind is Kind.INTEGER and set(map(type, values)) <= {int}:
                return pa.array(values, pa.int64())
            return _cast(_texts(values), self._time_kind)
        held = self._holds.get(name)
        if held is None:
            return pa.nulls(len(values))
        if held in _MOMENTS:
            return self._moments_of(values, held)
        if held is Holds.TEXT:
            return _texts(values, trimmed=False)
        if held is Holds.BOOLEANS:
            return pa.array(values, pa.bool_())
        whole = set(map(type, values)) <= {int, type(None)}
        return pa.array(values, pa.int64() if whole else pa.float64())


def _add(value: Any, added: Mapping[str, Any]) -> None:
    """Add attributes to an event; anything else is refused later."""
    if type(value) is dict:
        value.update(added)


def _numbers(values: list[Any]) -> Holds:
    """What small integers become: floats with the first float, integers with the first large one."""
    for value in values:
        if type(value) is float:
            return Holds.FLOATS
        if type(value) is int and not -EXACT <= value < EXACT and -(2**63) <= value < 2**63:
            return Holds.INTEGERS
    return Holds.NUMBERS


def _time_kind(value: Any) -> Kind | None:
    """The kind of a time, in the coarsest unit that holds it; None if it is not a time."""
    if value is None:
        return None
    [text] = _texts([value]).to_pylist()
    match time_form(text):
        case "integer":
            return Kind.INTEGER
        case form if form in (TIMESTAMP, INSTANT):
            kind = Kind.TIMESTAMP if form == TIMESTAMP else Kind.INSTANT
            return kind if _cast(pa.array([text]), kind) is not None else _FINER[kind]
    return None


def _texts(values: list[Any], *, trimmed: bool = True) -> pa.Array:
    """Values as text: other values as their JSON."""
    if not set(map(type, values)) <= {str, type(None)}:
        values = [
            value
            if value is None or type(value) is str
            else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            for value in values
        ]
    texts = pa.array(values, pa.string())
    return pc.utf8_trim_whitespace(texts) if trimmed else texts


def _are_small(numbers: pa.ChunkedArray) -> bool:
    """Whether the numbers are small enough to be exact as floats."""
    least, most = pc.min_max(numbers).as_py().values()
    return least is None or (least >= -EXACT and most < EXACT)


def _moments(texts: pa.Array, held: Holds) -> pa.Array | None:
    """Text as times, in microseconds if all fit; None if one is not such a time."""
    found = _cast(texts, _MOMENTS[held])
    return found if found is not None else _cast(texts, _FINER[_MOMENTS[held]])


def _cast(texts: pa.Array, kind: Kind) -> pa.Array | None:
    """Text as times; None if one is not of that form and unit."""
    try:
        return pc.cast(texts, ARROW_TYPES[kind])
    except pa.ArrowInvalid:
        return None


def _too_large(value: Any) -> str:
    return f"time {value} is not an integer of 64 bits; count in a finer unit or write ISO-8601"


def _cut(letter: DeadLetter) -> DeadLetter:
    if len(letter.raw) <= RAW_LIMIT:
        return letter
    return DeadLetter(letter.file, letter.line, letter.reason, letter.raw[:RAW_LIMIT])
