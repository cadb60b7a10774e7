"""Avro schemas: read from text, and the Arrow types of their values.

A field keeps its type: logical types become times, dates and decimals, an enum is text, and a union with null
may be NULL. What Arrow has no type for, such as a union of several types or a record that contains itself, is
kept as JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pyarrow as pa

from nestream.model.extras import needs
from nestream.model.wording import reason
from nestream.source.errors import SourceError, first_line

_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    **{
        ("long", f"{name}-{unit}"): pa.timestamp(short, zone)
        for name, zone in (("timestamp", "UTC"), ("local-timestamp", None))
        for unit, short in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))
    },
}
_MOST_DIGITS = 76


class _UntypedError(Exception):
    """Arrow has no type for these values."""


def avro_library() -> ModuleType:
    """The decoding library; raises a `SourceError` if it is not installed."""
    try:
        import fastavro
    except ImportError:
        raise SourceError(needs("Avro", "fastavro", "avro")) from None
    return fastavro


@dataclass(frozen=True)
class Field:
    """A column: the type of the decoded values, and the type they are converted to."""

    name: str
    stored: pa.DataType
    type: pa.DataType
    as_text: bool

    def column(self, values: Sequence[Any]) -> pa.Array:
        """The values as an array."""
        if self.as_text:
            values = [None if value is None else _text(value) for value in values]
        found = pa.array(values, self.stored)
        return found if self.stored == self.type else found.cast(self.type)


@dataclass(frozen=True)
class AvroSchema:
    """The schema of a record, whose fields are the columns of an event."""

    decoded: Any
    """The schema for decoding: times stay numbers, because some are beyond what Python can hold."""
    fields: tuple[Field, ...]

    @classmethod
    def of(cls, text: str | bytes, where: str) -> AvroSchema:
        """The schema in a text; `where` names the text in messages."""
        library = avro_library()
        try:
            plain = json.loads(text)
        except ValueError as error:
            raise SourceError(f"{where} is not an Avro schema: {error}. Correct it") from None
        try:
            parsed = library.parse_schema(plain)
        except Exception as error:  # the library lets errors such as AttributeError through
            raise SourceError(f"{where} is not an Avro schema: {first_line(error)}. Correct it") from None
        if not isinstance(parsed, dict) or parsed.get("type") != "record":
            raise SourceError(
                f"{where} is not the schema of a record, but an event is a record of attributes"
            )
        types = _Types(parsed.get("__named_schemas", {}))
        fields = tuple(types.field(field["name"], field["type"]) for field in parsed["fields"])
        return cls(library.parse_schema(_undated(plain)), fields)

    @property
    def arrow(self) -> pa.Schema:
        """The columns."""
        return pa.schema([(field.name, field.type) for field in self.fields])

    def table(self, records: Sequence[Mapping[str, Any] | None]) -> pa.Table:
        """The records as rows; None becomes NULL in all columns."""
        columns = [
            field.column([None if record is None else record[field.name] for record in records])
            for field in self.fields
        ]
        return pa.Table.from_arrays(columns, schema=self.arrow)


def read_schema(path: str) -> AvroSchema:
    """The schema in a file."""
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError as error:
        raise SourceError(f"cannot read the schema {path}: {reason(error)}. Check the path") from error
    return AvroSchema.of(text, path)


class _Types:
    """The Arrow types of the parts of a schema."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named

    def field(self, name: str, schema: Any) -> Field:
        try:
            return Field(name, self._type(schema, (), stored=True), self._type(schema, ()), as_text=False)
        except _UntypedError:
            return Field(name, pa.string(), pa.string(), as_text=True)

    def _type(self, schema: Any, within: Iterable[str], *, stored: bool = False) -> pa.DataType:
        if isinstance(schema, list):
            others = [part for part in schema if part != "null"] or ["null"]
            if len(others) > 1 and {*map(str, others)} != {"int", "long"}:
                raise _UntypedError
            return self._type("long" if len(others) > 1 else others[0], within, stored=stored)
        if isinstance(schema, str):
            if schema in _PLAIN:
                return _PLAIN[schema]
            schema = self._named[schema]
        kind = schema["type"]
        match kind:
            case "record" | "error":
                if schema["name"] in within:
                    raise _UntypedError
                inside = [*within, schema["name"]]
                parts = [
                    (part["name"], self._type(part["type"], inside, stored=stored))
                    for part in schema["fields"]
                ]
                return pa.struct(parts)
            case "array":
                return pa.list_(self._type(schema["items"], within, stored=stored))
            case "map":
                return pa.map_(pa.string(), self._type(schema["values"], within, stored=stored))
            case "enum":
                return pa.string()
        if schema.get("logicalType") == "decimal":
            return _decimal(schema)
        if kind == "fixed":
            return pa.binary(schema["size"])
        if not isinstance(kind, str) or kind not in _PLAIN:
            return self._type(kind, within, stored=stored)
        logical = None if stored else _LOGICAL.get((kind, schema.get("logicalType")))
        return logical if logical is not None else _PLAIN[kind]


def _decimal(schema: Mapping[str, Any]) -> pa.DataType:
    digits, scale = schema["precision"], schema.get("scale", 0)
    if digits > _MOST_DIGITS:
        raise _UntypedError
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


def _undated(schema: Any) -> Any:
    """The schema without the logical types that the library would turn into Python objects."""
    if isinstance(schema, list):
        return [_undated(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = schema.get("logicalType") == "decimal"
    return {
        name: _undated(part) if name in ("type", "items", "values", "fields") else part
        for name, part in schema.items()
        if name != "logicalType" or kept
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_shown)


def _shown(value: Any) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
