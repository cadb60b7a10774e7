"""Every type that Arrow has, with values to try it with and what those values mean to a query.

A `Sample` is a type, a pool of few values so that some meet again, and two ways to make a column of chosen
values: in the type itself, and in the plain type that a query computes with. The two are built apart, from
the same Python values, so that one can be the measure of the other in any runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import time
from decimal import Decimal
from itertools import pairwise
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

TIMES = ("integer", "timestamp", "zoned")
"""The kinds that a time column may have."""
OTHER = "other"
"""The kind of values that queries cannot compute with."""


@dataclass(frozen=True)
class Sample:
    """A type with some values. `kind` is what a query takes them for."""

    name: str
    kind: str
    pool: tuple[Any, ...]
    array: Callable[[Sequence[Any]], pa.Array]
    """A column of the type, from values of the pool and None."""
    plain: Callable[[Sequence[Any]], pa.Array]
    """The same values in the type that a query computes with."""
    too_big: bool = False
    """Some values of the pool do not fit what a query computes with, which must be said."""

    @property
    def computes(self) -> bool:
        """Whether a query can compare the values."""
        return self.kind != OTHER

    def __str__(self) -> str:
        return self.name


def _of(datatype: pa.DataType) -> Callable[[Sequence[Any]], pa.Array]:
    return lambda chosen: pa.array(chosen, datatype)


def _simple(datatype: pa.DataType, kind: str, plain: pa.DataType, *pool: Any, name: str = "") -> Sample:
    return Sample(name or str(datatype), kind, pool, _of(datatype), _of(plain))


def _numbers() -> list[Sample]:
    found = []
    for bits in (8, 16, 32, 64):
        signed, unsigned = getattr(pa, f"int{bits}")(), getattr(pa, f"uint{bits}")()
        ends = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        found.append(_simple(signed, "integer", pa.int64(), ends[0], -1, 0, 1, 2, ends[1]))
        found.append(_simple(unsigned, "integer", pa.int64(), 0, 1, 2, 3, ends[1]))
    found.append(
        replace(_simple(pa.uint64(), "integer", pa.uint64(), 2**63, 2**64 - 1), name="uint64+", too_big=True)
    )
    exact = (0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), float("-inf"))
    for datatype in (pa.float16(), pa.float32(), pa.float64()):
        half = pa.types.is_float16(datatype)
        sample = _simple(datatype, "float", pa.float64(), *exact)
        found.append(replace(sample, array=_halves) if half else sample)
    for datatype in (pa.decimal32(6, 2), pa.decimal64(12, 2), pa.decimal128(30, 2), pa.decimal256(60, 2)):
        pool = (Decimal("0.00"), Decimal("1.10"), Decimal("-2.25"), Decimal("999.99"))
        found.append(Sample(str(datatype), "float", pool, _of(datatype), _as_floats))
    return found


def _halves(chosen: Sequence[Any]) -> pa.Array:
    return pa.array([None if value is None else np.float16(value) for value in chosen], pa.float16())


def _as_floats(chosen: Sequence[Any]) -> pa.Array:
    return pa.array([None if value is None else float(value) for value in chosen], pa.float64())


WORDS = ("A", "B", "C", "", "é€", "a" * 40)
"""Strings, the types of the events among them; one is too long to be inside a view."""


def _texts() -> list[Sample]:
    found = [
        _simple(t, "string", pa.string(), *WORDS) for t in (pa.string(), pa.large_string(), pa.string_view())
    ]
    for datatype in (pa.binary(), pa.large_binary(), pa.binary_view()):
        found.append(_simple(datatype, OTHER, datatype, b"", b"a", b"\xff" * 40))
    found.append(_simple(pa.binary(3), OTHER, pa.binary(3), b"abc", b"\xff\x00\x01"))
    found.append(_simple(pa.bool_(), "boolean", pa.bool_(), True, False))
    found.append(_simple(pa.null(), "null", pa.null()))
    return found


_SCALE = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _counted(datatype: pa.DataType, kind: str, plain: pa.DataType, pool: Sequence[int], many: int) -> Sample:
    """A type whose values are counts of its unit; in the plain type each counts `many` times as much."""

    def plainly(chosen: Sequence[Any]) -> pa.Array:
        scaled = [None if value is None else value * many for value in chosen]
        return pa.array(scaled, pa.int64()).cast(plain)

    bits = pa.int32() if datatype.bit_width == 32 else pa.int64()
    return Sample(
        str(datatype), kind, tuple(pool), lambda chosen: pa.array(chosen, bits).cast(datatype), plainly
    )


def _moments() -> list[Sample]:
    found = []
    for unit, scale in _SCALE.items():
        plain_unit = "ns" if unit == "ns" else "us"
        many = max(_SCALE[plain_unit] // scale, 1)
        pool = [0, -1, 1, 1_700_000_000 * scale, 1_700_000_000 * scale + 1, 1_700_003_600 * scale]
        if unit != "ns":
            pool.append(253_370_764_800 * scale)  # the first second of the year 9999
        for zone in (None, "UTC", "Europe/Berlin", "+05:30"):
            kind = "timestamp" if zone is None else "zoned"
            plain = pa.timestamp(plain_unit, zone and "UTC")
            found.append(_counted(pa.timestamp(unit, zone), kind, plain, pool, many))
        found.append(_counted(pa.duration(unit), "duration", pa.duration(plain_unit), pool[:4], many))
    day = 86_400 * 10**6
    found.append(_counted(pa.date32(), "timestamp", pa.timestamp("us"), [0, -1, 1, 19_000], day))
    milliseconds = [0, -86_400_000, 86_400_000, 19_000 * 86_400_000]
    found.append(_counted(pa.date64(), "timestamp", pa.timestamp("us"), milliseconds, 1000))
    for datatype in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")):
        found.append(_simple(datatype, OTHER, datatype, time(0), time(1, 2, 3), time(23, 59, 59)))
    interval = pa.month_day_nano_interval()
    found.append(_simple(interval, OTHER, interval, (0, 0, 0), (1, -2, 3), (12, 30, 10**9)))
    far = Sample("timestamp[s]+", "timestamp", (2**61, 2**62), _far, _far, too_big=True)
    days = Sample("date32+", "timestamp", (2**30, 2**31 - 1), _far_days, _far_days, too_big=True)
    return [*found, far, days]


def _far(chosen: Sequence[Any]) -> pa.Array:
    return pa.array(chosen, pa.int64()).cast(pa.timestamp("s"))


def _far_days(chosen: Sequence[Any]) -> pa.Array:
    return pa.array(chosen, pa.int32()).cast(pa.date32())


# -- types made of others ----------------------------------------------------------------------------------


def dictionary(sample: Sample, indices: pa.DataType, *, null_word: bool) -> Sample:
    """A dictionary of a sample's values, with NULL among the words or among the indices."""

    def array(chosen: Sequence[Any]) -> pa.Array:
        words = [*sample.pool[::-1], None] if null_word else list(sample.pool)
        known = {repr(word): place for place, word in enumerate(words)}
        places = [None if v is None and not null_word else known[repr(v)] for v in chosen]
        return pa.DictionaryArray.from_arrays(pa.array(places, indices), sample.array(words))

    name = f"dictionary({indices}, {sample}{', NULL' if null_word else ''})"
    return replace(sample, name=name, array=array)


