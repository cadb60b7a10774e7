"""The events that can matter to some picked ones: those within a window of them, of the types in the query.

Positions are those of the whole input, so that windows of events and arrival order keep their meaning. Only
the events in reach become objects, so a question about a million events stays a small one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nestream.logical.nodes import Plan, expressions, leaves
from nestream.model.columns import computable, field_of
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import TIME_ATTRIBUTE, TYPE_ATTRIBUTE, attributes
from nestream.model.schema import EventError, Schema
from nestream.model.time import WindowKind
from nestream.reference import Event, Interval, Limit, Meaning

Numbers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
MOST_EVENTS = 20_000
"""How many events of the intervals of a known match are searched."""


class TooManyWaysError(EventError):
    """A question that would take too long to answer."""

    def __init__(self) -> None:
        super().__init__(
            "there are too many combinations of events to look through\n"
            "  hint: pick an event for each variable, or give fewer events"
        )


class Index:
    """Events by type, and within a type by the value of an attribute, in position order."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.by_type: dict[str, list[Event]] = {}
        for event in events:
            self.by_type.setdefault(event.type, []).append(event)
        self._by_value: dict[tuple[str, str], dict[Any, list[Event]]] = {}

    def having(self, type: str, attribute: str, value: Any) -> list[Event]:
        """The events of a type with that value."""
        key = (type, attribute)
        if key not in self._by_value:
            groups: dict[Any, list[Event]] = {}
            for event in self.by_type.get(type, ()):
                groups.setdefault(event[attribute], []).append(event)
            self._by_value[key] = groups
        return self._by_value[key].get(value, [])


@dataclass(frozen=True)
class Reach:
    """The picked events, and all others that their match or its negations could contain.

    `index` may hold more: those in reach are at the positions from `low` up to `high`.
    """

    picked: tuple[Event, ...]
    events: tuple[Event, ...] = field(repr=False)
    index: Index = field(repr=False)
    low: int
    high: int

    def of_types(self, types: Iterable[str], having: tuple[str, Any] | None = None) -> list[Event]:
        """The events of some types, optionally with a value of an attribute, in position order."""
        found: list[Event] = []
        names = dict.fromkeys(types)
        if ANY_TYPE in names:
            names = dict.fromkeys(self.index.by_type)
        for name in names:
            known = self.index.by_type.get(name, []) if having is None else self.index.having(name, *having)
            found += known[bisect_left(known, self.low, key=_pos) : bisect_left(known, self.high, key=_pos)]
        return found if len(names) == 1 else sorted(found, key=_pos)

    def inside(self, interval: Interval, meaning: Meaning) -> Reach:
        """The events in an interval: from the first past its left end up to the first past its right one."""
        events = self.events
        first = bisect_left(events, True, key=lambda event: meaning.within(event, interval.left, 1))
        last = bisect_left(events, True, key=lambda event: not meaning.within(event, interval.right, -1))
        inner = events[first:last]
        low = inner[0].pos if inner else self.high
        return Reach(self.picked, inner, self.index, low, inner[-1].pos + 1 if inner else low)


def _pos(event: Event) -> int:
    return event.pos


