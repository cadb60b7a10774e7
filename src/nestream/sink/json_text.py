"""Arrow columns as JSON text, a column at a time: structs and maps are objects, times ISO-8601, NULL is null.

Timestamps have no zone, or end in Z where they have one; trailing zeros of a fraction are left out.
Durations are seconds, decimals are numbers, binary values are base64 text, NaN and infinities are null.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_SECONDS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def json_lines(batch: pa.RecordBatch) -> str:
    """One JSON object per row, each with a newline."""
    if batch.num_rows == 0:
        return ""
    objects = _object(batch.schema.names, [json_texts(column) for column in batch.columns], batch.num_rows)
    return "\n".join(objects.to_pylist()) + "\n"


def json_texts(values: pa.Array) -> pa.Array:
    """Each value's JSON text; no NULLs in the result."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return json_texts(values.dictionary_decode())
    if pa.types.is_struct(kind):
        fields = [json_texts(values.field(i)) for i in range(kind.num_fields)]
        texts = _object([kind.field(i).name for i in range(kind.num_fields)], fields, len(values))
        return pc.if_else(values.is_valid(), texts, "null")
    if pa.types.is_map(kind):
        names = json_texts(pc.cast(values.keys, pa.string()))
        entries = pc.binary_join_element_wise(names, json_texts(values.items), ":")
        return _enclosed(values, entries, "{}")
    if pa.types.is_list(kind):
        return _enclosed(values, json_texts(values.values), "[]")
    return pc.fill_null(_texts(values, kind), "null")


def _enclosed(values: pa.Array, entries: pa.Array, brackets: str) -> pa.Array:
    """The entries of each list, already text, joined with commas and enclosed in brackets."""
    lists = pa.ListArray.from_arrays(values.offsets, entries)
    joined = pc.binary_join(lists, ",")
    texts = pc.binary_join_element_wise(brackets[0], joined, brackets[1], "")
    return pc.if_else(values.is_valid(), texts, "null")


def _texts(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _strings(values.cast(pa.string()))
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return values.cast(pa.string())
    if pa.types.is_floating(kind):
        return _floats(values.cast(pa.float64()))
    if pa.types.is_timestamp(kind):
        return _quoted(iso_timestamps(values))
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return _quoted(values.cast(pa.string()))
    if pa.types.is_duration(kind):
        return _floats(pc.divide(values.cast(pa.int64()).cast(pa.float64()), float(_SECONDS[kind.unit])))
    if pa.types.is_decimal(kind):
        return values.cast(pa.string())
    texts = [None if v is None else json.dumps(plain(v), ensure_ascii=False) for v in values.to_pylist()]
    return pa.array(texts, pa.string())


def iso_timestamps(values: pa.Array) -> pa.Array:
    """Timestamps as ISO-8601 text, in UTC with a Z if they have a zone."""
    if values.type.tz is not None:
        values = values.cast(pa.timestamp(values.type.unit, "UTC"))
    texts = pc.replace_substring(values.cast(pa.string()), " ", "T", max_replacements=1)
    if values.type.unit == "s":
        return texts
    texts = pc.replace_substring_regex(texts, r"[.]0+(Z?)$", r"\1")
    return pc.replace_substring_regex(texts, r"([.][0-9]*[1-9])0+(Z?)$", r"\1\2")


def plain(value: Any) -> Any:
    """A Python value of any Arrow type as something JSON can hold."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.datetime):
        text = value.astimezone(datetime.UTC).isoformat() if value.tzinfo else value.isoformat()
        return text.removesuffix("+00:00") + "Z" if value.tzinfo else text
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _object(names: list[str], texts: list[pa.Array], rows: int) -> pa.Array:
    if not names:
        return pa.array(["{}"] * rows, pa.string())
    pieces: list[Any] = []
    for number, (name, column) in enumerate(zip(names, texts, strict=True)):
        label = ("{" if number == 0 else ",") + json.dumps(name, ensure_ascii=False) + ":"
        pieces += [pa.scalar(label), column]
    return pc.binary_join_element_wise(*pieces, pa.scalar("}"), pa.scalar(""))


def _quoted(texts: pa.Array) -> pa.Array:
    quote = pa.scalar('"')
    return pc.binary_join_element_wise(quote, texts, quote, pa.scalar(""))


def _strings(values: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(values, r'["\\\x00-\x1f]')
    if pc.any(special).as_py():
        return pa.array(
            [None if v is None else json.dumps(v, ensure_ascii=False) for v in values.to_pylist()]
        )
    return _quoted(values)


def _floats(values: pa.Array) -> pa.Array:
    """The shortest text that reads back as the same number, always with a point or an exponent."""
    values = pc.if_else(pc.is_finite(values), values, pa.scalar(None, pa.float64()))
    texts = values.cast(pa.string())
    whole = pc.match_substring_regex(texts, "^-?[0-9]+$")
    if pc.any(whole).as_py():
        texts = pc.if_else(whole, pc.binary_join_element_wise(texts, pa.scalar(".0"), pa.scalar("")), texts)
    return texts
