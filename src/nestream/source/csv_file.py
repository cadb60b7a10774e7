"""CSV files: read in bulk by Arrow; if there is a malformed row, filtered record by record first.

The file is read twice, once to decide the types of the columns and once to deliver the events. If the first
reading finds anything wrong, the good records are copied to a temporary file, the others become dead letters
with their line numbers, and the copy is read in place of the file. So malformed rows never change how other
values are read.
"""

from __future__ import annotations

import secrets
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from nestream.source.csv_records import Problem, Record, records
from nestream.source.ended_text import EndedText
from nestream.source.errors import SourceError, check_columns, missing_column
from nestream.source.file_reader import EventReader
from nestream.source.kinds import ARROW_TYPES, Kind, convert, find_misfits, non_empty, widen
from nestream.source.times import (
    TimeOrder,
    form_of,
    time_type,
    vote,
    widen_time,
    winner,
    wrong_times,
)

_CHUNK = 16_384  # records checked at a time
_BLOCK = 8 * 1024 * 1024


class _MalformedError(Exception):
    """The fast path found a row that it must not deliver."""


class CsvFile(EventReader):
    """A CSV file with a header."""

    def _open(self) -> None:
        self._clean: IO[bytes] | None = None
        self._names, self._body = self._header()
        self._kinds = self._inspect()
        wanted = [name for name in self._names if name in self._declared or not self._closed]
        self.schema = pa.schema([(name, self._arrow_type(name)) for name in wanted])

    @property
    def undecided(self) -> frozenset[str]:
        """The columns without a single value, whose type is a guess."""
        return frozenset(name for name, kind in self._kinds.items() if kind is Kind.EMPTY)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """The events, in file order."""
        try:
            yield from self._deliver()
        except (_MalformedError, ValueError) as error:
            raise SourceError(f"{self._source.where} changed while it was read. Read it again") from error

    def _deliver(self) -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch, position in self._texts():
            columns = [self._converted(name, batch.column(name)) for name in self.schema.names]
            converted = pa.record_batch(columns, schema=self.schema)
            for start in range(0, converted.num_rows, self._batch_rows):
                part = converted.slice(start, self._batch_rows)
                rows += part.num_rows
                self._source.delivered(rows, position)
                yield part

    def _arrow_type(self, name: str) -> pa.DataType:
        if name == self._type:
            return pa.string()
        if name in self._declared:
            return self._declared[name]
        return time_type(self._kinds[name]) if name == self._time else ARROW_TYPES[self._kinds[name]]

    def _converted(self, name: str, values: pa.Array) -> pa.Array:
        if name == self._type:
            return values
        if name in self._declared:
            return _declared(values, self._declared[name])
        return convert(self._kinds[name], values)

    def _header(self) -> tuple[list[str], int]:
        where = self._source.where
        with self._source.open() as file:
            mark = file.read(4)
            if mark[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise SourceError(f"{where} is UTF-16 text. Convert it: iconv -f UTF-16 -t UTF-8 FILE")
            file.seek(3 if mark[:3] == b"\xef\xbb\xbf" else 0)
            record = next(records(file), None)
        if record is None:
            raise SourceError(f"{where} is empty. Write a header line with the names of the columns")
        if record.problem is not None:
            kind, reason = record.problem
            hint = "Close it" if kind == "quote" else "Convert it to UTF-8 text, or name the right format"
            raise SourceError(f"{where} line {record.line}, the header: {reason}. {hint}")
        names = [name.strip() for name in record.values]
        names = [name or f"column{number}" for number, name in enumerate(names, start=1)]
        for role, name in (("time", self._time), ("type", self._type)):
            if name is not None and name not in names:
                raise missing_column(where, role, name, names)
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise SourceError(f"{where} has more than one column {twice[0]!r}. Rename one of them")
        if self._closed:
            check_columns(where, names, self._declared)
        self._header_lines = record.line + record.raw.count(b"\n")
        return names, record.end

    def _inspect(self) -> dict[str, Kind]:
        try:
            return self._fast_inspect(lenient=False)
        except _MalformedError:
            self._clean = self._filter()
        try:
            return self._fast_inspect(lenient=True)
        except _MalformedError as error:
            raise SourceError(
                f"{self._source.where} cannot be read as CSV: {error.__cause__ or 'its rows are ambiguous'}"
            ) from error

    def _fast_inspect(self, lenient: bool) -> dict[str, Kind]:
        """Decide the kind of every column; raises if a row is malformed."""
        kinds = dict.fromkeys(self._names, Kind.EMPTY)
        order, first_kind = TimeOrder(), Kind.EMPTY
        for batch, position in self._texts():
            columns = dict(zip(self._names, batch.columns, strict=True))
            time = columns[self._time]
            if self._time not in self._declared:
                kinds[self._time] = widen_time(kinds[self._time], time)
            needed = [time, *([] if self._type is None else [columns[self._type]])]
            missing = any(values.null_count or _has_blank(values) for values in needed)
            if missing or kinds[self._time] is Kind.TEXT:
                if lenient:
                    raise self._too_far_apart()
                raise _MalformedError
            first_kind = kinds[self._time] if first_kind is Kind.EMPTY else first_kind
            if self._source.is_large:  # if the kind changes on the way, the times are not compared
                order.add(time, first_kind if kinds[self._time] is first_kind else Kind.TEXT)
            for name, values in columns.items():
                if name == self._type or (name == self._time and name not in self._declared):
                    continue
                if name not in self._declared:
                    kinds[name] = widen(kinds[name], values)
                elif _declared_misfits(values, self._declared[name]):
                    raise _MalformedError
            self._source.inspected(position)
        self._in_order = order.holds and self._source.is_large and self._time not in self._declared
        return kinds

    def _texts(self) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Every column as text, with the number of bytes read so far."""
        end = secrets.token_hex(16).encode()  # a final row of one field proves that no quote was left open
        refused: list[str] = []

        def refuse(row: Any) -> str:
            refused.append(row.text)
            return "skip"

        file = self._clean if self._clean is not None else self._source.open()
        file.seek(0 if self._clean is not None else self._body)
        body = EndedText(file, end)
        try:
            reader = pacsv.open_csv(
                pa.PythonFile(body, mode="r"),
                read_options=pacsv.ReadOptions(column_names=self._names, block_size=_BLOCK),
                parse_options=pacsv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
                convert_options=pacsv.ConvertOptions(
                    column_types=dict.fromkeys(self._names, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            for batch in reader:
                if len(refused) > 1 or (refused and refused[0] != end.decode()):
                    raise _MalformedError
                if batch.num_rows:
                    yield batch, self._body + body.position
        except pa.ArrowInvalid as error:
            raise _MalformedError from error
        except OSError as error:
            raise SourceError(f"cannot read {self._source.where}: {error}. Check the disk") from error
        finally:
            if file is not self._clean:
                file.close()
        if refused != [end.decode()]:
            raise _MalformedError

    def _filter(self) -> IO[bytes]:
        """Copy the good records.

        The first records decide the form of the times; if all records together decide otherwise, the copy is
        made again.
        """
        form = form_of(self._declared.get(self._time))
        if form is not None:
            return self._copy(form)[0]
        first = next((chunk for chunk, _ in self._chunks() if chunk), [])
        votes: Counter[str] = Counter()
        vote(non_empty(_column(first, self._names.index(self._time))), votes)
        form = winner(votes)
        clean, all_votes = self._copy(form)
        if winner(all_votes) != form:
            self._letters.forget()
            clean, _ = self._copy(winner(all_votes))
        return clean

    def _copy(self, form: str | None) -> tuple[IO[bytes], Counter[str]]:
        """The records that are valid if times have this form, and how often each form occurs."""
        time = self._names.index(self._time)
        type = None if self._type is None else self._names.index(self._type)
        votes: Counter[str] = Counter()
        clean: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=64 * 1024 * 1024)
        for chunk, malformed in self._chunks():
            vote(non_empty(_column(chunk, time)), votes)
            reasons = wrong_times(_column(chunk, time), form)
            problems = {at: ("time", reason) for at, reason in reasons.items()}
            for at, record in enumerate(chunk):
                if type is not None and not record.values[type]:
                    problems.setdefault(at, ("type", "type is missing"))
            for name, wanted in self._declared.items():
                if name in self._names and name != self._type:
                    texts = _column(chunk, self._names.index(name))
                    for at in _declared_misfits(texts, wanted):
                        reason = f"{name} {texts[at].as_py()!r} is not of type {wanted}"
                        problems.setdefault(at, ("value", reason))
            for at, record in enumerate(chunk):
                if at in problems:
                    malformed.append((record, problems[at]))
                else:
                    clean.write(record.raw + b"\n")
            for record, problem in sorted(malformed, key=lambda wrong: wrong[0].line):
                self._letters.add(record.line + self._header_lines, *problem, record.raw)
        return clean, votes

    def _chunks(self) -> Iterator[tuple[list[Record], list[tuple[Record, Problem]]]]:
        """Chunks of records: those with the right number of fields, and the others with their problems."""
        width = len(self._names)
        chunk: list[Record] = []
        malformed: list[tuple[Record, Problem]] = []
        with self._source.open() as file:
            file.seek(self._body)
            for record in records(file):
                if record.problem is None and len(record.values) == width:
                    chunk.append(record)
                else:
                    found = f"expected {width} fields, found {len(record.values)}"
                    malformed.append((record, record.problem or ("fields", found)))
                if len(chunk) + len(malformed) == _CHUNK:
                    self._source.inspected(record.end)
                    yield chunk, malformed
                    chunk, malformed = [], []
        if chunk or malformed:
            yield chunk, malformed


def _column(chunk: list[Record], place: int) -> pa.Array:
    return pa.array([record.values[place] for record in chunk], pa.string())


def _has_blank(values: pa.Array) -> bool:
    return bool(pc.any(pc.equal(values, "")).as_py())


def _declared(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    if not (pa.types.is_string(wanted) or pa.types.is_large_string(wanted)):
        values = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
    return pc.cast(values, wanted)


def _declared_misfits(values: pa.Array, wanted: pa.DataType) -> list[int]:
    def accepts(part: pa.Array) -> bool:
        try:
            _declared(part, wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return False
        return True

    return find_misfits(values, accepts)