class Timeline:
    """All events by time: the position of each row, and the rows in reach of others."""

    def __init__(self, table: pa.Table, schema: Schema) -> None:
        self.table = table
        self.schema = schema
        self.times: Numbers = np.asarray(computable(table.column(schema.time), schema.unit, schema.time))
        self.order: Numbers = np.argsort(self.times, kind="stable")
        self.position: Numbers = np.empty_like(self.order)
        self.position[self.order] = np.arange(len(self.order))

    def check(self, rows: Sequence[int]) -> None:
        """Raise for a row that does not exist."""
        for row in rows:
            if not 0 <= row < self.table.num_rows:
                raise EventError(
                    f"there is no event {row}: the {self.table.num_rows} events are numbered from 0"
                    f" to {self.table.num_rows - 1}"
                    if self.table.num_rows
                    else f"there is no event {row}: there are no events at all"
                )

    def around(self, rows: Sequence[int], plan: Plan, meaning: Meaning) -> Reach:
        """The events in reach of the picked rows."""
        return self._reach(self._span(rows, plan, meaning), rows, plan)

    def covering(self, intervals: Iterable[Interval], rows: Sequence[int], plan: Plan) -> Reach:
        """The events of some intervals, and those of the picked rows."""
        ends = [(self._place(one.left, "left"), self._place(one.right, "right")) for one in intervals]
        low = min((first for first, _ in ends), default=0)
        high = max((last for _, last in ends), default=0)
        if high - low > MOST_EVENTS:
            raise TooManyWaysError
        return self._reach(self.order[low:high], rows, plan)

    def _place(self, limit: Limit, side: Literal["left", "right"]) -> int:
        """The position before which, or up to which, the events of an interval lie."""
        at = limit.at.ts if isinstance(limit.at, Event) else limit.at
        if at is None:
            return 0 if side == "left" else len(self.order)
        if limit.measure == "position":
            return min(max(at + (side == "right"), 0), len(self.order))
        return int(np.searchsorted(self._ordered, _bounded(at), side))

    @cached_property
    def _ordered(self) -> Numbers:
        return self.times[self.order]

    def _reach(self, ordered: Numbers, rows: Sequence[int], plan: Plan) -> Reach:
        types = sorted({name for leaf in leaves(plan.root) for name in leaf.types})
        wanted = ordered[self._of_types(self.table.column(self.schema.type).take(pa.array(ordered)), types)]
        chosen = np.unique(np.concatenate([self.position[wanted], self.position[np.array(rows, np.int64)]]))
        events = self._events(self.order[chosen], plan)
        own = {event.row: event for event in events}
        low, high = events[0].pos, events[-1].pos + 1
        return Reach(tuple(own[row] for row in rows), tuple(events), Index(events), low, high)

    def _of_types(self, column: pa.ChunkedArray, types: Sequence[str]) -> Booleans:
        """Which types of a column are among some."""
        if ANY_TYPE in types:
            return np.ones(len(column), dtype=bool)
        named = pc.is_in(column, value_set=pa.array(list(types), pa.string()).cast(self._type_kind()))
        return np.asarray(named.combine_chunks().to_numpy(zero_copy_only=False), dtype=bool)

    def _type_kind(self) -> pa.DataType:
        kind = self.schema.columns[self.schema.type]
        if pa.types.is_dictionary(kind):
            return kind.value_type
        return pa.string() if pa.types.is_null(kind) else kind

    def _span(self, rows: Sequence[int], plan: Plan, meaning: Meaning) -> Numbers:
        """The rows, in order, within a window of any picked one; some may not be part of a match."""
        if plan.window.kind is WindowKind.UNBOUNDED:
            return self.order
        picked = np.array(rows, np.int64)
        ordered = self._ordered
        if plan.window.kind is WindowKind.EVENTS:
            taken = self.position[picked]
            first, last = int(taken.min()) - meaning.window, int(taken.max()) + meaning.window
            last = min(last, len(self.order) - 1)  # a root AND extends to the end of its last event's time
            end = int(np.searchsorted(ordered, ordered[last], "right"))
            return self.order[max(first, 0) : end]
        at = [int(time) for time in self.times[picked]]  # a window may reach beyond 64 bits
        first = int(np.searchsorted(ordered, _bounded(min(at) - meaning.window), "left"))
        last = int(np.searchsorted(ordered, _bounded(max(at) + meaning.window), "right"))
        return self.order[first:last]

    def events(self, rows: Sequence[int], plan: Plan) -> list[Event]:
        """The events of some rows, in their order."""
        return self._events(np.array(rows, np.int64), plan)

    def _events(self, rows: Numbers, plan: Plan) -> list[Event]:
        part = self.table.take(pa.array(rows))
        read = {attribute.name for formula in expressions(plan) for attribute in attributes(formula)}
        held = {name: self.schema.column(name) for name in read - {TIME_ATTRIBUTE, TYPE_ATTRIBUTE}}
        columns: dict[str, list[Any]] = {
            name: computable(field_of(part.column(column), name), self.schema.unit, column).to_pylist()
            for name, column in held.items()
            if column in self.schema.columns
        }
        types = part.column(self.schema.type).to_pylist()
        return [
            Event(
                int(self.position[row]),
                int(self.times[row]),
                str(types[place]),
                {name: column[place] for name, column in columns.items()},
                int(row),
            )
            for place, row in enumerate(rows)
        ]

    def nearest(self, types: Sequence[str], time: int) -> tuple[int, int] | None:
        """The row and time of the nearest event of some types, wherever it is."""
        rows = np.flatnonzero(self._of_types(self.table.column(self.schema.type), types))
        if not len(rows):
            return None
        row = int(rows[np.argmin(np.abs(self.times[rows].astype(np.float64) - time))])
        return row, int(self.times[row])


def _bounded(time: int) -> int:
    return max(min(time, 2**63 - 1), -(2**63))
