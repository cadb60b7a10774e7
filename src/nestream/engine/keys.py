"""Maps keys to small numbers: attributes that are compared for equality share one numbering.

The numbers are dense enough to index arrays. They are valid for one evaluation, although most values keep
theirs when events arrive. NULL has no number (-1), because it equals nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.engine.event_buffer import EventBuffer
from nestream.engine.growing import Growing
from nestream.engine.kernels import Rows
from nestream.engine.program import Scope
from nestream.model.vector import Vector

_FEW = 4096
"""The maximum number of new events whose values are looked up one by one."""
_ROUNDS = 2
"""The table for looking them up is made once this many rounds in a row had so few new events."""


class Numbering:
    """The numbers of key values for the rows of the events.

    `classes` maps each attribute to the first of those it is compared with.
    """

    def __init__(self, events: EventBuffer, classes: Mapping[str, str]) -> None:
        self.events = events
        self.classes = classes
        self._found: dict[tuple[str, ...], tuple[Rows, int]] = {}
        self._occurring: dict[tuple[str, ...], npt.NDArray[np.int64]] = {}

    def of(self, attributes: tuple[str, ...]) -> Rows:
        """The number of the attributes' values for every row, equal for equal values."""
        return self._of(attributes)[0]

    def size(self, attributes: tuple[str, ...]) -> int:
        """The greatest number of the attributes' values, plus one."""
        return self._of(attributes)[1]

    def _of(self, attributes: tuple[str, ...]) -> tuple[Rows, int]:
        if attributes not in self._found:
            if len(attributes) == 1:
                self._number(attributes[0])
            else:
                columns = [self.of((name,)) for name in attributes]
                self._found[attributes] = self._combined(attributes, columns)
        return self._found[attributes]

    def combine(self, attributes: tuple[str, ...], columns: Sequence[Rows]) -> Rows:
        """Combine the numbers of attributes that are compared with `attributes` into one number."""
        return self._combined(attributes, columns)[0]

    def _combined(self, attributes: tuple[str, ...], columns: Sequence[Rows]) -> tuple[Rows, int]:
        numbers, size = columns[0].astype(np.int64), self.size(attributes[:1])
        missing = numbers < 0
        for place, column in enumerate(columns[1:], 1):
            count = self.size((attributes[place],))
            missing = missing | (column < 0)
            numbers, size = numbers * count + column, size * count
            if size > _most(self.events):
                numbers, known, size = self._renumbered(attributes[: place + 1], numbers)
                missing = missing | ~known
        return np.where(missing, -1, numbers).astype(np.int32), size

    def _renumbered(
        self, attributes: tuple[str, ...], numbers: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], int]:
        """Renumber combinations of values, so that only those of some event have a number.

        Also returns which of the given ones have a number, and how many numbers there are.
        """
        slots = tuple(self.classes.get(name, name) for name in attributes)
        if slots not in self._occurring:
            members = [[name for name, of in self.classes.items() if of == slot] or [slot] for slot in slots]
            parts = []
            for names in product(*members):
                before, last = self.of(names[:-1]).astype(np.int64), self.of(names[-1:])
                both = (before >= 0) & (last >= 0)
                parts.append((before * self.size(names[-1:]) + last)[both])
            self._occurring[slots] = np.unique(np.concatenate(parts))
        occurring = self._occurring[slots]
        if not len(occurring):
            return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), bool), 1
        found = np.minimum(np.searchsorted(occurring, numbers), len(occurring) - 1)
        return found, occurring[found] == numbers, len(occurring)

    def _number(self, attribute: str) -> None:
        """Number the values of an attribute and of all attributes it is compared with."""
        own = self.classes.get(attribute, attribute)
        names = tuple(name for name, of in self.classes.items() if of == own) or (attribute,)
        numbers: _Numbers = self.events.growing(("numbers", names), lambda: _Numbers(names))
        columns, size = numbers.of(self.events)
        for name, column in zip(names, columns, strict=True):
            self._found[name,] = column, size


