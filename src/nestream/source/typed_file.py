"""Files whose columns have types, which they keep; rows without a time or type are malformed."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nestream.model import schema as model
from nestream.model.plain import plain_array, plain_type
from nestream.model.schema import kind_of
from nestream.source.errors import SourceError, check_columns, missing_column
from nestream.source.file_reader import EventReader
from nestream.source.kinds import Kind, convert, find_misfits, non_empty
from nestream.source.times import (
    TimeOrder,
    form_of,
    time_type,
    vote,
    widen_time,
    winner,
    wrong_times,
)


class TypedFile(EventReader):
    """A file of typed columns; a format defines what is stored."""

    @abstractmethod
    def _stored_columns(self) -> tuple[pa.Schema, int]:
        """The columns of the file, and how many rows it has."""

    @abstractmethod
    def _stored_batches(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        """The rows of the file, with these columns or all."""

    def _open(self) -> None:
        self._time_kind = Kind.EMPTY
        stored, self._rows = self._stored_columns()
        self._stored = pa.schema([(field.name, plain_type(field.type)) for field in stored])
        self._check_schema()
        self._wrong = self._inspect()
        self.schema = pa.schema(
            [
                (field.name, self._arrow_type(field))
                for field in self._stored
                if field.name in self._declared or not self._closed
            ]
        )
        if self._wrong:
            self._bury()

    @property
    def undecided(self) -> frozenset[str]:
        """The columns without a type."""
        return frozenset(field.name for field in self._stored if pa.types.is_null(field.type))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """The events, in file order."""
        wrong = np.array(sorted(self._wrong), np.int64)
        rows = first = 0
        for batch in self._read(None if len(self.schema) == len(self._stored) else self.schema.names):
            stay = _others(wrong, first, batch.num_rows)
            first += batch.num_rows
            if stay is not None:
                batch = batch.take(stay)
            columns = [self._converted(name, batch.column(name)) for name in self.schema.names]
            rows += batch.num_rows
            self._source.delivered(rows, self._source.size * first // max(1, self._rows))
            if batch.num_rows:
                yield pa.record_batch(columns, schema=self.schema)

    def _read(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        """The stored rows, in the types that events are held in."""
        for batch in self._stored_batches(columns):
            plain = [plain_array(column, plain_type(column.type)) for column in batch.columns]
            yield pa.record_batch(plain, names=batch.schema.names)

    def _check_schema(self) -> None:
        names = self._stored.names
        for role, name in (("time", self._time), ("type", self._type)):
            if name is not None and name not in names:
                raise missing_column(self._source.where, role, name, names)
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise SourceError(
                f"{self._source.where} has more than one column {twice[0]!r}. Rename one of them"
            )
        time = _plain(self._stored.field(self._time).type)
        type = pa.string() if self._type is None else _plain(self._stored.field(self._type).type)
        unknown = pa.types.is_null(time)  # the type of a column without any value
        if not (_is_time(time) or _is_text(time) or unknown):
            raise SourceError(
                f"{self._source.where}: the time column {self._time!r} is {time}. "
                "It must hold timestamps, dates, integers or ISO-8601 text"
            )
        if not (_is_text(type) or pa.types.is_integer(type) or pa.types.is_null(type)):
            raise SourceError(
                f"{self._source.where}: the type column {self._type!r} is {type}. It must hold text"
            )
        if self._closed:
            check_columns(self._source.where, names, self._declared)
        for name, wanted in self._declared.items():
            if name in names and name != self._type:
                stored = _plain(self._stored.field(name).type)
                text_of_time = name == self._time and _is_text(stored)
                if not _castable(stored, wanted) or not (text_of_time or _alike(stored, wanted)):
                    raise SourceError(
                        f"{self._source.where}: column {name!r} is {stored}, which cannot be read as {wanted}"
                    )

    def _inspect(self) -> dict[int, tuple[str, str]]:
        """The problems by row, from the columns that can have one."""
        is_text = _is_text(_plain(self._stored.field(self._time).type))
        stored = {field.name: field.type for field in self._stored}
        roles = [self._time] if self._type is None else [self._time, self._type]
        looked_at = [*roles, *(n for n, t in self._declared.items() if stored.get(n, t) != t)]
        columns = list(dict.fromkeys(looked_at))
        form = None
        if is_text:
            votes: Counter[str] = Counter()
            for batch in self._read([self._time]):
                vote(non_empty(_decoded(batch.column(0))), votes)
            form = form_of(self._declared.get(self._time)) or winner(votes)
        wrong: dict[int, tuple[str, str]] = {}
        first = 0
        order = TimeOrder()
        for batch in self._read(columns):
            time = _decoded(batch.column(self._time))
            if self._source.is_large and not is_text:
                order.add(time)
            if is_text:
                reasons = wrong_times(time, form)
                wrong |= {first + at: ("time", reason) for at, reason in reasons.items()}
                fine = pa.array([at for at in range(len(time)) if at not in reasons], pa.int64())
                self._time_kind = widen_time(self._time_kind, time.take(fine) if reasons else time)
            elif pa.types.is_uint64(time.type):
                for at in _misfits(time, pa.int64()):
                    wrong[first + at] = ("time", "time is beyond 64 bits")
            if not is_text and time.null_count:
                for at in pc.indices_nonzero(pc.is_null(time)).to_pylist():
                    wrong[first + at] = ("time", "time is missing")
            if self._type is not None:
                type = _decoded(batch.column(self._type))
                is_text_type = _is_text(type.type)
                blank = pc.fill_null(pc.equal(type, ""), True) if is_text_type else pc.is_null(type)
                for at in pc.indices_nonzero(blank).to_pylist():
                    wrong.setdefault(first + at, ("type", "type is missing"))
            for name, wanted in self._declared.items():
                if name in columns and name != self._type:
                    for at in _misfits(_decoded(batch.column(name)), wanted):
                        wrong.setdefault(first + at, ("value", f"{name} is not of type {wanted}"))
            first += batch.num_rows
        if is_text and self._time_kind is Kind.TEXT and self._time not in self._declared:
            raise self._too_far_apart()
        self._in_order = (
            order.holds and self._source.is_large and not is_text and self._time not in self._declared
        )
        return wrong

    def _bury(self) -> None:
        """Read the malformed rows again, whole, and write them as dead letters."""
        wrong = np.array(sorted(self._wrong), np.int64)
        first = 0
        for batch in self._read(None):
            here = wrong[np.searchsorted(wrong, first) : np.searchsorted(wrong, first + batch.num_rows)]
            for row in here.tolist():
                kind, reason = self._wrong[row]
                [values] = batch.slice(row - first, 1).to_pylist()
                self._letters.add(
                    row + 1, kind, reason, json.dumps(values, default=shown, ensure_ascii=False)
                )
            first += batch.num_rows

    def _arrow_type(self, field: pa.Field) -> pa.DataType:
        stored = _plain(field.type)
        if field.name == self._time and field.name not in self._declared:
            if _is_text(stored):
                return time_type(self._time_kind)
            if pa.types.is_integer(stored):
                return pa.int64()
            return pa.timestamp("us") if pa.types.is_date(stored) else stored
        if field.name == self._type:
            return field.type if _is_text(stored) else pa.string()
        return self._declared.get(field.name, field.type)

    def _converted(self, name: str, values: pa.Array) -> pa.Array:
        wanted = self.schema.field(name).type
        if name == self._time and _is_text(_plain(values.type)) and name not in self._declared:
            return convert(self._time_kind, _decoded(values))
        return values if values.type == wanted else pc.cast(_decoded(values), wanted)


def _others(wrong: npt.NDArray[np.int64], first: int, rows: int) -> pa.Array | None:
    """The places of a batch without problems; None if all are fine."""
    here = wrong[np.searchsorted(wrong, first) : np.searchsorted(wrong, first + rows)] - first
    if len(here) == 0:
        return None
    stay = np.ones(rows, bool)
    stay[here] = False
    return pa.array(np.flatnonzero(stay))


def _misfits(values: pa.Array, wanted: pa.DataType) -> list[int]:
    def accepts(part: pa.Array) -> bool:
        try:
            pc.cast(part, wanted)
        except pa.ArrowException:
            return False
        return True

    return find_misfits(values, accepts)


def _castable(stored: pa.DataType, wanted: pa.DataType) -> bool:
    try:
        pc.cast(pa.nulls(0, stored), wanted)
    except pa.ArrowException:
        return False
    return True


def _alike(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a cast keeps the meaning: Arrow also turns numbers into times and booleans into numbers."""
    found, kind = kind_of(stored), kind_of(wanted)
    return found in (kind, model.Kind.UNKNOWN) or (found.is_number and kind is model.Kind.FLOAT)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _decoded(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def shown(value: Any) -> str:
    """A value that JSON does not have, as text."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
