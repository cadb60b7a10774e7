"""Columns to compute with: values, and which of them are not NULL.

Numbers, booleans, times and durations are NumPy arrays with a mask. Decimals are NumPy arrays of Python's
`Decimal`. Strings stay in Arrow, and so do two kinds of columns that support few operations: one without any
value (Arrow's null type), and one whose type a query cannot compute with, which can only be tested for NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from nestream.model.arithmetic import fits
from nestream.model.lazy import np, pa, pc

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]
else:
    Mask = Any


def text_type() -> pa.DataType:
    """The type of strings that are computed with."""
    return pa.large_string()


@dataclass(frozen=True)
class Vector:
    """Values, and which of them are not NULL (None: all); a single value represents a column of it."""

    values: Any
    valid: Mask | None = None

    @property
    def is_arrow(self) -> bool:
        """Whether Arrow holds the values: strings, a column of NULL, or what cannot be computed with."""
        return isinstance(self.values, pa.Array | pa.Scalar)

    @property
    def is_nothing(self) -> bool:
        """Whether the values have no kind, because all are NULL."""
        return self.is_arrow and pa.types.is_null(self.values.type)

    @property
    def is_object(self) -> bool:
        """Whether the values are Python objects: decimals, or a constant beyond 64 bits."""
        return not self.is_arrow and self.values.dtype.kind == "O"

    @property
    def length(self) -> int | None:
        """The number of values; None for a single value that represents a column."""
        if self.is_arrow:
            return None if isinstance(self.values, pa.Scalar) else len(self.values)
        return len(self.values) if np.ndim(self.values) else None

    @property
    def known(self) -> Any:
        """Which values are not NULL."""
        if self.is_arrow:
            if isinstance(self.values, pa.Scalar):
                return np.bool_(self.values.is_valid)
            return self.values.is_valid().to_numpy(zero_copy_only=False)
        return np.ones(np.shape(self.values), dtype=bool) if self.valid is None else self.valid

    @classmethod
    def of(cls, column: pa.Array) -> Vector:
        """A column, as `nestream.model.columns.computable` returns it."""
        kind = column.type
        if pa.types.is_decimal(kind):
            items = column.fill_null(Decimal(0)).to_pylist()
            valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
            return cls(_objects(items), valid)
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            return cls(column)
        valid = None
        if column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            column = column.fill_null(False if pa.types.is_boolean(kind) else 0)
        return cls(column.to_numpy(zero_copy_only=False), valid)

    @classmethod
    def nothing(cls, length: int | None) -> Vector:
        """NULL in every row."""
        return cls(pa.scalar(None) if length is None else pa.nulls(length))

    @classmethod
    def from_items(cls, items: Sequence[Any], *, single: bool = False) -> Vector:
        """The values of a Python list, None for NULL; what does not fit in 64 bits is NULL."""
        items = [None if isinstance(item, int) and not fits(item) else item for item in items]
        sample = next((item for item in items if item is not None), None)
        if sample is None:
            return cls.nothing(None if single else len(items))
        if isinstance(sample, str):
            return cls(pa.scalar(items[0], text_type()) if single else pa.array(items, text_type()))
        values: npt.NDArray[Any]
        filled = [type(sample)(0) if item is None else item for item in items]
        if any(isinstance(item, Decimal) for item in filled):
            values = _objects(filled)
        else:
            values = np.array(filled, np.float64 if any(isinstance(i, float) for i in filled) else None)
        valid = np.array([item is not None for item in items])
        if single:
            return cls(values.reshape(()), None if valid.all() else valid.reshape(()))
        return cls(values, None if valid.all() else valid)

    def take(self, rows: npt.NDArray[np.signedinteger[Any]]) -> Vector:
        """The values of some rows."""
        if self.is_arrow:
            return Vector(pc.take(self.values, pa.array(rows), boundscheck=False))
        return Vector(self.values[rows], None if self.valid is None else self.valid[rows])

    def where(self, kept: Mask) -> Vector:
        """The values with NULL wherever the mask is false."""
        if self.is_arrow:
            missing = pa.scalar(None, self.values.type)
            return Vector(pc.if_else(pa.array(kept) if np.ndim(kept) else bool(kept), self.values, missing))
        return Vector(self.values, kept if self.valid is None else self.valid & kept)

    def items(self, count: int) -> list[Any]:
        """That many values as Python values, None for NULL."""
        if self.is_arrow:
            if isinstance(self.values, pa.Scalar):
                return [self.values.as_py()] * count
            found: list[Any] = self.values.to_pylist()
            return found
        values: list[Any] = np.broadcast_to(self.values, (count,)).tolist()
        if self.valid is None:
            return values
        return [
            v if ok else None for v, ok in zip(values, np.broadcast_to(self.valid, (count,)), strict=True)
        ]

    def column(self, datatype: pa.DataType, count: int) -> pa.Array:
        """That many rows as an Arrow array; a value that the type cannot hold is NULL."""
        if self.is_nothing:
            return pa.nulls(count, datatype)
        if self.is_arrow:
            if isinstance(self.values, pa.Scalar):
                return pa.array([self.values.as_py()] * count, datatype)
            return self.values if self.values.type == datatype else self.values.cast(datatype)
        if self.is_object:
            return column_of(self.items(count), datatype)
        values = np.ascontiguousarray(np.broadcast_to(self.values, (count,)))
        mask = None if self.valid is None else ~np.broadcast_to(self.valid, (count,))
        plain = pa.array(values, mask=mask)
        return plain.view(datatype) if pa.types.is_temporal(datatype) else plain.cast(datatype)


def column_of(items: Sequence[Any], datatype: pa.DataType) -> pa.Array:
    """Python values as an Arrow array, None for NULL; one that the type cannot hold is NULL."""
    if pa.types.is_temporal(datatype) or pa.types.is_integer(datatype):
        plain = pa.array([item if item is not None and fits(item) else None for item in items], pa.int64())
        return plain.view(datatype) if pa.types.is_temporal(datatype) else plain
    if pa.types.is_decimal(datatype):
        room = Decimal(10) ** (datatype.precision - datatype.scale)
        items = [item if item is not None and abs(item) < room else None for item in items]
    elif pa.types.is_floating(datatype):
        items = [None if item is None else float(item) for item in items]
    return pa.array(items, datatype)


def _objects(items: Sequence[Any]) -> npt.NDArray[Any]:
    values = np.empty(len(items), dtype=object)
    values[:] = items
    return values


def common_length(vectors: Sequence[Vector]) -> int | None:
    """The number of rows of vectors in one operation; None if all are single values."""
    return next((vector.length for vector in vectors if vector.length is not None), None)


def by_rows(function: Callable[..., Any], vectors: Sequence[Vector]) -> Vector:
    """Apply a Python function row by row: for decimals, and where there is no kernel for arrays."""
    length = common_length(vectors)
    count = 1 if length is None else length
    columns = [vector.items(count) for vector in vectors]
    return Vector.from_items([function(*row) for row in zip(*columns, strict=True)], single=length is None)
