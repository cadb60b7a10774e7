"""Counts the distinct values of a column in bounded memory: the least k hashes of what was seen.

Hashes spread evenly over [0, 1). As long as fewer than k different ones were seen, their number is exact; of
more, the k-th least lies at about k / n, which tells n with a relative error of 1 / sqrt(k - 2). The union of
two sketches is the sketch of both columns, in any order and however often a value is repeated.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.columns import computable
from nestream.model.schema import Kind, kind_of

Hashes = npt.NDArray[np.uint64]
SIZE = 1024
"""How many hashes are kept: exact up to 1,023 values, an error of about 3 % beyond."""


def _none() -> Hashes:
    return np.empty(0, np.uint64)


@dataclass(frozen=True)
class Sketch:
    """The least hashes of the values seen, in order and without repeats."""

    hashes: Hashes = field(default_factory=_none)

    @classmethod
    def of(cls, column: pa.Array | pa.ChunkedArray) -> Sketch:
        """The values of a column; NULL is none."""
        return cls(_least(_hashed(column)))

    @property
    def is_exact(self) -> bool:
        """Whether the number is counted and not estimated."""
        return len(self.hashes) < SIZE

    @property
    def distinct(self) -> float:
        """How many different values there are."""
        if self.is_exact:
            return float(len(self.hashes))
        return (SIZE - 1) / ((float(self.hashes[-1]) + 1.0) / 2.0**64)

    def merged(self, other: Sketch) -> Sketch:
        """The values of both."""
        return Sketch(_least(np.concatenate((self.hashes, other.hashes))))

    def text(self) -> str:
        """The hashes for JSON."""
        return base64.b64encode(self.hashes.astype("<u8").tobytes()).decode("ascii")

    @classmethod
    def from_text(cls, text: str) -> Sketch:
        """What `text` wrote."""
        return cls(np.frombuffer(base64.b64decode(text), "<u8").astype(np.uint64))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sketch) and np.array_equal(self.hashes, other.hashes)

    def __hash__(self) -> int:
        return hash(self.hashes.tobytes())


def _least(hashes: Hashes) -> Hashes:
    """The least different ones; most of a long column is dropped before it is sorted."""
    if len(hashes) > 64 * SIZE:
        few = np.unique(hashes[: 16 * SIZE])
        if len(few) >= SIZE:
            hashes = hashes[hashes <= few[SIZE - 1]]
    return np.unique(hashes)[:SIZE]


def _hashed(column: pa.Array | pa.ChunkedArray) -> Hashes:
    if kind_of(column.type) is Kind.OTHER:  # it rides along, and no query compares it
        return _none()
    fine = getattr(column.type, "unit", "") == "ns"
    column = pc.drop_null(computable(column, "ns" if fine else "us"))
    if pa.types.is_large_string(column.type):
        return np.array([_of_text(value) for value in pc.unique(column).to_pylist()], np.uint64)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_decimal(column.type):  # near enough to count how many there are
        column = column.cast(pa.float64())
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype == np.float64:  # as an integer where it is one: 1 and 1.0 are equal
        whole = np.isfinite(values) & (np.floor(values) == values) & (np.abs(values) < 2.0**62)
        bits = values.view(np.uint64) ^ np.uint64(0x5555555555555555)
        values = np.where(whole, np.where(whole, values, 0).astype(np.int64).view(np.uint64), bits)
    return _mixed(values.astype(np.int64, copy=False).view(np.uint64))


def _of_text(value: str) -> int:
    return int.from_bytes(blake2b(value.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mixed(values: Hashes) -> Hashes:
    """The finaliser of splitmix64: every bit of a value moves every bit of its hash."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
