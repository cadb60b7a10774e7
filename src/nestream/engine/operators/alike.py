"""Groups partial matches that are alike: that bind the same events to the variables something depends on.

A negation depends on its interval and on the variables that its predicates mention. Matches that agree on
these have the same answer, so it is computed once: for `SEQ(A a, B b, !SEQ(C c, D d, c.x > d.x), E e)` once
per pair of `b` and `e`, however many `a` come before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.engine.operator import AnyRows

_MANY = 64
"""From this number on, grouping partial matches that are alike pays off."""
_MOST = 1 << 62


@dataclass(frozen=True)
class Alike:
    """Partial matches by kind: `first` is the place of one of each kind, `number` the kind of each match."""

    first: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]


def alike(rows: Mapping[str, AnyRows], count: int, names: Iterable[str], length: int) -> Alike | None:
    """Group partial matches, given by their rows, by the events of some variables; None if that is no gain.

    `length` is the number of held events.
    """
    wanted = sorted(set(names) & rows.keys())
    if count < _MANY or len(wanted) == len(rows):
        return None
    number: npt.NDArray[np.int64] = np.zeros(count, np.int64)
    size = 1
    for name in wanted:
        if size * length >= _MOST:
            number, size = _renumbered(number)
        number, size = number * length + rows[name], size * length
    number, size = _renumbered(number)
    first = np.empty(size, np.int64)
    first[number[::-1]] = np.arange(count - 1, -1, -1)
    return Alike(first, number)


def _renumbered(values: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """Renumber values without gaps; equal values get equal numbers."""
    encoded = pa.array(values).dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)
