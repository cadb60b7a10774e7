"""The formats of files of events and matches, and their suffixes. Avro can be read, but not written."""

from __future__ import annotations

from typing import Literal

Format = Literal["csv", "jsonl", "parquet", "avro"]
FORMATS: tuple[Format, ...] = ("csv", "jsonl", "parquet", "avro")
TYPED: tuple[Format, ...] = ("parquet", "avro")
"""The formats whose columns have types."""
WRITTEN: tuple[Format, ...] = ("csv", "jsonl", "parquet")
SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".avro": "avro",
}
WRITTEN_SUFFIXES = {suffix: format for suffix, format in SUFFIXES.items() if format in WRITTEN}
