"""A query over events that keep coming: push events or batches, get matches as soon as they are decided.

Events may be late by the allowed lateness: they wait until the watermark (the greatest time seen, less the
lateness) has reached them, and are then taken by time and arrival. Events behind the watermark go to the late
output, events that cannot be read to the dead letters; both are counted. How the events are split into
batches never changes the matches.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from nestream.engine.matcher import END
from nestream.model.arithmetic import DIGITS
from nestream.model.columns import computable, per_microsecond, to_table
from nestream.model.diagnostics import QueryError
from nestream.model.schema import EventError, Schema
from nestream.runtime.many import AnyRun
from nestream.runtime.state import SavedState, StateError
from nestream.runtime.waiting import Waiting

Start = Callable[[Schema], AnyRun]
"""Makes a run for events of a schema; raises where the query does not fit it."""


class Stream:
    """A running query.

    `late` and `dead_letter` are called with each event that is too late, or that cannot be read and why.
    """

    def __init__(
        self,
        start: Start,
        identity: str,
        mentioned: Iterable[str],
        *,
        time: str,
        type: str,
        schema: Schema | None = None,
        lateness: int | timedelta = 0,
        late: Callable[[dict[str, Any]], None] | None = None,
        dead_letter: Callable[[Any, str], None] | None = None,
        limit: int | None = None,
    ) -> None:
        self._start = start
        self._identity = identity
        self._mentioned = [name for name in mentioned if name not in ("ts", "type")]
        self.time = time
        self.type = type
        self._types = schema.types if schema is not None else {}
        self.lateness = lateness
        self._patience = 0
        self._run: AnyRun | None = None
        if schema is not None:
            self._run = self._begun(schema)
        self._fixed = schema is not None
        self._late = late
        self._dead_letter = dead_letter
        self._waiting = Waiting()
        self._pending: list[Mapping[str, Any]] = []
        self._greatest: int | None = None
        self._limit = limit
        self._finished = False
        self.late_count = 0
        self.dead_count = 0
        self.events_in = 0
        self.matches_out = 0

    # -- events in, matches out ----------------------------------------------------------------------------

    def push(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Take one event; the matches it decides, each a dictionary."""
        self._refuse_if_finished()
        if not isinstance(event, Mapping):
            self._bury(event, f"an event is a dictionary, not a {event.__class__.__name__}")
            return []
        self._pending.append(event)
        if not self._is_awaited(event):
            return []
        return self._flush()

    def push_batch(self, events: Any) -> pa.Table:
        """Take events in the order of their arrival; the matches they decide, as a table."""
        self._refuse_if_finished()
        self._take_pending()
        return self._joined(list(self._take(self._readable(to_table(events, self.type)))))

    def finish(self) -> list[dict[str, Any]]:
        """Say that no more events come: the matches that this decides."""
        return self.finish_batch().to_pylist()  # type: ignore[no-any-return]

    def finish_batch(self) -> pa.Table:
        """The same as `finish`, as a table."""
        self._take_pending()
        self._finished = True
        if self._run is None:
            return pa.table({})
        self._settle(END)
        return self._joined(list(self._advance(END)))

    def run(self, events: Iterable[Any]) -> Iterator[dict[str, Any]]:
        """The matches over an iterable of events (dictionaries) or batches of them, as they are decided."""
        if isinstance(events, pa.Table | pa.RecordBatch | Mapping):
            events = [to_table(events, self.type)]
        for event in events:
            if isinstance(event, Mapping):
                yield from self.push(event)
            else:
                yield from self.push_batch(event).to_pylist()
            if self._limit is not None and self.matches_out >= self._limit:
                return
        yield from self.finish()

    def _joined(self, tables: list[pa.Table]) -> pa.Table:
        """The matches together, up to the LIMIT of the query, counted."""
        if self._run is None:
            return pa.table({})
        found = pa.concat_tables(tables) if tables else self._run.wanted.empty_table()
        if self._limit is not None:
            found = found.slice(0, max(self._limit - self.matches_out, 0))
        self.matches_out += found.num_rows
        return found

    def _refuse_if_finished(self) -> None:
        if self._finished:
            raise ValueError("the stream is finished and takes no more events\n  hint: start a new stream")

    # -- one event at a time -------------------------------------------------------------------------------

    def _is_awaited(self, event: Mapping[str, Any]) -> bool:
        """Whether the event may decide a match, or is a dead letter, so that it must be looked at now."""
        run = self._run
        if run is None or self.lateness or len(self._pending) >= 4096 or run.awaits_time:
            return True
        kind = event.get(self.type)
        return not isinstance(kind, str) or kind in run.awaited_types or event.get(self.time) is None

    def _flush(self) -> list[dict[str, Any]]:
        """Take the pending events; the matches they decide."""
        pending, self._pending = self._pending, []
        return [match for events in self._taken(pending) for match in self._joined(events).to_pylist()]

    def _take_pending(self) -> None:
        """Take the pending events, none of which can decide a match."""
        decided = self._flush()
        assert not decided

    def _taken(self, events: list[Mapping[str, Any]]) -> Iterator[list[pa.Table]]:
        """The matches of the events, taken together, or one by one where they do not fit together."""
        if not events:
            return
        try:
            yield list(self._take(self._readable(self._events_table(events))))
        except _UNFIT as problem:
            if len(events) > 1:
                for event in events:
                    yield from self._taken([event])
            else:
                self._bury(events[0], f"a value does not fit its column: {problem}")

    def _events_table(self, events: list[Mapping[str, Any]]) -> pa.Table:
        """The events as a table with the columns of the schema, and more where an event has them."""
        known = self._run.schema.columns if self._run is not None else {}
        named = (name for event in events for name in event)
        names = dict.fromkeys([*known, self.time, self.type, *named])
        return pa.table(
            {
                name: _column(
                    [event.get(name) for event in events],
                    known.get(name),
                    fixed=self._fixed or name in (self.time, self.type),
                )
                for name in names
            }
        )

    # -- batches -------------------------------------------------------------------------------------------

    def _readable(self, table: pa.Table) -> pa.Table:
        """The events with a time and a type; the others are dead letters."""
        if table.num_rows == 0:
            return table
        for role, name in (("time", self.time), ("type", self.type)):
            if name not in table.column_names:
                self._bury_all(table, f"no {role}: there is no column `{name}`")
                return table.slice(0, 0)
            column = table.column(name)
            if column.null_count:
                missing = column.is_null()
                self._bury_all(table.filter(missing), f"no {role}: `{name}` is NULL")
                table = table.filter(column.is_valid())
        return table

    def _bury_all(self, table: pa.Table, reason: str) -> None:
        for event in table.to_pylist():
            self._bury(event, reason)

    def _bury(self, event: Any, reason: str) -> None:
        self.dead_count += 1
        if self._dead_letter is not None:
            self._dead_letter(event, reason)
        elif self.dead_count == 1:
            said = f"an event was left out: {reason}\n  hint: pass dead_letter=... to get such events"
            warnings.warn(said, stacklevel=2)

    def _take(self, table: pa.Table) -> Iterator[pa.Table]:
        """Fit the events to the schema, set late ones aside, and give what the others decide."""
        if self._run is None and table.num_rows == 0:
            return
        table = self._fitted(table)
        run = self._run
        assert run is not None
        if table.num_rows:
            times = computable(table.column(self.time), run.unit, self.time).to_numpy(zero_copy_only=False)
            self.events_in += table.num_rows
            table, times = self._on_time(table, times)
        if table.num_rows:
            self._greatest = (
                max(int(times.max()), self._greatest) if self._greatest is not None else int(times.max())
            )
            self._waiting.add(table, times)
        if self._greatest is None:
            return
        watermark = self._greatest - self._patience
        self._settle(watermark)
        yield from self._advance(watermark)

    def _on_time(self, table: pa.Table, times: Any) -> tuple[pa.Table, Any]:
        """The events that are not behind the watermark at their arrival."""
        before = np.maximum.accumulate(times)
        floor = np.concatenate(([times[0]], before[:-1]))
        if self._greatest is not None:
            floor = np.maximum(floor, self._greatest)
        late = times < floor - self._patience
        if not late.any():
            return table, times
        behind = table.filter(pa.array(late))
        self.late_count += behind.num_rows
        if self._late is not None:
            for event in behind.to_pylist():
                self._late(event)
        return table.filter(pa.array(~late)), times[~late]

    def _settle(self, watermark: int) -> None:
        """Hand the engine the events up to the watermark, by time and arrival."""
        run = self._run
        assert run is not None
        ready = self._waiting.settled(watermark)
        if ready is not None:
            run.append(ready)

    def _advance(self, watermark: int) -> Iterator[pa.Table]:
        assert self._run is not None
        yield from self._run.advance(watermark)

    # -- the schema ----------------------------------------------------------------------------------------

    def _fitted(self, table: pa.Table) -> pa.Table:
        """The events with exactly the columns of the schema, which grows where they have more."""
        if self._run is not None and table.schema.equals(self._run.events):
            return table
        known = dict(self._run.schema.columns) if self._run is not None else {}
        wanted = dict(known)
        for name in (*table.column_names, *self._mentioned):
            found = table.schema.field(name).type if name in table.column_names else pa.null()
            if name in known and (self._fixed or name in (self.time, self.type)):
                continue
            wanted[name] = _common_type(wanted.get(name), found)
        if wanted != known:
            self._grow(wanted)
        columns = []
        for name, datatype in wanted.items():
            if name not in table.column_names:
                columns.append(pa.nulls(table.num_rows, datatype))
                continue
            try:
                column = table.column(name)
                columns.append(column if column.type == datatype else column.cast(datatype))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
                raise EventError(f"column `{name}` does not fit {datatype}: {problem}") from None
        return pa.table(dict(zip(wanted, columns, strict=True)))

    def _grow(self, columns: dict[str, pa.DataType]) -> None:
        """Go on with more columns: start anew from the state, which is only events."""
        old, self._run = self._run, self._begun(Schema(columns, self.time, self.type, self._types))
        if old is not None:
            numbers, tables = old.save()
            self._run.load(numbers, {**tables, "held": self._widened(tables["held"])})
        self._waiting = self._waiting.mapped(self._widened)

    def _begun(self, schema: Schema) -> AnyRun:
        """A run for events of the schema; the lateness is then in the resolution of its times."""
        run = self._start(schema)
        self._patience = _in_resolution(self.lateness, schema.columns[self.time], run.unit)
        return run

    def _widened(self, table: pa.Table) -> pa.Table:
        assert self._run is not None
        for name, datatype in self._run.schema.columns.items():
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(table.num_rows, datatype))
            elif table.schema.field(name).type != datatype:
                place = table.schema.get_field_index(name)
                table = table.set_column(place, name, table.column(name).cast(datatype))
        return table

    # -- state ---------------------------------------------------------------------------------------------

    def save(self) -> bytes:
        """The state, from which another process can go on."""
        self._take_pending()
        if self._run is None:
            return SavedState(self._identity, {"counts": self._counts()}, {}).to_bytes()
        numbers, tables = self._run.save()
        if len(self._waiting):
            tables["waiting"] = pa.concat_tables(self._waiting.tables())
        numbers = {**numbers, "greatest": self._greatest, "counts": self._counts()}
        schema = pa.schema(list(self._run.schema.columns.items())).empty_table()
        return SavedState(self._identity, numbers, {**tables, "schema": schema}).to_bytes()

    def flush(self) -> list[dict[str, Any]]:
        """Look at the events pushed one by one that wait for a later one to decide something."""
        return self._flush()

    def restore(self, data: bytes) -> Stream:
        """Go on from a saved state of the same query; returns the stream itself."""
        if self.events_in or self._pending or self._finished:
            raise StateError("the stream has taken events already\n  hint: restore into a new stream")
        saved = SavedState.from_bytes(data)
        if saved.query != self._identity:
            raise StateError(
                "the state belongs to another query\n"
                f"  it was saved by:\n{_indented(saved.query)}\n  and this is:\n{_indented(self._identity)}\n"
                "  hint: start the changed query without the state, or go on with the old query"
            )
        counts = saved.numbers["counts"]
        self.late_count, self.dead_count = counts["late"], counts["dead"]
        self.events_in, self.matches_out = counts["in"], counts["out"]
        if "schema" in saved.tables:
            columns = dict(
                zip(saved.tables["schema"].schema.names, saved.tables["schema"].schema.types, strict=True)
            )
            self._run = self._begun(Schema(columns, self.time, self.type, self._types))
            self._run.load(saved.numbers, saved.tables)
            self._finished = saved.numbers["watermark"] == END
            self._greatest = saved.numbers["greatest"]
            self._waiting = Waiting()
            if "waiting" in saved.tables:
                table = saved.tables["waiting"]
                times = computable(table.column(self.time), self._run.unit, self.time)
                self._waiting.add(table, times.to_numpy(zero_copy_only=False))
        return self

    def _counts(self) -> dict[str, int]:
        return {
            "late": self.late_count,
            "dead": self.dead_count,
            "in": self.events_in,
            "out": self.matches_out,
        }

    def describe(self) -> dict[str, Any]:
        """What is held: events by leaf, bytes, the oldest time, the watermark, and the counts so far."""
        self._take_pending()
        held = self._run.describe() if self._run is not None else {"events": 0, "leaves": {}, "bytes": 0}
        return {
            **held,
            "waiting": len(self._waiting),
            "events_in": self.events_in,
            "matches_out": self.matches_out,
            "late": self.late_count,
            "dead_letters": self.dead_count,
        }


