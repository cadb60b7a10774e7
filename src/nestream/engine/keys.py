"""Keys as small numbers: attributes that a query compares for equality share one numbering of their values.

Numbers hold for the events of one moment; NULL has none (-1), because it equals nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.engine.events import Events, Ints
from nestream.engine.program import Block, Program

_DIRECT = 1 << 22
"""Up to this range of values, an integer is numbered by its distance from the least one."""


_MOST = 1 << 36
"""So many numbers leave room for the positions beside them in one coordinate."""


class Keys:
    """The numbers of key values for the rows of the events.

    `groups` are the attributes that are compared with each other, as `attribute_groups` gives them.
    """

    def __init__(self, events: Events, groups: Mapping[str, str]) -> None:
        self.events = events
        self.groups = groups
        self._numbers: dict[str, tuple[Ints, int]] = {}
        self._tuples: dict[tuple[str, ...], tuple[Ints, int]] = {}
        self._known: dict[tuple[str, ...], Ints] = {}

    def numbers(self, attributes: tuple[str, ...]) -> Ints:
        """The number of the attributes' values for every row, the same for equal values."""
        return self._combined(attributes)[0]

    def size(self, attributes: tuple[str, ...]) -> int:
        """How many numbers there are for the attributes' values."""
        return self._combined(attributes)[1]

    def _combined(self, attributes: tuple[str, ...]) -> tuple[Ints, int]:
        if len(attributes) == 1:
            return self._single(attributes[0])
        if attributes not in self._tuples:
            self._tuples[attributes] = self.combine(
                attributes, [self._single(name)[0] for name in attributes]
            )
        return self._tuples[attributes]

    def combine(self, attributes: tuple[str, ...], columns: Sequence[Ints]) -> tuple[Ints, int]:
        """One number for the numbers of several attributes, or of others compared with them, and how many.

        Where there would be too many numbers, only the combinations that occur are numbered.
        """
        numbers, size = columns[0], self.size(attributes[:1])
        missing = numbers < 0
        for place, column in enumerate(columns[1:], 1):
            count = self.size((attributes[place],))
            missing = missing | (column < 0)
            numbers, size = numbers * count + column, size * count
            if size > _MOST:
                occurring = self._occurring(attributes[: place + 1])
                found = np.minimum(np.searchsorted(occurring, numbers), max(len(occurring) - 1, 0))
                missing = missing | (occurring[found] != numbers) if len(occurring) else missing | True
                numbers, size = found, max(len(occurring), 1)
        return np.where(missing, -1, numbers), size

    def _occurring(self, attributes: tuple[str, ...]) -> Ints:
        """The combined numbers that occur in some row, of these attributes or of those compared with them."""
        slots = tuple(self.groups.get(name, name) for name in attributes)
        if slots not in self._known:
            members = [[name for name in self.groups if self.groups[name] == s] or [s] for s in slots]
            parts = []
            for names in product(*members):
                before, _ = self._combined(names[:-1])
                last, count = self._single(names[-1])
                parts.append((before * count + last)[(before >= 0) & (last >= 0)])
            self._known[slots] = np.unique(np.concatenate(parts))
        return self._known[slots]

    def _single(self, attribute: str) -> tuple[Ints, int]:
        if attribute not in self._numbers:
            group = [name for name in self.groups if self.groups[name] == self.groups.get(attribute)]
            names = group or [attribute]
            self._numbers.update(zip(names, self._number(names), strict=True))
        return self._numbers[attribute]

    def _number(self, names: list[str]) -> list[tuple[Ints, int]]:
        vectors = [self.events.attribute(name) for name in names]
        some = [vector for vector in vectors if not vector.is_nothing]
        if not some:
            numbers, size = np.full(len(self.events) * len(vectors), -1), 0
        elif some[0].is_arrow:
            kind = some[0].values.type
            joined = pa.chunked_array([vector.column(kind, len(self.events)) for vector in vectors])
            encoded = joined.combine_chunks().dictionary_encode()
            numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            size = len(encoded.dictionary)
        else:
            empty = np.zeros(len(self.events), some[0].values.dtype)
            numbers, size = _number_values([empty if v.is_nothing else v.values for v in vectors])
            numbers = np.where(np.concatenate([vector.known for vector in vectors]), numbers, -1)
        parts = np.split(numbers, len(names))
        return [(part, max(size, 1)) for part in parts]


def _number_values(columns: list[npt.NDArray[Any]]) -> tuple[Ints, int]:
    """The number of each value of the columns, the same for numbers of equal value, whatever their kinds."""
    if len({column.dtype.kind for column in columns}) > 1 or columns[0].dtype.kind == "O":
        seen: dict[Any, int] = {}  # equal numbers of Python's are one key: 1, 1.0 and Decimal("1.00")
        numbers = [seen.setdefault(value, len(seen)) for column in columns for value in column.tolist()]
        return np.array(numbers, np.int64), len(seen)
    values = np.concatenate(columns)
    if not len(values):
        return np.empty(0, np.int64), 1
    if values.dtype.kind in "ib":
        values = values.astype(np.int64)
        least, most = int(values.min()), int(values.max())
        if most - least < _DIRECT:
            return values - least, most - least + 1
    distinct, found = np.unique(values, return_inverse=True)
    return found.astype(np.int64), len(distinct)


def attribute_groups(programs: Iterable[Program]) -> dict[str, str]:
    """The attributes that are compared with each other, each with the first of its group."""
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            name = parent[name]
        return name

    for left, right in _compared(block for program in programs for block in program.blocks):
        parent[find(right)] = find(left)
    return {name: find(name) for name in parent}


def _compared(blocks: Iterable[Block]) -> Iterable[tuple[str, str]]:
    for block in blocks:
        for equality in block.equalities:
            yield equality.left[1], equality.right[1]
        for shortcut in block.shortcuts:
            yield shortcut.outer[1], shortcut.inner[1]
        for step in (step for witness in block.witnesses for step in witness.steps):
            yield from zip(step.attributes, (attribute for _, attribute in step.equal_to), strict=True)
        yield from _key_pairs(list((block.key or {}).values()))
        for negation in block.negations:
            key = list((negation.key or {}).values())
            yield from _key_pairs([*key, negation.link[1]] if negation.link else key)
            yield from _compared((negation.block,))


def _key_pairs(keys: list[tuple[str, ...]]) -> Iterable[tuple[str, str]]:
    for key in keys:
        yield from zip(keys[0], key, strict=True)
