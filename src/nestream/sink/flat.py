"""Flattens structs for CSV: the fields of `r` become the columns `r.id`, `r.ts`, and so on."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from nestream.sink.json_text import iso_timestamps, json_texts, plain


def flatten(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of columns that CSV can hold: no structs, times as ISO-8601 text."""
    names: list[str] = []
    columns: list[pa.Array] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        _add(name, column, names, columns)
    return pa.RecordBatch.from_arrays(columns, names)


def csv_header(names: list[str]) -> bytes:
    """The first line of a CSV file."""
    return (",".join(_header_field(name) for name in names) + "\n").encode()


def csv_rows(batch: pa.RecordBatch) -> bytes:
    """Rows of CSV: NULL is empty, empty text is `""`, and quotes are used only where needed."""
    quote = any(_needs_quotes(column) for column in batch.columns)
    options = pacsv.WriteOptions(include_header=False, quoting_style="needed" if quote else "none")
    out = io.BytesIO()
    pacsv.write_csv(batch, out, options)
    return out.getvalue()


def _needs_quotes(column: pa.Array) -> bool:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    return bool(pc.any(pc.match_substring_regex(column, r'[",\r\n]|^$')).as_py())


def _header_field(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if any(c in name for c in '",\r\n') else name


def _add(name: str, column: pa.Array, names: list[str], columns: list[pa.Array]) -> None:
    kind = column.type
    if pa.types.is_dictionary(kind):
        _add(name, column.dictionary_decode(), names, columns)
        return
    if pa.types.is_struct(kind):
        fields = column.flatten()  # NULL where the struct is
        for i in range(kind.num_fields):
            _add(f"{name}.{kind.field(i).name}", fields[i], names, columns)
        return
    names.append(name)
    columns.append(_writable(column))


def _writable(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_timestamp(kind):
        return iso_timestamps(column)
    if pa.types.is_duration(kind):
        return pc.cast(json_texts(column), pa.string())
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([_shown(value) for value in column.to_pylist()], pa.string())
    return column


def _shown(value: object) -> str | None:
    if value is None:
        return None
    simple = plain(value)
    return simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)
