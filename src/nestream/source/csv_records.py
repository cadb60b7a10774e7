"""Reads CSV one record at a time, with line numbers: for the header, and to find malformed rows.

The rules are those of the fast path. Fields are separated by commas. A field that starts with a quote runs to
the closing quote and may contain newlines; `""` in it is a quote. Blank lines are not rows. Lines end in LF,
CRLF or CR.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TypeAlias

RECORD_LIMIT = 4 * 1024 * 1024  # bytes; a quote that stays open for longer is a mistake
_INSIDE = re.compile(rb'(?:[^"]|"")*+"')
_QUOTED = re.compile(rb'"(?:[^"]|"")*+"')

Problem: TypeAlias = tuple[str, str]
"""What is wrong with a row: the kind, and the reason."""


@dataclass(slots=True)
class Record:
    """One row: where it starts, its bytes without the line end, and its values or its problem."""

    line: int
    raw: bytes
    values: list[str]
    problem: Problem | None
    end: int
    """Bytes read up to and including this record."""


def records(file: IO[bytes]) -> Iterator[Record]:
    """Every non-blank record, from the current position of the file."""
    lines = _Lines(file)
    while (raw := lines.next()) is not None:
        if raw.isspace():
            continue
        text = raw.rstrip(b"\r\n")
        values = _values_of_line(text)
        if values is not None:
            yield Record(lines.number, text, values, None, lines.position)
        else:
            yield _careful_record(raw, lines)


def _values_of_line(text: bytes) -> list[str] | None:
    """The values of a record that is one plain line; None if more care is needed."""
    try:
        decoded = text.decode()
        if '"' not in decoded:
            return decoded.split(",")
        return next(csv.reader((decoded,), strict=True))
    except (UnicodeDecodeError, csv.Error):
        return None


def _careful_record(raw: bytes, lines: _Lines) -> Record:
    """The record that begins with this line: of several lines, not text, or with a stray quote."""
    first, after_first = lines.number, lines.position
    taken: list[bytes] = []
    size = len(raw)
    is_open = ends_open(raw, inside=False)
    while is_open and size <= RECORD_LIMIT and (more := lines.next()) is not None:
        taken.append(more)
        size += len(more)
        is_open = ends_open(more, inside=True)
    if is_open:  # give the lines back: only the first one is wrong
        lines.give_back(taken, first, after_first)
        text = raw.rstrip(b"\r\n")
        return Record(first, text, [], ("quote", "a quoted field is never closed"), after_first)
    text = b"".join((raw, *taken)).rstrip(b"\r\n")
    if size > RECORD_LIMIT:
        problem = ("value", f"the row is longer than {RECORD_LIMIT} bytes")
        return Record(first, text, [], problem, lines.position)
    try:
        values = [field_value(field) for field in split_fields(text)]
    except UnicodeDecodeError as error:
        problem = ("encoding", f"not valid UTF-8 at byte {_first_wrong_byte(text, error)} of the row")
        return Record(first, text, [], problem, lines.position)
    return Record(first, text, values, None, lines.position)


def _first_wrong_byte(text: bytes, error: UnicodeDecodeError) -> int:
    try:
        text.decode()
    except UnicodeDecodeError as whole:
        error = whole
    return error.start + 1


def ends_open(line: bytes, inside: bool) -> bool:
    """Whether a quoted field is open at the end of a line that begins `inside` one or not."""
    if b'"' not in line:
        return inside
    position = 0
    if not inside and line.startswith(b'"'):
        inside, position = True, 1
    while True:
        if inside:
            rest = _INSIDE.match(line, position)
            if rest is None:
                return True
            position = rest.end()
        comma = line.find(b",", position)
        if comma < 0:
            return False
        inside = line.startswith(b'"', comma + 1)
        position = comma + 2 if inside else comma + 1


def split_fields(text: bytes) -> list[bytes]:
    """The fields of a record with closed quotes, as written."""
    if b'"' not in text:
        return text.split(b",")
    fields: list[bytes] = []
    start = 0
    while True:
        after = start
        if text[start : start + 1] == b'"':
            quoted = _QUOTED.match(text, start)
            after = quoted.end() if quoted is not None else len(text)
        comma = text.find(b",", after)
        if comma < 0:
            return [*fields, text[start:]]
        fields.append(text[start:comma])
        start = comma + 1


def field_value(field: bytes) -> str:
    """The value of a field, without the quotes. May raise UnicodeDecodeError."""
    quoted = _QUOTED.match(field)
    if quoted is None:
        return field.decode()
    inside = quoted.group()[1:-1].replace(b'""', b'"')
    return (inside + field[quoted.end() :]).decode()


class _Lines:
    """Numbered lines, starting at 1, with their line ends; lines can be given back."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._ahead: list[bytes] = []  # in reverse
        self.number = 0
        self.position = file.tell()

    def next(self) -> bytes | None:
        if not self._ahead:
            raw = self._file.readline()
            if not raw:
                return None
            if b"\r" in raw[:-2] or raw.endswith(b"\r"):
                self._ahead = raw.splitlines(keepends=True)[::-1]
            else:
                self._ahead = [raw]
        line = self._ahead.pop()
        self.number += 1
        self.position += len(line)
        return line

    def give_back(self, lines: list[bytes], number: int, position: int) -> None:
        self._ahead.extend(reversed(lines))
        self.number, self.position = number, position
