"""A query over events that keep coming: push events or batches, get matches as soon as they are decided.

Events may be late by the allowed lateness: they wait until the watermark (the greatest time seen, less the
lateness) has reached them, and are then taken by time and arrival. Events behind the watermark go to the late
output, events that cannot be read to the dead letters; both are counted. How the events are split into
batches never changes the matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from nestream.engine.matcher import END
from nestream.model.columns import computable, to_table
from nestream.model.schema import EventError, Schema
from nestream.runtime.local import LocalRun
from nestream.runtime.state import SavedState, StateError

Start = Callable[[Schema], LocalRun]
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
        lateness: int = 0,
        late: Callable[[dict[str, Any]], None] | None = None,
        dead_letter: Callable[[Any, str], None] | None = None,
    ) -> None:
        self._start = start
        self._identity = identity
        self._mentioned = [name for name in mentioned if name not in ("ts", "type")]
        self.time = time
        self.type = type
        self._run: LocalRun | None = start(schema) if schema is not None else None
        self.lateness = lateness
        self._late = late
        self._dead_letter = dead_letter
        self._waiting: list[pa.Table] = []
        self._pending: list[Mapping[str, Any]] = []
        self._greatest: int | None = None
        self.late_count = 0
        self.dead_count = 0
        self.events_in = 0
        self.matches_out = 0

    # -- events in, matches out ----------------------------------------------------------------------------

    def push(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Take one event; the matches it decides, each a dictionary."""
        self._pending.append(event)
        if not self._is_awaited(event):
            return []
        return self._flush()

    def push_batch(self, events: Any) -> pa.Table:
        """Take events in the order of their arrival; the matches they decide, as a table."""
        tables = list(self._take(self._readable(to_table(events, self.type))))
        return self._joined(tables)

    def finish(self) -> list[dict[str, Any]]:
        """Say that no more events come: the matches that this decides."""
        matches = self._flush()
        return [*matches, *self.finish_batch().to_pylist()]

    def finish_batch(self) -> pa.Table:
        """The same as `finish`, as a table."""
        if self._run is None:
            return pa.table({})
        if self._waiting:
            self._settle(END)
        return self._joined(list(self._advance(END)))

    def run(self, events: Iterable[Any]) -> Iterator[dict[str, Any]]:
        """The matches over an iterable of events (dictionaries) or batches of them, as they are decided."""
        for event in events:
            if isinstance(event, Mapping):
                yield from self.push(event)
            else:
                yield from self.push_batch(event).to_pylist()
        yield from self.finish()

    def _joined(self, tables: list[pa.Table]) -> pa.Table:
        assert self._run is not None
        if not tables:
            return self._run.wanted.empty_table()
        self.matches_out += sum(table.num_rows for table in tables)
        return pa.concat_tables(tables)

    # -- one event at a time -------------------------------------------------------------------------------

    def _is_awaited(self, event: Mapping[str, Any]) -> bool:
        """Whether the event may decide a match, so that the pending events must be looked at now."""
        run = self._run
        if run is None or self.lateness or len(self._pending) >= 4096:
            return True
        if not run.awaits_time:
            return event.get(self.type) in run.awaited_types
        return True

    def _flush(self) -> list[dict[str, Any]]:
        pending, self._pending = self._pending, []
        if not pending:
            return []
        readable, table = self._events_table(pending)
        if not readable:
            return []
        return self._joined(list(self._take(self._readable(table)))).to_pylist()  # type: ignore[no-any-return]

    def _events_table(self, events: list[Mapping[str, Any]]) -> tuple[bool, pa.Table]:
        """The events as a table of the schema, which grows where an event has a new attribute."""
        known = self._run.schema.columns if self._run is not None else {}
        try:
            names = dict.fromkeys([*known, *(name for event in events for name in event)])
            columns = {
                name: pa.array([event.get(name) for event in events], _settled_type(known.get(name)))
                for name in names
            }
            return True, pa.table(columns)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, AttributeError, TypeError) as problem:
            if len(events) > 1:  # find the one that cannot be read
                parts = [self._events_table([event]) for event in events]
                tables = [table for readable, table in parts if readable]
                if tables:
                    return True, pa.concat_tables(tables, promote_options="permissive")
                return False, pa.table({})
            self._bury(events[0], f"an attribute does not fit its column: {problem}")
            return False, pa.table({})

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

    def _take(self, table: pa.Table) -> Iterator[pa.Table]:
        """Fit the events to the schema, set late ones aside, and give what the others decide."""
        if self._run is None and table.num_rows == 0:
            return
        table = self._fitted(table)
        run = self._run
        assert run is not None
        self.events_in += table.num_rows
        if table.num_rows:
            times = computable(table.column(self.time), run.unit, self.time).to_numpy(zero_copy_only=False)
            table, times = self._on_time(table, times)
        if table.num_rows:
            self._greatest = (
                max(int(times.max()), self._greatest) if self._greatest is not None else int(times.max())
            )
            self._waiting.append(table)
        if self._greatest is None:
            return
        watermark = self._greatest - self.lateness
        self._settle(watermark)
        yield from self._advance(watermark)

    def _on_time(self, table: pa.Table, times: Any) -> tuple[pa.Table, Any]:
        """The events that are not behind the watermark at their arrival."""
        before = np.maximum.accumulate(times)
        floor = np.concatenate(([times[0]], before[:-1]))
        if self._greatest is not None:
            floor = np.maximum(floor, self._greatest)
        late = times < floor - self.lateness
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
        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting)
        times = computable(table.column(self.time), run.unit, self.time).to_numpy(zero_copy_only=False)
        ready = times <= watermark
        if ready.all():
            self._waiting = []
        elif not ready.any():
            self._waiting = [table]
            return
        else:
            self._waiting = [table.filter(pa.array(~ready))]
            table, times = table.filter(pa.array(ready)), times[ready]
        if len(times) > 1 and (times[1:] < times[:-1]).any():
            table = table.take(pa.array(np.argsort(times, kind="stable")))
        run.append(table)

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
            if name not in wanted or (pa.types.is_null(wanted[name]) and not pa.types.is_null(found)):
                wanted[name] = found
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
        schema = Schema(columns, self.time, self.type)
        old, self._run = self._run, self._start(schema)
        if old is not None:
            numbers, tables = old.save()
            self._run.load(numbers, {n: self._widened(t) for n, t in tables.items()})
        self._waiting = [self._widened(table) for table in self._waiting]

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
        if self._run is None:
            return SavedState(self._identity, {"counts": self._counts()}, {}).to_bytes()
        if self._pending:
            raise StateError("events pushed one by one are still pending: call flush() first")
        numbers, tables = self._run.save()
        if self._waiting:
            tables["waiting"] = pa.concat_tables(self._waiting)
        numbers = {**numbers, "greatest": self._greatest, "counts": self._counts()}
        schema = pa.schema(list(self._run.schema.columns.items())).empty_table()
        return SavedState(self._identity, numbers, {**tables, "schema": schema}).to_bytes()

    def flush(self) -> list[dict[str, Any]]:
        """Look at the events pushed one by one that wait for a later one to decide something."""
        return self._flush()

    def restore(self, data: bytes) -> Stream:
        """Go on from a saved state of the same query; returns the stream itself."""
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
            self._run = self._start(Schema(columns, self.time, self.type))
            self._run.load(saved.numbers, saved.tables)
            self._greatest = saved.numbers["greatest"]
            self._waiting = [saved.tables["waiting"]] if "waiting" in saved.tables else []
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
        held = self._run.describe() if self._run is not None else {"events": 0, "leaves": {}, "bytes": 0}
        waiting = sum(table.num_rows for table in self._waiting)
        return {
            **held,
            "waiting": waiting + len(self._pending),
            "events_in": self.events_in,
            "matches_out": self.matches_out,
            "late": self.late_count,
            "dead_letters": self.dead_count,
        }


def _settled_type(datatype: pa.DataType | None) -> pa.DataType | None:
    """The type to read values as; None where it is still to be found out."""
    return None if datatype is None or pa.types.is_null(datatype) else datatype


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
