"""Handles events pushed one at a time: most decide nothing, and the others are matched in plain Python.

A round of the columnar engine has a fixed cost, however few events it gets. So single events are buffered
here as dictionaries, by leaf and key, and the matches that an event decides are looked up. The engine gets
the events later, many at once, and treats their matches as emitted. It runs a round only where a search would
visit too many events, or where the matches cannot be shown without it.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from nestream.engine.event_buffer import MOST_TYPES
from nestream.engine.matcher import END
from nestream.engine.native import NativeProgram
from nestream.engine.ordering import told_by_last
from nestream.engine.retention import LEAST
from nestream.engine.single.formulas import Binding, Formulas, OwnFunctionError, Row, Value
from nestream.engine.single.matcher import Ready, SingleMatcher
from nestream.engine.single.search import TooManyError
from nestream.engine.single.stacks import position
from nestream.model.expression import Attribute
from nestream.model.output import CompositeColumn, EventColumn, GroupColumn
from nestream.runtime.layers import LayeredRun
from nestream.runtime.local import LocalRun
from nestream.runtime.plain_events import Check, as_time, check_of, reader, shown_as
from nestream.runtime.progress import Progress
from nestream.runtime.reorder_buffer import Times

_PATIENCE = 16
"""After this many searches in a row that the engine had to take over, no more are tried."""


_MOST_NAMES = 4096
"""How many attributes are remembered as known."""


class Single:
    """The state of a stream for single events; it takes over from the progress of the stream."""

    def __init__(
        self,
        progress: Progress,
        programs: list[NativeProgram],
        whole: bool,
        held: list[dict[str, Any]],
        waiting: list[list[dict[str, Any]]],
    ) -> None:
        run = progress.run
        self.schema = run.schema
        self.patience = progress.patience
        self.whole = whole
        self._names = list(self.schema.columns)
        self._checks: dict[str, Check] = {}
        for name, datatype in self.schema.columns.items():
            check = check_of(datatype)
            assert check is not None, f"column {name} needs the engine"
            self._checks[name] = check
        time = self.schema.columns[self.schema.time]
        self._time_name, self._type_name = self.schema.time, self.schema.type
        self._time = as_time(time, self.schema.per_microsecond)
        self._zones = {
            name: pa.lib.string_to_tzinfo(datatype.tz)
            for name, datatype in self.schema.columns.items()
            if pa.types.is_timestamp(datatype) and datatype.tz is not None
        }
        formulas = Formulas(lambda name: reader(name, self.schema), self.schema.per_microsecond)
        self.matcher = SingleMatcher(programs, run.store.leaves, formulas)
        self._knows = self.matcher.stacks.knows
        self.shown = Shown.of(run, formulas) if isinstance(run, LocalRun) else None
        self._waiting: list[tuple[int, int, dict[str, Any]]] = []
        self._arrivals = 0
        self._given_up = 0
        self._types = set(run.store.types) if run.store.any_type else None
        self.greatest = LEAST if progress.greatest is None else progress.greatest
        reached = progress.watermark
        self.watermark = LEAST if reached is None else reached
        self._begin(progress, held, waiting)

    @classmethod
    def of(cls, progress: Progress, *, whole: bool) -> Single | None:
        """The state for single events; None if the query or its columns need the engine.

        A query needs it if it has KEEP, groups or a function of the user's own, or reads composite events. A
        column needs it if `check_of` has no check for its type.
        """
        run = progress.run
        if isinstance(run, LayeredRun):
            return None
        programs = [run.program] if isinstance(run, LocalRun) else [one.program for one in run.runs]
        known = [
            one
            for one in programs
            if isinstance(one, NativeProgram) and one.keep is None and not one.has_groups
        ]
        columns = run.schema.columns
        if len(known) < len(programs) or any(check_of(datatype) is None for datatype in columns.values()):
            return None
        if pa.types.is_null(columns[run.schema.time]) or pa.types.is_null(columns[run.schema.type]):
            return None
        run.store.seal()
        held = _events(run.store.payload)
        waiting = [_events(part.table) for part in progress.waiting.parts]
        if held is None or None in waiting:
            return None
        try:
            return cls(progress, known, whole, held, [part for part in waiting if part is not None])
        except OwnFunctionError:
            return None

    def _begin(
        self, progress: Progress, held: list[dict[str, Any]], waiting: list[list[dict[str, Any]]]
    ) -> None:
        """Take over the events that the engine holds and those that wait for the watermark."""
        run = progress.run
        store = run.store
        rows = zip(
            store.ts.tolist(),
            (store.pos + store.base).tolist(),
            store.type_names().to_pylist(),
            held,
            strict=True,
        )
        for time, place, type, event in rows:
            event[self._type_name] = type
            self.matcher.add(type, (time, place, self._whole(event)))
        self.matcher.pass_over(run.decided)
        self.matcher.seen = store.seen
        for part, events in zip(progress.waiting.parts, waiting, strict=True):
            for time, event in zip(part.times.tolist(), events, strict=True):
                heapq.heappush(self._waiting, (time, self._arrivals, event))
                self._arrivals += 1

    # -- events --------------------------------------------------------------------------------------------

    def time_of(self, event: Any) -> int | None:
        """The time of an event that every column takes unchanged; None for any other event."""
        if event.__class__ is not dict:
            return None
        checks = self._checks
        try:
            for name, value in event.items():
                if not checks[name](value):
                    return None
        except KeyError:
            return self.time_of(event) if self._learns(event) else None
        moment = event.get(self._time_name)
        if moment is None or event.get(self._type_name) is None:
            return None
        if self._types is not None and not self._is_numbered(event[self._type_name]):
            return None
        time = self._time(moment)
        return time if time != END else None

    def _learns(self, event: dict[Any, Any]) -> bool:
        """Whether the query reads none of the attributes without a column; they are ignored from now on."""
        unknown = [name for name in event if name not in self._checks]
        is_text = all(name.__class__ is str for name in unknown)
        if self.whole or not is_text or len(self._checks) + len(unknown) > _MOST_NAMES:
            return False
        self._checks |= dict.fromkeys(unknown, _anything)
        return True

    def _is_numbered(self, type: str) -> bool:
        """Whether the engine can still number the event's type, where the query takes any type."""
        assert self._types is not None
        if type not in self._types and len(self._types) < MOST_TYPES:
            self._types.add(type)
        return type in self._types

    def take(self, event: dict[str, Any], time: int) -> list[dict[str, Any]] | None:
        """Take an event that is not late; return the matches it decides, or None if the engine must run."""
        if self._zones:
            for name, zone in self._zones.items():
                if event.get(name) is not None:
                    event[name] = event[name].astimezone(zone)
        ready = self._ready(event, time)
        return self._matches(ready) if ready else []

    def absorb(self, table: pa.Table, times: Times) -> bool:
        """Take events that are not late and whose matches the engine emits; return whether it can."""
        events = _events(table)
        if events is None:
            return False
        for event, time in zip(events, times.tolist(), strict=True):
            self._ready(event, time)
        return True

    def _ready(self, event: dict[str, Any], time: int) -> list[Ready]:
        """Take an event; return the events that decide something now."""
        if time > self.greatest:
            self.greatest = time
            if time - self.patience > self.watermark:
                self.watermark = time - self.patience
        if not self.patience:
            self._settle(time, event)
        else:
            heapq.heappush(self._waiting, (time, self._arrivals, event))
            self._arrivals += 1
            while self._waiting and self._waiting[0][0] <= self.watermark:
                settled, _, first = heapq.heappop(self._waiting)
                self._settle(settled, first)
        return self.matcher.ready(self.watermark)

    def _settle(self, time: int, event: dict[str, Any]) -> None:
        type = event[self._type_name]
        matcher = self.matcher
        if self._knows(type):
            matcher.add(type, (time, matcher.seen, self._whole(event)))
        else:
            matcher.seen += 1

    def _whole(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event with all columns, in their order."""
        names = self._names
        return event if list(event) == names else {name: event.get(name) for name in names}

    def _matches(self, ready: list[Ready]) -> list[dict[str, Any]] | None:
        if self._given_up >= _PATIENCE:
            return None
        try:
            found = [match for operator, row, leaf in ready for match in operator.matches(row, leaf)]
        except TooManyError:
            self._given_up += 1
            return None
        self._given_up = 0
        if not found:
            return []
        return None if self.shown is None else self.shown.matches([match.binding for match in found])

    @property
    def is_worth_it(self) -> bool:
        """Whether some of the last searches ended before they gave up."""
        return self._given_up < _PATIENCE

    def table(self, events: list[dict[str, Any]]) -> pa.Table:
        """The taken events as a table, for the engine; those that no match needs are forgotten here."""
        self.matcher.expire(self.watermark)
        return pa.table(
            {
                name: pa.array([event.get(name) for event in events], datatype)
                for name, datatype in self.schema.columns.items()
            }
        )


class Shown:
    """Converts matches to dictionaries, equal to the rows of the table of matches."""

    def __init__(
        self, run: LocalRun, columns: list[tuple[str, Value | str]], converted: Mapping[str, Any]
    ) -> None:
        self.columns = columns
        self.converted = converted
        self.kept = run.output.kept
        self.time = run.schema.time
        self.first, self.last = run.edges

    @classmethod
    def of(cls, run: LocalRun, formulas: Formulas) -> Shown | None:
        """How matches are shown; None if only the engine can, or must remember those it emitted.

        It must remember them if a projection may find a match again with a later event. Only the engine shows
        composite events, groups, and returned values for whose type `shown_as` has no conversion.
        """
        program = run.program
        if program.distinct and not told_by_last(program, at_once=False):
            return None
        columns: list[tuple[str, Value | str]] = []
        converted: dict[str, Any] = {}
        for column in run.output.columns:
            if isinstance(column, EventColumn):
                columns.append((column.name, column.variable))
                continue
            if isinstance(column, GroupColumn | CompositeColumn):
                return None
            expression = column.expression
            if isinstance(expression, Attribute):
                columns.append((column.name, _plain(expression, run.schema.column(expression.name))))
                continue
            convert = shown_as(run.wanted.field(column.name).type)
            if convert is None:
                return None
            columns.append((column.name, formulas.value(expression)))
            converted[column.name] = convert
        return cls(run, columns, converted)

    def matches(self, bindings: list[Binding]) -> list[dict[str, Any]]:
        """The matches in output order: by their ends, then by the positions of their events."""
        kept = self.kept
        ordered: dict[tuple[int, ...], tuple[Binding, Row, Row]] = {}
        for binding in bindings:
            first, last = self._edges(binding)
            positions = [binding[name][1] if name in binding else -1 for name in kept]
            ordered.setdefault((last[0], *positions), (binding, first, last))
        return [self._match(*ordered[key]) for key in sorted(ordered)]

    def _edges(self, binding: Binding) -> tuple[Row, Row]:
        """The first and the last event of a match."""
        if self.first is not None and self.last is not None:
            return binding[self.first], binding[self.last]
        rows = [binding[name] for name in self.kept if name in binding]
        return min(rows, key=position), max(rows, key=position)

    def _match(self, binding: Binding, first: Row, last: Row) -> dict[str, Any]:
        match: dict[str, Any] = {}
        for name, shown in self.columns:
            if isinstance(shown, str):
                match[name] = binding[shown][2].copy() if shown in binding else None
            elif name in self.converted:
                match[name] = self.converted[name](shown(binding))
            else:
                match[name] = shown(binding)
        match["match_start"] = first[2].get(self.time)
        match["match_end"] = last[2].get(self.time)
        return match


def _events(table: pa.Table) -> list[dict[str, Any]] | None:
    """The events of a table as dictionaries; None if one has a time that Python cannot represent."""
    try:
        return table.to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
    except (ValueError, OverflowError):
        return None


def _anything(value: Any) -> bool:
    return True


def _plain(attribute: Attribute, column: str) -> Value:
    """The value of a column of a variable's event, as it arrived."""
    variable = attribute.variable or ""
    return lambda binding: binding[variable][2].get(column) if variable in binding else None
