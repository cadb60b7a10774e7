"""The events that matches were found in: the places of a match's events, and what its negations examined."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.model.columns import computable, to_table
from nestream.model.python_rows import python_rows
from nestream.model.schema import Schema
from nestream.show.moments import Moments, parsed
from nestream.why.matches import FoundMatch, MatchEvidence
from nestream.why.words import plain

MOST_ALIKE = 10_000
"""How many events of one time are compared."""


class Around:
    """A table of events. An event is identified by its time, its type and all its attributes.

    `first` is the number of row 0 for people.
    """

    def __init__(self, events: Any, first: int = 0, **how: Any) -> None:
        self.time, self.type = how["time"], how["type"]
        self.table = _with_roles(to_table(events, self.type, self.time), self.time, self.type)
        self.first = first
        self._how = how
        self._evidence: dict[int, MatchEvidence] = {}
        names = self.table.schema
        schema = Schema({name: names.field(name).type for name in names.names}, self.time, self.type)
        self.moments = Moments.of_column(schema.columns[self.time])
        scale = schema.per_microsecond if self.moments.is_clock else 1
        times = np.asarray(computable(self.table.column(self.time), schema.unit, self.time))
        self.times: npt.NDArray[np.int64] = times // scale
        self._order = np.argsort(self.times, kind="stable")
        self._sorted = self.times[self._order]

    def row(
        self, event: Mapping[str, Any], number: int | None = None, taken: Collection[int] = ()
    ) -> int | None:
        """The row of a number, or the first unused row with that event; None if there is none."""
        if number is not None and 0 <= number - self.first < self.table.num_rows:
            return number - self.first
        at = self.moments.number(event.get(self.time))
        if at is None:
            return None
        low, high = (int(np.searchsorted(self._sorted, at, side)) for side in ("left", "right"))
        rows = [int(row) for row in self._order[low : min(high, low + MOST_ALIKE)]]
        known = [name for name in event if name in self.table.column_names and name != self.time]
        held = python_rows(self.table.select(known).take(pa.array(rows, pa.int64())))
        for row, found in zip(rows, held, strict=True):
            if row not in taken and all(_same(found[name], event[name]) for name in known):
                return row
        return None

    def events(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """The events of some rows."""
        return python_rows(self.table.take(pa.array(rows, pa.int64())))

    def between(self, low: int, high: int, kinds: Collection[str]) -> list[int]:
        """The rows of the events of some types between two times, in time order."""
        first, last = (int(np.searchsorted(self._sorted, at, side)) for at, side in _ends(low, high))
        rows = self._order[first:last]
        types = self.table.column(self.type).take(pa.array(rows)).to_pylist()
        return [int(row) for row, kind in zip(rows, types, strict=True) if kind in kinds]

    def found(self, query: Any, rows: Mapping[str, int]) -> FoundMatch | None:
        """The match with these rows, and what its negations and groups examined."""
        known = self._evidence.get(id(query))
        if known is None:
            table, schema = query.read(self.table, **self._how)
            known = self._evidence[id(query)] = MatchEvidence(query, table, schema, self.first)
        return known.of(rows)


def _with_roles(table: pa.Table, time: str, type: str) -> pa.Table:
    """The events; if there are none, with the columns that any event would have."""
    if table.num_rows:
        return table
    for name, datatype in ((time, pa.int64()), (type, pa.string())):
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(0, datatype))
    return table


def _ends(low: int, high: int) -> tuple[tuple[int, Any], tuple[int, Any]]:
    return (low, "left"), (high, "right")


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same, even if one of them came through JSON."""
    if one is None or other is None:
        return one is other
    if one == other:
        return True
    if isinstance(one, str) == isinstance(other, str):
        return bool(plain(one) == plain(other))
    text, value = (one, other) if isinstance(one, str) else (other, one)
    moment = parsed(text)
    if moment is not None and hasattr(value, "isoformat"):
        return Moments.of((moment,)).number(moment) == Moments.of((value,)).number(value)
    return bool(text == str(plain(value)))
