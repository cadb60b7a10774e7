"""Parquet files, read by Arrow one batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from nestream.source.errors import SourceError, first_line
from nestream.source.typed_file import TypedFile


class ParquetFile(TypedFile):
    """A Parquet file."""

    def _stored_columns(self) -> tuple[pa.Schema, int]:
        with self._source.open() as file:
            parquet = self._opened(file)
            return parquet.schema_arrow, parquet.metadata.num_rows

    def _stored_batches(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        with self._source.open() as file:
            try:
                yield from self._opened(file).iter_batches(self._batch_rows, columns=columns)
            except (pa.ArrowException, OSError) as error:
                raise SourceError(
                    f"{self._source.where} is damaged: {first_line(error)}. Write it again"
                ) from error

    def _opened(self, file: IO[bytes]) -> pq.ParquetFile:
        try:
            # with read-ahead, Arrow keeps all that it has read until the file is closed
            return pq.ParquetFile(pa.PythonFile(file, mode="r"), pre_buffer=False)
        except (pa.ArrowException, OSError) as error:
            raise SourceError(
                f"{self._source.where} is not a Parquet file, or is damaged: {first_line(error)}. "
                "Write it again, or name the right format"
            ) from error
