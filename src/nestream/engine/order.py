"""Puts matches into the order of the output: by the time of their end, then by the positions of their events.

Joins find matches nearly in that order. The row numbers of a match, as distances from its end, are packed
into one number, so that a single sort of numbers that are nearly sorted does it, and are unpacked again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nestream.engine.events import Ints
from nestream.engine.store import Store


def in_output_order(columns: Sequence[Ints], store: Store) -> list[Ints]:
    """The matches, given by the rows of their events (-1 for none), in the order of the output."""
    columns = list(columns)
    if len(columns[0]) < 2:
        return columns
    last = np.maximum.reduce(columns)
    moments = store.first_at_its_time
    end = last if moments is None else moments[last]
    packed = _packed(end, columns)
    if packed is not None:
        return packed
    order = np.lexsort([*columns[::-1], end])
    return [column[order] for column in columns]


def _packed(end: Ints, columns: list[Ints]) -> list[Ints] | None:
    """The columns sorted by way of one packed number a match; None where it would not fit."""
    first = int(end.min())
    distances = [column - end for column in columns]
    least = [int(distance.min()) for distance in distances]
    bits = [(int(distance.max()) - low).bit_length() for distance, low in zip(distances, least, strict=True)]
    if (int(end.max()) - first).bit_length() + sum(bits) > 62:
        return None
    key = end - first
    for distance, low, size in zip(distances, least, bits, strict=True):
        key = (key << size) | (distance - low)
    key = np.sort(key, kind="stable")
    found: list[Ints] = []
    for low, size in zip(reversed(least), reversed(bits), strict=True):
        found.append((key & ((1 << size) - 1)) + low)
        key >>= size
    key += first
    return [distance + key for distance in reversed(found)]
