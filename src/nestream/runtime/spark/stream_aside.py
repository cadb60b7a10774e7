"""Puts late and malformed events of a stream aside, into files of a folder, while the matches go on.

A file has the events of one task of one micro-batch and is named after both and after the checkpoint. A task
that runs again, after a failure or a restart, has the same events and writes the same file anew, so each
event is there once.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from nestream.model.schema import EventError
from nestream.runtime.spark.columns import RAW
from nestream.runtime.spark.stream_pack import MATCHES, Batches, reasons_of, unpacked

REASON, TEXT = "reason", "raw"
FORMATS = ("parquet", "json")


@dataclass(frozen=True)
class Aside:
    """A folder that every worker can write to, and how events are written there.

    `json` is one object a line. Each event has its own columns and the reason why it was not taken.
    """

    folder: str
    format: str = "parquet"

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"unknown format {self.format!r} for late events: one of {', '.join(FORMATS)}")


_CHOSEN: ContextVar[Aside | None] = ContextVar("aside", default=None)


def chosen_aside() -> Aside | None:
    """Where the stream that is being planned puts events aside, None where it only counts them."""
    return _CHOSEN.get()


@contextmanager
def with_aside(aside: Aside | None) -> Iterator[None]:
    """Streams that are planned inside put late and malformed events there."""
    token = _CHOSEN.set(aside)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def putting_aside(aside: Aside, columns: pa.Schema, *, with_raw: bool) -> Callable[[Batches], Batches]:
    """The function that gives the rows of the packs of matches and writes the events of the others.

    `with_raw` adds the text of rows that could not be read; their event columns are NULL.
    """
    taken = [name for name in (REASON, *([TEXT] if with_raw else [])) if name in columns.names]
    if taken:
        raise EventError(
            f"the events have a column `{taken[0]}`, and late events are written with one of that name\n"
            "  hint: rename the column, or leave out --late"
        )

    def put(batches: Batches) -> Batches:
        held: list[pa.Table] = []
        for batch in batches:
            for row in batch.select(["kind", "reason", "data"]).to_pylist():
                table = unpacked(row["data"])
                if row["kind"] == MATCHES:
                    yield from table.to_batches()
                else:
                    events = table.select(columns.names).cast(columns)
                    events = events.append_column(REASON, reasons_of(table, row["reason"]))
                    held.append(events.append_column(TEXT, table.column(RAW)) if with_raw else events)
        if held:
            _write(aside, pa.concat_tables(held))

    return put


def _write(aside: Aside, events: pa.Table) -> None:
    """Write the events of this task, at once: the file is whole or not there."""
    context: Any = TaskContext.get()
    batch = int(context.getLocalProperty("streaming.sql.batchId"))
    name = f"{context.getLocalProperty('sql.streaming.queryId')}-{batch:08}-{context.partitionId():05}"
    folder = Path(aside.folder)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{name}-{uuid.uuid4().hex}"
    if aside.format == "parquet":
        pq.write_table(events, unfinished)
        suffix = "parquet"
    else:
        with unfinished.open("w", encoding="utf-8") as lines:
            for event in events.to_pylist():
                lines.write(json.dumps(event, default=_text, ensure_ascii=False) + "\n")
        suffix = "json"
    os.replace(unfinished, folder / f"{name}.{suffix}")


def _text(value: Any) -> str:
    """What JSON has no form for: times by ISO 8601, bytes as hexadecimal digits, all else as it prints."""
    if isinstance(value, bytes):
        return value.hex()
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