class _Numbers:
    """The numbers of attributes that are compared with each other, for the events held.

    A value keeps its number when events arrive: it is the distance to the least value, or comes from a
    dictionary. If the numbers become too large for the events held, all events are numbered anew.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self._columns = [Growing(np.empty(0, np.int32)) for _ in names]
        self._forgotten = 0
        self._size = 1
        self._least: int | None = None
        """The value with the number 0; None if numbers are not distances."""
        self._known: dict[Any, int] | None = None
        """Otherwise the number of each value; None until looking values up pays off."""
        self._in_a_row = 0
        """In how many rounds in a row few events were new."""

    def of(self, events: EventBuffer) -> tuple[list[Rows], int]:
        """The numbers for each attribute, row by row, and the greatest number plus one."""
        for column in self._columns:
            column.drop(events.forgotten - self._forgotten)
        self._forgotten = events.forgotten
        done = len(self._columns[0])
        if done < len(events) and not (done and self._extend(events, done)):
            self._begin(events)
        return [column.values for column in self._columns], self._size

    def _extend(self, events: EventBuffer, done: int) -> bool:
        """Number new events as those before; return whether that is possible."""
        most = _most(events)
        if self._least is None:
            return self._by_value(events, done, most)
        for name, column in zip(self.names, self._columns, strict=True):
            values = events.integers(name)
            if values is None or len(values) < len(events):
                return False
            least, greatest = int(values[done:].min()), int(values[done:].max())
            if least < self._least or greatest - self._least >= most:
                return False
            column.extend(values[done:] - np.int64(self._least))
            self._size = max(self._size, greatest - self._least + 1)
        return True

    def _begin(self, events: EventBuffer) -> None:
        """Number all events."""
        count = len(events)
        vectors = [events.computed(name) for name in self.names]
        some = next((vector for vector in vectors if not vector.is_nothing), None)
        self._least = self._known = None
        if some is None:
            numbers, size = np.full(count * len(vectors), -1, np.int32), 1
        elif some.is_arrow:
            kind = some.values.type
            joined = pa.chunked_array([vector.column(kind, count) for vector in vectors])
            numbers, size = _encoded(joined.combine_chunks())
        else:
            nothing = np.zeros(count, some.values.dtype)
            columns = [nothing if vector.is_nothing else vector.values for vector in vectors]
            numbers, size, self._least = _numbered(columns, _most(events))
        parts = np.split(numbers, len(vectors))
        self._columns = [Growing(_or_none(part, v)) for part, v in zip(parts, vectors, strict=True)]
        self._size = max(size, 1)

    def _by_value(self, events: EventBuffer, done: int, most: int) -> bool:
        """Number new events by looking up their values; return whether that is possible and pays off."""
        self._in_a_row = self._in_a_row + 1 if len(events) - done <= _FEW else 0
        if not self._in_a_row or (self._known is None and self._in_a_row < _ROUNDS):
            return False  # Arrow encodes all of them faster than Python looks up the new ones
        if self._known is None:
            self._known = {}
            for name, column in zip(self.names, self._columns, strict=True):
                values = events.computed(name).items(len(events))[:done]
                self._known.update(zip(values, column.values.tolist(), strict=True))
            self._known[None] = -1
        known = self._known
        for name, column in zip(self.names, self._columns, strict=True):
            numbers = []
            for value in events.computed(name, done).items(len(events) - done):
                number = known.get(value)
                if number is None:
                    number = known[value] = self._size
                    self._size += 1
                numbers.append(number)
            column.extend(np.array(numbers, np.int32))
        return self._size <= most


def _most(events: EventBuffer) -> int:
    """The greatest size of a numbering: arrays of that length are made, so the events held limit it."""
    return max(4 * len(events), _FEW)


def _or_none(numbers: Rows, vector: Vector) -> Rows:
    """The numbers, with -1 for NULL."""
    if vector.is_nothing or vector.valid is not None:
        return np.where(vector.known, numbers, np.int32(-1))
    return numbers


def _encoded(values: pa.Array) -> tuple[Rows, int]:
    encoded = values.dictionary_encode()
    indices = np.array(
        encoded.indices.fill_null(-1), np.int32
    )  # a copy, because kernels take writable arrays
    return indices, len(encoded.dictionary)


def _numbered(columns: list[npt.NDArray[Any]], most: int) -> tuple[Rows, int, int | None]:
    """Number the values of the columns; numbers of equal value get the same number, whatever their types.

    Also returns the least value if numbers are the distances to it.
    """
    if len({column.dtype.kind for column in columns}) > 1 or columns[0].dtype.kind == "O":
        seen: dict[Any, int] = {}  # equal Python numbers are one key: 1, 1.0 and Decimal("1.00")
        found = [seen.setdefault(value, len(seen)) for column in columns for value in column.tolist()]
        return np.array(found, np.int32), len(seen), None
    values = columns[0] if len(columns) == 1 else np.concatenate(columns)
    if not len(values):
        return np.empty(0, np.int32), 1, None
    if values.dtype.kind == "f":
        return *_encoded(pa.array(values + 0.0)), None  # 0.0 and -0.0 are equal
    values = values.astype(np.int64, copy=False)
    least, greatest = int(values.min()), int(values.max())
    if greatest - least >= most:
        return *_encoded(pa.array(values)), None
    numbers = np.empty(len(values), np.int32)
    np.subtract(values, least, out=numbers, casting="unsafe")
    return numbers, greatest - least + 1, least


def key_classes(programs: Iterable[Scope]) -> dict[str, str]:
    """Map the attributes that are compared with each other to the first of their class."""
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            name = parent[name]
        return name

    for program in programs:
        for left, right in (pair for outline in program.outlines for pair in outline.compared):
            parent[find(right)] = find(left)
    return {name: find(name) for name in parent}
