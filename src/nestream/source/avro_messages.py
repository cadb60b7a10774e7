"""Avro messages as tables of events: each is one record, with a schema that the reader names.

With the ids of a schema registry, each message begins with a zero byte and the id of its schema, in four
bytes. Without ids, a message is just the record.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.widening import shown, widened
from nestream.source.avro_types import AvroSchema, avro_library, read_schema
from nestream.source.dead_letter import HeldLetters
from nestream.source.errors import SourceError, first_line
from nestream.source.file_reader import BATCH_ROWS
from nestream.source.input import Fragment
from nestream.source.protocol import Batch
from nestream.source.saved_types import saved_types, types_of
from nestream.source.typed_file import TypedFile

_HEADER = 5
NO_VALUE = "the message has no value"


@dataclass(frozen=True)
class AvroDecoder:
    """The schemas of messages, by id; None is that of messages without one."""

    schemas: Mapping[int | None, AvroSchema]
    columns: pa.Schema
    """The columns of all schemas."""

    @classmethod
    def of(cls, given: Sequence[str]) -> AvroDecoder:
        """The schema of `FILE`, or of one `ID=FILE` for each id of a registry."""
        schemas: dict[int | None, AvroSchema] = {}
        types: dict[str, pa.DataType] = {}
        for text in given:
            id, path = _id_of(text)
            if id in schemas or (schemas and None in (*schemas, id)):
                raise SourceError(
                    "there are several schemas of one kind of message. "
                    "Name one file, or one for each id of the registry: --schema 7=FILE --schema 8=FILE"
                )
            schemas[id] = read_schema(path)
            for field in schemas[id].arrow:
                held = types.setdefault(field.name, field.type)
                wide = field.type if pa.types.is_null(held) else widened(held, field.type)
                if wide is None:
                    raise SourceError(
                        f"column {field.name!r} is {shown(held)} in one schema and {shown(field.type)} in "
                        f"{path}. Read messages of both schemas as two streams"
                    )
                types[field.name] = wide
        return cls(schemas, pa.schema(list(types.items())))

    def table(self, values: Sequence[bytes | None]) -> tuple[pa.Table, dict[int, str]]:
        """A row for each message, NULL in all columns if it cannot be read, and the problems."""
        problems: dict[int, str] = {}
        found: dict[int | None, list[dict[str, Any] | None]] = {
            id: [None] * len(values) for id in self.schemas
        }
        for at, value in enumerate(values):
            try:
                id, record = self._decoded(value or b"")
                found[id][at] = record
            except ValueError as problem:
                problems[at] = str(problem)
        tables = [self._fitted(self.schemas[id], records, problems) for id, records in found.items()]
        if len(tables) == 1:
            return tables[0], problems
        columns = [pc.coalesce(*(table.column(name) for table in tables)) for name in self.columns.names]
        return pa.Table.from_arrays(columns, schema=self.columns), problems

    def _fitted(
        self, schema: AvroSchema, records: list[dict[str, Any] | None], problems: dict[int, str]
    ) -> pa.Table:
        """The records with the columns of all schemas; one with a value that does not fit is left out."""
        try:
            table = schema.table(records)
        except (pa.ArrowException, OverflowError):
            for at, record in enumerate(records):
                try:
                    schema.table([record])
                except (pa.ArrowException, OverflowError) as problem:
                    records[at], problems[at] = None, f"a value does not fit its type: {first_line(problem)}"
            table = schema.table(records)
        columns = [
            table.column(field.name).cast(field.type)
            if field.name in table.column_names
            else pa.chunked_array([pa.nulls(len(records), field.type)])
            for field in self.columns
        ]
        return pa.Table.from_arrays(columns, schema=self.columns)

    def _decoded(self, value: bytes) -> tuple[int | None, dict[str, Any]]:
        """The schema and the record of a message; raises a ValueError that says what is wrong."""
        if not value:
            raise ValueError(NO_VALUE)
        id, body = None, value
        if None not in self.schemas:
            if value[0] or len(value) < _HEADER:
                raise ValueError("it does not begin like the messages of a schema registry")
            id, body = int.from_bytes(value[1:_HEADER], "big"), value[_HEADER:]
            if id not in self.schemas:
                raise ValueError(f"it uses schema {id} of the registry. Add --schema {id}=FILE.avsc")
        try:
            file = io.BytesIO(body)
            record = avro_library().schemaless_reader(file, self.schemas[id].decoded, None)
        except Exception as error:  # any error of the library on bytes that are not Avro
            raise ValueError(self._refused(value, _said(error))) from None
        if file.tell() != len(body):
            raise ValueError(self._refused(value, f"{len(body) - file.tell():,} bytes are left over"))
        return id, record

    def _refused(self, value: bytes, why: str) -> str:
        if None in self.schemas and value[0] == 0 and len(value) > _HEADER:
            id = int.from_bytes(value[1:_HEADER], "big")
            hint = f". If it is from a schema registry, it uses schema {id}: write --schema {id}=FILE.avsc"
        else:
            hint = ""
        return f"it is not Avro of the schema: {why}{hint}"


def with_added(table: pa.Table, added: Sequence[Mapping[str, Any]], instants: Collection[str]) -> pa.Table:
    """Add attributes to the rows, replacing those of the same name; they are text, or times."""
    for name in dict.fromkeys(name for more in added for name in more):
        values = pa.array([more.get(name) for more in added], pa.string())
        column = values.cast(pa.timestamp("us", "UTC")) if name in instants else values
        at = table.schema.get_field_index(name)
        table = table.append_column(name, column) if at < 0 else table.set_column(at, name, column)
    return table


class AvroEvents:
    """Turns messages into events."""

    def __init__(self, time: str, type: str, decoder: AvroDecoder) -> None:
        self.time, self._type, self._decoder = time, type, decoder
        self._instants: set[str] = set()
        self._declared: dict[str, pa.DataType] = {}
        """The type of the time if it is text: its first value sets it."""

    def add_moment(self, name: str) -> None:
        """Declare that an attribute outside the message value is a time."""
        self._instants.add(name)

    def problem(self, value: bytes) -> str | None:
        """What is wrong with a message, before it is decoded."""
        return None if value else NO_VALUE

    def position(self) -> dict[str, Any]:
        """What is known of the time."""
        return {"time": saved_types(self._declared)}

    def seek(self, position: Mapping[str, Any]) -> None:
        """Continue with what was known."""
        if "time" not in position or "holds" in position:
            raise SourceError(
                "the checkpoint belongs to a stream of JSON. Start over, or read JSON as before"
            )
        self._declared = types_of(position["time"])

    def batch(
        self, where: str, lines: Sequence[bytes], first: int, added: Sequence[Mapping[str, Any]] = ()
    ) -> Batch:
        """The events of some messages; `first` is the number of the first message.

        Empty messages are not counted.

        `added` has more attributes for each message, which replace those of the same name.
        """
        table, problems = self._decoder.table(lines)
        table = with_added(table, added, self._instants)
        places = [at for at in range(len(lines)) if lines[at] and at not in problems]
        letters = HeldLetters(where)
        for at in sorted(problems):
            if lines[at]:
                letters.add(at + first, "avro", problems[at], "")
        rows = HeldLetters(where)
        fine = table.take(pa.array(places, pa.int64()))
        file = _Rows(fine, where, self.time, self._type, rows, self._declared)
        events = file.read_all()
        if events.num_rows and not self._declared and pa.types.is_string(table.schema.field(self.time).type):
            self._declared = {self.time: events.schema.field(self.time).type}
        for letter in rows.examples:
            letters.add(places[letter.line - 1] + first, "value", letter.reason, letter.raw)
        return Batch(events, sorted(letters.examples, key=lambda letter: letter.line))


class _Rows(TypedFile):
    """Rows in memory."""

    def __init__(
        self,
        table: pa.Table,
        where: str,
        time: str,
        type: str,
        letters: HeldLetters,
        declared: Mapping[str, pa.DataType],
    ) -> None:
        self._table = table
        super().__init__(Fragment(where, "avro", b""), time, type, letters, declared=declared)

    def _stored_columns(self) -> tuple[pa.Schema, int]:
        return self._table.schema, self._table.num_rows

    def _stored_batches(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        chosen = self._table if columns is None else self._table.select(columns)
        yield from chosen.combine_chunks().to_batches(BATCH_ROWS)


def _id_of(text: str) -> tuple[int | None, str]:
    id, equals, path = text.partition("=")
    return (int(id), path) if equals and id.isdigit() else (None, text)


def _said(problem: BaseException) -> str:
    return "it is cut short" if isinstance(problem, EOFError) else first_line(problem)
