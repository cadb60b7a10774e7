"""The rows of a file that is refused as a whole, as they are: none of them is lost silently."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nestream.model.formats import Format
from nestream.source.csv_records import records
from nestream.source.dead_letter import DeadLetter
from nestream.source.input import Input
from nestream.source.typed_file import shown


def refused_rows(path: str | os.PathLike[str], format: Format, reason: str) -> Iterator[DeadLetter]:
    """A dead letter for each row of a file; one for the file if its rows cannot be read either."""
    name = os.fspath(path)
    number = 0
    try:
        for line, raw in _rows(Input(path, format, None)):
            yield DeadLetter(name, line, reason, raw)
            number += 1
    except (pa.ArrowException, OSError):
        pass
    if not number:
        yield DeadLetter(name, 0, reason, "")


def _rows(source: Input) -> Iterator[tuple[int, str]]:
    with source.open() as file:
        if source.format == "parquet":
            row = 0
            for batch in pq.ParquetFile(pa.PythonFile(file, mode="r"), pre_buffer=False).iter_batches():
                for values in _dictionaries(batch):
                    row += 1
                    yield row, json.dumps(values, default=shown, ensure_ascii=False)
        elif source.format == "avro":
            return  # what can be read is in the blocks, as events or dead letters
        elif source.format == "csv":
            found = records(file)
            next(found, None)  # the header
            for record in found:
                yield record.line, record.raw.decode("utf-8", "backslashreplace")
        else:
            for line, raw in enumerate(file, start=1):
                if raw.strip():
                    yield line, raw.strip().decode("utf-8", "backslashreplace")


def _dictionaries(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows; columns of one name all count, because the next one is renamed."""
    names: list[str] = []
    for name in batch.schema.names:
        while name in names:
            name += "'"
        names.append(name)
    yield from batch.rename_columns(names).to_pylist()