def _column(values: list[Any], known: pa.DataType | None, *, fixed: bool) -> pa.Array:
    """The values as a column of the known type, or of a wider one where they need it and it is not fixed."""
    if known is None or pa.types.is_null(known):
        return pa.array(values)
    if not fixed and any(isinstance(value, Decimal) for value in values):
        return pa.array(values, _common_type(known, pa.array(values).type))
    fractions = [
        value for value in values if isinstance(value, float | np.floating) and not float(value).is_integer()
    ]
    if not fractions or not pa.types.is_integer(known):
        return pa.array(values, known)
    if fixed:  # Arrow would cut the fraction off
        raise pa.ArrowInvalid(f"{fractions[0]} is not of type {known}")
    return pa.array(values, pa.float64())


def _common_type(known: pa.DataType | None, found: pa.DataType) -> pa.DataType:
    """The type of a column that held the known type and now has values of another."""
    if known is None or pa.types.is_null(known):
        return found
    if pa.types.is_integer(known) and pa.types.is_floating(found):
        return pa.float64()
    if pa.types.is_decimal(found) and (pa.types.is_decimal(known) or pa.types.is_integer(known)):
        one = known if pa.types.is_decimal(known) else pa.decimal128(19, 0)
        scale = max(one.scale, found.scale)
        whole = max(one.precision - one.scale, found.precision - found.scale)
        return pa.decimal128(min(whole + scale, DIGITS), scale)
    return known


_UNFIT = (EventError, QueryError, pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError)
"""What a value raises that does not fit its column, or that the query cannot compute with."""

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def _in_resolution(lateness: int | timedelta, datatype: pa.DataType, unit: str) -> int:
    """The lateness in the resolution of the times: a number is in the unit of the time column."""
    if isinstance(lateness, timedelta):
        if not pa.types.is_temporal(datatype):
            raise ValueError(
                f"the lateness is a duration, and the time column holds {datatype}\n"
                "  hint: give the lateness as a number in the unit of the column"
            )
        return lateness // timedelta(microseconds=1) * per_microsecond(unit)
    if pa.types.is_timestamp(datatype):
        return lateness * _NANOSECONDS[datatype.unit] // _NANOSECONDS[unit]
    if pa.types.is_date(datatype):
        return lateness * 86_400 * 10**9 // _NANOSECONDS[unit]
    return lateness


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
