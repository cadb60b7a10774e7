"""JSON lines: one object per line, its members are the attributes; kept as Arrow columns, on disk when large.

Members may differ from line to line: an absent one is NULL. An object or array inside an event is kept
as its JSON text. Numbers written as text stay text.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nestream.source.errors import SourceError, missing_column
from nestream.source.file_reader import EventReader
from nestream.source.input import LARGE
from nestream.source.json_columns import Column, array_column, cast_column, column_of
from nestream.source.json_table import read_flat, written_type
from nestream.source.json_values import (
    MOST_ATTRIBUTES,
    beginning,
    json_kind,
    parse_line,
    parse_together,
    surrogates,
)
from nestream.source.kinds import ARROW_TYPES, Kind, convert, join, non_empty
from nestream.source.times import (
    TimeOrder,
    form_of,
    time_type,
    vote,
    widen_time,
    winner,
    wrong_times,
)

_CHUNK = 16_384


@dataclass
class _Chunk:
    lines: pa.Array
    """The line of every row."""
    columns: dict[str, Column]


class _Chunks:
    """Chunks in the order of the file: in memory up to a size, and on disk beyond."""

    def __init__(self, chunks: Iterable[_Chunk] = ()) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=LARGE)
        self._kept: list[tuple[int, int, dict[str, Kind]]] = []
        for chunk in chunks:
            self.add(chunk)

    def add(self, chunk: _Chunk) -> None:
        """Keep one more."""
        values = [chunk.lines, *(column.values for column in chunk.columns.values())]
        batch = pa.record_batch(values, [str(number) for number in range(len(values))])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data = sink.getvalue()
        kinds = {name: column.kind for name, column in chunk.columns.items()}
        place = self._file.seek(0, os.SEEK_END) or self._file.tell()
        self._kept.append((place, data.size, kinds))
        self._file.write(memoryview(data))

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[_Chunk]:
        for place, size, kinds in self._kept:
            self._file.seek(place)
            with pa.ipc.open_stream(self._file.read(size)) as reader:
                lines, *values = reader.read_next_batch().columns
            columns = {
                name: Column(kind, column) for (name, kind), column in zip(kinds.items(), values, strict=True)
            }
            yield _Chunk(lines, columns)


class JsonLinesFile(EventReader):
    """A file of JSON objects."""

    def _open(self) -> None:
        source, time, type, closed = self._source, self._time, self._type, self._closed
        self._names: dict[str, None] = {}
        chunks = _Chunks(self._parse())
        if not self._names and not self._letters.count and not closed:  # a quiet day
            self._names = dict.fromkeys(_named(time, type))
        if not self._names and not closed:
            first = self._letters.examples[0].raw[:60]
            raise SourceError(
                f"{source.where} is not JSON lines: no line is a JSON object with members "
                f"(the first is {first!r}). Write one object per line, or name the right format"
            )
        for role, name in (("time", time), ("type", type)):
            if name is not None and name not in self._names and not closed:
                raise missing_column(source.where, role, name, list(self._names))
        self._chunks = self._checked(chunks)
        used = {name for chunk in self._chunks for name in chunk.columns}.union(_named(time, type))
        named = self._declared if closed else [name for name in self._names if name in used]
        self._names = dict.fromkeys(named)
        self._kinds = self._decide()
        self.schema = pa.schema([(name, self._arrow_type(name)) for name in self._names])

    @property
    def undecided(self) -> frozenset[str]:
        """The columns without a single value, whose type is a guess."""
        return frozenset(name for name, kind in self._kinds.items() if kind is Kind.EMPTY)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """The events, in file order."""
        rows = 0
        for number, chunk in enumerate(self._chunks, start=1):
            columns = [self._converted(name, chunk) for name in self._names]
            batch = pa.record_batch(columns, schema=self.schema)
            for start in range(0, batch.num_rows, self._batch_rows):
                part = batch.slice(start, self._batch_rows)
                rows += part.num_rows
                self._source.delivered(rows, self._source.size * number // len(self._chunks))
                yield part

    def _arrow_type(self, name: str) -> pa.DataType:
        if name == self._time and name not in self._declared:
            return time_type(self._kinds[name])
        if name == self._type:
            return pa.string()
        return self._declared.get(name, ARROW_TYPES[self._kinds[name]])

    def _converted(self, name: str, chunk: _Chunk) -> pa.Array:
        column = chunk.columns.get(name)
        if column is None:
            return pa.nulls(len(chunk.lines), self._arrow_type(name))
        if name == self._time and name not in self._declared:
            return convert(self._kinds[name], column.values)
        return cast_column(column, self._arrow_type(name))

    def _decide(self) -> dict[str, Kind]:
        kinds = dict.fromkeys(self._names, Kind.EMPTY)
        for chunk in self._chunks:
            for name, column in chunk.columns.items():
                if name == self._time:
                    if name not in self._declared:
                        kinds[name] = widen_time(kinds[name], column.values)
                else:
                    kinds[name] = join(kinds[name], column.kind)
        if kinds[self._time] is Kind.TEXT:
            raise self._too_far_apart()
        return kinds

    def _parse(self) -> Iterator[_Chunk]:
        number, position = 1, 0
        with self._source.open() as file:
            while raw := list(islice(file, _CHUNK)):
                position += sum(map(len, raw))
                if number == 1:
                    raw[0] = beginning(self._source.where, raw[0])
                texts = [line.strip() for line in raw]
                numbers = [number + at for at, text in enumerate(texts) if text]
                if numbers:
                    yield self._chunk([text for text in texts if text], numbers)
                self._source.inspected(position)
                number += len(raw)

    def _chunk(self, lines: list[bytes], numbers: list[int]) -> _Chunk:
        together = self._together(lines) if self._closed else None
        if together is not None:
            return _Chunk(pa.array(numbers, pa.int64()), together)
        rows, kept = self._objects(lines, numbers)
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {}
        for name in names:
            values = [row.get(name) for row in rows]
            columns[name] = _time_column(values) if name == self._time else column_of(values)
        if self._type is not None and self._type in columns:
            columns[self._type] = cast_column_to_text(columns[self._type])
        return _Chunk(pa.array(kept, pa.int64()), columns)

    def _together(self, lines: list[bytes]) -> dict[str, Column] | None:
        """The columns of plain lines with declared members; None if a line needs a closer look."""
        table = read_flat(lines, pa.schema([(n, written_type(t)) for n, t in self._declared.items()]))
        if table is None:
            return None
        arrays = dict(
            zip(table.column_names, (column.combine_chunks() for column in table.columns), strict=True)
        )
        columns = {name: array_column(values) for name, values in arrays.items()}
        if self._type is not None:
            kinds = arrays[self._type]
            if kinds.null_count or pc.any(pc.equal(kinds, "")).as_py():
                return None
            columns[self._type] = Column(Kind.TEXT, kinds)
        texts = pc.utf8_trim_whitespace(arrays[self._time].cast(pa.string()))
        return {**columns, self._time: Column(Kind.TEXT, texts)}

    def _objects(self, lines: list[bytes], numbers: list[int]) -> tuple[list[dict[str, Any]], list[int]]:
        """The lines that are flat JSON objects with acceptable names; the others become dead letters."""
        together = parse_together(lines)
        rows: list[dict[str, Any]] = []
        kept: list[int] = []
        for at, raw in enumerate(lines):
            value, problem = (together[at], None) if together is not None else parse_line(raw)
            if problem is None:
                problem = self._problem(value)
            if problem is None:
                rows.append(value)
                kept.append(numbers[at])
            else:
                self._letters.add(numbers[at], *problem, raw)
        return rows, kept

    def _problem(self, value: Any) -> tuple[str, str] | None:
        if type(value) is not dict:
            return "object", f"expected a JSON object, found {json_kind(value)}"
        names = self._names
        if self._closed and not value.keys() <= self._declared.keys():
            for name in [name for name in value if name not in self._declared]:
                del value[name]
        if not value.keys() <= names.keys():
            if len(names) + len(value) > MOST_ATTRIBUTES and len(names | value) > MOST_ATTRIBUTES:
                return "value", f"the file has more than {MOST_ATTRIBUTES} different attributes"
            if any(surrogates(name) for name in value):
                return "encoding", "an attribute's name is not valid Unicode"
            for name in value:
                names.setdefault(name)
        for item in value.values():
            if type(item) is str and not item.isascii() and surrogates(item):
                return "encoding", "a value is not valid Unicode"
        if self._type is None:
            return None
        kind = value.get(self._type)
        if kind is None or kind == "":
            return "type", "type is missing"
        if isinstance(kind, (bool, float, list, dict)):
            return "type", f"type is {json_kind(kind)}, but text is needed"
        return None

    @cached_property
    def in_order(self) -> bool:
        """Whether the times never decrease; not checked for a small file."""
        order = TimeOrder()
        if self._source.is_large and self._time not in self._declared:
            for chunk in self._chunks:
                order.add(chunk.columns[self._time].values, self._kinds[self._time])
        return order.holds and self._source.is_large and self._time not in self._declared

    def _checked(self, chunks: _Chunks) -> _Chunks:
        """Drop the rows whose time, or a value of a declared type, does not fit, as dead letters."""
        form = form_of(self._declared.get(self._time)) or self._elected(chunks)
        problems: dict[int, tuple[str, str]] = {}
        misfits = [self._misfits(chunk, form) for chunk in chunks]
        if not any(misfits) and all(len(chunk.lines) for chunk in chunks):
            return chunks
        good = _Chunks()
        for chunk, wrong in zip(chunks, misfits, strict=True):
            if wrong:
                problems |= {chunk.lines[at].as_py(): problem for at, problem in wrong.items()}
                stay = pa.array([at for at in range(len(chunk.lines)) if at not in wrong], pa.int64())
                taken = {name: column.take(stay) for name, column in chunk.columns.items()}
                used = {name: column for name, column in taken.items() if column.has_values()}
                chunk = _Chunk(chunk.lines.take(stay), used)
            if len(chunk.lines):
                good.add(chunk)
        if problems:
            with self._source.open() as file:
                for number, raw in enumerate(file, start=1):
                    if number in problems:
                        self._letters.add(number, *problems[number], raw.strip())
        return good

    def _elected(self, chunks: _Chunks) -> str | None:
        """The form that most times have."""
        votes: Counter[str] = Counter()
        for chunk in chunks:
            if self._time in chunk.columns:
                vote(non_empty(chunk.columns[self._time].values), votes)
        return winner(votes)

    def _misfits(self, chunk: _Chunk, form: str | None) -> dict[int, tuple[str, str]]:
        time = chunk.columns.get(self._time)
        values = time.values if time is not None else pa.nulls(len(chunk.lines), pa.string())
        wrong = {at: ("time", reason) for at, reason in wrong_times(values, form).items()}
        for name, wanted in self._declared.items():
            column = chunk.columns.get(name)
            if column is None or name == self._type:
                continue
            for at in column.misfits(wanted):
                reason = f"{name} {column.shown(at)} is not of type {wanted}"
                wrong.setdefault(at, ("value", reason))
        return wrong


def _named(time: str, type: str | None) -> list[str]:
    """The columns that every event needs; events of one type need no type column."""
    return [time] if type is None else [time, type]


def cast_column_to_text(column: Column) -> Column:
    """Convert the type column to text, whatever it was."""
    return Column(Kind.TEXT, cast_column(column, pa.string()))


def _time_column(values: list[Any]) -> Column:
    texts = [
        value if value is None or type(value) is str else json.dumps(value, ensure_ascii=False)
        for value in values
    ]
    return Column(Kind.TEXT, pc.utf8_trim_whitespace(pa.array(texts, pa.string())))
