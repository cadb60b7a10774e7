"""Building blocks of the generators: seeded numbers, skewed choices, and Arrow columns.

Only `random` and `integers` of NumPy's PCG64 are used, and times are integers, so a seed produces the same
bytes on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def random_numbers(seed: int) -> np.random.Generator:
    """The only source of randomness: one stream of numbers per seed."""
    if seed < 0:
        raise ValueError(f"seed must not be negative, got {seed}")
    return np.random.Generator(np.random.PCG64(seed))


def check_events(events: int) -> None:
    """Reject a negative number of events."""
    if events < 0:
        raise ValueError(f"events must not be negative, got {events}")


def check_fraction(name: str, value: float) -> None:
    """Reject a fraction outside [0, 1]."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")


def zipf_weights(domain: int, theta: float) -> npt.NDArray[np.float64]:
    """Probabilities proportional to 1 / rank^theta; uniform for theta 0."""
    if domain < 1:
        raise ValueError(f"a domain needs at least one value, got {domain}")
    if theta < 0:
        raise ValueError(f"theta must not be negative, got {theta}")
    weights = np.arange(1, domain + 1, dtype=np.float64) ** -theta
    shares: npt.NDArray[np.float64] = weights / weights.sum()
    return shares


def skewed(random: np.random.Generator, domain: int, theta: float, size: int, dtype: Any) -> npt.NDArray[Any]:
    """`size` values of 0 .. domain-1, Zipf distributed with parameter `theta` (0 is uniform)."""
    weights = zipf_weights(domain, theta)
    if theta == 0:
        return random.integers(0, domain, size, dtype=dtype)
    bounds = np.cumsum(weights)[:-1]
    return np.searchsorted(bounds, random.random(size), side="right").astype(dtype)


def small_integer(domain: int) -> type[np.int8] | type[np.int16] | type[np.int32] | type[np.int64]:
    """The narrowest signed integer that holds 0 .. domain."""
    for candidate in (np.int8, np.int16, np.int32):
        if domain <= np.iinfo(candidate).max:
            return candidate
    return np.int64


def words(codes: npt.NDArray[Any], names: Sequence[str], present: Booleans | None = None) -> pa.Array:
    """A dictionary-encoded text column: `names[code]`, NULL where not `present`."""
    index = pa.array(codes.astype(small_integer(len(names)), copy=False), mask=absent(present))
    return pa.DictionaryArray.from_arrays(index, pa.array(names, pa.string()))


def numbers(values: npt.NDArray[Any], present: Booleans | None = None) -> pa.Array:
    """A numeric column, NULL where not `present`."""
    return pa.array(values, mask=absent(present))


def absent(present: Booleans | None) -> Booleans | None:
    """Arrow needs to know which values are missing; the generators know which are present."""
    return None if present is None or bool(present.all()) else ~present


def timestamps(start: str, milliseconds: Integers) -> pa.Array:
    """Timestamps (ms, no zone) at `start` plus the given offsets."""
    origin = np.datetime64(start, "ms").astype(np.int64)
    return pa.array(origin + milliseconds).cast(pa.timestamp("ms"))


def earliest(times: Integers, events: int) -> Integers:
    """The order of the first `events` rows by time; equal times keep their order."""
    order: Integers = np.argsort(times, kind="stable")[:events]
    return order


def table(columns: Mapping[str, Any]) -> pa.Table:
    """A table of the given columns, in the given order."""
    return pa.table(dict(columns))
