"""The columns of the events held: they grow at their end with each batch, and lose their beginning.

Adding a few events costs little, however many are held. Columns of fixed width without NULL, and columns
with the words of one dictionary, are arrays with room at their end. Any other column is kept in parts, which
are joined when it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.engine.growing import Growing
from nestream.model.lazy import pc
from nestream.model.match_table import Mask, Rows, TableOfEvents

_FEW = 4096
"""Up to this many values, NumPy is faster; above it Arrow, which also lets other threads run."""
_FEW_WORDS = 64
"""How many words of a dictionary may be unused before it is rebuilt."""


class HeldColumns:
    """The columns of the events, one row per event."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._columns = [_Column(field.type) for field in schema]
        self._table: pa.Table | None = None

    def append(self, source: pa.RecordBatch, taken: npt.NDArray[np.int64] | None) -> None:
        """Add the rows of a batch, or some of them."""
        self._table = None
        for column, part in zip(self._columns, source.columns, strict=True):
            column.extend(part, taken)

    def drop(self, count: int) -> None:
        """Forget the first rows."""
        self._table = None
        for column in self._columns:
            column.drop(count)

    def __len__(self) -> int:
        return len(self._columns[0]) if self._columns else 0

    def column(self, name: str) -> pa.Array | pa.ChunkedArray:
        """A column, in one chunk unless it is too long for that."""
        return self.since(name, 0)

    def structs(self, rows: Rows, missing: Mask | None, fields: Sequence[pa.Field]) -> pa.StructArray:
        """The events at some rows; NULL where one is missing."""
        columns = [self._columns[self.schema.get_field_index(field.name)] for field in fields]
        if missing is not None or len(rows) > _FEW or not all(column.is_plain for column in columns):
            return TableOfEvents(self.table).structs(rows, missing, fields)
        places = rows.astype(np.intp)  # once, not for each column
        return pa.StructArray.from_arrays([column.at(places) for column in columns], fields=fields)

    @property
    def table(self) -> pa.Table:
        """The columns as a table, each in one chunk unless it is too long for that."""
        if self._table is None:
            arrays = [column.array() for column in self._columns]
            self._table = pa.Table.from_arrays(arrays, schema=self.schema)
        return self._table

    def since(self, name: str, first: int) -> pa.Array | pa.ChunkedArray:
        """The values of a column from a row on."""
        return self._columns[self.schema.get_field_index(name)].array(first)

    def integers(self, name: str) -> npt.NDArray[np.signedinteger[Any]] | None:
        """The values of a column of signed integers without NULL; None for any other."""
        found: npt.NDArray[np.signedinteger[Any]] | None
        found = self._columns[self.schema.get_field_index(name)].integers
        return found


class _Column:
    """One column: plain values as long as that is possible, then parts."""

    def __init__(self, datatype: pa.DataType) -> None:
        self.type = datatype
        self._is_dictionary = pa.types.is_dictionary(datatype)
        self._index = datatype.index_type if self._is_dictionary else datatype
        self._dtype = _fixed_width(self._index)
        self._plain: Growing | None = None
        self._words: pa.Array | None = None
        """The dictionary of plain values."""
        self._parts: list[pa.Array] = []

    def extend(self, part: pa.Array, taken: npt.NDArray[np.int64] | None) -> None:
        """Add values, or some of them; a dictionary may have narrower indices than the column."""
        if not len(part):
            return
        is_plain = self._dtype is not None and not part.null_count and self._has_words_of(part)
        if taken is not None and (len(taken) > _FEW or not is_plain):
            part, taken = pc.take(part, pa.array(taken), boundscheck=False), None
        if not is_plain:
            self._leave_plain()
            self._parts.append(part if part.type == self.type else part.cast(self.type))
            return
        numbers = part.indices if self._is_dictionary else part
        dtype = self._dtype if numbers.type == self._index else _fixed_width(numbers.type)
        assert dtype is not None
        values = np.frombuffer(numbers.buffers()[1], dtype, len(numbers), numbers.offset * dtype.itemsize)
        values = values if taken is None else values[taken]
        if self._plain is None:
            self._plain = Growing(values.astype(self._dtype, copy=False))
        else:
            self._plain.extend(values)

    @property
    def integers(self) -> npt.NDArray[np.signedinteger[Any]] | None:
        """The values, if they are signed integers without NULL."""
        if self._plain is None or not pa.types.is_signed_integer(self.type):
            return None
        return self._plain.values

    def _has_words_of(self, part: pa.Array) -> bool:
        """Whether the words of a part are those of the column."""
        if not self._is_dictionary:
            return True
        if self._words is None:
            self._words = part.dictionary
        return bool(self._words.equals(part.dictionary))

    def _leave_plain(self) -> None:
        """Keep the values in parts from now on."""
        if self._dtype is not None:
            held = self.array()
            self._dtype, self._plain = None, None
            self._parts = [held] if len(held) else []

    def __len__(self) -> int:
        return len(self._plain) if self._plain is not None else sum(map(len, self._parts))

    @property
    def is_plain(self) -> bool:
        """Whether there are values, all of them plain."""
        return self._plain is not None

    def at(self, rows: npt.NDArray[np.intp]) -> pa.Array:
        """The values at some rows, where they are plain."""
        assert self._plain is not None
        return self._arrow(self._plain.values.take(rows))

    def drop(self, count: int) -> None:
        """Forget the first values."""
        if self._plain is not None:
            self._plain.drop(count)
        elif self._parts:
            held = pa.chunked_array([self.array()]).slice(count).combine_chunks()
            self._parts = [_without_lost_words(held)]

    def array(self, first: int = 0) -> pa.Array | pa.ChunkedArray:
        """The values from a row on."""
        if self._dtype is not None:
            return self._arrow(
                np.empty(0, self._dtype) if self._plain is None else self._plain.values[first:]
            )
        if len(self._parts) != 1:
            joined = pa.chunked_array(self._parts, self.type)
            table = pa.Table.from_arrays([joined.unify_dictionaries()], ["values"]).combine_chunks()
            self._parts = table.column(0).chunks
        if len(self._parts) == 1:
            return self._parts[0].slice(first)
        return pa.chunked_array(self._parts, self.type).slice(first)

    def _arrow(self, values: npt.NDArray[Any]) -> pa.Array:
        """Plain values as an array."""
        found = pa.Array.from_buffers(self._index, len(values), [None, pa.py_buffer(values)])
        if not self._is_dictionary:
            return found
        words = pa.array([], self.type.value_type) if self._words is None else self._words
        return pa.DictionaryArray.from_arrays(found, words, ordered=self.type.ordered, safe=False)


def _fixed_width(datatype: pa.DataType) -> np.dtype[Any] | None:
    """The type of numbers that hold the values of a column without NULL; None where there is none."""
    if pa.types.is_floating(datatype) and not pa.types.is_float16(datatype):
        return np.dtype(f"f{datatype.bit_width // 8}")
    if pa.types.is_integer(datatype) or pa.types.is_temporal(datatype):
        kind = "u" if pa.types.is_unsigned_integer(datatype) else "i"
        return np.dtype(f"{kind}{datatype.bit_width // 8}") if datatype.bit_width <= 64 else None
    return None


def _without_lost_words(column: pa.Array) -> pa.Array:
    """The column; its dictionary is rebuilt if most of its words occurred only in forgotten rows."""
    if not pa.types.is_dictionary(column.type) or len(column.dictionary) <= 2 * len(column) + _FEW_WORDS:
        return column
    return column.cast(column.type.value_type).dictionary_encode().cast(column.type)