def run_ends(sample: Sample, ends: pa.DataType) -> Sample:
    """The values of a sample as runs."""

    def array(chosen: Sequence[Any]) -> pa.Array:
        starts = [n for n in range(len(chosen)) if n == 0 or repr(chosen[n]) != repr(chosen[n - 1])]
        stops = [*starts[1:], len(chosen)] if chosen else []
        runs = sample.array([chosen[start] for start in starts])
        return pa.RunEndEncodedArray.from_arrays(pa.array(stops, ends), runs)

    return replace(sample, name=f"run_end_encoded({ends}, {sample})", array=array)


def extension(datatype: Any, storage: Sample) -> Sample:
    """An extension type over the values of a sample."""

    def array(chosen: Sequence[Any]) -> pa.Array:
        return pa.ExtensionArray.from_storage(datatype, storage.array(chosen))

    return Sample(str(datatype), OTHER, storage.pool, array, array)


def nested(sample: Sample) -> list[Sample]:
    """Lists, structs, maps and unions of a sample's values; their pools hold lists of its values."""
    one, two = sample.pool[0], sample.pool[-1]
    lists: tuple[list[Any], ...] = ([], [one], [two, None])
    pairs = ([one, two], [two, None])

    def flat(chosen: Sequence[Any]) -> pa.Array:
        return sample.array([value for part in chosen for value in part or []])

    def offsets(chosen: Sequence[Any]) -> list[int]:
        return [0, *np.cumsum([len(part or []) for part in chosen]).tolist()]

    def missing(chosen: Sequence[Any]) -> pa.Array:
        return pa.array([part is None for part in chosen], pa.bool_())

    def a_list(chosen: Sequence[Any]) -> pa.Array:
        return pa.ListArray.from_arrays(
            pa.array(offsets(chosen), pa.int32()), flat(chosen), mask=missing(chosen)
        )

    def a_large_list(chosen: Sequence[Any]) -> pa.Array:
        ends = pa.array(offsets(chosen), pa.int64())
        return pa.LargeListArray.from_arrays(ends, flat(chosen), mask=missing(chosen))

    def a_view(chosen: Sequence[Any]) -> pa.Array:
        ends = offsets(chosen)
        sizes = [end - start for start, end in pairwise(ends)]
        starts, lengths = pa.array(ends[:-1], pa.int32()), pa.array(sizes, pa.int32())
        return pa.ListViewArray.from_arrays(starts, lengths, flat(chosen), mask=missing(chosen))

    def a_large_view(chosen: Sequence[Any]) -> pa.Array:
        ends = offsets(chosen)
        sizes = [end - start for start, end in pairwise(ends)]
        starts, lengths = pa.array(ends[:-1], pa.int64()), pa.array(sizes, pa.int64())
        return pa.LargeListViewArray.from_arrays(starts, lengths, flat(chosen), mask=missing(chosen))

    def a_pair(chosen: Sequence[Any]) -> pa.Array:
        filled = sample.array([value for part in chosen for value in part or [None, None]])
        return pa.FixedSizeListArray.from_arrays(filled, 2, mask=missing(chosen))

    def a_struct(chosen: Sequence[Any]) -> pa.Array:
        children = [sample.array([part and part[place] for part in chosen]) for place in (0, 1)]
        return pa.StructArray.from_arrays(children, names=["one", "two"], mask=missing(chosen))

    def a_map(chosen: Sequence[Any]) -> pa.Array:
        keys = pa.array([f"key {n}" for part in chosen for n in range(len(part or []))], pa.string_view())
        ends = pa.array(offsets(chosen), pa.int32())
        return pa.MapArray.from_arrays(ends, keys, flat(chosen), mask=missing(chosen))

    def a_sparse_union(chosen: Sequence[Any]) -> pa.Array:
        codes = pa.array([n % 2 for n in range(len(chosen))], pa.int8())
        first = sample.array([part and part[0] for part in chosen])
        return pa.UnionArray.from_sparse(codes, [first, pa.array(range(len(chosen)), pa.int64())], ["v", "n"])

    def a_dense_union(chosen: Sequence[Any]) -> pa.Array:
        codes = pa.array([n % 2 for n in range(len(chosen))], pa.int8())
        places = pa.array([n // 2 for n in range(len(chosen))], pa.int32())
        first = sample.array([part and part[0] for part in chosen[::2]])
        count = pa.array(range(len(chosen) // 2), pa.int64())
        return pa.UnionArray.from_dense(codes, places, [first, count], ["v", "n"])

    made: list[tuple[str, tuple[Any, ...], Callable[[Sequence[Any]], pa.Array]]] = [
        ("list", lists, a_list),
        ("large_list", lists, a_large_list),
        ("list_view", lists, a_view),
        ("large_list_view", lists, a_large_view),
        ("fixed_size_list", pairs, a_pair),
        ("struct", pairs, a_struct),
        ("map", lists, a_map),
        ("sparse_union", pairs, a_sparse_union),
        ("dense_union", pairs, a_dense_union),
    ]
    return [Sample(f"{name}({sample})", OTHER, pool, array, array) for name, pool, array in made]


def _as_texts_of_uuids(chosen: Sequence[Any]) -> pa.Array:
    return pa.array([None if value is None else str(UUID(bytes=value)) for value in chosen], pa.string())


def _all() -> list[Sample]:
    basic = [*_numbers(), *_texts(), *_moments()]
    named = {sample.name: sample for sample in basic}
    made: list[Sample] = []
    coded = (
        "string large_string string_view int8 double bool timestamp[us] date32[day] duration[ms] binary_view"
    )
    for number, name in enumerate([*coded.split(), "decimal128(30, 2)", "halffloat"]):
        indices = [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.int64()][number % 5]
        made += [dictionary(named[name], indices, null_word=null) for null in (False, True)]
        made.append(run_ends(named[name], [pa.int16(), pa.int32(), pa.int64()][number % 3]))
    coded_text = dictionary(named["string"], pa.int8(), null_word=True)
    made.append(run_ends(coded_text, pa.int32()))
    for inner in (named["int32"], named["string_view"], coded_text, run_ends(named["string"], pa.int16())):
        made += nested(inner)
    made += nested(nested(named["string_view"])[5])  # of structs
    made += [
        replace(  # compared as text
            extension(pa.uuid(), _simple(pa.binary(16), OTHER, pa.binary(16), b"a" * 16, b"\x00" * 16)),
            kind="uuid",
            plain=_as_texts_of_uuids,
        ),
        extension(pa.json_(), _simple(pa.string(), OTHER, pa.string(), "{}", '{"a": 1}')),
        extension(pa.bool8(), _simple(pa.int8(), OTHER, pa.int8(), 0, 1)),
        extension(pa.opaque(pa.string(), "a type", "a vendor"), named["string"]),
        replace(  # what cannot be held as it is becomes what it stores
            extension(pa.opaque(pa.string_view(), "a type", "a vendor"), named["string_view"]),
            kind="string",
            plain=named["string"].array,
        ),
    ]
    made += nested(made[-5])  # of extension types
    return [*basic, *made]


SAMPLES = _all()
